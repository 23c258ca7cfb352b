-- rules_set.lua - set rules of a pool, and found it: wire version and salt are set once.
--
-- KEYS: 1
-- KEYS[1] rules: hash, name -> value, with `wire` and `salt`
-- ARGV:
-- ARGV[1] wire: the version of the wire contract that the caller writes, a whole number
-- ARGV[2] salt: 32 bytes in hex, taken only if the pool has none yet
-- ARGV[3..] name, value: up to 256 pairs, possibly none, judged by the caller
-- Returns: the salt of the pool; an error when the pool was written by a newer version
-- Worst case: 256 pairs in one HSET.

local rules = KEYS[1]
local wire = tonumber(ARGV[1])
local salt = ARGV[2]

if not wire or wire < 1 or wire % 1 ~= 0 then
	return redis.error_reply('ERR fairlead: wire must be a whole number above 0')
end
if not salt or salt == '' then
	return redis.error_reply('ERR fairlead: a salt is needed')
end
if #ARGV % 2 ~= 0 or #ARGV > 514 then
	return redis.error_reply('ERR fairlead: at most 256 pairs of name and value')
end
for i = 3, #ARGV, 2 do
	if ARGV[i] == '' or ARGV[i] == 'wire' or ARGV[i] == 'salt' then
		return redis.error_reply('ERR fairlead: no rule is named wire or salt')
	end
end

local wire_text = redis.call('HGET', rules, 'wire')
local wire_there = tonumber(wire_text or wire)
if not wire_there then
	return redis.error_reply('ERR fairlead: the wire version of this pool is not a number')
end
if wire_there > wire then
	return redis.error_reply(
		string.format('ERR fairlead: wire %.17g is newer than this node', wire_there)
	)
end

-- '' is no rule: the first write, by which Redis judges memory, is a removal.
redis.call('HDEL', rules, '')
redis.call('HSETNX', rules, 'wire', string.format('%.0f', wire))
redis.call('HSETNX', rules, 'salt', salt)
if #ARGV > 2 then
	redis.call('HSET', rules, unpack(ARGV, 3))
end
return redis.call('HGET', rules, 'salt')
