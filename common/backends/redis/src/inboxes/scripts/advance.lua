-- The push step. KEYS: the bucket, then the recipients' inboxes. ARGV: layout, author (a field), expected and next progress,
-- author (as in a mark); for each recipient generation, counter, how many of the records it gets, and its generation as
-- entries begin with it; the numbers of the records; then a string for each record. An entry is the two put together.
--
-- Answers 'moved', epoch and head of each recipient's inbox (0 where it has not grown), which ones are longer than LONG, and
-- which ones were built ahead of push and got fewer of the records, with how many.
local keys, recipients, author = KEYS, #KEYS - 1, ARGV[5]
if progress ~= ARGV[3] then return {'overtaken', progress} end

local edges = cmsgpack.unpack(ARGV[6])
local epochs, bases, gone, built_ahead = {}, {}, {}, {}
for i = 1, recipients do
  local epoch, base, built_at, header = inbox(keys[i + 1])
  epochs[i] = false
  if epoch then
    local appends, ahead, at = takes(header, built_at, author, edges[4 * i - 3], edges[4 * i - 2])
    if appends == nil then return {'stale'} end
    if appends then
      epochs[i], bases[i] = epoch, base
      if ahead then built_ahead[#built_ahead + 1] = {i, ahead, at, header} end
    end
  elseif base then
    gone[#gone + 1] = {i, base}
  end
end

for _, found in ipairs(gone) do
  local i, header = unpack(found)
  local key, fresh, notes = keys[i + 1], edges[4 * i - 1], {}
  if not building(header) then
    call('DEL', key)
  elseif fresh > 0 then
    local seqs, first = cmsgpack.unpack(ARGV[7]), #ARGV - fresh
    local of = author .. pack('<I7I7', edges[4 * i - 3], edges[4 * i - 2])
    for r = 1, fresh do
      notes[r] = of .. pack('<I7', seqs[#seqs - fresh + r]) .. edges[4 * i] .. ARGV[first + r]
    end
    -- Beside the notes stands the placeholder.
    if push(key, notes, 1) > NOTES_MAX + 1 then call('DEL', key) end
  end
end
local grown, long, fewer, records = {}, {}, {}, #ARGV
local newest = ARGV[records]
if #built_ahead > 0 and records > 7 then
  local seqs = cmsgpack.unpack(ARGV[7])
  for _, found in ipairs(built_ahead) do
    local i, ahead, at, header = unpack(found)
    local fresh = edges[4 * i - 1]
    while fresh > 0 and seqs[#seqs - fresh + 1] <= ahead do fresh = fresh - 1 end
    if fresh < edges[4 * i - 1] then
      edges[4 * i - 1], fewer[#fewer + 1], fewer[#fewer + 2] = fresh, i - 1, fresh
    end
    -- Push has come as far as the rebuild had.
    if seqs[#seqs] >= ahead then
      call('LSET', keys[i + 1], '0', string.sub(header, 1, at - 1) .. string.sub(header, at + 11))
    end
  end
end
for i = 1, recipients do
  local epoch, fresh = epochs[i], edges[4 * i - 1]
  if epoch and fresh > 0 then
    local key, prefix, length = keys[i + 1], edges[4 * i], nil
    if fresh == 1 then
      length = call('RPUSH', key, prefix .. newest)
    else
      local entries, before = {}, records - fresh
      for r = 1, fresh do entries[r] = prefix .. ARGV[before + r] end
      length = push(key, entries, 1)
    end
    grown[2 * i - 1], grown[2 * i] = epoch, bases[i] + length - 1
    if length > LONG then long[#long + 1] = i - 1 end
  else
    grown[2 * i - 1], grown[2 * i] = 0, 0
  end
end
call('HSET', KEYS[1], ARGV[2], ARGV[4])
return {'moved', grown, long, fewer}
