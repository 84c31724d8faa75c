-- KEYS: the bucket. ARGV: layout, any field, then at most some hundred fields of authors. Answers 'progress' and theirs.
local reached = call('HMGET', KEYS[1], unpack(ARGV, 3))
for i = 1, #reached do reached[i] = reached[i] or '' end
return {'progress', reached}
