-- due_mend.lua - see to it that members, and members only, have a time for their next check.
--
-- Whoever has one keeps it. Those whose expiry has passed are told on the way: the caller acts.
--
-- KEYS: 4
-- KEYS[1] pool: the sorted set of eligible members
-- KEYS[2] parked: the sorted set of the others
-- KEYS[3] admin: hash, member -> packed: expires_at
-- KEYS[4] due: sorted set, member -> time of its next check
-- ARGV:
-- ARGV[1] now_ms: milliseconds since 1970, or '' for Redis's own TIME
-- ARGV[2] drop_ms: how long after its expiry a member may be removed
-- ARGV[3..] member, delay: up to 128 pairs; the first check is due in so many ms
-- Returns: array, for each member 0 none of the pool, 1 as it should be, 2 expired and still
--   eligible (call `place`), 3 expired for longer than drop_ms (remove it)
-- Worst case: 128 members: 3 reads, one ZADD and one ZREM of 128 members.

local pool = KEYS[1]
local parked = KEYS[2]
local admin = KEYS[3]
local due = KEYS[4]
local now_text = ARGV[1]
local drop_text = ARGV[2]
local pair_count = (#ARGV - 2) / 2

local STRANGER, FINE, EXPIRED, DROPPED = 0, 1, 2, 3

-- A number, or nil for what is none (NaN is none).
local function number_of(text)
	local number = tonumber(text or nil)
	if number == number then
		return number
	end
	return nil
end

if pair_count % 1 ~= 0 or pair_count < 1 or pair_count > 128 then
	return redis.error_reply('ERR fairlead: 1 to 128 pairs of member and delay')
end
local drop_ms = number_of(drop_text)
if not drop_ms or drop_ms < 0 then
	return redis.error_reply('ERR fairlead: drop_ms must be a number')
end
local now_ms = number_of(now_text)
if now_text == '' then
	local time = redis.call('TIME')
	now_ms = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end
if not now_ms then
	return redis.error_reply('ERR fairlead: now_ms is not a number')
end
local members, times = {}, {}
for i = 1, pair_count do
	local delay_ms = number_of(ARGV[2 * i + 2])
	members[i] = ARGV[2 * i + 1]
	if not delay_ms or delay_ms < 0 then
		return redis.error_reply('ERR fairlead: a delay is 0 or more')
	end
	times[i] = string.format('%.17g', now_ms + delay_ms)
end

local in_pool = redis.call('ZMSCORE', pool, unpack(members))
local in_parked = redis.call('ZMSCORE', parked, unpack(members))
local admins = redis.call('HMGET', admin, unpack(members))
redis.call('ZCARD', due)

-- Since when it has expired, or nil. What cannot be read has expired as `place` says, but for no
-- known time.
local function expired_for(packed)
	local text = string.match(table.concat({ '\t', packed or '' }), '\texpires_at=([^\t]*)')
	if not text then
		return nil
	end
	local past_ms = now_ms - (number_of(text) or now_ms)
	return past_ms >= 0 and past_ms or nil
end

local codes = {}
local scheduled, strangers = {}, { '' }
for i, member in ipairs(members) do
	local past_ms = expired_for(admins[i])
	if not in_pool[i] and not in_parked[i] then
		codes[i] = STRANGER
		strangers[#strangers + 1] = member
	elseif past_ms and past_ms > drop_ms then
		codes[i] = DROPPED
	else
		codes[i] = past_ms and in_pool[i] and EXPIRED or FINE
		scheduled[#scheduled + 1] = times[i]
		scheduled[#scheduled + 1] = member
	end
end

-- '' is no member: with it the first write, by which Redis judges memory, is always a removal.
redis.call('ZREM', due, unpack(strangers))
if #scheduled > 0 then
	redis.call('ZADD', due, 'NX', unpack(scheduled))
end
return codes
