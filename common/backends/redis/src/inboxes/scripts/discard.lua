-- Drops an inbox or a build token. KEYS: the bucket, the inbox. ARGV: layout.
local key = KEYS[2]
if inbox(key) then
  call('HSET', KEYS[1], 'inboxes', held[5] - 1, 'entries', held[6] - call('LLEN', key) + 1)
end
call('DEL', key)
return {'gone'}
