-- allocate.lua - take the n least used members of a pool, each take counted.
--
-- Returns and leaves exactly what n runs of the five-line script would return and leave.
--
-- A group is the members with score < lowest + 1. Whoever is handed out stands at lowest + 1 or
-- above, in doubles as well, so the whole group goes before it and before everybody outside: the
-- group is handed out once in the order of ZRANGE without looking again. While nothing changes that
-- order and nobody else is in reach, the same group is next once more. 1 is added once a pass,
-- never k at once: in doubles (x + 1) + 1 need not be x + 2.
--
-- KEYS: 1
-- KEYS[1] pool: the sorted set of eligible members
-- ARGV:
-- ARGV[1] n: how many, 1 to 256
-- Returns: array of n members in the order of allocation; an empty array when the pool is empty
-- Worst case: n = 256 on a staircase. Each reading adds a member to the group (but for the rare
--   reading after a rounding), so about 23 readings of 5 commands; members read and written: 256
--   in all, and 3 more looked at in each reading.

local pool = KEYS[1]
local n = tonumber(ARGV[1])

if not n or n < 1 or n > 256 or n % 1 ~= 0 then
	return redis.error_reply('ERR fairlead: n must be 1 to 256')
end

-- Redis judges memory at the first write call: let it be a removal, here of nothing.
redis.call('ZREMRANGEBYRANK', pool, 1, 0)

if n == 1 then
	local chosen = redis.call('ZRANGE', pool, 0, 0)[1]
	if not chosen then
		return {}
	end
	redis.call('ZINCRBY', pool, 1, chosen)
	return { chosen }
end

local chosen = {}
local count = 0

-- One pass over the group, at most to n. Returns how many were handed out.
local function hand_out(members)
	local handed = math.min(#members, n - count)
	for i = 1, handed do
		chosen[count + i] = members[i]
	end
	count = count + handed
	return handed
end

-- Is the group, which stands at first..last now, next once more with nobody else in reach?
local function is_next_again(first, last, outside)
	local bound = first + 1
	return count < n and bound > last and bound <= outside
end

-- All at one score, the ordinary case: scores as text cost most of a reading and a writing.
local function allocate_level(size, score, outside)
	local members = redis.call('ZRANGE', pool, 0, size - 1)
	local before, handed
	repeat
		handed = hand_out(members)
		before, score = score, score + 1
	until not is_next_again(score, score, outside)

	local words = {}
	local text = string.format('%.17g', score)
	for i = 1, handed do
		words[2 * i - 1] = text
		words[2 * i] = members[i]
	end
	text = string.format('%.17g', before)
	for i = handed + 1, size do
		words[2 * i - 1] = text
		words[2 * i] = members[i]
	end
	redis.call('ZADD', pool, unpack(words))
end

-- At different scores. Where rounding makes two of them equal the order becomes that of the bytes,
-- which only Redis may decide: the group ends there.
local function allocate_slope(size, outside)
	local read = redis.call('ZRANGE', pool, 0, size - 1, 'WITHSCORES')
	local members, scores = {}, {}
	for i = 1, size do
		members[i] = read[2 * i - 1]
		scores[i] = tonumber(read[2 * i])
	end

	local is_order_kept = true
	repeat
		local old, new
		for i = 1, hand_out(members) do
			if scores[i] ~= old and scores[i] + 1 == new then
				is_order_kept = false
			end
			old = scores[i]
			new = old + 1
			scores[i] = new
		end
	until not is_order_kept or not is_next_again(scores[1], scores[size], outside)

	local words = {}
	for i = 1, size do
		words[2 * i - 1] = string.format('%.17g', scores[i])
		words[2 * i] = members[i]
	end
	redis.call('ZADD', pool, unpack(words))
end

while count < n do
	local head = redis.call('ZRANGE', pool, 0, 0, 'WITHSCORES')
	if #head == 0 then
		break
	end
	local lowest = tonumber(head[2])
	local bound = lowest + 1
	if bound == lowest then
		-- At 2^53, or an infinity, adding 1 changes nothing: the head stays the head.
		for i = count + 1, n do
			chosen[i] = head[1]
		end
		break
	end

	local group_size = redis.call('ZCOUNT', pool, '-inf', string.format('(%.17g', bound))
	local size = math.min(group_size, n - count)
	local edge = redis.call('ZRANGE', pool, size - 1, size, 'WITHSCORES')
	local outside = tonumber(edge[4] or 'inf')
	if tonumber(edge[2]) == lowest then
		allocate_level(size, lowest, outside)
	else
		allocate_slope(size, outside)
	end
end

return chosen
