-- acquire.lua - lease the eligible member with the fewest live leases, and count the allocation.
--
-- The lease bears the id of the operation: a caller whose answer was lost asks again with the same
-- id and gets the same lease. Leases that have expired end on the way. Among members with as few
-- leases the one with the fewest allocations is taken, then the first by its bytes.
--
-- Others count allocations in the pool alone, so what `busy` says of its first members may be too
-- low: it is compared with the pool, rewritten and looked at again.
--
-- KEYS: 8
-- KEYS[1] pool: the sorted set of eligible members
-- KEYS[2] live: hash, member -> live leases
-- KEYS[3] busy: sorted set, eligible member -> live x 2^40 + allocation count when last written
-- KEYS[4] leases: sorted set, lease id -> expiry in ms since 1970
-- KEYS[5] holders: hash, lease id -> packed: token, rest, member (the last); `next`: token counter
-- KEYS[6] rules: hash: max_concurrent, lease_ms
-- KEYS[7] admin: hash, member -> packed: max_concurrent
-- KEYS[8] released: sorted set of tokens; only its type is looked at, see below
-- ARGV:
-- ARGV[1] now_ms: milliseconds since 1970, or '' for Redis's own TIME
-- ARGV[2] id: of the operation and its lease, 1 to 64 of 0-9, a-f and -
-- ARGV[3] nonce: 8 to 32 hex digits that nobody else uses
-- ARGV[4] ttl_ms: 1 to 3600000, or '' for the rule lease_ms
-- ARGV[5] only: '' or the one member to take, whose allocation the caller has counted already
-- ARGV[6..69] avoided: members that must not be taken; none at all is fine
-- Returns: array of code, member, token, expiry and now_ms: 0 granted, or granted before; 1 nobody
--   is eligible and not to be avoided; 2 all of those are at their cap; 3 the lease of this
--   operation has been released. Member and token are '' unless the code is 0; the expiry is that
--   of the lease, for code 2 the earliest of all (-1: there is none), else -1.
-- Worst case: 64 expired leases of as many members; 256 members of busy are passed over and 64
--   rewritten, one of them between every 5 others; 64 of the pool join: about 70 commands.

local pool = KEYS[1]
local live = KEYS[2]
local busy = KEYS[3]
local leases = KEYS[4]
local holders = KEYS[5]
local rules = KEYS[6]
local admin = KEYS[7]
local released = KEYS[8]
local now_text = ARGV[1]
local id = ARGV[2]
local nonce = ARGV[3]
local ttl_text = ARGV[4]
local only = ARGV[5]
local avoided = { unpack(ARGV, 6) }

local GRANTED, EMPTY, FULL, ENDED = 0, 1, 2, 3
local LIVE_UNIT = 2 ^ 40
local COLLECTED_MAX, AVOIDED_MAX, PASSED_MAX, STALE_MAX, HEADS_MAX = 64, 64, 256, 64, 64
-- The first members do, nearly always.
local FIRST_SLICE, SLICE = 8, 64
local CAP_MAX, TTL_MAX_MS, TTL_RULE_MIN_MS, TTL_RULE_MS = 1000000, 3600000, 100, 60000

-- The whole number of a text, or nil.
local function whole(text, least, most)
	local number = tonumber(text or nil)
	if number and number >= least and number <= most and number % 1 == 0 then
		return number
	end
	return nil
end

-- What `holders` says of a lease, or nil. The member takes the rest, whatever bytes it has.
local function lease_of(packed)
	local token, others, member =
		string.match(packed or '', '^token=([^\t]*)(.-)\tmember=(.*)$')
	if not token then
		return nil
	end
	local is_resting = string.find(table.concat({ others, '\t' }), '\trest=1\t', 1, true)
	return { token = token, is_resting = is_resting ~= nil, member = member }
end

local function busy_score(leases_held, score)
	return leases_held * LIVE_UNIT + math.min(math.max(math.floor(score), 0), LIVE_UNIT - 1)
end

-- Validate ---------------------------------------------------------------------------------------

local now_ms = whole(now_text, 0, 2 ^ 53)
if now_text == '' then
	local time = redis.call('TIME')
	now_ms = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end
if not now_ms then
	return redis.error_reply('ERR fairlead: now_ms is not a whole number')
end
if not id or #id > 64 or not string.find(id, '^[0-9a-f%-]+$') then
	return redis.error_reply('ERR fairlead: an id is 1 to 64 of 0-9, a-f and -')
end
if not nonce or #nonce < 8 or #nonce > 32 or not string.find(nonce, '^[0-9a-f]+$') then
	return redis.error_reply('ERR fairlead: a nonce is 8 to 32 hex digits')
end
if ttl_text ~= '' and not whole(ttl_text, 1, TTL_MAX_MS) then
	return redis.error_reply('ERR fairlead: ttl_ms is 1 to 3600000')
end
if not only or #avoided > AVOIDED_MAX then
	return redis.error_reply('ERR fairlead: at most 64 members to avoid')
end

local rule = redis.call('HMGET', rules, 'max_concurrent', 'lease_ms')
local rule_cap = whole(rule[1], 0, CAP_MAX) or 0
local ttl_ms = whole(ttl_text, 1, TTL_MAX_MS)
	or whole(rule[2], TTL_RULE_MIN_MS, TTL_MAX_MS)
	or TTL_RULE_MS

-- A key of another type must end the script here, not between two writes. What could never be
-- released is not granted either.
redis.call('ZCARD', pool)
redis.call('ZCARD', busy)
redis.call('ZCARD', released)
redis.call('HLEN', live)
redis.call('HLEN', admin)

-- Collect ----------------------------------------------------------------------------------------

local expiry = tonumber(redis.call('ZSCORE', leases, id) or nil)
local held = redis.call('HMGET', holders, 'next', id)
local serial = (whole(held[1], 0, 2 ^ 53) or 0) + 1
local own = expiry and expiry > now_ms and lease_of(held[2])

local now_score = string.format('%.0f', now_ms)
local expired =
	redis.call('ZRANGE', leases, '-inf', now_score, 'BYSCORE', 'LIMIT', 0, COLLECTED_MAX)
if not own then
	-- Its own has expired if there is one, and is collected now: it is about to be replaced.
	expired[#expired + 1] = id
end

-- The members of leases, and how many of these each has.
local function count_by_member(ids)
	local members, count_of, is_done = {}, {}, {}
	local values = redis.call('HMGET', holders, unpack(ids))
	for i, lease_id in ipairs(ids) do
		local lease = not is_done[lease_id] and lease_of(values[i])
		is_done[lease_id] = true
		if lease and not count_of[lease.member] then
			members[#members + 1] = lease.member
			count_of[lease.member] = 0
		end
		if lease then
			count_of[lease.member] = count_of[lease.member] + 1
		end
	end
	return members, count_of
end

-- The allocations that a score of busy holds: a number also where others have written an infinity.
local function count_in(score)
	return math.min(math.max(score, 0), 2 ^ 53) % LIVE_UNIT
end

-- Takes from the members what has ended.
local function lower(members, count_of)
	local lives = redis.call('HMGET', live, unpack(members))
	local scores = redis.call('ZMSCORE', busy, unpack(members))
	local idle, live_words, busy_words = {}, {}, {}
	for i, member in ipairs(members) do
		local rest = math.max((whole(lives[i], 0, 2 ^ 53) or 0) - count_of[member], 0)
		if rest == 0 then
			idle[#idle + 1] = member
		else
			live_words[#live_words + 1] = member
			live_words[#live_words + 1] = string.format('%.0f', rest)
		end
		if scores[i] then
			local count = count_in(tonumber(scores[i]))
			local score = rest * LIVE_UNIT + count
			busy_words[#busy_words + 1] = string.format('%.17g', score)
			busy_words[#busy_words + 1] = member
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

do
	local members, count_of = {}, nil
	if #expired > 0 then
		members, count_of = count_by_member(expired)
	end
	-- '' is no lease: the first write, by which Redis judges memory, is a removal in any case.
	redis.call('ZREM', leases, '', unpack(expired))
	redis.call('HDEL', holders, '', unpack(expired))
	if #members > 0 then
		lower(members, count_of)
	end
end

if own and own.is_resting then
	return { ENDED, '', '', -1, now_ms }
end
if own then
	return { GRANTED, own.member, own.token, expiry, now_ms }
end

-- Choose -----------------------------------------------------------------------------------------

local is_avoided = {}
for _, member in ipairs(avoided) do
	is_avoided[member] = true
end
local has_seen_full = false

local function cap_of(packed)
	if not packed then
		return rule_cap
	end
	local own_cap = string.match(table.concat({ '\t', packed }), '\tmax_concurrent=([^\t]*)')
	return whole(own_cap, 0, CAP_MAX) or rule_cap
end

-- What is known of members, who are read once each. Who has no score is not in the pool.
local known = {}
local function read_members(members)
	local counts = redis.call('ZMSCORE', pool, unpack(members))
	local lives = redis.call('HMGET', live, unpack(members))
	local admins = redis.call('HMGET', admin, unpack(members))
	for i, member in ipairs(members) do
		local count = tonumber(counts[i] or nil)
		local leases_held = whole(lives[i], 0, 2 ^ 53) or 0
		local cap = cap_of(admins[i])
		known[member] = {
			member = member,
			count = count,
			leases_held = leases_held,
			score = count and busy_score(leases_held, count),
			is_full = cap > 0 and leases_held >= cap,
		}
	end
end

-- What is known of these members, in their order.
local function look_at(members)
	local strangers, found = {}, {}
	for _, member in ipairs(members) do
		if not known[member] then
			strangers[#strangers + 1] = member
		end
	end
	if #strangers > 0 then
		read_members(strangers)
	end
	for i, member in ipairs(members) do
		found[i] = known[member]
	end
	return found
end

local function is_passed_over(subject)
	if is_avoided[subject.member] then
		return true
	end
	has_seen_full = has_seen_full or subject.is_full
	return subject.is_full
end

-- A slice of busy from this rank on: what is known of its members, and what busy says.
local function read_busy(first, size)
	local read = redis.call('ZRANGE', busy, first, first + size - 1, 'WITHSCORES')
	local members, stored = {}, {}
	for i = 1, #read / 2 do
		members[i] = read[2 * i - 1]
		stored[i] = tonumber(read[2 * i])
	end
	return look_at(members), stored
end

-- Rewrites up to `most` that are stale, from the i-th on: they move back, and who was passed over
-- keeps its rank. A score that is too high stays so until its member is taken.
local function rewrite(found, stored, i, most)
	local words = {}
	while i <= #found and #words < 2 * most do
		local subject = found[i]
		if subject.score and subject.score > stored[i] and not is_passed_over(subject) then
			words[#words + 1] = string.format('%.17g', subject.score)
			words[#words + 1] = subject.member
		end
		i = i + 1
	end
	redis.call('ZADD', busy, unpack(words))
	return #words / 2
end

-- The first of busy that may be taken. Members that are not in the pool leave busy.
local function take_from_busy()
	local first, size = 0, FIRST_SLICE
	local passed, stale = 0, 0
	while passed < PASSED_MAX do
		local found, stored = read_busy(first, size)
		local gone = {}
		local i = 1
		while found[i] and (not found[i].score or is_passed_over(found[i])) do
			if found[i].score then
				first = first + 1
			else
				gone[#gone + 1] = found[i].member
			end
			i = i + 1
		end
		if #gone > 0 then
			redis.call('ZREM', busy, unpack(gone))
		end
		passed = passed + i - 1
		if found[i] and (found[i].score <= stored[i] or stale == STALE_MAX) then
			return found[i]
		end
		if found[i] then
			stale = stale + rewrite(found, stored, i, STALE_MAX - stale)
		elseif #found < size then
			return nil
		end
		size = math.min(SLICE, PASSED_MAX - passed)
	end
	return nil
end

-- The heads of the pool, when busy offers nobody: foreign hands add to the pool alone, and those
-- that it does not know join it now.
local function take_from_pool()
	local heads = redis.call('ZRANGE', pool, 0, HEADS_MAX - 1)
	if #heads == 0 then
		return nil
	end
	local scores = redis.call('ZMSCORE', busy, unpack(heads))
	local words = {}
	local best
	for i, subject in ipairs(look_at(heads)) do
		if not scores[i] then
			words[#words + 1] = string.format('%.17g', subject.score)
			words[#words + 1] = subject.member
		end
		-- Of equals the first in the order of the pool.
		if not is_passed_over(subject) and not (best and best.score <= subject.score) then
			best = subject
		end
	end
	if #words > 0 then
		redis.call('ZADD', busy, unpack(words))
	end
	return best
end

local function take_only()
	local subject = look_at({ only })[1]
	if not subject.score or is_passed_over(subject) then
		return nil
	end
	return subject
end

local taken
if only == '' then
	taken = take_from_busy() or take_from_pool()
else
	taken = take_only()
end
if not taken and has_seen_full then
	local earliest = tonumber(redis.call('ZRANGE', leases, 0, 0, 'WITHSCORES')[2] or -1)
	return { FULL, '', '', earliest, now_ms }
end
if not taken then
	return { EMPTY, '', '', -1, now_ms }
end

-- Record -----------------------------------------------------------------------------------------

local member = taken.member
local count = taken.count
if only == '' then
	count = tonumber(redis.call('ZINCRBY', pool, 1, member))
end
local serial_text = string.format('%.0f', serial)
local token = table.concat({ serial_text, '-', nonce })
local expires_ms = now_ms + ttl_ms
local leases_held = taken.leases_held + 1
redis.call('HSET', live, member, string.format('%.0f', leases_held))
redis.call('ZADD', busy, string.format('%.17g', busy_score(leases_held, count)), member)
redis.call('ZADD', leases, string.format('%.0f', expires_ms), id)
local packed = table.concat({ 'token=', token, '\tmember=', member })
redis.call('HSET', holders, 'next', serial_text, id, packed)
return { GRANTED, member, token, expires_ms, now_ms }
