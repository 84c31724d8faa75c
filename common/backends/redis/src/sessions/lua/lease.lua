-- Begins or prolongs a node's lease.
-- KEYS  the node's key
-- ARGV  how long, in ms
-- Gives 1 if it stood, 0 if it is new.

return redis.call('SET', KEYS[1], 1, 'PX', ARGV[1], 'GET') and 1 or 0
