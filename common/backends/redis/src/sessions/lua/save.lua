-- Moves positions forward whose token is their device's, in their order.
-- KEYS  bucket, then for each position: devices of its user
-- ARGV  now, devices_max, named_max, ttl, then for each: user, device, epoch, counter, feed, position_epoch,
--       position_offset
-- Gives a 0 or 1 for each. Staying is forward: the device was seen there again. In a bucket without a life no
-- session is current.

local bucket, WORDS, MAIN = KEYS[1], 7, '0'
local now, devices_max, named_max, ttl = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4]
local lives = life(bucket, '')

-- The named feeds in `text` with one of them moved; nil if that is not forward. One more than there may be takes the
-- place of the one saved longest ago.
local function with_named(text, feed, to_epoch, to_offset)
  local named = {}
  for of, epoch, offset in string.gmatch(text, '(%d+)/(%d+)/(%d+)') do
    if of ~= feed then
      named[#named + 1] = table.concat({of, epoch, offset}, '/')
    elseif before(to_epoch, to_offset, epoch, offset) then
      return nil
    end
  end
  if #named == named_max then table.remove(named, 1) end
  named[#named + 1] = table.concat({feed, to_epoch, to_offset}, '/')
  return table.concat(named, ',') .. ' - -'
end

local function save_stored(devices, device, session, feed, to_epoch, to_offset)
  local known, named = row(devices, device), nil
  if known and now - known.seen >= tonumber(ttl) then
    redis.call('HDEL', devices, device)
    known = nil
  end
  local r = known or {position_epoch = NOTHING, position_offset = NOTHING}
  if feed ~= MAIN then
    named = with_named(known and redis.call('HGET', devices, device .. FEEDS) or '', feed, to_epoch, to_offset)
    if not named then return false end
  else
    if r.position_epoch ~= NOTHING and before(to_epoch, to_offset, r.position_epoch, r.position_offset) then
      return false
    end
    r.position_epoch, r.position_offset = to_epoch, to_offset
  end
  r.epoch, r.counter, r.seen = session.epoch, session.counter, now
  store(devices, device, r, devices_max, ttl)
  if named then redis.call('HSET', devices, device .. FEEDS, named) end
  return true
end

local function save_here(user, device, session, others, feed, to_epoch, to_offset)
  if feed ~= MAIN then return true end
  local epoch, offset = string.match(session.kept, '(%d+)/(%d+)')
  if epoch and before(to_epoch, to_offset, epoch, offset) then return false end
  session.kept = to_epoch .. '/' .. to_offset
  keep(bucket, user, others .. line(device, session))
  return true
end

local answers = {}
for i = 2, #KEYS do
  local from = 5 + (i - 2) * WORDS
  local user, device, epoch, counter, feed, to_epoch, to_offset = unpack(ARGV, from, from + WORDS - 1)
  local session, others = held(bucket, user, device)
  local moved = false
  if lives and session and session.epoch == epoch and session.counter == counter then
    if session.kept == STORED then
      moved = save_stored(KEYS[i], device, session, feed, to_epoch, to_offset)
    else
      moved = save_here(user, device, session, others, feed, to_epoch, to_offset)
    end
  end
  answers[i - 1] = moved and '1' or '0'
end
return table.concat(answers)
