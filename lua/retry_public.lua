-- retry_public.lua - give tasks that came back to consumers that know nothing of retry lists.
--
-- They go raw to the end of the level's list that is consumed first, in their order: the one that
-- would be claimed next stands outermost when all are moved. The youngest go first, so that this
-- holds over any number of calls. Their counts of failures and losses are forgotten.
--
-- KEYS: 4
-- KEYS[1] retry: the level's list of ids of tasks that came back
-- KEYS[2] held: hash, id -> packed: kind, level, failures, lost, released, payload
-- KEYS[3] list: the level's list of payloads
-- KEYS[4] stats: hash: published
-- ARGV:
-- ARGV[1] count: most tasks, 1 to 128; fewer if they come to 4 MiB
-- Returns: how many were moved; ids that lead to no task are dropped on the way
-- Worst case: 256 ids taken one by one, 128 tasks moved.

local retry = KEYS[1]
local held = KEYS[2]
local list = KEYS[3]
local stats = KEYS[4]
local count_text = ARGV[1]

local LOOKS_MAX = 256
local BYTES_MAX = 4194304

local count = tonumber(count_text)
if not count or count < 1 or count > 128 or count % 1 ~= 0 then
	return redis.error_reply('ERR fairlead: count is 1 to 128')
end
redis.call('HLEN', held)
redis.call('LLEN', list)
redis.call('LLEN', retry)
local published = tonumber(redis.call('HGET', stats, 'published') or '0')
if not published or published < 0 or published > 2 ^ 53 - 1000 or published % 1 ~= 0 then
	return redis.error_reply('ERR fairlead: a counter in stats is not a number')
end

-- The first write is a removal.
local moved, bytes = 0, 0
local kept = {}
for _ = 1, LOOKS_MAX do
	local id = redis.call('LPOP', retry)
	if not id then
		break
	end
	local packed = redis.call('HGET', held, id)
	local _, last = string.find(packed or '', '\tpayload=', 1, true)
	if last then
		redis.call('RPUSH', list, string.sub(packed, last + 1))
		redis.call('HDEL', held, id)
		moved = moved + 1
		bytes = bytes + #packed
	elseif packed then
		kept[#kept + 1] = id
	end
	if moved >= count or bytes >= BYTES_MAX then
		break
	end
end
for i = #kept, 1, -1 do
	redis.call('LPUSH', retry, kept[i])
end
if moved > 0 then
	redis.call('HSET', stats, 'published', string.format('%.0f', published + moved))
end
return moved
