-- Drops an inbox or a placeholder. KEYS: the bucket, the inbox. ARGV: layout.
call('DEL', KEYS[2])
return {'gone'}
