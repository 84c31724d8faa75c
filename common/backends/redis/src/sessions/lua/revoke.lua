-- Ends the device's session, and with it every token given so far: the device's row takes a newer one, so that a
-- session which the bucket had lost before is not entered again. The row of a device that has no id of its own is
-- not needed if its session is of this life: what this life has ended is never entered again.
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
  local time = redis.call('TIME')
  local now = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000))
  local known = row(devices, device) or {position_epoch = NOTHING, position_offset = NOTHING, seen = now}
  known.epoch, known.counter = epoch, count(bucket)
  store(devices, device, known, tonumber(devices_max), ttl)
end
return session and {session.node, session.connection} or {}
