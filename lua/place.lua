-- place.lua - put members where they belong: into the pool, or parked.
--
-- The only script that moves a member between the two. Whoever changes a cause (administrative
-- state, health, expiry, sources) writes its own field, then calls this. The count moves along, and
-- allocations ever = score - offset is the same before and after every move. The members of one
-- call that leave do so before the others join, whatever their order.
--
-- KEYS: 9
-- KEYS[1] pool: the sorted set of eligible members
-- KEYS[2] parked: the sorted set of the others, with the count that they left with
-- KEYS[3] offset: hash, member -> score at joining - allocations recorded before
-- KEYS[4] proxies: hash, member -> packed: sources, tags. A member without a record is foreign
-- KEYS[5] admin: hash, member -> packed: state, expires_at
-- KEYS[6] health: hash, member -> packed: state
-- KEYS[7] rules: hash: start, join
-- KEYS[8] live: hash, member -> live leases
-- KEYS[9] busy: sorted set, eligible member -> live x 2^40 + allocation count
-- ARGV:
-- ARGV[1] now_ms: milliseconds since 1970, or '' for Redis's own TIME
-- ARGV[2..257] members
-- Returns: array, for each member 0 unknown, 1 eligible already, 2 joined, 3 parked already,
--   4 parked now, 5 a candidate, parked for the first time
-- Worst case: 256 members that all join: 10 reads of 256 fields, then 4 writes of 256 members.

local pool = KEYS[1]
local parked = KEYS[2]
local offset = KEYS[3]
local proxies = KEYS[4]
local admin = KEYS[5]
local health = KEYS[6]
local rules = KEYS[7]
local live = KEYS[8]
local busy = KEYS[9]
local now_text = ARGV[1]
local members = { unpack(ARGV, 2) }

local UNKNOWN, ELIGIBLE, JOINED, PARKED, PARKED_NOW, CANDIDATE = 0, 1, 2, 3, 4, 5
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

-- The value of one key of a packed value, by patterns: a table of all pairs would cost three times
-- as much.
local function key_patterns(key)
	local pair = table.concat({ key, '=([^\t]*)' })
	return { table.concat({ '^', pair }), table.concat({ '\t', pair }) }
end
local SOURCES, STATE, EXPIRES_AT =
	key_patterns('sources'), key_patterns('state'), key_patterns('expires_at')

local function value_of(packed, patterns)
	return packed and (string.match(packed, patterns[1]) or string.match(packed, patterns[2]))
end

-- Validate ---------------------------------------------------------------------------------------

if #members < 1 or #members > 256 then
	return redis.error_reply('ERR fairlead: 1 to 256 members')
end
local now_ms = number_of(now_text)
if now_text == '' then
	local time = redis.call('TIME')
	now_ms = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end
if not now_ms then
	return redis.error_reply('ERR fairlead: now_ms is not a number')
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

local state = {}
do
	-- Every key is read before the first write: one of another type ends the script here.
	local in_pool = redis.call('ZMSCORE', pool, unpack(members))
	local in_parked = redis.call('ZMSCORE', parked, unpack(members))
	local in_busy = redis.call('ZMSCORE', busy, unpack(members))
	local offsets = redis.call('HMGET', offset, unpack(members))
	local records = redis.call('HMGET', proxies, unpack(members))
	local admins = redis.call('HMGET', admin, unpack(members))
	local healths = redis.call('HMGET', health, unpack(members))
	local lives = redis.call('HMGET', live, unpack(members))
	for i, member in ipairs(members) do
		state[member] = {
			pool_score = number_of(in_pool[i]),
			parked_score = number_of(in_parked[i]),
			is_busy = in_busy[i] ~= false,
			-- Absent stands for 0, and so does what cannot be read.
			offset = number_of(offsets[i]) or 0,
			record = records[i],
			admin = admins[i],
			health_state = value_of(healths[i], STATE),
			live = math.max(number_of(lives[i]) or 0, 0),
		}
	end
end

-- Decide -----------------------------------------------------------------------------------------

local function is_allowed(member)
	if (value_of(member.admin, STATE) or 'enabled') ~= 'enabled' then
		return false
	end
	-- An expiry that cannot be read has passed: withdrawn members must not be used.
	local expires_at = value_of(member.admin, EXPIRES_AT)
	return not expires_at or (number_of(expires_at) or now_ms) > now_ms
end

local function is_eligible(member)
	if not is_allowed(member) then
		return false
	end
	if member.record and (value_of(member.record, SOURCES) or '') == '' then
		return false
	end
	-- Without any verdict a member stays where it is.
	if not member.health_state then
		return member.pool_score ~= nil
	end
	return member.health_state == 'up'
end

-- Decided by the state before this call, so each member is decided once.
local function decide(member)
	if not (member.pool_score or member.parked_score or member.record) then
		return UNKNOWN
	end
	if is_eligible(member) then
		return member.pool_score and ELIGIBLE or JOINED
	end
	if member.pool_score then
		return PARKED_NOW
	end
	return member.parked_score and PARKED or CANDIDATE
end

local codes = {}
local names_of = {}
for code = UNKNOWN, CANDIDATE do
	names_of[code] = {}
end
do
	-- What a member named once more is told.
	local again = { [JOINED] = ELIGIBLE, [PARKED_NOW] = PARKED, [CANDIDATE] = PARKED }
	local decided = {}
	for i, name in ipairs(members) do
		local code = decided[name]
		if code then
			codes[i] = again[code] or code
		else
			code = decide(state[name])
			codes[i] = code
			decided[name] = code
			table.insert(names_of[code], name)
		end
	end
end

-- Write ------------------------------------------------------------------------------------------
-- Words gather in the order of ZADD and HSET, so that each key is written once.

local function zadd(key, words)
	if #words > 0 then
		redis.call('ZADD', key, unpack(words))
	end
end

local function zrem(key, names)
	if #names > 0 then
		redis.call('ZREM', key, unpack(names))
	end
end

local function hset(key, words)
	if #words > 0 then
		redis.call('HSET', key, unpack(words))
	end
end

local function append(words, first, second)
	words[#words + 1] = first
	words[#words + 1] = second
end

local function busy_text(member, score)
	local count = math.min(math.max(math.floor(score), 0), LIVE_UNIT - 1)
	return number_text(member.live * LIVE_UNIT + count)
end

local function park(names)
	local words = {}
	for _, name in ipairs(names) do
		append(words, number_text(state[name].pool_score), name)
	end
	zrem(pool, names)
	zrem(busy, names)
	zadd(parked, words)
end

local function add_candidates(names)
	local parked_words, offset_words = {}, {}
	for _, name in ipairs(names) do
		append(parked_words, number_text(start), name)
		append(offset_words, name, number_text(start))
	end
	zadd(parked, parked_words)
	hset(offset, offset_words)
end

-- Where a member with this own count joins, and the lowest count of the pool then.
local function joining_score(own, lowest)
	if join == 'floor' then
		local score = math.max(own, lowest or own)
		return score, lowest or score
	end
	return join == 'keep' and own or 0, lowest
end

local function join_pool(names)
	local pool_words, offset_words, busy_words = {}, {}, {}
	local lowest = number_of(redis.call('ZRANGE', pool, 0, 0, 'WITHSCORES')[2])
	for _, name in ipairs(names) do
		local member = state[name]
		local own = member.parked_score or start
		-- A first-time member has no allocations: its own count is all offset.
		local own_offset = member.parked_score and member.offset or own
		local score
		score, lowest = joining_score(own, lowest)
		append(pool_words, number_text(score), name)
		append(offset_words, name, number_text(number_of(score - (own - own_offset)) or 0))
		append(busy_words, busy_text(member, score), name)
	end
	zrem(parked, names)
	zadd(pool, pool_words)
	hset(offset, offset_words)
	zadd(busy, busy_words)
end

-- Foreign hands add to the pool alone: mends a second place, or none among the busy.
local function mend(names)
	local busy_words = {}
	for _, name in ipairs(names) do
		if not state[name].is_busy then
			append(busy_words, busy_text(state[name], state[name].pool_score), name)
		end
	end
	zrem(parked, names)
	zadd(busy, busy_words)
end

-- Redis judges memory at the first write call: let it be a removal, here of nothing.
redis.call('ZREMRANGEBYRANK', pool, 1, 0)

-- Whoever leaves does so first, and has no part in the floor.
park(names_of[PARKED_NOW])
add_candidates(names_of[CANDIDATE])
join_pool(names_of[JOINED])
mend(names_of[ELIGIBLE])
return codes
