-- Writes a placeholder, unless one of this life stands. KEYS: the bucket, the inbox. ARGV: layout, any field, the placeholder as a
-- header, its epoch. Answers 'begun', the epoch of the placeholder there is and how many notes are beside it, or 'exists'.
local key, ours = KEYS[2], tonumber(ARGV[4])
local epoch, header = inbox(key)
if epoch then return {'exists'} end
-- Given before a loss, with a progress that was read before it: no build of this life, and none that it may join.
if ours < least then return {'begun', ours, 0} end
local stands, notes = header and building(header), 0
if stands then
  notes = call('LLEN', key) - 1
else
  call('DEL', key)
  call('RPUSH', key, ARGV[3])
end
-- A placeholder that nobody comes back for lies around for an hour.
call('PEXPIRE', key, '3600000')
return {'begun', stands or ours, notes}
