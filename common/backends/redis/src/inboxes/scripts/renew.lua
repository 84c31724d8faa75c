-- Gives a bucket that has none a new life on this server. KEYS: the bucket. ARGV: layout, an epoch just given, the announcement
-- that was answered before it was given ('' if none was).
--
-- The new minimum must be greater than the epoch of every inbox that is here. So it must have been given after
-- what is here was: an announcement is written first, and only an epoch given while it stood there is taken.
-- The field of the announcement is called 'claim', as in v0.1.0, since two versions may renew one bucket.
-- Answers 'alive' (somebody else was faster), 'announced' and the announcement, 'renewed' and whether there was a life before, or 'back' and the epoch held.
local held = redis.call('HMGET', KEYS[1], 'layout', 'life', 'epoch', 'claim')
local replication = redis.call('INFO', 'replication')
if not string.find(replication, 'role:master', 1, true) then return {'replica'} end
if held[1] and held[1] ~= ARGV[1] then return {'layout', held[1]} end
if held[2] and string.find(replication, held[2], 1, true) then return {'alive'} end
if not held[4] or held[4] ~= ARGV[3] then
  local announcement = held[4] or ARGV[2]
  redis.call('HSET', KEYS[1], 'claim', announcement)
  return {'announced', announcement}
end
if tonumber(held[3] or 0) >= tonumber(ARGV[2]) then return {'back', held[3]} end
local life = string.match(replication, 'master_replid:%x+')
redis.call('HSET', KEYS[1], 'layout', ARGV[1], 'life', life, 'epoch', ARGV[2])
redis.call('HDEL', KEYS[1], 'claim')
return {'renewed', held[2] and 1 or 0}
