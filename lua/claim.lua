-- claim.lua - take tasks in the order of their levels, each with a lease; on the way bring back
-- what is due.
--
-- First housekeeping: delayed tasks that are due go to their level's list, those that came back to
-- its retry list; claims whose lease has ended come back, or become dead letters. Then for each
-- level, paused ones passed over: its retry list, then its list, from the tail.
--
-- A claim is named ID:TOKEN, and its token is the call's: whoever knows the name may settle it.
--
-- What is due but of a level that the caller does not name (or cannot be read) is set aside: its
-- score becomes 2^52 + a hash of the level's name, where whoever names the level finds it. Left in
-- its place it would be first in everybody's way.
--
-- KEYS: 7+
-- KEYS[1] later: sorted set, id -> when it is due in ms
-- KEYS[2] held: hash, id -> packed: kind, level, failures, lost, released, payload
-- KEYS[3] claims: hash, claim -> packed: level, failures, lost, released, lost_max, at, payload
-- KEYS[4] leases: sorted set, claim -> when its lease ends in ms
-- KEYS[5] dead: list of packed, the newest first: id, reason, level, failures, lost, at, payload
-- KEYS[6] stats: hash: next_id, next_token, claimed:<level>, stall:<level>, len:<level>, lost,
--   dead, dropped, aside
-- KEYS[7] paused: set of names of levels
-- KEYS[8..] levels: list and retry list of each of 1 to 16 levels, in the order to try
-- ARGV:
-- ARGV[1] now_ms: milliseconds since 1970, or '' for Redis's own TIME
-- ARGV[2] nonce: 8 to 32 hex digits, the caller's part of the tokens
-- ARGV[3] lease_ms: how long the claims live
-- ARGV[4] count: most tasks, 0 (housekeeping only) to 256
-- ARGV[5] bytes_max: so many bytes of payloads end the claim, and each half of housekeeping
-- ARGV[6] lost_max: of lost claims, by which a task becomes a dead letter; 0 is never
-- ARGV[7] dead_max: most dead letters; the oldest go
-- ARGV[8] limit: most of each half of housekeeping, 0 to 256
-- ARGV[9..] names of the levels
-- Returns: array: now_ms, when the next task is due or -1, when the next lease ends or -1, how many
--   were due, how many leases had ended, then for each claim an array: its name, level, failures,
--   lost, released (all before it), when its lease ends, payload
-- Worst case: 256 tasks due, 256 leases that ended, 256 claims out of retry lists, 16 levels.

local later = KEYS[1]
local held = KEYS[2]
local claims = KEYS[3]
local leases = KEYS[4]
local dead = KEYS[5]
local stats = KEYS[6]
local paused = KEYS[7]
local level_keys = { unpack(KEYS, 8) }
local now_text = ARGV[1]
local nonce = ARGV[2]
local lease_text = ARGV[3]
local count_text = ARGV[4]
local bytes_text = ARGV[5]
local lost_max_text = ARGV[6]
local dead_max_text = ARGV[7]
local limit_text = ARGV[8]
local level_names = { unpack(ARGV, 9) }

local ITEMS_MAX = 256
local LEVELS_MAX = 16
local DROPPED_MAX = 512
-- Payloads popped at once. More would not be cheaper, and what is too much goes back.
local PORTION = 16
local STALL_STEP_MS = 500
local TIME_MAX = 2 ^ 43
local ASIDE = 2 ^ 52
local COUNT_MAX = 2 ^ 53 - 1000

local concat = table.concat

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
local lease_ms = whole_of(lease_text, 1, TIME_MAX)
if not now_ms or not lease_ms then
	return redis.error_reply('ERR fairlead: now_ms and lease_ms are whole numbers')
end
if #nonce < 8 or #nonce > 32 or string.find(nonce, '%X') then
	return redis.error_reply('ERR fairlead: a nonce is 8 to 32 hex digits')
end
local count = whole_of(count_text, 0, ITEMS_MAX)
local limit = whole_of(limit_text, 0, ITEMS_MAX)
if not count or not limit then
	return redis.error_reply('ERR fairlead: count and limit are 0 to 256')
end
local bytes_max = whole_of(bytes_text, 0, COUNT_MAX)
local lost_max = whole_of(lost_max_text, 0, COUNT_MAX)
local dead_max = whole_of(dead_max_text, 1, COUNT_MAX)
if not bytes_max or not lost_max or not dead_max then
	return redis.error_reply('ERR fairlead: bytes, lost_max, dead_max: not whole numbers')
end
if #level_names < 1 or #level_names > LEVELS_MAX or #level_keys ~= 2 * #level_names then
	return redis.error_reply('ERR fairlead: 1 to 16 levels, each with two keys and a name')
end
local levels, level_of = {}, {}
for i, name in ipairs(level_names) do
	if name == '' or level_of[name] or string.find(name, '[%z\1-\31\127]') then
		return redis.error_reply('ERR fairlead: distinct levels without control bytes')
	end
	local list, retry = level_keys[2 * i - 1], level_keys[2 * i]
	levels[i] = {
		name = name,
		list = list,
		retry = retry,
		in_list = redis.call('LLEN', list),
		in_retry = redis.call('LLEN', retry),
		ready = {},
		returned = {},
		claimed = 0,
	}
	level_of[name] = levels[i]
end

-- Every key is read before the first write: one of another type ends the script here.
local are_paused = redis.call('SMISMEMBER', paused, unpack(level_names))
redis.call('HLEN', held)
redis.call('HLEN', claims)
redis.call('LLEN', dead)
local later_head = redis.call('ZRANGE', later, 0, 0, 'WITHSCORES')
local leases_head = redis.call('ZRANGE', leases, 0, 0, 'WITHSCORES')

-- The counters that may change, and what was last seen of each level.
local fields = { 'next_id', 'next_token', 'lost', 'dead', 'dropped', 'aside' }
for _, level in ipairs(levels) do
	fields[#fields + 1] = table.concat({ 'claimed:', level.name })
	fields[#fields + 1] = table.concat({ 'stall:', level.name })
	fields[#fields + 1] = table.concat({ 'len:', level.name })
end
-- `aside` tells whether to look for what is set aside: 1 when in doubt.
local absent_text = { aside = '1' }
local counter_of = {}
for i, found_text in ipairs(redis.call('HMGET', stats, unpack(fields))) do
	local number = whole_of(found_text or absent_text[fields[i]] or '0', 0, COUNT_MAX)
	if not number then
		return redis.error_reply('ERR fairlead: a counter in stats is not a number')
	end
	counter_of[fields[i]] = number
end
-- As in `push`: the first id is made of the time.
if counter_of.next_id == 0 then
	counter_of.next_id = now_ms * 1000
end

-- Records ----------------------------------------------------------------------------------------

-- Pairs that have a meaning here. All others are of a newer version, and are kept.
local OWN = { kind = 1, level = 1, failures = 1, lost = 1, released = 1, lost_max = 1 }
OWN.at, OWN.payload = 1, 1

-- A packed value: its counts, its level, the pairs that are to be kept, and the payload; nil for
-- what is none. The payload comes last and is any bytes: only what stands before it is searched.
local function open(packed)
	local first, last = string.find(packed, '\tpayload=', 1, true)
	if not first then
		return nil
	end
	local of, kept = {}, {}
	for key, value in string.gmatch(string.sub(packed, 1, first - 1), '([^\t=]+)=([^\t]*)') do
		if OWN[key] then
			of[key] = value
		else
			kept[#kept + 1] = table.concat({ '\t', key, '=', value })
		end
	end
	return {
		kind = of.kind,
		level = level_of[of.level or ''],
		level_name = of.level or '',
		failures = whole_of(of.failures, 0, COUNT_MAX) or 0,
		lost = whole_of(of.lost, 0, COUNT_MAX) or 0,
		released = whole_of(of.released, 0, COUNT_MAX) or 0,
		lost_max = whole_of(of.lost_max, 0, COUNT_MAX) or 0,
		kept = table.concat(kept),
		payload = string.sub(packed, last + 1),
	}
end

local function counts_text(task)
	return string.format(
		'\tfailures=%.0f\tlost=%.0f\treleased=%.0f',
		task.failures,
		task.lost,
		task.released
	)
end

local function aside_score(name)
	local hash = 0
	for i = 1, #name do
		hash = (hash * 31 + string.byte(name, i)) % 2 ^ 31
	end
	return whole_text(ASIDE + hash)
end

-- Members of a sorted set whose time has come, those first that were set aside for our levels.
local function due_of(zset, head)
	local found, is_read = {}, {}
	local function read(first, last)
		local most = limit - #found
		local names = redis.call('ZRANGE', zset, first, last, 'BYSCORE', 'LIMIT', 0, most)
		for _, name in ipairs(names) do
			found[#found + 1] = name
		end
	end
	for i = 1, counter_of.aside > 0 and #levels or 0 do
		local score = aside_score(levels[i].name)
		if not is_read[score] then
			is_read[score] = true
			read(score, score)
		end
	end
	local first_ms = tonumber(head[2])
	if first_ms and first_ms <= now_ms then
		read('-inf', whole_text(now_ms))
	end
	return found
end

-- Housekeeping: decide ---------------------------------------------------------------------------

local function new_half()
	return { count = 0, bytes = 0, ended = {}, held = {}, aside = {} }
end

local function is_half_full(half)
	return half.bytes > 0 and half.bytes >= bytes_max
end

-- The task of a name in one half, if it can be read and is of a level that is named.
local function task_of(half, name, packed)
	half.bytes = half.bytes + (packed and #packed or 0)
	local task = packed and open(packed)
	if not packed or task and task.level then
		half.ended[#half.ended + 1] = name
	else
		half.aside[#half.aside + 1] = aside_score(task and task.level_name or '')
		half.aside[#half.aside + 1] = name
		task = nil
	end
	half.count = half.count + (task and 1 or 0)
	return task
end

local due = new_half()
for _, id in ipairs(due_of(later, later_head)) do
	local task = task_of(due, id, redis.call('HGET', held, id))
	if task and task.kind == 'delayed' then
		table.insert(task.level.ready, task.payload)
		due.held[#due.held + 1] = id
	elseif task then
		table.insert(task.level.returned, id)
	end
	if is_half_full(due) then
		break
	end
end

local lost, letters = new_half(), {}
for _, name in ipairs(due_of(leases, leases_head)) do
	local task = task_of(lost, name, redis.call('HGET', claims, name))
	local id = string.match(name, '^[^:]*')
	if task then
		task.lost = task.lost + 1
	end
	if task and task.lost_max > 0 and task.lost >= task.lost_max then
		letters[#letters + 1] = table.concat({
			'id=',
			id,
			'\treason=claims-lost\tlevel=',
			task.level_name,
			string.format('\tfailures=%.0f\tlost=%.0f', task.failures, task.lost),
			'\tat=',
			whole_text(now_ms),
			task.kept,
			'\tpayload=',
			task.payload,
		})
	elseif task then
		lost.held[#lost.held + 1] = id
		lost.held[#lost.held + 1] = table.concat({
			'kind=returned\tlevel=',
			task.level_name,
			counts_text(task),
			task.kept,
			'\tpayload=',
			task.payload,
		})
		table.insert(task.level.returned, id)
	end
	if is_half_full(lost) then
		break
	end
end

-- Write: housekeeping ----------------------------------------------------------------------------

local changes = {}
local function set(field, number)
	counter_of[field] = number
	changes[#changes + 1] = field
	changes[#changes + 1] = whole_text(number)
end

local function bury()
	local excess = redis.call('LPUSH', dead, unpack(letters)) - dead_max
	if excess > 0 then
		local dropped = math.min(excess, DROPPED_MAX)
		redis.call('LTRIM', dead, 0, whole_text(-dropped - 1))
		set('dropped', counter_of.dropped + dropped)
	end
	set('dead', counter_of.dead + #letters)
end

-- Redis judges memory at the first write call: let it be a removal, here of nothing.
redis.call('ZREMRANGEBYRANK', later, 1, 0)

for _, level in ipairs(levels) do
	local list, retry = level.list, level.retry
	level.found = level.in_list + level.in_retry
	if #level.ready > 0 then
		level.in_list = redis.call('LPUSH', list, unpack(level.ready))
	end
	if #level.returned > 0 then
		level.in_retry = redis.call('LPUSH', retry, unpack(level.returned))
	end
end
if #due.held > 0 then
	redis.call('HDEL', held, unpack(due.held))
end
if #due.ended > 0 then
	redis.call('ZREM', later, unpack(due.ended))
end
if #due.aside > 0 then
	redis.call('ZADD', later, unpack(due.aside))
end
if #lost.held > 0 then
	redis.call('HSET', held, unpack(lost.held))
end
if #letters > 0 then
	bury()
end
if #lost.ended > 0 then
	redis.call('HDEL', claims, unpack(lost.ended))
	redis.call('ZREM', leases, unpack(lost.ended))
end
if #lost.aside > 0 then
	redis.call('ZADD', leases, unpack(lost.aside))
end
if lost.count > 0 then
	set('lost', counter_of.lost + lost.count)
end
local function last_score(zset)
	return tonumber(redis.call('ZRANGE', zset, -1, -1, 'WITHSCORES')[2]) or 0
end
if #due.aside + #lost.aside > 0 then
	set('aside', 1)
elseif counter_of.aside > 0 and math.max(last_score(later), last_score(leases)) < ASIDE then
	set('aside', 0)
end

-- Write: claim -----------------------------------------------------------------------------------

local expires_ms = now_ms + lease_ms
local expires_text = whole_text(expires_ms)
local token_end = table.concat({ ':', whole_text(counter_of.next_token + 1), '-', nonce })
local lost_max_pair = table.concat({ '\tlost_max=', whole_text(lost_max) })
local at_pair = table.concat({ '\tat=', whole_text(now_ms) })
local next_id = counter_of.next_id
local taken, bytes = 0, 0
local answers, records, lease_words = {}, {}, {}

-- All of a record but the payload.
local function start_of(level, task)
	return table.concat({
		'level=',
		level.name,
		counts_text(task),
		lost_max_pair,
		at_pair,
		task.kept,
		'\tpayload=',
	})
end

-- Whether that was enough.
local function take(level, id, task, start, payload)
	local name = concat({ id, token_end })
	taken = taken + 1
	bytes = bytes + #payload
	answers[taken] =
		{ name, level.name, task.failures, task.lost, task.released, expires_ms, payload }
	records[2 * taken - 1], records[2 * taken] = name, concat({ start, payload })
	lease_words[2 * taken - 1], lease_words[2 * taken] = expires_text, name
	return taken >= count or bytes > 0 and bytes >= bytes_max
end

-- Ids in retry lists that lead to nothing: so many more are looked at in one call.
local strays = ITEMS_MAX
-- An id that is in a retry list twice must not be claimed twice.
local returned_ids, is_taken = {}, {}

local function take_returned(level)
	local retry = level.retry
	while level.in_retry > 0 and strays > 0 do
		local id = redis.call('RPOP', retry)
		local packed = not is_taken[id] and redis.call('HGET', held, id)
		local task = packed and open(packed)
		level.in_retry = level.in_retry - 1
		if task then
			level.claimed = level.claimed + 1
			is_taken[id] = true
			returned_ids[#returned_ids + 1] = id
			if take(level, id, task, start_of(level, task), task.payload) then
				return true
			end
		else
			strays = strays - 1
			if packed then
				redis.call('ZADD', later, aside_score(''), id)
			end
		end
	end
	return false
end

-- How many payloads to pop: not many before it is known how large they are here.
local function portion_of(level)
	local portion = math.min(PORTION, taken + 1, count - taken, level.in_list)
	if bytes > 0 then
		portion = math.min(portion, math.floor((bytes_max - bytes) * taken / bytes) + 1)
	end
	return whole_text(portion)
end

-- Those of the portion that were too much: to where they stood.
local function give_back(list, payloads, first)
	for i = #payloads, first, -1 do
		redis.call('RPUSH', list, payloads[i])
	end
end

local function take_ready(level)
	local list = level.list
	local task = { failures = 0, lost = 0, released = 0, kept = '' }
	local start = start_of(level, task)
	while level.in_list > 0 do
		local payloads = redis.call('RPOP', list, portion_of(level))
		for i, payload in ipairs(payloads) do
			next_id = next_id + 1
			level.in_list = level.in_list - 1
			level.claimed = level.claimed + 1
			if take(level, string.format('%.0f', next_id), task, start, payload) then
				give_back(list, payloads, i + 1)
				return true
			end
		end
	end
	return false
end

for i, level in ipairs(levels) do
	if count > 0 and are_paused[i] == 0 and (take_returned(level) or take_ready(level)) then
		break
	end
end
if #returned_ids > 0 then
	redis.call('HDEL', held, unpack(returned_ids))
end
if taken > 0 then
	redis.call('HSET', claims, unpack(records))
	redis.call('ZADD', leases, unpack(lease_words))
	set('next_id', next_id)
	set('next_token', counter_of.next_token + 1)
end

-- Write: statistics ------------------------------------------------------------------------------

-- A level stands still while it is not empty, does not shrink, and nothing is claimed from it. Of
-- one that is empty it is enough to know that to half a second.
for i, level in ipairs(levels) do
	local claimed_field, stall_field, len_field =
		fields[3 * i + 4], fields[3 * i + 5], fields[3 * i + 6]
	local length, seen_length = level.in_list + level.in_retry, counter_of[len_field]
	local is_still = level.found > 0 and level.claimed == 0 and level.found >= seen_length
	if level.claimed > 0 then
		set(claimed_field, counter_of[claimed_field] + level.claimed)
	end
	local since_ms = now_ms - counter_of[stall_field]
	if counter_of[stall_field] == 0 or not is_still and math.abs(since_ms) >= STALL_STEP_MS then
		set(stall_field, now_ms)
	end
	if length ~= seen_length then
		set(len_field, length)
	end
end
if #changes > 0 then
	redis.call('HSET', stats, unpack(changes))
end

-- When the first of a sorted set is due. What is set aside is not.
local function next_of(head)
	local score = tonumber(head[2])
	if not score or score >= ASIDE then
		return -1
	end
	return math.max(math.ceil(score), 0)
end

if #due.ended + #due.aside > 0 then
	later_head = redis.call('ZRANGE', later, 0, 0, 'WITHSCORES')
end
if #lost.ended + #lost.aside > 0 then
	leases_head = redis.call('ZRANGE', leases, 0, 0, 'WITHSCORES')
end
local next_end = next_of(leases_head)
if taken > 0 and (next_end < 0 or expires_ms < next_end) then
	next_end = expires_ms
end
return { now_ms, next_of(later_head), next_end, due.count, lost.count, unpack(answers) }
