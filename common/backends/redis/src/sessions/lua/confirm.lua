-- Whether sessions still are their devices'. One that the bucket has lost is entered again: its token is of an
-- earlier life, neither the bucket nor the device's row knows a newer one. What is of this life and is not here
-- has ended. So the newest token stays, whichever session is confirmed first.
-- KEYS  bucket, then for each session: devices of its user
-- ARGV  fresh epoch or '', then for each session: user, device, epoch, counter, node, connection, since, kept
-- Gives a digit for each: 1 if it is, 0 if it has ended, 2 if a connection that was made earlier has its place. Gives nil:
-- call again with a fresh epoch.

local bucket, WORDS = KEYS[1], 8
local least = '0'
for at = 4, #ARGV, WORDS do
  if less(least, ARGV[at]) then least = ARGV[at] end
end
local now = life(bucket, ARGV[1], least)
if not now then return false end

local answers = {}
for i = 2, #KEYS do
  local from = 2 + (i - 2) * WORDS
  local user, device, epoch, counter, node, connection, since, kept = unpack(ARGV, from, from + WORDS - 1)
  local session, others = held(bucket, user, device)
  local is_current = session and session.epoch == epoch and session.counter == counter
  if not is_current and less(epoch, now) and not (session and before(epoch, counter, session.epoch, session.counter)) then
    local known = row(KEYS[i], device)
    if not (known and before(epoch, counter, known.epoch, known.counter)) then
      local again = {epoch = epoch, counter = counter, node = node, connection = connection, since = since, kept = kept}
      keep(bucket, user, others .. line(device, again))
      is_current = true
    end
  end
  local is_displaced = not is_current and session and less(session.since, since)
  answers[i - 1] = is_current and '1' or is_displaced and '2' or '0'
end
return table.concat(answers)
