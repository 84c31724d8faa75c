-- A user's sessions and what is stored of the devices.
-- KEYS  bucket, devices of the user
-- ARGV  user
-- Gives the sessions' lines, then device and row in turn. A bucket without a life has no sessions.

local lines = life(KEYS[1], '') and redis.call('HGET', KEYS[1], ARGV[1]) or ''
return {lines, unpack(redis.call('HGETALL', KEYS[2]))}
