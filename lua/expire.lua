-- expire.lua - collect leases that have expired, resting ones too.
--
-- Members are neither added nor brought back: only those that stand in busy are rewritten there.
--
-- KEYS: 4
-- KEYS[1] live: hash, member -> live leases
-- KEYS[2] busy: sorted set, eligible member -> live x 2^40 + allocation count when last written
-- KEYS[3] leases: sorted set, lease id -> expiry in ms since 1970
-- KEYS[4] holders: hash, lease id -> packed: token, rest, member (the last)
-- ARGV:
-- ARGV[1] now_ms: milliseconds since 1970, or '' for Redis's own TIME
-- ARGV[2] most: how many are collected, 1 to 256
-- Returns: array of how many were collected, the expiry of the next lease (-1: there is none) and
--   now_ms
-- Worst case: 256 leases of as many members: 4 reads, 3 removals and a ZADD of 256 fields.

local live = KEYS[1]
local busy = KEYS[2]
local leases = KEYS[3]
local holders = KEYS[4]
local now_text = ARGV[1]
local most_text = ARGV[2]

local LIVE_UNIT = 2 ^ 40
local COLLECTED_MAX = 256

-- The whole number of a text, or nil.
local function whole(text, least, most)
	local number = tonumber(text or nil)
	if number and number >= least and number <= most and number % 1 == 0 then
		return number
	end
	return nil
end

local collected_max = whole(most_text, 1, COLLECTED_MAX)
if not collected_max then
	return redis.error_reply('ERR fairlead: 1 to 256 leases are collected')
end
local now_ms = whole(now_text, 0, 2 ^ 53)
if now_text == '' then
	local time = redis.call('TIME')
	now_ms = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end
if not now_ms then
	return redis.error_reply('ERR fairlead: now_ms is not a whole number')
end

-- A key of another type must end the script here, not between two writes.
redis.call('HLEN', live)
redis.call('ZCARD', busy)
redis.call('HLEN', holders)

local now_score = string.format('%.0f', now_ms)
local expired =
	redis.call('ZRANGE', leases, '-inf', now_score, 'BYSCORE', 'LIMIT', 0, collected_max)

-- The members of the expired leases, and how many of these each has.
local members, count_of = {}, {}
local values = #expired > 0 and redis.call('HMGET', holders, unpack(expired)) or {}
for i in ipairs(expired) do
	-- The member takes the rest, whatever bytes it has.
	local member = string.match(values[i] or '', '^token=[^\t]*.-\tmember=(.*)$')
	if member and not count_of[member] then
		members[#members + 1] = member
		count_of[member] = 0
	end
	if member then
		count_of[member] = count_of[member] + 1
	end
end

-- The allocations that a score of busy holds: a number also where others have written an infinity.
local function count_in(score)
	return math.min(math.max(score, 0), 2 ^ 53) % LIVE_UNIT
end

-- Takes from the members what has ended.
local function lower()
	local lives = redis.call('HMGET', live, unpack(members))
	local scores = redis.call('ZMSCORE', busy, unpack(members))
	local idle, live_words, busy_words = {}, {}, {}
	for i, member in ipairs(members) do
		local rest = math.max((whole(lives[i], 0, 2 ^ 53) or 0) - count_of[member], 0)
		if rest == 0 then
			idle[#idle + 1] = member
		else
			live_words[#live_words + 1] = member
			live_words[#live_words + 1] = string.format('%.0f', rest)
		end
		if scores[i] then
			local count = count_in(tonumber(scores[i]))
			local score = rest * LIVE_UNIT + count
			busy_words[#busy_words + 1] = string.format('%.17g', score)
			busy_words[#busy_words + 1] = member
		end
	end
	if #idle > 0 then
		redis.call('HDEL', live, unpack(idle))
	end
	if #live_words > 0 then
		redis.call('HSET', live, unpack(live_words))
	end
	if #busy_words > 0 then
		redis.call('ZADD', busy, unpack(busy_words))
	end
end

-- '' is no lease: the first write, by which Redis judges memory, is a removal in any case.
redis.call('ZREM', leases, '', unpack(expired))
redis.call('HDEL', holders, '', unpack(expired))
if #members > 0 then
	lower()
end

local expiry = tonumber(redis.call('ZRANGE', leases, 0, 0, 'WITHSCORES')[2] or -1)
return { #expired, expiry, now_ms }
