-- traffic.lua - add what has gathered to counts of bytes.
--
-- KEYS: 1
-- KEYS[1] counts: hash, `in:NAME` or `out:NAME` -> bytes
-- ARGV:
-- ARGV[1] most: fields of the hash; while it has as many, no new one is added
-- ARGV[2..] field, bytes: 1 to 128 pairs
-- Returns: how many of them were added. One that is new to a full hash, or whose field does not
--   hold a count, is not.
-- Worst case: 128 fields read by one HMGET, and added to by an HINCRBY each.

local counts = KEYS[1]
local most = tonumber(ARGV[1])
local pair_count = (#ARGV - 1) / 2

-- Up to 18 digits: the sum of two of them is less than 2^63.
local function is_count(text)
	return string.find(text, '^%d+$') and #text <= 18
end

if not most or most < 0 then
	return redis.error_reply('ERR fairlead: most must be a number')
end
if pair_count % 1 ~= 0 or pair_count < 1 or pair_count > 128 then
	return redis.error_reply('ERR fairlead: 1 to 128 pairs of field and bytes')
end
local fields = {}
for i = 1, pair_count do
	fields[i] = ARGV[2 * i]
	if not is_count(ARGV[2 * i + 1]) then
		return redis.error_reply('ERR fairlead: bytes are up to 18 digits')
	end
end

local held = redis.call('HMGET', counts, unpack(fields))
local room = most - redis.call('HLEN', counts)

-- The first write, by which Redis judges memory, is a removal: '' is no field.
redis.call('HDEL', counts, '')
local added = 0
for i, field in ipairs(fields) do
	local is_new = not held[i]
	if is_new and room > 0 or not is_new and is_count(held[i]) then
		redis.call('HINCRBY', counts, field, ARGV[2 * i + 1])
		room = room - (is_new and 1 or 0)
		added = added + 1
	end
end
return added
