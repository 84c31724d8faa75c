-- Push steps of one author, each in another bucket. KEYS: for each step the bucket, then the recipients' inboxes. ARGV: layout,
-- author (a field), author (as in a mark); then for each step expected and next progress, how many recipients and how many
-- records there are, 'kept' if counters may be older than records; for each recipient generation, counter, how many of the
-- records it gets, and its generation as entries begin with it; the numbers of the records; then a string for each record. An
-- entry is the two put together.
--
-- Answers 'steps' and what became of each: 'moved', epoch and head of each recipient's inbox in one string (0 where it has not
-- grown), which ones are to be cut, and which ones were built ahead of push and got fewer of the records, with how many; or
-- 'overtaken' and the progress, or 'stale', or why the bucket may not be trusted, or 'damaged' and the error, if a key of the
-- step holds something else than it should. That must not hide what became of the steps before and after.
local keys, author = KEYS, ARGV[3]

-- Whether a log that has grown is to be cut. It is said once as it becomes too long, since others push meanwhile. If it has not
-- been cut then, it is said again after so many more entries.
local AGAIN = 64
local function must_cut(before, length)
  return length > LONG and math.floor((length - LONG - 1) / AGAIN) > math.floor((before - LONG - 1) / AGAIN)
end

-- The step of the bucket KEYS[place], whose arguments begin at ARGV[at].
local function advance(place, at)
  local recipients, count = tonumber(ARGV[at + 2]), tonumber(ARGV[at + 3])
  local refused = enter(keys[place], ARGV[2])
  if refused then return refused end
  if progress ~= ARGV[at] then return {'overtaken', progress} end

  local edges = cmsgpack.unpack(ARGV[at + 5])
  local epochs, bases, gone, built_ahead = {}, {}, {}, {}
  for i = 1, recipients do
    local epoch, base, built_at, header = inbox(keys[place + i])
    epochs[i] = false
    if epoch then
      local appends, ahead, mark_at = takes(header, built_at, author, edges[4 * i - 3], edges[4 * i - 2])
      if appends == nil then return {'stale'} end
      if appends then
        epochs[i], bases[i] = epoch, base
        if ahead then built_ahead[#built_ahead + 1] = {i, ahead, mark_at, header} end
      end
    elseif base then
      if ARGV[at + 4] == 'kept' and building(base) then return {'stale'} end
      gone[#gone + 1] = {i, base}
    end
  end

  for _, found in ipairs(gone) do
    local i, header = unpack(found)
    local key, fresh, notes = keys[place + i], edges[4 * i - 1], {}
    if not building(header) then
      call('DEL', key)
    elseif fresh > 0 then
      local seqs, first = cmsgpack.unpack(ARGV[at + 6]), at + 6 + count - fresh
      local of = author .. pack('<I7I7', edges[4 * i - 3], edges[4 * i - 2])
      for r = 1, fresh do
        notes[r] = of .. pack('<I7', seqs[#seqs - fresh + r]) .. edges[4 * i] .. ARGV[first + r]
      end
      -- Beside the notes stands the placeholder.
      if push(key, notes, 1) > NOTES_MAX + 1 then call('DEL', key) end
    end
  end
  local grown, long, fewer, records = {}, {}, {}, at + 6 + count
  local newest = ARGV[records]
  if #built_ahead > 0 and count > 0 then
    local seqs = cmsgpack.unpack(ARGV[at + 6])
    for _, found in ipairs(built_ahead) do
      local i, ahead, mark_at, header = unpack(found)
      local fresh = edges[4 * i - 1]
      while fresh > 0 and seqs[#seqs - fresh + 1] <= ahead do fresh = fresh - 1 end
      if fresh < edges[4 * i - 1] then
        edges[4 * i - 1], fewer[#fewer + 1], fewer[#fewer + 2] = fresh, i - 1, fresh
      end
      -- Push has come as far as the rebuild had.
      if seqs[#seqs] >= ahead then
        call('LSET', keys[place + i], '0', string.sub(header, 1, mark_at - 1) .. string.sub(header, mark_at + 11))
      end
    end
  end
  for i = 1, recipients do
    local epoch, fresh = epochs[i], edges[4 * i - 1]
    if epoch and fresh > 0 then
      local key, prefix, length = keys[place + i], edges[4 * i], nil
      if fresh == 1 then
        length = call('RPUSH', key, prefix .. newest)
      else
        local entries, before = {}, records - fresh
        for r = 1, fresh do entries[r] = prefix .. ARGV[before + r] end
        length = push(key, entries, 1)
      end
      grown[2 * i - 1], grown[2 * i] = epoch, bases[i] + length - 1
      if must_cut(length - fresh, length) then long[#long + 1] = i - 1 end
    else
      grown[2 * i - 1], grown[2 * i] = 0, 0
    end
  end
  call('HSET', keys[place], ARGV[2], ARGV[at + 1])
  return {'moved', cmsgpack.pack(grown), long, fewer}
end

local steps, place, at = {}, 1, 4
while at <= #ARGV do
  local done, answer = pcall(advance, place, at)
  if not done then
    local why = type(answer) == 'table' and answer.err or answer
    if not find(why, 'WRONGTYPE', 1, true) then error(answer) end
    answer = {'damaged', why}
  end
  steps[#steps + 1] = answer
  place, at = place + 1 + ARGV[at + 2], at + 7 + ARGV[at + 3]
end
return {'steps', steps}
