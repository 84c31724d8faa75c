-- Where inboxes stand. KEYS: the bucket, the inboxes. ARGV: layout. Answers 'stands', then epoch, head, how many entries are kept and
-- the watermarks (pull, direct) of each; epoch 0 where none is.
local stands = {}
for i = 2, #KEYS do
  local at = 5 * i - 9
  local epoch, base, _, header = inbox(KEYS[i])
  if epoch then
    local kept = call('LLEN', KEYS[i]) - 1
    local pull, direct = parse('<I7I7', header, WATERMARKS)
    stands[at], stands[at + 1], stands[at + 2], stands[at + 3], stands[at + 4] = epoch, base + kept, kept, pull, direct
  else
    stands[at], stands[at + 1], stands[at + 2], stands[at + 3], stands[at + 4] = 0, 0, 0, 0, 0
  end
end
return {'stands', stands}
