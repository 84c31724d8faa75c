-- Reads a log. KEYS: the bucket, the inbox. ARGV: layout, any field, epoch, offset and limit.
-- Answers 'missing', or 'entries', epoch, head and the entries, or 'gone', epoch and head.
local key, offset = KEYS[2], tonumber(ARGV[4])
local epoch, base = inbox(key)
if not epoch then return {'missing'} end
local head = base + call('LLEN', key) - 1
if tonumber(ARGV[3]) ~= epoch or offset < base or offset > head then return {'gone', epoch, head} end
local first = offset - base + 1
return {'entries', epoch, head, call('LRANGE', key, first, first + ARGV[5] - 1)}
