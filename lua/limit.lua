-- limit.lua - let one request in if its client and its target host are both below their limits.
--
-- Each of the two may have a limit of requests at a time and one of requests a second. Both are
-- counted, or neither. At a time: each holder stands in a sorted set with the time at which it runs
-- out, 30 s from now, and has to be renewed (limit_renew) or given back (ZREM). A second: the time
-- at which the next request would be due if they came evenly (GCRA); a request may come ahead of
-- it by as much as `rate` requests take, so that `rate` of them may come at once.
--
-- KEYS: 4
-- KEYS[1] client_held: sorted set, holder -> time in ms at which it runs out
-- KEYS[2] client_due: string, time in us at which the client's next request is due
-- KEYS[3] host_held: the same two of the target host
-- KEYS[4] host_due: string
-- ARGV:
-- ARGV[1] now in microseconds, or '' for the time of Redis
-- ARGV[2] holder: not empty, and never used before
-- ARGV[3], ARGV[4] of the client: at a time, a second; 0 (no limit) to 1000000
-- ARGV[5], ARGV[6] the same of the host
-- Returns: array of a code (0 counted, 1 too many of the client at a time, 2 a second, 3 and 4 the
--   same of the host) and for 2 and 4 the milliseconds until one more is admitted, else 0
-- Worst case: 128 holders of each have run out and are removed; all 4 keys are written.

local client_held = KEYS[1]
local client_due = KEYS[2]
local host_held = KEYS[3]
local host_due = KEYS[4]
local now_argument = ARGV[1]
local holder = ARGV[2]

local HOLD_MS = 30000
local REMOVED_MAX = 128
local LIMIT_MAX = 1000000
local TIME_MAX = 9000000000000000

local function whole(argument, most)
	local number = tonumber(argument)
	if number and number >= 0 and number <= most and number % 1 == 0 then
		return number
	end
	return nil
end

if #ARGV ~= 6 or holder == '' then
	return redis.error_reply('ERR fairlead: 6 arguments, and a holder that is not empty')
end
local limits = {}
for i = 3, 6 do
	limits[i - 2] = whole(ARGV[i], LIMIT_MAX)
	if not limits[i - 2] then
		return redis.error_reply('ERR fairlead: a limit is a whole number up to 1000000')
	end
end
local now_us = whole(now_argument, TIME_MAX)
if now_argument == '' then
	local time = redis.call('TIME')
	now_us = tonumber(time[1]) * 1000000 + tonumber(time[2])
end
if not now_us then
	return redis.error_reply('ERR fairlead: now must be a time in microseconds')
end
local now_ms = math.floor(now_us / 1000)

-- How many hold, and how many ranks from the first have run out and can be removed.
local function count(held)
	local expired = redis.call('ZCOUNT', held, '-inf', string.format('%.0f', now_ms))
	return redis.call('ZCARD', held) - expired, math.min(expired, REMOVED_MAX)
end

-- When the request after this one will be due, and how long this one would have to wait, in us.
local function schedule(due, rate)
	local interval = math.ceil(1000000 / rate)
	local ahead = rate * interval
	local due_us = now_us
	local found_us = tonumber(redis.call('GET', due))
	if found_us and found_us > now_us then
		-- Also when the clock of Redis went back: nobody waits for more than a full burst.
		due_us = math.min(found_us, now_us + ahead)
	end
	return due_us + interval, due_us + interval - ahead - now_us
end

-- The code of the limit that is reached, or 0; the wait; and what to write.
local function judge(held, due, concurrent, rate)
	local found = { expired = 0 }
	if concurrent > 0 then
		local live
		live, found.expired = count(held)
		if live >= concurrent then
			return 1, 0
		end
	end
	if rate > 0 then
		local wait_us
		found.next_us, wait_us = schedule(due, rate)
		if wait_us > 0 then
			return 2, math.ceil(wait_us / 1000)
		end
	end
	return 0, 0, found
end

local client_code, client_wait_ms, client = judge(client_held, client_due, limits[1], limits[2])
if client_code > 0 then
	return { client_code, client_wait_ms }
end
local host_code, host_wait_ms, host = judge(host_held, host_due, limits[3], limits[4])
if host_code > 0 then
	return { 2 + host_code, host_wait_ms }
end

-- Redis judges memory at the first write call: a removal, if need be of nothing (1 to 0).
local function remove(held, expired)
	if expired > 0 then
		redis.call('ZREMRANGEBYRANK', held, 0, expired - 1)
	else
		redis.call('ZREMRANGEBYRANK', held, 1, 0)
	end
end

local function write(held, due, concurrent, next_us)
	if concurrent > 0 then
		redis.call('ZADD', held, string.format('%.0f', now_ms + HOLD_MS), holder)
		redis.call('PEXPIRE', held, HOLD_MS)
	end
	if next_us then
		local life_ms = string.format('%.0f', math.ceil((next_us - now_us) / 1000))
		redis.call('SET', due, string.format('%.0f', next_us), 'PX', life_ms)
	end
end

remove(client_held, client.expired)
remove(host_held, host.expired)
write(client_held, client_due, limits[1], client.next_us)
write(host_held, host_due, limits[3], host.next_us)
return { 0, 0 }
