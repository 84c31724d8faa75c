-- Where logs stand. KEYS: the bucket, the inboxes. ARGV: layout. Answers 'heads', then epoch and head of each, 0 where none is.
local heads = {}
for i = 2, #KEYS do
  local epoch, base = inbox(KEYS[i])
  heads[2 * i - 3] = epoch or 0
  heads[2 * i - 2] = epoch and base + call('LLEN', KEYS[i]) - 1 or 0
end
return {'heads', heads}
