-- Ends the device's session, and with it every token given so far: they are fenced off, so that a session which the
-- bucket has lost is not entered again. A device that has no id of its own needs no fence if its session is of
-- this life: what this life has ended is never entered again, and its name is never used again.
-- KEYS  bucket, devices of the user
-- ARGV  fresh epoch or '', user, device, devices_max, ttl
-- Gives {node, connection} of the session, or {}; nil: call again with a fresh epoch.

local bucket, devices = KEYS[1], KEYS[2]
local fresh, user, device, devices_max, ttl = unpack(ARGV)
local epoch = life(bucket, fresh)
if not epoch then return false end

local session, others = held(bucket, user, device)
if session then keep(bucket, user, others) end
if not session or session.kept == STORED or session.epoch ~= epoch then
  fence(devices, device, epoch, count(bucket), devices_max, ttl)
end
return session and {session.node, session.connection} or {}
