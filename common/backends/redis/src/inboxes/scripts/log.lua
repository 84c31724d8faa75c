-- Reads a whole log, header first. KEYS: the bucket, the inbox. ARGV: layout. Answers 'missing', or 'log' and its elements.
if not inbox(KEYS[2]) then return {'missing'} end
return {'log', call('LRANGE', KEYS[2], 0, -1)}
