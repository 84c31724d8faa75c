
-- Follow steps of one inbox, each of another author. KEYS: the bucket, the inbox. ARGV: layout, 'epoch', then each step: author (a
-- field), expected progress ('*' for any: the edge is off), expected pull watermark (as in the header), author (as in a mark),
-- generation, the same (as in a mark), floor (as in the header), how many entries, the entries.
-- Answers 'stepped', epoch, length, and for each step where the log stands after it, or 'nothing', 'overtaken' or 'full'. Or 'missing' or
-- 'building'.
local STEP = 8
local key = KEYS[2]
local epoch, base, built_at, header = inbox(key)
if not epoch then return {base and building(base) and 'building' or 'missing'} end
local authors, at = {}, 3
while at <= #ARGV do
  authors[#authors + 1] = ARGV[at]
  at = at + STEP + tonumber(ARGV[at + STEP - 1])
end
local reached, pull = call('HMGET', KEYS[1], unpack(authors)), string.sub(watermarks(header), 1, 7)

-- How many follow steps the inbox remembers, counted once there may be too many.
local remembered
local function is_full()
  if not remembered then
    if #header < MARKS + 11 * MARKS_MAX - 1 then return false end
    remembered = 0
    for last = MARKS + 10, #header, 11 do
      if string.byte(header, last) < 128 then remembered = remembered + 1 end
    end
  end
  return remembered >= MARKS_MAX
end

-- Whether the floor `a` stands above the floor `b`. Any floor stands above none.
local function is_above(a, b)
  local x, y = {parse('<BI4i4I4I4', a)}, {parse('<BI4i4I4I4', b)}
  for _, part in ipairs({1, 3, 2, 5, 4}) do
    if x[part] ~= y[part] then return x[part] > y[part] end
  end
  return false
end

local entries, answers, head, changed = {}, {}, base + call('LLEN', key) - 1, false
at = 3
for n = 1, #authors do
  local expected, author, generation = ARGV[at + 1], ARGV[at + 3], tonumber(ARGV[at + 4])
  local count = tonumber(ARGV[at + STEP - 1])
  local place, taken = mark(header, author)
  if generation <= (taken or built_at) then
    answers[n] = 'nothing'
  elseif expected ~= '*' and ((reached[n] or '') ~= expected or pull ~= ARGV[at + 2]) then
    answers[n] = 'overtaken'
  elseif not taken and is_full() then
    answers[n] = 'full'
  else
    local new = author .. ARGV[at + 5]
    if place then
      header = string.sub(header, 1, place - 1) .. new .. string.sub(header, place + 11)
    else
      header = header .. new
    end
    if remembered and not taken then remembered = remembered + 1 end
    if is_above(ARGV[at + 6], string.sub(header, FLOOR, MARKS - 1)) then
      header = string.sub(header, 1, FLOOR - 1) .. ARGV[at + 6] .. string.sub(header, MARKS)
    end
    for i = at + STEP, at + STEP + count - 1 do entries[#entries + 1] = ARGV[i] end
    head, changed = head + count, true
    answers[n] = head
  end
  at = at + STEP + count
end
if changed then
  call('LSET', key, '0', header)
  push(key, entries, 1)
end
return {'stepped', epoch, call('LLEN', key), answers}
