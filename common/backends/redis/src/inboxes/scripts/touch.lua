-- Puts off when inboxes expire. KEYS: they. ARGV: until when. Redis takes one without a time to live for one that never expires.
for i = 1, #KEYS do redis.call('PEXPIREAT', KEYS[i], ARGV[1], 'GT') end
