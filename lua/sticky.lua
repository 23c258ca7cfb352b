-- sticky.lua - the member of a sticky session: found, created or moved, and counted, in one step.
--
-- A session lives while its pin is there and `sessions` has it expire later than now; a session
-- whose cap (created + max) has passed is over. All gateways see one pin: whoever comes to a
-- session that another has moved takes the new member, unless it is to be avoided as well.
--
-- KEYS: 3
-- KEYS[1] pool: the sorted set of eligible members
-- KEYS[2] pin: string, expiring, packed: member, created (ms since 1970)
-- KEYS[3] sessions: sorted set, expiring, session of the client -> expiry in ms since 1970
-- ARGV:
-- ARGV[1] now_ms: milliseconds since 1970, or '' for Redis's own TIME
-- ARGV[2] session: as it stands in `sessions`
-- ARGV[3] lifetime_ms: from now on
-- ARGV[4] max_ms: from the creation on
-- ARGV[5] limit: most live sessions of the client
-- ARGV[6] strict: 1 = a member that is not eligible, or is to be avoided, is not replaced; or 0
-- ARGV[7..70] avoided: members that must not be taken; none at all is fine
-- Returns: array of a code and, behind the first three, the member, which is counted:
--   1 as before, 2 a new session, 3 moved to another member, 4 lost (strict), 5 too many sessions;
--   nil when nobody is eligible. What returns no member writes nothing.
-- Worst case: 64 avoided members stand in front and 256 sessions have expired: reads 65 members,
--   counts the sessions, removes 256 of them, writes one member, the pin and one session.

local pool = KEYS[1]
local pin = KEYS[2]
local sessions = KEYS[3]
local now_text = ARGV[1]
local session = ARGV[2]
local lifetime_ms = tonumber(ARGV[3])
local max_ms = tonumber(ARGV[4])
local limit = tonumber(ARGV[5])
local strict = ARGV[6]
local avoided = { unpack(ARGV, 7) }

local KEPT, CREATED, MOVED, LOST, LIMIT = 1, 2, 3, 4, 5
local COLLECTED_MAX = 256

local function is_count(number)
	return number and number >= 1 and number <= 1e12 and number % 1 == 0
end

-- Validate ---------------------------------------------------------------------------------------

local now_ms = tonumber(now_text)
if now_text == '' then
	local time = redis.call('TIME')
	now_ms = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end
if not now_ms or now_ms % 1 ~= 0 then
	return redis.error_reply('ERR fairlead: now_ms is not a whole number')
end
if not session or session == '' then
	return redis.error_reply('ERR fairlead: a session has a name')
end
if not is_count(lifetime_ms) or not is_count(max_ms) or not is_count(limit) then
	return redis.error_reply('ERR fairlead: lifetime, max and limit are 1 to 1e12')
end
if strict ~= '0' and strict ~= '1' then
	return redis.error_reply('ERR fairlead: strict must be 0 or 1')
end
if #avoided > 64 then
	return redis.error_reply('ERR fairlead: at most 64 members to avoid')
end

-- Decide -----------------------------------------------------------------------------------------

local function value_of(packed, key)
	for name, value in string.gmatch(packed, '([^=\t]+)=([^\t]*)') do
		if name == key then
			return value
		end
	end
	return nil
end

local packed = redis.call('GET', pin)
local expiry = tonumber(redis.call('ZSCORE', sessions, session) or nil)
local is_listed = expiry ~= nil and expiry > now_ms
local pinned, created
if packed and is_listed then
	pinned = value_of(packed, 'member')
	created = tonumber(value_of(packed, 'created') or nil)
	if not (pinned and created and created + max_ms > now_ms) then
		pinned, created = nil, nil
	end
end

local is_avoided = {}
for _, member in ipairs(avoided) do
	is_avoided[member] = true
end

local function lowest_not_avoided()
	for _, member in ipairs(redis.call('ZRANGE', pool, 0, #avoided)) do
		if not is_avoided[member] then
			return member
		end
	end
	return nil
end

-- A session that is over, but still listed, makes room for itself.
local function is_at_limit()
	local live = redis.call('ZCOUNT', sessions, string.format('(%.0f', now_ms), '+inf')
	return live - (is_listed and 1 or 0) >= limit
end

local code, chosen
if pinned and not is_avoided[pinned] and redis.call('ZSCORE', pool, pinned) then
	code, chosen = KEPT, pinned
elseif pinned and strict == '1' then
	return { LOST }
elseif not pinned and is_at_limit() then
	return { LIMIT }
else
	code, chosen = pinned and MOVED or CREATED, lowest_not_avoided()
	if not chosen then
		return nil
	end
end

-- Pairs of other keys stay as they are.
local function repinned()
	local pairs_kept = {}
	for pair in string.gmatch(packed, '[^\t]+') do
		if string.sub(pair, 1, 7) == 'member=' then
			pair = table.concat({ 'member=', chosen })
		end
		pairs_kept[#pairs_kept + 1] = pair
	end
	return table.concat(pairs_kept, '\t')
end

if code == CREATED then
	created = now_ms
	packed = table.concat({ 'member=', chosen, '\tcreated=', string.format('%.0f', created) })
elseif code == MOVED then
	packed = repinned()
end

local expired = redis.call('ZCOUNT', sessions, '-inf', string.format('%.0f', now_ms))
local rest_ms = redis.call('PTTL', sessions)

-- Write ------------------------------------------------------------------------------------------

-- Redis judges memory at the first write call: let it be a removal, here of nothing.
redis.call('ZREMRANGEBYRANK', pool, 1, 0)
redis.call('ZINCRBY', pool, 1, chosen)
-- Such a member is no proxy, and the caller will not use it: it cannot be packed, either.
if string.find(chosen, '[\t\n]') then
	return { code, chosen }
end
if expired > 0 then
	redis.call('ZREMRANGEBYRANK', sessions, 0, math.min(expired, COLLECTED_MAX) - 1)
end

expiry = math.min(now_ms + lifetime_ms, created + max_ms)
local ttl_ms = math.ceil(expiry - now_ms)
redis.call('SET', pin, packed, 'PX', string.format('%.0f', ttl_ms))
redis.call('ZADD', sessions, string.format('%.0f', expiry), session)
redis.call('PEXPIRE', sessions, string.format('%.0f', math.max(rest_ms, ttl_ms)))
return { code, chosen }
