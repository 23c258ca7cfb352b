-- limit_renew.lua - let holders of limit.lua run out later: 30 s from now.
--
-- A holder that has run out, or was given back, stays out.
--
-- KEYS: 1
-- KEYS[1] held: sorted set, holder -> time in ms at which it runs out
-- ARGV:
-- ARGV[1] now in microseconds, or '' for the time of Redis
-- ARGV[2..129] holders
-- Returns: how many of them were renewed
-- Worst case: 128 holders, read by one ZMSCORE and written by one ZADD.

local held = KEYS[1]
local now_argument = ARGV[1]

local HOLD_MS = 30000

if #ARGV < 2 or #ARGV > 129 then
	return redis.error_reply('ERR fairlead: 1 to 128 holders')
end
local now_us = tonumber(now_argument)
if now_argument == '' then
	local time = redis.call('TIME')
	now_us = tonumber(time[1]) * 1000000 + tonumber(time[2])
end
if not now_us or now_us < 0 or now_us > 9000000000000000 or now_us % 1 ~= 0 then
	return redis.error_reply('ERR fairlead: now must be a time in microseconds')
end
local now_ms = math.floor(now_us / 1000)

local until_ms = string.format('%.0f', now_ms + HOLD_MS)
local scores = redis.call('ZMSCORE', held, unpack(ARGV, 2))
local renewed = {}
for i = 2, #ARGV do
	local ends_ms = tonumber(scores[i - 1])
	if ends_ms and ends_ms > now_ms then
		renewed[#renewed + 1] = until_ms
		renewed[#renewed + 1] = ARGV[i]
	end
end
if #renewed == 0 then
	return 0
end

-- Redis judges memory at the first write call: let it be a removal, here of nothing.
redis.call('ZREMRANGEBYRANK', held, 1, 0)
redis.call('ZADD', held, unpack(renewed))
redis.call('PEXPIRE', held, HOLD_MS)
return #renewed / 2
