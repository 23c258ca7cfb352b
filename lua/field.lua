-- field.lua - set or remove one key in the packed values of members, or change a list under it.
--
-- A packed value is `key=value` pairs, tab-separated. Pairs of other keys are kept as they are, in
-- their order, also those that this version does not know; a new pair goes to the end.
--
-- KEYS: 1
-- KEYS[1] hash: member -> packed value
-- ARGV:
-- ARGV[1] how: `set`; `join` or `leave` (the value of the key is a comma-separated list, to which
--   the given value, without commas, is added at the end or from which it is taken); `offer` (sets
--   the key where it is absent) or `lift` (removes it where it has this value)
-- ARGV[2] key: not empty, no `=`, tab or newline
-- ARGV[3..] member, value: up to 256 pairs. To set an empty value removes the key, and a member
--   whose packed value becomes empty leaves the hash. A list that becomes empty stays, as an empty
--   value: without sources is not without a record. Tab and newline in a value are refused
-- Returns: how many members changed
-- Worst case: 256 members read by one HMGET, written by one HDEL and one HSET.

local hash = KEYS[1]
local how = ARGV[1]
local key = ARGV[2]

local is_list = how == 'join' or how == 'leave'
if not is_list and how ~= 'set' and how ~= 'offer' and how ~= 'lift' then
	return redis.error_reply('ERR fairlead: how must be set, join, leave, offer or lift')
end
if not key or key == '' or string.find(key, '[=\t\n]') then
	return redis.error_reply('ERR fairlead: a key must not be empty or hold =, tab or newline')
end
if #ARGV % 2 ~= 0 or #ARGV < 4 or #ARGV > 514 then
	return redis.error_reply('ERR fairlead: 1 to 256 pairs of member and value')
end

local members = {}
local wanted = {}
for i = 3, #ARGV, 2 do
	local member, value = ARGV[i], ARGV[i + 1]
	if member == '' then
		return redis.error_reply('ERR fairlead: a member must not be empty')
	end
	if string.find(value, '[\t\n]') then
		return redis.error_reply('ERR fairlead: a value must not hold tab or newline')
	end
	if is_list and (value == '' or string.find(value, ',', 1, true)) then
		return redis.error_reply('ERR fairlead: an item must have bytes, and no comma')
	end
	-- Of a member named twice the last value holds.
	if not wanted[member] then
		members[#members + 1] = member
	end
	wanted[member] = value
end

local prefix = table.concat({ key, '=' })

local function packed_get(packed)
	for pair in string.gmatch(packed, '[^\t]+') do
		if string.sub(pair, 1, #prefix) == prefix then
			return string.sub(pair, #prefix + 1)
		end
	end
	return nil
end

-- The list without `item`, and with it at the end if it is to join.
local function list_change(list, item)
	local items = {}
	for old in string.gmatch(list, '[^,]+') do
		if old ~= item then
			items[#items + 1] = old
		elseif how == 'join' then
			return list
		end
	end
	if how == 'join' then
		items[#items + 1] = item
	end
	return table.concat(items, ',')
end

-- The packed value with this value under the key, or without the key for nil.
local function packed_set(packed, value)
	local pair = value and table.concat({ prefix, value })
	local pairs_kept = {}
	local is_placed = not value
	for old in string.gmatch(packed, '[^\t]+') do
		if string.sub(old, 1, #prefix) ~= prefix then
			pairs_kept[#pairs_kept + 1] = old
		elseif not is_placed then
			pairs_kept[#pairs_kept + 1] = pair
			is_placed = true
		end
	end
	if not is_placed then
		pairs_kept[#pairs_kept + 1] = pair
	end
	return table.concat(pairs_kept, '\t')
end

local function packed_change(packed, value)
	if how == 'set' then
		return packed_set(packed, value ~= '' and value or nil)
	end
	local old = packed_get(packed)
	if how == 'offer' then
		return old and packed or packed_set(packed, value)
	elseif how == 'lift' then
		return old == value and packed_set(packed, nil) or packed
	elseif how == 'leave' and not old then
		return packed
	end
	return packed_set(packed, list_change(old or '', value))
end

local before = redis.call('HMGET', hash, unpack(members))
-- '' is no member: with it the first write, by which Redis judges memory, is always a removal.
local removed = { '' }
local written = {}
for i, member in ipairs(members) do
	local after = packed_change(before[i] or '', wanted[member])
	if not is_list and after == '' and before[i] then
		removed[#removed + 1] = member
	elseif after ~= '' and after ~= before[i] then
		written[#written + 1] = member
		written[#written + 1] = after
	end
end

redis.call('HDEL', hash, unpack(removed))
if #written > 0 then
	redis.call('HSET', hash, unpack(written))
end
return #removed - 1 + #written / 2
