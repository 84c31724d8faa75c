-- Moves positions forward whose token is their device's, in their order.
-- KEYS  bucket, then for each position: devices of its user
-- ARGV  now, devices_max, ttl, then for each: user, device, epoch, counter, position_epoch, position_offset
-- Gives a 0 or 1 for each. Staying is forward: the device was seen there again. In a bucket without a life no
-- session is current.

local bucket, WORDS = KEYS[1], 6
local now, devices_max, ttl = ARGV[1], tonumber(ARGV[2]), ARGV[3]
local lives = life(bucket, '')

local function save_stored(devices, device, session, to_epoch, to_offset)
  local known = row(devices, device)
  if known and known.position_epoch ~= NOTHING and now - known.seen < tonumber(ttl)
    and before(to_epoch, to_offset, known.position_epoch, known.position_offset) then
    return false
  end
  store(devices, device, {epoch = session.epoch, counter = session.counter, seen = now,
                          position_epoch = to_epoch, position_offset = to_offset}, devices_max, ttl)
  return true
end

local function save_here(user, device, session, others, to_epoch, to_offset)
  local epoch, offset = string.match(session.kept, '(%d+)/(%d+)')
  if epoch and before(to_epoch, to_offset, epoch, offset) then return false end
  session.kept = to_epoch .. '/' .. to_offset
  keep(bucket, user, others .. line(device, session))
  return true
end

local answers = {}
for i = 2, #KEYS do
  local from = 4 + (i - 2) * WORDS
  local user, device, epoch, counter, to_epoch, to_offset = unpack(ARGV, from, from + WORDS - 1)
  local session, others = held(bucket, user, device)
  local moved = false
  if lives and session and session.epoch == epoch and session.counter == counter then
    if session.kept == STORED then
      moved = save_stored(KEYS[i], device, session, to_epoch, to_offset)
    else
      moved = save_here(user, device, session, others, to_epoch, to_offset)
    end
  end
  answers[i - 1] = moved and '1' or '0'
end
return table.concat(answers)
