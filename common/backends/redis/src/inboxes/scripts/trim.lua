-- Cuts a log. KEYS: the bucket, the inbox. ARGV: layout, any field, the header that was read, the new one, how many entries go.
-- The last of them makes room for the header. Answers 'cut' or 'refused'.
local key = KEYS[2]
if call('LINDEX', key, '0') ~= ARGV[3] or not inbox(key) then return {'refused'} end
call('LTRIM', key, ARGV[5], '-1')
call('LSET', key, '0', ARGV[4])
return {'cut'}
