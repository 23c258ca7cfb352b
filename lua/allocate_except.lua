-- allocate_except.lua - take the least used member that is not among those to avoid, and count it.
--
-- For a second try: the caller avoids members that it has tried already, or that rest for its
-- target.
--
-- KEYS: 1
-- KEYS[1] pool: the sorted set of eligible members
-- ARGV:
-- ARGV[1..64] avoided: members that must not be taken; none at all is fine
-- Returns: the member, or nil when nobody else is eligible
-- Worst case: 64 avoided members stand in front: reads 65 members, writes one.

local pool = KEYS[1]
local avoided = ARGV

if #avoided > 64 then
	return redis.error_reply('ERR fairlead: at most 64 members to avoid')
end

-- Redis judges memory at the first write call: let it be a removal, here of nothing.
redis.call('ZREMRANGEBYRANK', pool, 1, 0)

local is_avoided = {}
for _, member in ipairs(avoided) do
	is_avoided[member] = true
end

for _, member in ipairs(redis.call('ZRANGE', pool, 0, #avoided)) do
	if not is_avoided[member] then
		redis.call('ZINCRBY', pool, 1, member)
		return member
	end
end
return nil
