-- settle.lua - end claims: done, failed, given back, dead; or let them live longer.
--
-- A claim is named ID:TOKEN. Whoever knows its name may settle it until somebody has collected it,
-- also when its lease has ended. A name that is no claim's changes nothing; one that settled lately
-- is told that all is done, so that an operation whose answer was lost can be repeated.
--
-- An ack does not read the payload: that the claim had a lease tells that it is there.
--
-- KEYS: 8+
-- KEYS[1] claims: hash, claim -> packed: level, failures, lost, released, lost_max, at, payload
-- KEYS[2] leases: sorted set, claim -> when its lease ends in ms
-- KEYS[3] settled: set of claims that are settled; at most 32768
-- KEYS[4] settled_before: what `settled` was when it was full
-- KEYS[5] held: hash, id -> packed: kind, level, failures, lost, released, payload
-- KEYS[6] later: sorted set, id -> when it is due in ms
-- KEYS[7] dead: list of packed, the newest first: id, reason, level, failures, lost, at, payload
-- KEYS[8] stats: hash: acked, failed, released, dead, dropped
-- KEYS[9..] retries: the retry list of each level
-- ARGV:
-- ARGV[1] now_ms: milliseconds since 1970, or '' for Redis's own TIME
-- ARGV[2] dead_max: most dead letters; the oldest go
-- ARGV[3] failures_max: of failures, by which a task becomes a dead letter; 0 is never
-- ARGV[4] level_count: 0 to 16
-- ARGV[5..] names of the levels, then groups: verb; number; reason; how many claims; their names.
--   1 to 128 claims in all. Verbs: `ack`; `nack` (failed: claimed again in number ms, or dead with
--   the reason); `dead` (with the reason); `release` (comes back at once, before all others of its
--   level); `extend` (the lease ends in number ms from now; never sooner than before)
-- Returns: array, for each claim named 0 done, also if it was settled before; 1 stale; 2 done, and
--   the task is a dead letter now
-- Worst case: 128 nacks: 128 claims read, 128 payloads copied, 5 writes of 128 items.

local claims = KEYS[1]
local leases = KEYS[2]
local settled = KEYS[3]
local settled_before = KEYS[4]
local held = KEYS[5]
local later = KEYS[6]
local dead = KEYS[7]
local stats = KEYS[8]
local retries = { unpack(KEYS, 9) }
local now_text = ARGV[1]
local dead_max_text = ARGV[2]
local failures_max_text = ARGV[3]
local level_count_text = ARGV[4]
local words = { unpack(ARGV, 5) }

local GROUP_WORDS, NAMES_MAX = 4, 128
local LEVELS_MAX = 16
local PORTION = 8
local SETTLED_MAX, DROPPED_MAX = 32768, 256
local TIME_MAX = 2 ^ 43
-- A lease from here on was set aside by a `claim` that did not name its level: it has ended.
local ASIDE = 2 ^ 52
local COUNT_MAX = 2 ^ 53 - 1000
local DONE, STALE, DIED = 0, 1, 2
local VERBS = { ack = true, nack = true, dead = true, release = true, extend = true }
local COUNTERS = { 'acked', 'failed', 'released', 'dead', 'dropped' }

local function whole_of(text, least, most)
	local number = tonumber(text or nil)
	if number and number >= least and number <= most and number % 1 == 0 then
		return number
	end
	return nil
end

local function whole_text(number)
	return string.format('%.0f', number)
end

-- Validate ---------------------------------------------------------------------------------------

local now_ms = whole_of(now_text, 0, TIME_MAX)
if now_text == '' then
	local time = redis.call('TIME')
	now_ms = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end
local dead_max = whole_of(dead_max_text, 1, COUNT_MAX)
local failures_max = whole_of(failures_max_text, 0, COUNT_MAX)
if not now_ms or not dead_max or not failures_max then
	return redis.error_reply('ERR fairlead: now_ms, dead_max, failures_max: not whole numbers')
end
local level_count = whole_of(level_count_text, 0, LEVELS_MAX)
if not level_count or level_count ~= #retries then
	return redis.error_reply('ERR fairlead: 0 to 16 levels, each with a key and a name')
end
local level_of = {}
for i = 1, level_count do
	local retry = retries[i]
	level_of[words[i]] = { retry = retry, returned = {}, released = {} }
	redis.call('LLEN', retry)
end
local groups, names = {}, {}
-- Claims whose records must be read.
local read_names = {}
local at = level_count + 1
while at <= #words do
	local verb, number_text = words[at], words[at + 1]
	local number = whole_of(number_text, 0, TIME_MAX)
	local name_count = whole_of(words[at + 3], 1, NAMES_MAX)
	local needs_number = verb == 'nack' or verb == 'extend'
	if not VERBS[verb] or not number and (needs_number or number_text ~= '') then
		return redis.error_reply('ERR fairlead: no such verb, or not a whole number')
	end
	if not name_count or #names + name_count > NAMES_MAX then
		return redis.error_reply('ERR fairlead: 1 to 128 claims')
	end
	local first = #names + 1
	for i = 1, name_count do
		names[first + i - 1] = words[at + GROUP_WORDS + i - 1]
	end
	groups[#groups + 1] = {
		verb = verb,
		number = number,
		reason = words[at + 2],
		first = first,
		last = first + name_count - 1,
	}
	if verb ~= 'ack' and verb ~= 'extend' then
		for i = first, #names do
			read_names[#read_names + 1] = names[i]
		end
	end
	at = at + GROUP_WORDS + name_count
end
if at ~= #words + 1 or #names == 0 then
	return redis.error_reply('ERR fairlead: groups of a verb, number, reason, count and claims')
end

-- Every key is read before the first write: one of another type ends the script here.
-- In portions: Redis makes one text of an answer, and grows it piece by piece.
local record_of = {}
for i = 1, #read_names, PORTION do
	local last = math.min(i + PORTION - 1, #read_names)
	for j, packed in ipairs(redis.call('HMGET', claims, unpack(read_names, i, last))) do
		record_of[read_names[i + j - 1]] = packed
	end
end
redis.call('HLEN', claims)
local settled_count = redis.call('SCARD', settled)
redis.call('SCARD', settled_before)
redis.call('ZCARD', leases)
redis.call('HLEN', held)
redis.call('ZCARD', later)
redis.call('LLEN', dead)
local counter_of = {}
for i, number_text in ipairs(redis.call('HMGET', stats, unpack(COUNTERS))) do
	local number = whole_of(number_text or '0', 0, COUNT_MAX)
	if not number then
		return redis.error_reply('ERR fairlead: a counter in stats is not a number')
	end
	counter_of[COUNTERS[i]] = number
end

-- Records ----------------------------------------------------------------------------------------

-- Pairs that have a meaning here. All others are of a newer version, and are kept.
local OWN = { kind = 1, level = 1, failures = 1, lost = 1, released = 1, lost_max = 1 }
OWN.at, OWN.payload = 1, 1

-- nil for what is none. The payload comes last and is any bytes: a pair in it is none.
local function open(packed)
	local payload_at = string.find(packed, '\tpayload=', 1, true)
	if not payload_at then
		return nil
	end
	local of, kept = {}, {}
	local pairs_text = string.sub(packed, 1, payload_at - 1)
	for key, value in string.gmatch(pairs_text, '([^\t=]+)=([^\t]*)') do
		if OWN[key] then
			of[key] = value
		else
			kept[#kept + 1] = table.concat({ '\t', key, '=', value })
		end
	end
	return {
		level = level_of[of.level or ''],
		level_name = of.level or '',
		failures = whole_of(of.failures, 0, COUNT_MAX) or 0,
		lost = whole_of(of.lost, 0, COUNT_MAX) or 0,
		released = whole_of(of.released, 0, COUNT_MAX) or 0,
		kept = table.concat(kept),
		payload_pair = string.sub(packed, payload_at),
	}
end

-- Decide -----------------------------------------------------------------------------------------

local held_words, later_words, letters = {}, {}, {}
-- Claims that are extended -> when they end then.
local end_of = {}

local function id_of(name)
	return string.match(name, '^[^:]*')
end

local function count_one(field)
	counter_of[field] = counter_of[field] + 1
end

local function bury(task, name, group)
	local reason = string.gsub(group.reason, '[%z\1-\31\127]', ' ')
	letters[#letters + 1] = table.concat({
		'id=',
		id_of(name),
		'\treason=',
		reason ~= '' and reason or 'failed',
		'\tlevel=',
		task.level_name,
		string.format('\tfailures=%.0f\tlost=%.0f', task.failures, task.lost),
		'\tat=',
		whole_text(now_ms),
		task.kept,
		task.payload_pair,
	})
	count_one('dead')
	return DIED
end

local function hold(task, id)
	held_words[#held_words + 1] = id
	held_words[#held_words + 1] = table.concat({
		'kind=returned\tlevel=',
		task.level_name,
		string.format('\tfailures=%.0f', task.failures),
		string.format('\tlost=%.0f\treleased=%.0f', task.lost, task.released),
		task.kept,
		task.payload_pair,
	})
	return DONE
end

local carry_out = { dead = bury }

function carry_out.nack(task, name, group)
	local id = id_of(name)
	task.failures = task.failures + 1
	count_one('failed')
	if failures_max > 0 and task.failures >= failures_max then
		return bury(task, name, group)
	end
	if group.number > 0 then
		later_words[#later_words + 1] = whole_text(now_ms + group.number)
		later_words[#later_words + 1] = id
	else
		table.insert(task.level.returned, id)
	end
	return hold(task, id)
end

function carry_out.release(task, name)
	local id = id_of(name)
	task.released = task.released + 1
	count_one('released')
	table.insert(task.level.released, id)
	return hold(task, id)
end

-- Whether the claim is there.
local function extend(name, number)
	if not end_of[name] then
		if redis.call('HEXISTS', claims, name) == 0 then
			return false
		end
		local ends_ms = tonumber(redis.call('ZSCORE', leases, name) or nil) or 0
		end_of[name] = ends_ms < ASIDE and ends_ms or 0
	end
	end_of[name] = math.max(end_of[name], now_ms + number)
	return true
end

-- DONE unless it turns out that the claim is not there: of an ack that is seen when it is written.
local codes = {}
local over, acks = {}, {}
local is_over, is_gone = {}, {}

-- The code, or nil of a claim that is not there, or an error.
local function settle(name, group)
	if group.verb == 'ack' then
		acks[#acks + 1] = name
		return DONE
	end
	local task = record_of[name] and open(record_of[name])
	if not task then
		is_gone[name] = true
		return nil
	end
	if group.verb ~= 'dead' and not task.level then
		return nil, redis.error_reply('ERR fairlead: a level is not named')
	end
	return carry_out[group.verb](task, name, group)
end

for _, group in ipairs(groups) do
	for i = group.first, group.last do
		local name = names[i]
		codes[i] = DONE
		if group.verb == 'extend' and not is_over[name] then
			is_gone[name] = not extend(name, group.number)
		elseif not is_over[name] then
			local code, refusal = settle(name, group)
			if refusal then
				return refusal
			end
			if code then
				codes[i] = code
				over[#over + 1] = name
				is_over[name] = true
			end
		end
	end
end

-- Write ------------------------------------------------------------------------------------------

-- Redis judges memory at the first write call: let it be a removal, if need be of nothing (1 to 0).
local ended = 0
if #over > 0 then
	ended = redis.call('ZREM', leases, unpack(over))
else
	redis.call('ZREMRANGEBYRANK', leases, 1, 0)
end
if ended < #over then
	for _, name in ipairs(acks) do
		is_gone[name] = redis.call('HEXISTS', claims, name) == 0
	end
end
local done = {}
for _, name in ipairs(over) do
	if not is_gone[name] then
		done[#done + 1] = name
	end
end
counter_of.acked = counter_of.acked + #acks - (#over - #done)
for i, name in ipairs(names) do
	if is_gone[name] then
		local is_known = redis.call('SISMEMBER', settled, name) == 1
			or redis.call('SISMEMBER', settled_before, name) == 1
		codes[i] = is_known and DONE or STALE
	end
end

local lease_words = {}
for name, ends_ms in pairs(end_of) do
	if not is_over[name] then
		lease_words[#lease_words + 1] = whole_text(ends_ms)
		lease_words[#lease_words + 1] = name
	end
end
if #lease_words > 0 then
	redis.call('ZADD', leases, unpack(lease_words))
end
if #done == 0 then
	return codes
end

redis.call('HDEL', claims, unpack(done))
if #held_words > 0 then
	redis.call('HSET', held, unpack(held_words))
end
if #later_words > 0 then
	redis.call('ZADD', later, unpack(later_words))
end
for _, level in pairs(level_of) do
	local retry = level.retry
	if #level.returned > 0 then
		redis.call('LPUSH', retry, unpack(level.returned))
	end
	-- Backwards, so that they are claimed again in the order in which they were named.
	for i = #level.released, 1, -1 do
		redis.call('RPUSH', retry, level.released[i])
	end
end
if #letters > 0 then
	local excess = redis.call('LPUSH', dead, unpack(letters)) - dead_max
	if excess > 0 then
		local dropped = math.min(excess, DROPPED_MAX)
		redis.call('LTRIM', dead, 0, whole_text(-dropped - 1))
		counter_of.dropped = counter_of.dropped + dropped
	end
end
if settled_count + #done > SETTLED_MAX then
	redis.call('UNLINK', settled_before)
	redis.call('RENAME', settled, settled_before)
end
redis.call('SADD', settled, unpack(done))
local counter_words = {}
for _, field in ipairs(COUNTERS) do
	if counter_of[field] > 0 then
		counter_words[#counter_words + 1] = field
		counter_words[#counter_words + 1] = whole_text(counter_of[field])
	end
end
redis.call('HSET', stats, unpack(counter_words))
return codes
