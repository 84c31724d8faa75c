-- What the scripts of the session pool share; it stands before each of them.
--
--   {s005}         hash  replid, epoch, counter   the bucket's life, lost together with
--                        <user>                   the user's live sessions, a line each:
--                                                   device epoch counter node connection since kept
--   {s005}:<user>  hash  <device>                 epoch counter position_epoch position_offset seen
--                        <device> feeds           of named feeds, the one saved last at the end:
--                                                   feed/epoch/offset,feed/epoch/offset - -
--
-- epoch and counter are a session's token; in a device's row they are a fence: no token below it is entered again.
-- kept is STORED, NOTHING or `epoch/offset`: the position of a device without an id of its own.
--
-- A device's row goes together with its named feeds. A node of a version without named feeds takes such a row for a
-- device. The two dashes say that it has no position of the main feed, and such devices make room first.

local STORED, NOTHING, FEEDS = '=', '-', ' feeds'

-- Compares decimals as text, so that 64 bits stay exact.
local function less(a, b)
  return #a < #b or (#a == #b and a < b)
end

-- Compares pairs: tokens (epoch, counter) and positions (epoch, offset).
local function before(a1, a2, b1, b2)
  return less(a1, b1) or (a1 == b1 and less(a2, b2))
end

-- The epoch of the bucket's life. A life ends when its hash is gone or the server has another past than the one it
-- was made under; then the bucket is emptied and begins again in the epoch `fresh`, or is nothing without it. A
-- life below `least` has been overtaken: somebody holds a token of a later one.
local function life(bucket, fresh, least)
  local replid = string.match(redis.call('INFO', 'replication'), 'master_replid:(%x+)')
  local found = redis.call('HMGET', bucket, 'replid', 'epoch')
  if found[1] == replid and not less(found[2], least or '') then return found[2] end
  if fresh == '' or (found[2] and not less(found[2], fresh)) then return nil end
  redis.call('UNLINK', bucket)
  redis.call('HSET', bucket, 'replid', replid, 'epoch', fresh, 'counter', 0)
  return fresh
end

-- The next token's counter.
local function count(bucket)
  return string.format('%.0f', redis.call('HINCRBY', bucket, 'counter', 1))
end

-- The device's session, if it has one, and the lines of the user's others.
local function held(bucket, user, device)
  local lines = redis.call('HGET', bucket, user) or ''
  local from = string.find('\n' .. lines, '\n' .. device .. ' ', 1, true)
  if not from then return nil, lines end
  local to = string.find(lines, '\n', from, true)
  local _, epoch, counter, node, connection, since, kept =
    string.match(string.sub(lines, from, to), '(%S+) (%S+) (%S+) (%S+) (%S+) (%S+) (%S+)')
  local session = {epoch = epoch, counter = counter, node = node, connection = connection, since = since, kept = kept}
  return session, string.sub(lines, 1, from - 1) .. string.sub(lines, to + 1)
end

local function line(device, s)
  return table.concat({device, s.epoch, s.counter, s.node, s.connection, s.since, s.kept}, ' ') .. '\n'
end

-- Sets a user's lines. A user without sessions takes no memory.
local function keep(bucket, user, lines)
  if lines == '' then redis.call('HDEL', bucket, user) else redis.call('HSET', bucket, user, lines) end
end

-- What is stored of a device, if anything.
local function row(devices, device)
  local text = redis.call('HGET', devices, device)
  if not text then return nil end
  local epoch, counter, position_epoch, position_offset, seen = string.match(text, '(%S+) (%S+) (%S+) (%S+) (%S+)')
  return {epoch = epoch, counter = counter, seen = seen,
          position_epoch = position_epoch, position_offset = position_offset}
end

-- Makes room for one more device: those without a position go, then those unseen longest.
local function make_room(devices, devices_max)
  local all, texts, known = redis.call('HGETALL', devices), {}, {}
  for i = 1, #all, 2 do texts[all[i]] = all[i + 1] end
  for i = 1, #all, 2 do
    local device = string.match(all[i], '%S+')
    if device == all[i] then
      local offset, seen = string.match(all[i + 1], '(%S+) (%S+)$')
      local is_fence = offset == NOTHING and not texts[device .. FEEDS]
      known[#known + 1] = {device = device, seen = is_fence and -math.huge or tonumber(seen)}
    elseif not texts[device] then
      redis.call('HDEL', devices, all[i])
    end
  end
  table.sort(known, function(a, b) return a.seen < b.seen end)
  for i = 1, #known - devices_max + 1 do
    redis.call('HDEL', devices, known[i].device, known[i].device .. FEEDS)
  end
end

-- Stores a device's row. A new one begins without named feeds.
local function store(devices, device, r, devices_max, ttl)
  if redis.call('HEXISTS', devices, device) == 0 then
    redis.call('HDEL', devices, device .. FEEDS)
    if redis.call('HLEN', devices) >= devices_max then make_room(devices, devices_max) end
  end
  redis.call('HSET', devices, device,
    table.concat({r.epoch, r.counter, r.position_epoch, r.position_offset, r.seen}, ' '))
  redis.call('PEXPIRE', devices, ttl)
end

-- Ends every token of the device below this one, for good: also those that the bucket has lost.
local function fence(devices, device, epoch, counter, devices_max, ttl)
  local r = row(devices, device)
  if r and not before(r.epoch, r.counter, epoch, counter) then return end
  if not r then
    local time = redis.call('TIME')
    r = {position_epoch = NOTHING, position_offset = NOTHING, seen = time[1] .. '000'}
  end
  r.epoch, r.counter = epoch, counter
  store(devices, device, r, tonumber(devices_max), ttl)
end

