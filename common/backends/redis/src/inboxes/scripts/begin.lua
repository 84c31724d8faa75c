-- Writes a build token. KEYS: the bucket, the inbox. ARGV: layout, any field, the token as a header, then fields of authors.
-- Answers 'begun' and their progress, or 'exists'.
local key = KEYS[2]
if inbox(key) then return {'exists'} end
call('DEL', key)
call('RPUSH', key, ARGV[3])
-- A token that nobody comes back for lies around for an hour.
call('PEXPIRE', key, '3600000')
local reached = {}
for i = 4, #ARGV do reached[i - 3] = call('HGET', KEYS[1], ARGV[i]) or '' end
return {'begun', reached}
