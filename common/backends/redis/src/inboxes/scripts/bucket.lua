-- What every script on buckets begins with. ARGV[1]: the layout of this program.
--
-- A bucket lives on one server as long as that server keeps its replication id: a restart, a promotion and a
-- move to another server give another one. Then, and where there is no bucket at all, nothing that is here may
-- be trusted to be all that was written.
local call, find, parse, pack = redis.call, string.find, struct.unpack, struct.pack
local replication = call('INFO', 'replication')
if not find(replication, 'role:master', 1, true) then return {'replica'} end
-- Of the bucket that was entered: inboxes of a lower epoch are of an earlier life and count as missing; and the progress.
local least, progress

-- Enters a bucket, and reads one field of it along: an author's progress. Answers why not, if it may not be trusted.
local function enter(bucket, field)
  local held = call('HMGET', bucket, 'layout', 'life', 'epoch', field)
  if held[1] and held[1] ~= ARGV[1] then return {'layout', held[1]} end
  if not held[2] or not find(replication, held[2], 1, true) then return {'life'} end
  least, progress = tonumber(held[3]), held[4] or ''
end

-- Element 0 of an inbox: kind, epoch, base (sequence ids up to it were cut), built_at, the watermarks (pull, direct), floor
-- (17 bytes), then marks of 11 bytes: an author, and the generation that the author's follow step has brought since the
-- build; or, with the highest bit set, the record up to which the inbox was built ahead of push. A
-- build in flight has the kind 0 and its placeholder as epoch, and nothing else.
--
-- The elements behind a placeholder are notes, what push has brought since: author (as in a mark), generation and counter as the
-- recipient had them, number of the record, then the entry.
local HEADER, WATERMARKS, FLOOR, MARKS, NOTE, NOTED = '<BI7I7I7', 23, 37, 54, '<I7I7I7', 26

-- What an inbox remembers of an author: where that stands (nil if nowhere), the generation taken in, the record it is ahead to.
local function mark(header, author)
  local at = MARKS
  while true do
    at = find(header, author, at, true)
    if not at then return nil end
    if (at - MARKS) % 11 == 0 then
      local high = string.byte(header, at + 10)
      if high < 128 then return at, parse('<I7', header, at + 4) end
      return at, nil, parse('<I6', header, at + 4) + (high - 128) * 281474976710656
    end
    at = at + 1
  end
end

-- Whether an inbox takes in what comes under an edge, as `push_verdict` says: nil if it knows of later edges than
-- the reader of `counter`. Then up to which record it was built ahead of push, if it was, and where that mark stands.
local function takes(header, built_at, author, generation, counter)
  local at, taken, ahead = nil, nil, nil
  if #header >= MARKS then at, taken, ahead = mark(header, author) end
  if taken then return taken == generation end
  if generation > built_at then return false end
  if built_at <= counter then return true, ahead, at end
  return nil
end

-- How far an inbox has taken in what no push brings, as its header has it.
local function watermarks(header)
  return string.sub(header, WATERMARKS, FLOOR - 1)
end

-- Epoch, base and built_at of the inbox, then the header itself; where none of this life is, nil, then the
-- header that is there instead, if any. ('0' and not 0: Redis prints a number as a double: a sixth of the step.)
local function inbox(key)
  local header = call('LINDEX', key, '0')
  if not header then return nil end
  local kind, epoch, base, built_at = 0, 0, 0, 0
  if #header >= MARKS - 1 then kind, epoch, base, built_at = parse(HEADER, header) end
  if kind ~= 1 or epoch < least then return nil, header end
  return epoch, base, built_at, header
end

-- The placeholder that stands, of a header that is no inbox's; nil if that is none of this life.
local function building(header)
  local kind, epoch = parse('<BI7', header)
  if kind == 0 and epoch >= least then return epoch end
end

-- Appends values[first] and all after it; in portions, for Lua's stack is small. Answers the length; nil where there is nothing to append.
local function push(key, values, first)
  local length
  for from = first, #values, 1000 do length = call('RPUSH', key, unpack(values, from, math.min(from + 999, #values))) end
  return length
end
