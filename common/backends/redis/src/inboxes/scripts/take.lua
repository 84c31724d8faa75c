-- Takes in what no push brings. KEYS: the bucket, the inbox. ARGV: layout, any field, epoch, expected and next watermarks (as in
-- the header), counter; for each entry its author as in a mark ('' if it was addressed to the reader) and its
-- generation; then the entries. Answers 'moved', epoch, head, how many were appended and length, or 'missing', 'building' or
-- 'overtaken'.
local key = KEYS[2]
local epoch, base, built_at, header = inbox(key)
if not epoch then return {base and building(base) and 'building' or 'missing'} end
if epoch ~= tonumber(ARGV[3]) or watermarks(header) ~= ARGV[4] then return {'overtaken'} end

local counter, edges, fresh = tonumber(ARGV[6]), cmsgpack.unpack(ARGV[7]), {}
for i = 8, #ARGV do
  local author = edges[2 * i - 15]
  local appends = author == '' or takes(header, built_at, author, edges[2 * i - 14], counter)
  if appends == nil then return {'overtaken'} end
  if appends then fresh[#fresh + 1] = ARGV[i] end
end

call('LSET', key, '0', string.sub(header, 1, WATERMARKS - 1) .. ARGV[5] .. string.sub(header, FLOOR))
local length = push(key, fresh, 1) or call('LLEN', key)
return {'moved', epoch, base + length - 1, #fresh, length}
