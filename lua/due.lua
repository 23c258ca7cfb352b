-- due.lua - take members whose check is due; nobody else gets them until the lease ends.
--
-- KEYS: 1
-- KEYS[1] due: sorted set, member -> time of its next check
-- ARGV:
-- ARGV[1] now_ms: milliseconds since 1970, or '' for Redis's own TIME
-- ARGV[2] most: how many are taken, 1 to 128
-- ARGV[3] lease_ms: who takes them has so long to report, then they are due again
-- Returns: array: in how many ms the next check is due (-1: nobody has one), then the members
-- Worst case: 128 members read by one ZRANGE, written by one ZADD.

local due = KEYS[1]
local now_text = ARGV[1]
local most_text = ARGV[2]
local lease_text = ARGV[3]

-- A number, or nil for what is none (NaN is none).
local function number_of(text)
	local number = tonumber(text or nil)
	if number == number then
		return number
	end
	return nil
end

local most = number_of(most_text)
local lease_ms = number_of(lease_text)
if not most or most % 1 ~= 0 or most < 1 or most > 128 then
	return redis.error_reply('ERR fairlead: 1 to 128 members are taken')
end
if not lease_ms or lease_ms <= 0 then
	return redis.error_reply('ERR fairlead: lease_ms must be above 0')
end
local now_ms = number_of(now_text)
if now_text == '' then
	local time = redis.call('TIME')
	now_ms = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end
if not now_ms then
	return redis.error_reply('ERR fairlead: now_ms is not a number')
end

local now_score = string.format('%.17g', now_ms)
local taken =
	redis.call('ZRANGE', due, '-inf', now_score, 'BYSCORE', 'LIMIT', 0, most_text)
-- The first write, by which Redis judges memory, is a removal of nothing.
redis.call('ZREMRANGEBYRANK', due, 1, 0)
if #taken > 0 then
	local lease_end = string.format('%.17g', now_ms + lease_ms)
	local leases = {}
	for _, member in ipairs(taken) do
		leases[#leases + 1] = lease_end
		leases[#leases + 1] = member
	end
	redis.call('ZADD', due, unpack(leases))
end

local score = number_of(redis.call('ZRANGE', due, 0, 0, 'WITHSCORES')[2])
local next_ms = score and math.min(math.max(math.ceil(score - now_ms), 0), 2 ^ 53) or -1
return { next_ms, unpack(taken) }
