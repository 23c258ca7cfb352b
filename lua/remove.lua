-- remove.lua - forget members, and their counts, everywhere.
--
-- Leases that are still held run out by themselves: their keys are not touched. Secrets are no key
-- of any script; the caller removes them afterwards.
--
-- KEYS: 9
-- KEYS[1] pool: the sorted set of eligible members
-- KEYS[2] parked: the sorted set of the others
-- KEYS[3] offset: hash, member -> score at joining - allocations recorded before
-- KEYS[4] proxies: hash, member -> sources, tags
-- KEYS[5] admin: hash, member -> administrative state
-- KEYS[6] health: hash, member -> last verdicts
-- KEYS[7] streaks: hash, member -> verdicts in a row
-- KEYS[8] due: sorted set, member -> time of its next check
-- KEYS[9] busy: sorted set, member -> live leases and allocations
-- ARGV:
-- ARGV[1..256] members
-- Returns: array, for each member 1 when it was eligible, parked or among the proxies, else 0
-- Worst case: 256 members, each removed from 9 keys.

local pool = KEYS[1]
local parked = KEYS[2]
local proxies = KEYS[4]
local sorted_sets = { pool, parked, KEYS[8], KEYS[9] }
local hashes = { KEYS[3], proxies, KEYS[5], KEYS[6], KEYS[7] }
local members = ARGV

if #members < 1 or #members > 256 then
	return redis.error_reply('ERR fairlead: 1 to 256 members')
end

-- A key of another type must end the script here, not between two writes.
for _, key in ipairs(sorted_sets) do
	redis.call('ZCARD', key)
end
for _, key in ipairs(hashes) do
	redis.call('HLEN', key)
end

local in_pool = redis.call('ZMSCORE', pool, unpack(members))
local in_parked = redis.call('ZMSCORE', parked, unpack(members))
local in_proxies = redis.call('HMGET', proxies, unpack(members))
local codes = {}
for i in ipairs(members) do
	codes[i] = (in_pool[i] or in_parked[i] or in_proxies[i]) and 1 or 0
end

for _, key in ipairs(sorted_sets) do
	redis.call('ZREM', key, unpack(members))
end
for _, key in ipairs(hashes) do
	redis.call('HDEL', key, unpack(members))
end
return codes
