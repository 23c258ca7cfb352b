-- busy_mend.lua - see to it that eligible members, and they only, stand in busy with their leases.
--
-- Foreign hands add to the pool, and remove from it, alone. A count that is too low is none of this
-- script's business: `acquire` looks at it when it matters.
--
-- KEYS: 3
-- KEYS[1] pool: the sorted set of eligible members
-- KEYS[2] live: hash, member -> live leases
-- KEYS[3] busy: sorted set, eligible member -> live x 2^40 + allocation count when last written
-- ARGV:
-- ARGV[1..128] members
-- Returns: array, for each member 0 nothing to do, 1 joined busy, 2 mended there, 3 left it
-- Worst case: 128 members: 3 reads, and a ZREM and ZADD of 128 members together.

local pool = KEYS[1]
local live = KEYS[2]
local busy = KEYS[3]
local members = ARGV

local FINE, JOINED, MENDED, LEFT = 0, 1, 2, 3
local LIVE_UNIT = 2 ^ 40

if #members < 1 or #members > 128 then
	return redis.error_reply('ERR fairlead: 1 to 128 members')
end

local counts = redis.call('ZMSCORE', pool, unpack(members))
local lives = redis.call('HMGET', live, unpack(members))
local scores = redis.call('ZMSCORE', busy, unpack(members))

-- Absent stands for 0, and so does what cannot be read.
local function leases_held(text)
	local number = tonumber(text or nil)
	return number and number >= 0 and number <= 2 ^ 53 and number % 1 == 0 and number or 0
end

local codes = {}
local gone, words = {}, {}
for i, member in ipairs(members) do
	local count = tonumber(counts[i] or nil)
	local score = tonumber(scores[i] or nil)
	local held = leases_held(lives[i])
	codes[i] = FINE
	if not count and score then
		codes[i] = LEFT
		gone[#gone + 1] = member
	elseif count and (not score or math.floor(score / LIVE_UNIT) ~= held) then
		codes[i] = score and MENDED or JOINED
		count = math.min(math.max(math.floor(count), 0), LIVE_UNIT - 1)
		words[#words + 1] = string.format('%.17g', held * LIVE_UNIT + count)
		words[#words + 1] = member
	end
end

-- Redis judges memory at the first write call: let it be a removal, if need be of nothing.
redis.call('ZREMRANGEBYRANK', busy, 1, 0)
if #gone > 0 then
	redis.call('ZREM', busy, unpack(gone))
end
if #words > 0 then
	redis.call('ZADD', busy, unpack(words))
end
return codes
