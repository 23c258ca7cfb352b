-- dead_retry.lua - put dead letters back into the lists of their levels, the oldest first.
--
-- They go raw to the end of the list, as new tasks. Those of a level that is not named, or that
-- cannot be read, stay: they move to where the newest are.
--
-- KEYS: 2+
-- KEYS[1] dead: list of packed, the newest first: id, reason, level, failures, lost, at, payload
-- KEYS[2] stats: hash: pushed:<level>
-- KEYS[3..] lists: the list of each of 1 to 16 levels
-- ARGV:
-- ARGV[1] count: most letters to look at, 1 to 128; fewer if they come to 4 MiB
-- ARGV[2..] names of the levels
-- Returns: array: how many were put back, how many letters are left
-- Worst case: 128 letters taken and put back one by one.

local dead = KEYS[1]
local stats = KEYS[2]
local level_lists = { unpack(KEYS, 3) }
local count_text = ARGV[1]
local level_names = { unpack(ARGV, 2) }

local LEVELS_MAX = 16
local BYTES_MAX = 4194304

-- Validate ---------------------------------------------------------------------------------------

local count = tonumber(count_text)
if not count or count < 1 or count > 128 or count % 1 ~= 0 then
	return redis.error_reply('ERR fairlead: count is 1 to 128')
end
if #level_names < 1 or #level_names > LEVELS_MAX or #level_names ~= #level_lists then
	return redis.error_reply('ERR fairlead: 1 to 16 levels, each with a key and a name')
end
local level_of = {}
for i, name in ipairs(level_names) do
	local list = level_lists[i]
	local field = table.concat({ 'pushed:', name })
	local pushed = tonumber(redis.call('HGET', stats, field) or '0')
	if not pushed or pushed < 0 or pushed > 2 ^ 53 - 1000 or pushed % 1 ~= 0 then
		return redis.error_reply('ERR fairlead: a counter in stats is not a number')
	end
	level_of[name] = { list = list, field = field, pushed = pushed, moved = 0 }
	redis.call('LLEN', list)
end
local left = redis.call('LLEN', dead)

-- Write: the first one is a removal --------------------------------------------------------------

local moved, bytes = 0, 0
for _ = 1, math.min(count, left) do
	local packed = redis.call('RPOP', dead)
	local first, last = string.find(packed, '\tpayload=', 1, true)
	local pairs_text = first and string.sub(packed, 1, first - 1) or ''
	local level = level_of[string.match(pairs_text, '\tlevel=([^\t]*)') or '']
	if level then
		local list = level.list
		redis.call('LPUSH', list, string.sub(packed, last + 1))
		level.moved = level.moved + 1
		moved = moved + 1
	else
		redis.call('LPUSH', dead, packed)
	end
	bytes = bytes + #packed
	if bytes >= BYTES_MAX then
		break
	end
end
for _, level in pairs(level_of) do
	if level.moved > 0 then
		local pushed = level.pushed + level.moved
		redis.call('HSET', stats, level.field, string.format('%.0f', pushed))
	end
end
return { moved, left - moved }
