-- enter.lua - take the newcomers of a list into a pool, in one call for many.
--
-- A member that the pool knows is left alone, whatever it is named with. A newcomer gets what
-- `field` (sources; health, if it is admitted) and `place` would give it, for less: each key is
-- read and written once. The record is written first: `place` mends what is cut short behind it.
-- Members in the order of their bytes are the cheapest: at one score the sorted set has that order.
--
-- KEYS: 8
-- KEYS[1] pool: the sorted set of eligible members
-- KEYS[2] parked: the sorted set of the others
-- KEYS[3] offset: hash, member -> score at joining - allocations recorded before
-- KEYS[4] proxies: hash, member -> packed: sources, tags
-- KEYS[5] health: hash, member -> packed: state
-- KEYS[6] rules: hash: start, join
-- KEYS[7] live: hash, member -> live leases
-- KEYS[8] busy: sorted set, eligible member -> live x 2^40 + allocation count
-- ARGV:
-- ARGV[1] admit: 1 = eligible at once, 0 = a candidate, parked until a check finds it up
-- ARGV[2] source: the name of the list; not empty, no comma, tab, newline or `=`
-- ARGV[3..] member, tags: up to 256 pairs. Tags are a packed value without the key `sources`, or ''
-- Returns: array, for each pair 0 known already, 2 joined, 5 a candidate, parked for the first time
-- Worst case: 256 members that all join: 4 reads and 5 writes of 256 members. At maxmemory the
--   first write is refused, and nothing is done.

local pool = KEYS[1]
local parked = KEYS[2]
local offset = KEYS[3]
local proxies = KEYS[4]
local health = KEYS[5]
local rules = KEYS[6]
local live = KEYS[7]
local busy = KEYS[8]
local admit = ARGV[1]
local source = ARGV[2]

local KNOWN, JOINED, CANDIDATE = 0, 2, 5
local LIVE_UNIT = 2 ^ 40

-- A number, or nil for what is none (NaN is none).
local function number_of(text)
	local number = tonumber(text or nil)
	if number == number then
		return number
	end
	return nil
end

local function number_text(number)
	return string.format('%.17g', number)
end

-- Validate ---------------------------------------------------------------------------------------

if admit ~= '0' and admit ~= '1' then
	return redis.error_reply('ERR fairlead: admit must be 0 or 1')
end
if not source or source == '' or string.find(source, '[,=\t\n]') then
	return redis.error_reply('ERR fairlead: a source has a name without comma, =, tab, newline')
end
if #ARGV % 2 ~= 0 or #ARGV < 4 or #ARGV > 514 then
	return redis.error_reply('ERR fairlead: 1 to 256 pairs of member and tags')
end

local source_pair = table.concat({ 'sources=', source })

-- The packed value of a newcomer, or nil when these are no tags.
local function record_with(tags)
	for pair in string.gmatch(table.concat({ tags, '\t' }), '([^\t]*)\t') do
		local key = string.match(pair, '^([^=\n]+)=[^\n]*$')
		if not key or key == 'sources' then
			return nil
		end
	end
	return table.concat({ source_pair, tags }, '\t')
end

local members = {}
local count = #ARGV / 2 - 1
-- Most members of a list share their tags with many.
local record_of = { [''] = source_pair }
for i = 1, count do
	local member, tags = ARGV[2 * i + 1], ARGV[2 * i + 2]
	if member == '' then
		return redis.error_reply('ERR fairlead: a member must not be empty')
	end
	record_of[tags] = record_of[tags] or record_with(tags)
	if not record_of[tags] then
		return redis.error_reply('ERR fairlead: tags are key=value and tabs, no sources')
	end
	members[i] = member
end

local rule = redis.call('HMGET', rules, 'start', 'join')
local start = number_of(rule[1] or '0')
local join = rule[2] or 'floor'
if not start then
	return redis.error_reply('ERR fairlead: the rule start is not a number')
end
if join ~= 'floor' and join ~= 'keep' and join ~= 'zero' then
	return redis.error_reply('ERR fairlead: the rule join must be floor, keep or zero')
end

-- Decide -----------------------------------------------------------------------------------------

local in_pool = redis.call('ZMSCORE', pool, unpack(members))
local in_parked = redis.call('ZMSCORE', parked, unpack(members))
local in_proxies = redis.call('HMGET', proxies, unpack(members))
-- A key of another type must end the script here, not between two writes.
redis.call('HLEN', health)
redis.call('ZCARD', busy)
local offset_count = redis.call('HLEN', offset)
local live_count = redis.call('HLEN', live)

local codes = {}
local names = {}
local size = 0
-- Words gather in the order of HSET: name, value.
local words = {}
do
	local code = admit == '1' and JOINED or CANDIDATE
	local is_known = {}
	for i = 1, count do
		local member = members[i]
		if in_proxies[i] or in_pool[i] or in_parked[i] or is_known[member] then
			codes[i] = KNOWN
		else
			-- Named once more, it is known.
			is_known[member] = true
			codes[i] = code
			size = size + 1
			names[size] = member
			words[2 * size - 1] = member
			words[2 * size] = record_of[ARGV[2 * i + 2]]
		end
	end
end
if size == 0 then
	return codes
end

-- All newcomers of a call stand at one score: none of them changes the floor for the next.
local function joining_score()
	if join == 'floor' then
		local lowest = number_of(redis.call('ZRANGE', pool, 0, 0, 'WITHSCORES')[2])
		return math.max(start, lowest or start)
	end
	return join == 'keep' and start or 0
end

-- Write ------------------------------------------------------------------------------------------
-- The same table of words serves all writes: only every second word changes.

local function hset_each(key, value)
	for i = 2, 2 * size, 2 do
		words[i] = value
	end
	redis.call('HSET', key, unpack(words))
end

local function zadd_each(key, score)
	for i = 1, size do
		words[2 * i - 1] = score
		words[2 * i] = names[i]
	end
	redis.call('ZADD', key, unpack(words))
end

-- Leases outlive the removal of their member: one that comes back is as busy as they say.
local function zadd_busy(score)
	local busy_count = math.min(math.max(math.floor(score), 0), LIVE_UNIT - 1)
	if live_count == 0 then
		return zadd_each(busy, number_text(busy_count))
	end
	local lives = redis.call('HMGET', live, unpack(names))
	for i = 1, size do
		local leases = math.max(number_of(lives[i]) or 0, 0)
		words[2 * i - 1] = number_text(leases * LIVE_UNIT + busy_count)
		words[2 * i] = names[i]
	end
	redis.call('ZADD', busy, unpack(words))
end

local score = admit == '1' and joining_score() or start
local score_text = number_text(score)

redis.call('HSET', proxies, unpack(words))
-- Nobody was given yet: all of the count is offset. An offset of 0 is none: in a large pool that
-- saves a quarter of the time, and 80 bytes a member.
if score ~= 0 then
	hset_each(offset, score_text)
elseif offset_count > 0 then
	redis.call('HDEL', offset, unpack(names))
end
if admit == '1' then
	hset_each(health, 'state=up')
	zadd_each(pool, score_text)
	zadd_busy(score)
else
	zadd_each(parked, score_text)
end
return codes
