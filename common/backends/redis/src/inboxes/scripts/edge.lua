-- The follow step. KEYS: the bucket, the inbox. ARGV: layout, author (a field), expected progress ('*' for any: the edge is off),
-- expected pull watermark (as in the header), author (as in a mark), generation, the same (as in a mark), then the entries.
-- Answers 'applied', epoch, head and length, or 'missing', 'building', 'nothing', 'overtaken' or 'full'.
local key, author, generation = KEYS[2], ARGV[5], tonumber(ARGV[6])
local epoch, base, built_at, header = inbox(key)
if not epoch then return {base and building(base) and 'building' or 'missing'} end
local at, taken = mark(header, author)
if generation <= (taken or built_at) then return {'nothing'} end
if ARGV[3] ~= '*' and (progress ~= ARGV[3] or string.sub(watermarks(header), 1, 7) ~= ARGV[4]) then return {'overtaken'} end
if not taken and #header >= MARKS + 11 * MARKS_MAX - 1 then
  local steps = 0
  for last = MARKS + 10, #header, 11 do
    if string.byte(header, last) < 128 then steps = steps + 1 end
  end
  if steps >= MARKS_MAX then return {'full'} end
end

local new = author .. ARGV[7]
if at then
  header = string.sub(header, 1, at - 1) .. new .. string.sub(header, at + 11)
else
  header = header .. new
end
call('LSET', key, '0', header)
local length = push(key, ARGV, 8)
return {'applied', epoch, base + length - 1, length}
