-- Deletes build tokens. KEYS: the bucket, the inboxes. ARGV: layout. Answers 'cancelled', and which inboxes exist, from 0: nothing is done
-- to those.
local there = {}
for i = 2, #KEYS do
  local epoch, base = inbox(KEYS[i])
  if epoch then
    there[#there + 1] = i - 2
  elseif base then
    call('DEL', KEYS[i])
  end
end
return {'cancelled', there}
