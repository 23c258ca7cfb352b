-- queue_mend.lua - put right what foreign hands, or a restore of half the keys, left behind.
--
-- A claim without a lease gets one that has ended, so that the next `claim` collects it. A lease
-- without a claim goes, and so does a due time without a task.
--
-- KEYS: 5
-- KEYS[1] claims: hash, claim -> packed
-- KEYS[2] leases: sorted set, claim -> when its lease ends in ms
-- KEYS[3] held: hash, id -> packed
-- KEYS[4] later: sorted set, id -> when it is due in ms
-- KEYS[5] stats: hash: mended
-- ARGV:
-- ARGV[1] kind: of what the ids are: `claims`, `leases` or `later`
-- ARGV[2..129] ids, or claims
-- Returns: how many were mended
-- Worst case: 128 ids, one read and one write of each.

local claims = KEYS[1]
local leases = KEYS[2]
local held = KEYS[3]
local later = KEYS[4]
local stats = KEYS[5]
local kind = ARGV[1]
local ids = { unpack(ARGV, 2) }

if #ids < 1 or #ids > 128 then
	return redis.error_reply('ERR fairlead: 1 to 128 ids')
end
redis.call('HLEN', claims)
redis.call('ZCARD', leases)
redis.call('HLEN', held)
redis.call('ZCARD', later)
local mended_before = tonumber(redis.call('HGET', stats, 'mended') or '0')
if not mended_before or mended_before < 0 or mended_before > 2 ^ 53 - 1000 then
	return redis.error_reply('ERR fairlead: a counter in stats is not a number')
end

local mend = {}

function mend.claims(id)
	if redis.call('HEXISTS', claims, id) == 0 then
		return 0
	end
	return redis.call('ZADD', leases, 'NX', 0, id)
end

function mend.leases(id)
	return redis.call('HEXISTS', claims, id) == 0 and redis.call('ZREM', leases, id) or 0
end

function mend.later(id)
	return redis.call('HEXISTS', held, id) == 0 and redis.call('ZREM', later, id) or 0
end

if not mend[kind] then
	return redis.error_reply('ERR fairlead: kind must be claims, leases or later')
end

-- Redis judges memory at the first write call: let it be a removal, here of nothing.
redis.call('ZREMRANGEBYRANK', later, 1, 0)
local mended = 0
for _, id in ipairs(ids) do
	mended = mended + mend[kind](id)
end
if mended > 0 then
	redis.call('HSET', stats, 'mended', string.format('%.0f', mended_before + mended))
end
return mended
