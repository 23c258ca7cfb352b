-- renew.lua - let leases live on, for those who hold their tokens.
--
-- A lease is never shortened. One that has expired stays expired, also while nobody has collected
-- it; one that was released and rests is not renewed.
--
-- KEYS: 2
-- KEYS[1] leases: sorted set, lease id -> expiry in ms since 1970
-- KEYS[2] holders: hash, lease id -> packed: token, rest, member (the last)
-- ARGV:
-- ARGV[1] now_ms: milliseconds since 1970, or '' for Redis's own TIME
-- ARGV[2] ttl_ms: 1 to 3600000, from now on
-- ARGV[3..] id, token: 1 to 128 pairs
-- Returns: array, for each pair 0 renewed, 1 stale
-- Worst case: 128 leases: 2 reads and one ZADD of 128 fields.

local leases = KEYS[1]
local holders = KEYS[2]
local now_text = ARGV[1]
local ttl_text = ARGV[2]
local pair_count = (#ARGV - 2) / 2

local RENEWED, STALE = 0, 1
local PAIRS_MAX, TTL_MAX_MS = 128, 3600000

-- The whole number of a text, or nil.
local function whole(text, least, most)
	local number = tonumber(text or nil)
	if number and number >= least and number <= most and number % 1 == 0 then
		return number
	end
	return nil
end

if pair_count % 1 ~= 0 or pair_count < 1 or pair_count > PAIRS_MAX then
	return redis.error_reply('ERR fairlead: 1 to 128 pairs of id and token')
end
local ttl_ms = whole(ttl_text, 1, TTL_MAX_MS)
if not ttl_ms then
	return redis.error_reply('ERR fairlead: ttl_ms is 1 to 3600000')
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
	ids[i] = ARGV[2 * i + 1]
	tokens[i] = ARGV[2 * i + 2]
end
local expiries = redis.call('ZMSCORE', leases, unpack(ids))
local values = redis.call('HMGET', holders, unpack(ids))

-- The token by which a lease may be renewed, or nil.
local function token_of(packed)
	local token, others = string.match(packed or '', '^token=([^\t]*)(.-)\tmember=')
	if not token then
		return nil
	end
	local is_resting = string.find(table.concat({ others, '\t' }), '\trest=1\t', 1, true)
	return not is_resting and token or nil
end

local codes = {}
local words = {}
for i, id in ipairs(ids) do
	local expiry = tonumber(expiries[i] or nil)
	codes[i] = STALE
	if expiry and expiry > now_ms and tokens[i] == token_of(values[i]) then
		codes[i] = RENEWED
		words[#words + 1] = string.format('%.17g', math.max(expiry, now_ms + ttl_ms))
		words[#words + 1] = id
	end
end

-- Redis judges memory at the first write call: let it be a removal, here of nothing.
redis.call('ZREMRANGEBYRANK', leases, 1, 0)
if #words > 0 then
	redis.call('ZADD', leases, unpack(words))
end
return codes
