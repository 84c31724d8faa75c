-- The bucket's life, for a node that wants to know whether it is still the one it knew.
-- KEYS  bucket
-- ARGV  fresh epoch or ''
-- Gives its epoch; nil: it has none, call again with a fresh epoch.

return life(KEYS[1], ARGV[1]) or false
