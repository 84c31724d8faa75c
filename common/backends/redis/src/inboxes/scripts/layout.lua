-- Whether a bucket was made by an earlier version of this program, of the same number of buckets: it has no life here,
-- and gets one as after any loss.
local function earlier(held, ours)
  local version, buckets = string.match(held, '^(%d+)/(%d+)$')
  local our_version, our_buckets = string.match(ours, '^(%d+)/(%d+)$')
  return buckets == our_buckets and tonumber(version) < tonumber(our_version)
end
