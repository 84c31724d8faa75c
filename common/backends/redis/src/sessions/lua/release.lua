-- Ends a session if its token is still its device's.
-- KEYS  bucket
-- ARGV  user, device, epoch, counter
-- A bucket without a life holds no session to end, and the one who releases will not confirm it.

local bucket = KEYS[1]
local user, device, epoch, counter = unpack(ARGV)
local session, others = held(bucket, user, device)
if session and session.epoch == epoch and session.counter == counter then keep(bucket, user, others) end
return 1
