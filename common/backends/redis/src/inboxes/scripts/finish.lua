-- Swaps a built inbox in. KEYS: the bucket, the inbox. ARGV: layout, any field, the token as a header, its epoch, when it expires
-- ('' for never), then the log: header and entries. Answers 'swapped' or 'refused'.
local key = KEYS[2]
if tonumber(ARGV[4]) < least or call('LINDEX', key, '0') ~= ARGV[3] then return {'refused'} end
call('DEL', key)
push(key, ARGV, 6)
if ARGV[5] ~= '' then call('PEXPIREAT', key, ARGV[5]) end
return {'swapped'}
