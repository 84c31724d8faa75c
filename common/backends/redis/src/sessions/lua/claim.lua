-- Makes a connection the session of its device, under the greatest token so far.
-- KEYS  bucket
-- ARGV  fresh epoch or '', user, device, node, connection, since, kept
-- Gives {epoch, counter}, and {node, connection} of the session it replaced behind them; nil: call again with a
-- fresh epoch. A connection that claims again, as when an answer was lost, replaces none.

local bucket = KEYS[1]
local fresh, user, device, node, connection, since, kept = unpack(ARGV)
local epoch = life(bucket, fresh)
if not epoch then return false end

local old, others = held(bucket, user, device)
local new = {epoch = epoch, counter = count(bucket), node = node, connection = connection, since = since, kept = kept}
keep(bucket, user, others .. line(device, new))
if not old or (old.node == node and old.connection == connection) then return {epoch, new.counter} end
return {epoch, new.counter, old.node, old.connection}
