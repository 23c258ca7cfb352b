-- push.lua - put tasks into a level of a queue: at once, or later; once only, if they have a key.
--
-- A task that may be claimed at once stands in the list as it is, as any LPUSH or RPUSH would leave
-- it. A delayed one waits in `held` until `claim` finds that it is due. The first write is one that
-- Redis refuses at maxmemory: a push goes in whole, or not at all.
--
-- KEYS: 5
-- KEYS[1] list: the level's list of payloads; consumers take from its tail (RPOP)
-- KEYS[2] later: sorted set, id -> when it is due in ms
-- KEYS[3] held: hash, id -> packed: kind, level, failures, lost, released, payload
-- KEYS[4] ids: sorted set, de-duplication key -> until when it counts in ms; at most 100000
-- KEYS[5] stats: hash: next_id, pushed:<level>
-- ARGV:
-- ARGV[1] now_ms: milliseconds since 1970, or '' for Redis's own TIME
-- ARGV[2] side: `tail` behind all others (LPUSH), `head` before all others (RPUSH, urgent); of
--   tasks that are due at once
-- ARGV[3] level: its name; no control bytes
-- ARGV[4] due: '' at once, `@MS` at that time, `+MS` so long from now; what has passed is at once
-- ARGV[5] window_ms: for how long a de-duplication key counts
-- ARGV[6..261] 1 to 128 pairs: de-duplication key, or ''; payload, any bytes
-- Returns: array: now_ms, then for each pair 1 pushed, or 0 its key was pushed within the window
-- Worst case: 128 delayed tasks with keys: 128 payloads copied, 4 writes of 128 items, 256 keys
--   removed that have ended or are too many.

local list = KEYS[1]
local later = KEYS[2]
local held = KEYS[3]
local ids = KEYS[4]
local stats = KEYS[5]
local now_text = ARGV[1]
local side = ARGV[2]
local level = ARGV[3]
local due_text = ARGV[4]
local window_text = ARGV[5]
local words = { unpack(ARGV, 6) }

local PAIRS_MAX = 128
local IDS_MAX = 100000
local REMOVED_MAX = 256
local TIME_MAX = 2 ^ 43
local COUNT_MAX = 2 ^ 53 - 1000

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

local pair_count = #words / 2
if pair_count % 1 ~= 0 or pair_count < 1 or pair_count > PAIRS_MAX then
	return redis.error_reply('ERR fairlead: 1 to 128 pairs of key and payload')
end
if side ~= 'tail' and side ~= 'head' then
	return redis.error_reply('ERR fairlead: side must be tail or head')
end
if level == '' or string.find(level, '[%z\1-\31\127]') then
	return redis.error_reply('ERR fairlead: a level has a name without control bytes')
end
local now_ms = whole_of(now_text, 0, TIME_MAX)
if now_text == '' then
	local time = redis.call('TIME')
	now_ms = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end
if not now_ms then
	return redis.error_reply('ERR fairlead: now_ms is not a whole number')
end
local window_ms = whole_of(window_text, 0, TIME_MAX)
if not window_ms then
	return redis.error_reply('ERR fairlead: window_ms is not a whole number')
end
local due_ms = now_ms
if due_text ~= '' then
	local sign, digits = string.match(due_text, '^([@+])(%d+)$')
	local number = whole_of(digits, 0, TIME_MAX)
	if not number then
		return redis.error_reply('ERR fairlead: due is empty, @MS or +MS')
	end
	due_ms = sign == '@' and number or now_ms + number
end

local pushed_field = table.concat({ 'pushed:', level })
local counts = redis.call('HMGET', stats, 'next_id', pushed_field)
-- The other keys: one of another type ends the script here.
redis.call('LLEN', list)
redis.call('ZCARD', later)
redis.call('HLEN', held)
-- The first id is made of the time: all have as many digits, so that those which are due at one
-- time keep their order in `later`, and a counter that was deleted brings back no id in use.
local next_id = whole_of(counts[1] or whole_text(now_ms * 1000), 0, COUNT_MAX)
local pushed = whole_of(counts[2] or '0', 0, COUNT_MAX)
if not next_id or not pushed then
	return redis.error_reply('ERR fairlead: a counter in stats is not a number')
end

-- Decide -----------------------------------------------------------------------------------------

local dedupe_keys, payloads, codes = {}, {}, { now_ms }
for i = 1, pair_count do
	dedupe_keys[i] = words[2 * i - 1]
end
local ends = redis.call('ZMSCORE', ids, unpack(dedupe_keys))
local until_text = whole_text(now_ms + window_ms)
local new_keys, is_new = {}, {}
for i, dedupe_key in ipairs(dedupe_keys) do
	local is_known = is_new[dedupe_key] or (tonumber(ends[i] or nil) or 0) > now_ms
	if dedupe_key ~= '' and is_known then
		codes[i + 1] = 0
	else
		codes[i + 1] = 1
		payloads[#payloads + 1] = words[2 * i]
		if dedupe_key ~= '' then
			is_new[dedupe_key] = true
			new_keys[#new_keys + 1] = until_text
			new_keys[#new_keys + 1] = dedupe_key
		end
	end
end
if #payloads == 0 then
	return codes
end

-- Write ------------------------------------------------------------------------------------------

local function hold()
	local packed_head = table.concat({
		'kind=delayed\tlevel=',
		level,
		'\tfailures=0\tlost=0\treleased=0\tpayload=',
	})
	local due_score = whole_text(due_ms)
	local records, scores = {}, {}
	for i, payload in ipairs(payloads) do
		local id = whole_text(next_id + i)
		records[2 * i - 1], records[2 * i] = id, table.concat({ packed_head, payload })
		scores[2 * i - 1], scores[2 * i] = due_score, id
	end
	redis.call('HSET', held, unpack(records))
	redis.call('ZADD', later, unpack(scores))
	redis.call('HSET', stats, 'next_id', whole_text(next_id + #payloads))
end

if due_ms > now_ms then
	hold()
elseif side == 'head' then
	redis.call('RPUSH', list, unpack(payloads))
else
	redis.call('LPUSH', list, unpack(payloads))
end
redis.call('HSET', stats, pushed_field, whole_text(pushed + #payloads))

if #new_keys > 0 then
	redis.call('ZADD', ids, unpack(new_keys))
	local ended = redis.call('ZCOUNT', ids, '-inf', whole_text(now_ms))
	local excess = math.max(redis.call('ZCARD', ids) - IDS_MAX, math.min(ended, REMOVED_MAX))
	if excess > 0 then
		local last_rank = math.min(excess, REMOVED_MAX) - 1
		redis.call('ZREMRANGEBYRANK', ids, 0, whole_text(last_rank))
	end
end
return codes
