-- Reads a log. KEYS: the bucket, the inbox. ARGV: layout, any field, epoch, offset and limit.
-- Answers 'missing', or 'entries', epoch, head, watermarks (pull, direct) and the entries, or 'gone', epoch and head.
local key, offset = KEYS[2], tonumber(ARGV[4])
local epoch, base, _, header = inbox(key)
if not epoch then return {'missing'} end
local head = base + call('LLEN', key) - 1
if tonumber(ARGV[3]) ~= epoch or offset < base or offset > head then return {'gone', epoch, head} end
local first = offset - base + 1
local pull, direct = parse('<I7I7', header, WATERMARKS)
return {'entries', epoch, head, pull, direct, call('LRANGE', key, first, first + ARGV[5] - 1)}
