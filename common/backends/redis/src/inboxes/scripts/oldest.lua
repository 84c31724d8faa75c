-- Reads the oldest entries of a log that is too long. KEYS: the bucket, the inbox. ARGV: layout, any field, how many entries beyond those
-- that are to go. Answers 'oldest', how many are to go, and the header with the entries in one string; or 'short'.
local length = call('LLEN', KEYS[2])
if length <= LONG or not inbox(KEYS[2]) then return {'short'} end
local cut = length - 1 - KEEP
return {'oldest', cut, cmsgpack.pack(call('LRANGE', KEYS[2], 0, cut + ARGV[3]))}
