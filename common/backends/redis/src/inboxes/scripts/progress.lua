-- KEYS: the bucket. ARGV: layout, any field, then fields of authors. Answers 'progress' and theirs.
local reached = {}
for i = 3, #ARGV do reached[i - 2] = call('HGET', KEYS[1], ARGV[i]) or '' end
return {'progress', reached}
