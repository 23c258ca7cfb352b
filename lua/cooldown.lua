-- cooldown.lua - note members that are to be avoided for a target host.
--
-- For as long as the pool's rule says. An entry that stands already is set anew. What has ended is
-- removed on the way, and of more than 10000 entries those that end first.
--
-- KEYS: 2
-- KEYS[1] cooldown: sorted set, host TAB member -> time in ms at which it ends
-- KEYS[2] rules: hash: cooldown_ms
-- ARGV:
-- ARGV[1] now_ms: milliseconds since 1970, or '' for Redis's own TIME
-- ARGV[2..65] entries: host TAB member, up to 1024 bytes each
-- Returns: how many entries were set; 0 when the rule cooldown_ms is 0
-- Worst case: 64 entries; 128 that have ended, and 128 that are too many, are removed.

local cooldown = KEYS[1]
local rules = KEYS[2]
local now_text = ARGV[1]
local entries = { unpack(ARGV, 2) }

local ENTRIES_MAX = 10000
local ENTRY_BYTES_MAX = 1024
local REMOVED_MAX = 128
local COOLDOWN_MAX_MS = 86400000

if #entries < 1 or #entries > 64 then
	return redis.error_reply('ERR fairlead: 1 to 64 entries')
end
for _, entry in ipairs(entries) do
	if #entry > ENTRY_BYTES_MAX or not string.find(entry, '^[^\t]+\t.') then
		return redis.error_reply('ERR fairlead: an entry is a host, a tab and a member')
	end
end
local now_ms = tonumber(now_text)
if now_text == '' then
	local time = redis.call('TIME')
	now_ms = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end
if not now_ms or now_ms % 1 ~= 0 then
	return redis.error_reply('ERR fairlead: now_ms is not a whole number')
end
local rule_ms = tonumber(redis.call('HGET', rules, 'cooldown_ms') or '60000')
if not rule_ms or rule_ms < 0 or rule_ms > COOLDOWN_MAX_MS or rule_ms % 1 ~= 0 then
	return redis.error_reply('ERR fairlead: the rule cooldown_ms is not a whole number')
end
if rule_ms == 0 then
	return 0
end

-- Removes up to `count` of those that end first. 1 to 0 are none at all.
local function remove(count)
	local first, last = 0, math.min(count, REMOVED_MAX) - 1
	if count <= 0 then
		first, last = 1, 0
	end
	redis.call('ZREMRANGEBYRANK', cooldown, first, last)
end

-- Redis judges memory at the first write call: let it be a removal, if need be of nothing.
remove(redis.call('ZCOUNT', cooldown, '-inf', string.format('%.0f', now_ms)))

local words = {}
local ends_at = string.format('%.0f', now_ms + rule_ms)
for i, entry in ipairs(entries) do
	words[2 * i - 1] = ends_at
	words[2 * i] = entry
end
redis.call('ZADD', cooldown, unpack(words))
remove(redis.call('ZCARD', cooldown) - ENTRIES_MAX)

-- The key goes with its last entry, also when nobody writes any more.
local last_end = tonumber(redis.call('ZRANGE', cooldown, -1, -1, 'WITHSCORES')[2])
local life_ms = math.min(last_end - now_ms, COOLDOWN_MAX_MS)
redis.call('PEXPIRE', cooldown, string.format('%.0f', life_ms))
return #entries
