-- Which inboxes there are, or are being built. KEYS: the bucket, the inboxes. ARGV: layout. Answers 'present' and which, from 0.
local present = {}
for i = 2, #KEYS do
  local epoch, header = inbox(KEYS[i])
  if epoch or header and building(header) then present[#present + 1] = i - 2 end
end
return {'present', present}
