-- Ends a session if its token is still its device's. One of an earlier life is fenced off as well, or a confirmation
-- that was under way meanwhile would enter it again.
-- KEYS  bucket, devices of the user
-- ARGV  fresh epoch or '', user, device, epoch, counter, devices_max, ttl
-- Gives 1; nil: call again with a fresh epoch.

local bucket, devices = KEYS[1], KEYS[2]
local fresh, user, device, epoch, counter, devices_max, ttl = unpack(ARGV)
local now = life(bucket, fresh)
if not now then return false end

local session, others = held(bucket, user, device)
if session and session.epoch == epoch and session.counter == counter then keep(bucket, user, others) end
if less(epoch, now) then
  fence(devices, device, epoch, string.format('%.0f', counter + 1), devices_max, ttl)
end
return 1
