-- Swaps a built inbox in, and what was noted while it was built. KEYS: the bucket, the inbox. ARGV: layout, any field, the placeholder as
-- a header, its epoch, when it expires ('' for never), how many notes the builder had found, built_at, then the log: header and
-- entries. Answers 'swapped' and the length, or 'refused'.
local key, header, built_at = KEYS[2], ARGV[8], tonumber(ARGV[7])
if tonumber(ARGV[4]) < least or call('LINDEX', key, '0') ~= ARGV[3] then return {'refused'} end
local fresh, reached = {}, {}
for _, note in ipairs(call('LRANGE', key, ARGV[6] + 1, '-1')) do
  local author = string.sub(note, 1, 4)
  local generation, counter, seq = parse(NOTE, note, 5)
  -- Of an author that it is not ahead of push with, no record is left out.
  if not reached[author] then
    local _, _, ahead = mark(header, author)
    reached[author] = ahead or 0
  end
  -- As `note_belongs` says: what is stale, the build has brought or knows better.
  if seq > reached[author] and generation <= built_at and built_at <= counter then
    fresh[#fresh + 1] = string.sub(note, NOTED)
  end
end
-- The log goes behind the placeholder, which is cut off then. The key never goes: a slot that is being moved takes no new keys.
local before = call('LLEN', key)
local length = push(key, ARGV, 8)
length = push(key, fresh, 1) or length
call('LTRIM', key, before, '-1')
if ARGV[5] ~= '' then call('PEXPIREAT', key, ARGV[5]) else call('PERSIST', key) end
return {'swapped', length - before}
