-- release.lua - end leases, for those who hold their tokens.
--
-- With the rule rest_ms a released lease rests: it counts on for so long, and nobody can renew it.
-- Who repeats a release is told the same again, by the tokens that were released lately. A lease
-- that has expired meanwhile is not released but collected; a resting one too.
--
-- KEYS: 6
-- KEYS[1] live: hash, member -> live leases
-- KEYS[2] busy: sorted set, eligible member -> live x 2^40 + allocation count when last written
-- KEYS[3] leases: sorted set, lease id -> expiry in ms since 1970
-- KEYS[4] holders: hash, lease id -> packed: token, rest, member (the last)
-- KEYS[5] rules: hash: rest_ms
-- KEYS[6] released: sorted set, expiring, token -> time in ms at which it was released
-- ARGV:
-- ARGV[1] now_ms: milliseconds since 1970, or '' for Redis's own TIME
-- ARGV[2..] id, token: 1 to 128 pairs
-- Returns: array, for each pair 0 released, now or before; 1 stale
-- Worst case: 128 leases of as many members: 6 reads, 4 removals and 5 writes of 128 fields.

local live = KEYS[1]
local busy = KEYS[2]
local leases = KEYS[3]
local holders = KEYS[4]
local rules = KEYS[5]
local released = KEYS[6]
local now_text = ARGV[1]
local pair_count = (#ARGV - 1) / 2

local RELEASED, STALE = 0, 1
local LIVE_UNIT = 2 ^ 40
local PAIRS_MAX, REST_MAX_MS = 128, 3600000
local TOKENS_MAX, TOKENS_LIFE_MS = 65536, 86400000

-- The whole number of a text, or nil.
local function whole(text, least, most)
	local number = tonumber(text or nil)
	if number and number >= least and number <= most and number % 1 == 0 then
		return number
	end
	return nil
end

-- Validate ---------------------------------------------------------------------------------------

if pair_count % 1 ~= 0 or pair_count < 1 or pair_count > PAIRS_MAX then
	return redis.error_reply('ERR fairlead: 1 to 128 pairs of id and token')
end
local now_ms = whole(now_text, 0, 2 ^ 53)
if now_text == '' then
	local time = redis.call('TIME')
	now_ms = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end
if not now_ms then
	return redis.error_reply('ERR fairlead: now_ms is not a whole number')
end
local ids, tokens = {}, {}
for i = 1, pair_count do
	ids[i] = ARGV[2 * i]
	tokens[i] = ARGV[2 * i + 1]
end
local rest_ms = whole(redis.call('HGET', rules, 'rest_ms'), 0, REST_MAX_MS) or 0

-- A key of another type must end the script here, not between two writes.
redis.call('ZCARD', busy)
redis.call('HLEN', live)
local values = redis.call('HMGET', holders, unpack(ids))
local expiries = redis.call('ZMSCORE', leases, unpack(ids))
local known = redis.call('ZMSCORE', released, unpack(tokens))
local newest = tonumber(redis.call('ZRANGE', released, -1, -1, 'WITHSCORES')[2] or 0)

-- Decide -----------------------------------------------------------------------------------------

-- What is known of a lease, or nil. The member takes the rest, whatever bytes it has.
local function lease_of(packed, expiry)
	local token, others, member =
		string.match(packed or '', '^token=([^\t]*)(.-)\tmember=(.*)$')
	if not token then
		return nil
	end
	local is_resting = string.find(table.concat({ others, '\t' }), '\trest=1\t', 1, true)
	return {
		token = token,
		others = others,
		member = member,
		is_live = expiry ~= nil and expiry > now_ms,
		is_released = is_resting ~= nil,
	}
end

local lease_by = {}
for i, id in ipairs(ids) do
	lease_by[id] = lease_by[id] or lease_of(values[i], tonumber(expiries[i] or nil))
end

-- Words in the order of ZADD and HSET. A time that went back must not make a token the oldest.
local rest_end = string.format('%.0f', now_ms + rest_ms)
local released_at = string.format('%.17g', math.max(now_ms, newest))
local rest_words, resting_words, token_words = {}, {}, {}
local ended = {}
local members, count_of = {}, {}

local function append(words, first, second)
	words[#words + 1] = first
	words[#words + 1] = second
end

local function finish(id, lease)
	lease.is_finished = true
	ended[#ended + 1] = id
	if not count_of[lease.member] then
		members[#members + 1] = lease.member
		count_of[lease.member] = 0
	end
	count_of[lease.member] = count_of[lease.member] + 1
end

local function release(id, lease)
	lease.is_released = true
	append(token_words, released_at, lease.token)
	if rest_ms == 0 then
		finish(id, lease)
		return
	end
	append(rest_words, rest_end, id)
	local parts = { 'token=', lease.token, lease.others, '\trest=1\tmember=', lease.member }
	append(resting_words, id, table.concat(parts))
end

local codes = {}
for i, id in ipairs(ids) do
	local lease = lease_by[id]
	local is_own = lease and tokens[i] == lease.token
	if is_own and lease.is_live and not lease.is_released then
		release(id, lease)
	end
	if lease and not lease.is_live and not lease.is_finished then
		finish(id, lease)
	end
	codes[i] = (is_own and lease.is_released or known[i]) and RELEASED or STALE
end

-- Write ------------------------------------------------------------------------------------------

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
			append(live_words, member, string.format('%.0f', rest))
		end
		if scores[i] then
			local count = count_in(tonumber(scores[i]))
			append(busy_words, string.format('%.17g', rest * LIVE_UNIT + count), member)
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
redis.call('ZREM', leases, '', unpack(ended))
redis.call('HDEL', holders, '', unpack(ended))
if #members > 0 then
	lower()
end
if #rest_words > 0 then
	redis.call('ZADD', leases, unpack(rest_words))
	redis.call('HSET', holders, unpack(resting_words))
end
if #token_words > 0 then
	redis.call('ZADD', released, unpack(token_words))
	redis.call('ZREMRANGEBYRANK', released, 0, -TOKENS_MAX - 1)
	redis.call('PEXPIRE', released, TOKENS_LIFE_MS)
end
return codes
