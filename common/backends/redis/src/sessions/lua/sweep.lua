-- Drops the sessions that nodes dead for long have left with some users.
-- KEYS  bucket
-- ARGV  how many nodes, the nodes, the users

local bucket, count_of_nodes = KEYS[1], tonumber(ARGV[1])
local dead = {}
for i = 2, 1 + count_of_nodes do dead[ARGV[i]] = true end
for i = 2 + count_of_nodes, #ARGV do
  local stay = {}
  for session in string.gmatch(redis.call('HGET', bucket, ARGV[i]) or '', '[^\n]+\n') do
    if not dead[string.match(session, '%S+ %S+ %S+ (%S+)')] then stay[#stay + 1] = session end
  end
  keep(bucket, ARGV[i], table.concat(stay))
end
return 1
