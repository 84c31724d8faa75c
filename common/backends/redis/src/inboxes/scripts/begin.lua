-- Writes a build token, unless one of this life stands. KEYS: the bucket, the inbox. ARGV: layout, any field, the token as a
-- header. Answers 'begun', 'standing' and the epoch of the token there is, or 'exists'.
local key = KEYS[2]
local epoch, header = inbox(key)
if epoch then return {'exists'} end
local answer = {'begun'}
local kind, stands = 1, 0
if header then kind, stands = parse('<BI7', header) end
if kind == 0 and stands >= least then
  answer = {'standing', stands}
else
  call('DEL', key)
  call('RPUSH', key, ARGV[3])
end
-- A token that nobody comes back for lies around for an hour.
call('PEXPIRE', key, '3600000')
return answer
