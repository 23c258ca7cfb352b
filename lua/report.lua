-- report.lua - what attempts through members showed: verdicts in a row decide who is up or down.
--
-- Writes `streaks` and `health`, and the time of a probed member's next check; it moves nobody. For
-- members whose standing does not fit their health the caller runs `place`: who dies in between is
-- put right by the next report.
--
-- A failure counts only if its attempt began after the last counted one, so that a burst of
-- requests that wait on a dying member counts once. `fall` counted failures in a row put a member
-- down, unless the guard holds it: of those that are eligible, or were put down within the last two
-- check intervals, more than max_parked_percent fail or fell, and more than one. Only probes bring
-- back: `rise` passes in a row one that is down, one pass a newcomer without a state. Between two
-- moves lie min_state_ms at least; the streak goes on meanwhile.
--
-- KEYS: 10
-- KEYS[1] pool: the sorted set of eligible members
-- KEYS[2] parked: the sorted set of the others
-- KEYS[3] admin: hash, member -> packed: state, expires_at
-- KEYS[4] health: hash, member -> packed: state, since, reason, checked, latency, failed, last,
--   auth, facts
-- KEYS[5] streaks: hash, member -> passes in a row, or failures in a row below 0
-- KEYS[6] rules: hash: fall, rise, min_state_ms, check_interval_ms, backoff_max_ms,
--   max_parked_percent
-- KEYS[7] due: sorted set, member -> time of its next check
-- KEYS[8] failing: sorted set, eligible member -> time of its last counted failure, until it passes
-- KEYS[9] fallen: sorted set, member that stood in the pool -> when failures put it down
-- KEYS[10] alarm: string, expiring: when the guard last held a member
-- ARGV:
-- ARGV[1] now_ms: milliseconds since 1970, or '' for Redis's own TIME
-- ARGV[2..] reports, 1 to 64 of 8 words each: member; outcome (`pass`, `fail`, `auth`,
--   `inconclusive`); source (`probe`, `passive`); ms since the attempt began; latency in ms or '';
--   reason, a word; facts, packed, kept in `health` (an empty value removes one), or ''; chance, a
--   random whole number from 0 to 999,999, that spreads the next check
-- Returns: array, two numbers a report: where the member stands as `place` says it (0 unknown, 1
--   eligible, 3 parked), and a sum of: 1 `place` must be called, 2 the guard held it, 4 it counted
-- Worst case: 64 members that fail: 7 reads and 6 writes of 64 members, 64 packed values.

local pool = KEYS[1]
local parked = KEYS[2]
local admin = KEYS[3]
local health = KEYS[4]
local streaks = KEYS[5]
local rules = KEYS[6]
local due = KEYS[7]
local failing = KEYS[8]
local fallen = KEYS[9]
local alarm = KEYS[10]
local now_text = ARGV[1]
local words = ARGV

local REPORT_WORDS, REPORTS_MAX = 8, 64
local UNKNOWN, ELIGIBLE, PARKED = 0, 1, 3
local MUST_PLACE, HELD, COUNTED = 1, 2, 4
local CHANCE_END = 1000000
-- Entries that have aged out and leave with one call.
local STALE_MAX = 128
local OUTCOMES = { pass = true, fail = true, auth = true, inconclusive = true }
local SOURCES = { probe = true, passive = true }
local OWN_PAIRS = { state = true, since = true, reason = true, checked = true }
for _, key in ipairs({ 'latency', 'failed', 'last', 'auth' }) do
	OWN_PAIRS[key] = true
end

-- A number, or nil for what is none (NaN is none).
local function number_of(text)
	local number = tonumber(text or nil)
	if number == number then
		return number
	end
	return nil
end

local function whole_of(text, least, most)
	local number = number_of(text)
	if number and number % 1 == 0 and number >= least and number <= most then
		return number
	end
	return nil
end

local function whole_text(number)
	return string.format('%.0f', number)
end

-- A packed value as `order`, its keys as they stand, and `of`, key -> value. What is no pair is
-- passed over.
local function unpack_pairs(packed)
	local order, of, size = {}, {}, 0
	for key, value in string.gmatch(packed, '([^\t=]+)=([^\t]*)') do
		if not of[key] then
			size = size + 1
			order[size] = key
		end
		of[key] = value
	end
	return { order = order, of = of }
end

-- An empty value removes the pair.
local function set_pair(record, key, value)
	if not record.of[key] then
		record.order[#record.order + 1] = key
	end
	record.of[key] = value
end

local function pack_pairs(record)
	local order, of = record.order, record.of
	local parts, size = {}, 0
	for i = 1, #order do
		local key = order[i]
		local value = of[key]
		if value ~= '' then
			parts[size + 1] = size > 0 and '\t' or ''
			parts[size + 2] = key
			parts[size + 3] = '='
			parts[size + 4] = value
			size = size + 4
		end
	end
	return table.concat(parts)
end

-- Validate ---------------------------------------------------------------------------------------

local count = (#words - 1) / REPORT_WORDS
if count % 1 ~= 0 or count < 1 or count > REPORTS_MAX then
	return redis.error_reply('ERR fairlead: 1 to 64 reports of 8 words')
end
local now_ms = number_of(now_text)
if now_text == '' then
	local time = redis.call('TIME')
	now_ms = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end
if not now_ms then
	return redis.error_reply('ERR fairlead: now_ms is not a number')
end

-- Nothing but pairs, and none of those that verdicts write.
local function is_facts(facts, text)
	local size = #facts.order
	for i = 1, size do
		local key = facts.order[i]
		if OWN_PAIRS[key] then
			return false
		end
		size = size + #key + #facts.of[key] + 1
	end
	return #text == math.max(size - 1, 0) and not string.find(text, '\n', 1, true)
end

-- The report whose words begin behind `at`, or nil and what is wrong with it.
local function read_report(at)
	local report = {
		name = words[at + 1],
		outcome = words[at + 2],
		is_probe = words[at + 3] == 'probe',
		age_ms = number_of(words[at + 4]),
		latency = words[at + 5],
		reason = words[at + 6],
		facts = unpack_pairs(words[at + 7]),
		chance = whole_of(words[at + 8], 0, CHANCE_END - 1),
	}
	if report.name == '' or not OUTCOMES[report.outcome] or not SOURCES[words[at + 3]] then
		return nil
	end
	if not report.age_ms or report.age_ms < 0 or not report.chance then
		return nil
	end
	if not string.find(report.latency, '^%d*$') then
		return nil
	end
	if not string.find(report.reason, '^[%w%-]+$') then
		return nil
	end
	return is_facts(report.facts, words[at + 7]) and report or nil
end

local reports = {}
local names = {}
for i = 1, count do
	local report = read_report(1 + (i - 1) * REPORT_WORDS)
	if not report then
		return redis.error_reply(
			string.format('ERR fairlead: report %.0f cannot be read', i)
		)
	end
	reports[i] = report
	names[i] = report.name
end

-- A rule that is absent or not valid has its default, as tables/rule.def says.
local rule = {}
do
	local known = {
		{ 'fall', 3, 1, 1000 },
		{ 'rise', 2, 1, 1000 },
		{ 'min_state_ms', 5000, 0, 86400000 },
		{ 'check_interval_ms', 60000, 100, 604800000 },
		{ 'backoff_max_ms', 3600000, 1000, 604800000 },
		{ 'max_parked_percent', 50, 0, 100 },
	}
	local fields = {}
	for i, row in ipairs(known) do
		fields[i] = row[1]
	end
	local values = redis.call('HMGET', rules, unpack(fields))
	for i, row in ipairs(known) do
		rule[row[1]] = whole_of(values[i], row[3], row[4]) or row[2]
	end
end

-- Read -------------------------------------------------------------------------------------------
-- Every key but alarm is read before the first write: one of another type ends the script here.

local window_start = now_ms - 2 * rule.check_interval_ms
local subjects = {}
do
	local in_pool = redis.call('ZMSCORE', pool, unpack(names))
	local in_parked = redis.call('ZMSCORE', parked, unpack(names))
	local admins = redis.call('HMGET', admin, unpack(names))
	local healths = redis.call('HMGET', health, unpack(names))
	local numbers = redis.call('HMGET', streaks, unpack(names))
	local failed = redis.call('ZMSCORE', failing, unpack(names))
	for i, name in ipairs(names) do
		if not subjects[name] and (in_pool[i] or in_parked[i]) then
			local word = unpack_pairs(admins[i] or '').of
			subjects[name] = {
				is_in_pool = in_pool[i] ~= false,
				is_enabled = (word.state or 'enabled') == 'enabled',
				expires_ms = number_of(word.expires_at),
				packed = healths[i] or '',
				record = unpack_pairs(healths[i] or ''),
				is_failing = (number_of(failed[i]) or -math.huge) > window_start,
				old_streak = numbers[i],
				streak = whole_of(numbers[i], -2 ^ 53, 2 ^ 53) or 0,
			}
		end
	end
end
redis.call('ZCARD', due)

local recent = table.concat({ '(', string.format('%.17g', window_start) })
local failing_count = redis.call('ZCOUNT', failing, recent, '+inf')
local fallen_count = redis.call('ZCOUNT', fallen, recent, '+inf')
local eligible_count = redis.call('ZCARD', pool)

-- Decide -----------------------------------------------------------------------------------------

local is_alarmed = false
local now_whole = whole_text(now_ms)

local function keep_verdict(record, text)
	-- Four of those before it are kept.
	local old = string.match(record.of.last or '', '^[^,]*,?[^,]*,?[^,]*,?[^,]*')
	local mark = old == '' and '' or ','
	set_pair(record, 'last', table.concat({ text, ':', now_whole, mark, old }))
end

-- Was the last move long enough ago? One that nobody dated was.
local function may_move(record)
	local since = number_of(record.of.since)
	return not since or now_ms - since >= rule.min_state_ms
end

local function move(record, state)
	set_pair(record, 'state', state)
	set_pair(record, 'since', now_whole)
end

-- Would too many be out, this one included?
local function is_guarded(subject)
	local out = failing_count + fallen_count
	local all = eligible_count + fallen_count
	return subject.is_in_pool and out > 1 and out * 100 > all * rule.max_parked_percent
end

local function is_up(subject)
	local state = subject.record.of.state
	return state == 'up' or not state and subject.is_in_pool
end

local function leave_failing(subject)
	failing_count = failing_count - (subject.is_failing and 1 or 0)
	subject.is_failing = false
	subject.enters_failing = false
	subject.leaves_failing = true
end

local function take_pass(subject, report)
	local record = subject.record
	-- Who is down is judged by probes alone.
	if not report.is_probe and not is_up(subject) then
		return 0
	end
	subject.streak = math.max(subject.streak, 0) + 1
	leave_failing(subject)
	set_pair(record, 'auth', '')
	set_pair(record, 'reason', report.reason)
	keep_verdict(record, report.reason)
	if report.latency ~= '' then
		set_pair(record, 'latency', report.latency)
	end
	if not report.is_probe or record.of.state == 'up' then
		return COUNTED
	end
	if not record.of.state or subject.streak >= rule.rise and may_move(record) then
		move(record, 'up')
		subject.leaves_fallen = true
	end
	return COUNTED
end

local function take_failure(subject, report)
	local record = subject.record
	if now_ms - report.age_ms <= (number_of(record.of.failed) or -math.huge) then
		return 0
	end
	subject.streak = math.min(subject.streak, 0) - 1
	set_pair(record, 'failed', now_whole)
	set_pair(record, 'reason', report.reason)
	keep_verdict(record, report.reason)
	if report.outcome == 'auth' then
		set_pair(record, 'auth', 'failed')
	end
	if record.of.state == 'down' then
		return COUNTED
	end
	if subject.is_in_pool then
		failing_count = failing_count + (subject.is_failing and 0 or 1)
		subject.is_failing = true
		subject.enters_failing = true
		subject.leaves_failing = false
	end
	if -subject.streak < rule.fall or not may_move(record) then
		return COUNTED
	end
	if is_guarded(subject) then
		is_alarmed = true
		return COUNTED + HELD
	end
	move(record, 'down')
	if subject.is_in_pool then
		-- Out of those that fail, into those that fell; `place` takes it out of the pool.
		fallen_count = fallen_count + 1
		eligible_count = eligible_count - 1
		leave_failing(subject)
		subject.has_fallen = true
	end
	return COUNTED
end

local function take_report(subject, report)
	for _, key in ipairs(report.facts.order) do
		set_pair(subject.record, key, report.facts.of[key])
	end
	if report.is_probe then
		set_pair(subject.record, 'checked', now_whole)
	end
	if report.outcome == 'pass' then
		return take_pass(subject, report)
	end
	if report.outcome == 'inconclusive' then
		keep_verdict(subject.record, table.concat({ '?', report.reason }))
		-- What a member in use failed before may have been the target's as well.
		if is_up(subject) then
			subject.streak = math.max(subject.streak, 0)
		end
		return 0
	end
	return take_failure(subject, report)
end

-- When a probed member is checked next: its interval give or take a fifth while it is in use, also
-- when it fails, so that all others have had their turn before one of them has failed `fall` times;
-- with full jitter, later and later, while it is down.
local function next_check(subject, chance)
	local interval = rule.check_interval_ms
	local part = chance / CHANCE_END
	if is_up(subject) then
		return now_ms + interval * (0.8 + 0.4 * part)
	end
	local failures = math.max(-subject.streak, 0)
	local most = math.min(interval * 2 ^ math.min(failures, 60), rule.backoff_max_ms)
	local least = interval / 10
	return now_ms + least + math.max(most - least, 0) * part
end

local function has_expired(subject)
	return subject.expires_ms ~= nil and subject.expires_ms <= now_ms
end

local function due_text(subject, chance)
	if has_expired(subject) then
		return whole_text(now_ms + rule.backoff_max_ms)
	end
	-- The check at its expiry lets `place` take it out on time.
	return whole_text(math.min(next_check(subject, chance), subject.expires_ms or math.huge))
end

-- `place` decides; what the operator has said of a parked member it would only repeat.
local function must_place(subject)
	local state = subject.record.of.state
	if subject.is_in_pool then
		return state and state ~= 'up' or has_expired(subject)
	end
	return state == 'up' and subject.is_enabled and not has_expired(subject)
end

local flags = {}
for i, report in ipairs(reports) do
	local subject = subjects[report.name]
	flags[i] = subject and take_report(subject, report) or 0
	if subject and report.is_probe then
		subject.due = due_text(subject, report.chance)
	end
end

-- Write ------------------------------------------------------------------------------------------

local function zadd(key, list)
	if #list > 0 then
		redis.call('ZADD', key, unpack(list))
	end
end

local function hset(key, list)
	if #list > 0 then
		redis.call('HSET', key, unpack(list))
	end
end

local function append(list, first, second)
	list[#list + 1] = first
	list[#list + 1] = second
end

-- What has aged out leaves, and '' is no member: the first write, by which Redis judges memory, is
-- a removal in any case.
local function zrem_with_stale(key, list)
	local stale_count = redis.call('ZCOUNT', key, '-inf', string.format('%.17g', window_start))
	if stale_count > 0 then
		redis.call('ZREMRANGEBYRANK', key, 0, math.min(stale_count, STALE_MAX) - 1)
	end
	redis.call('ZREM', key, '', unpack(list))
end

do
	local failing_words, fallen_words, due_words = {}, {}, {}
	local health_words, streak_words = {}, {}
	local recovered, risen, strangers = {}, {}, {}
	local done = {}
	for _, name in ipairs(names) do
		local subject = subjects[name]
		if not subject then
			strangers[#strangers + 1] = name
		elseif not done[name] then
			done[name] = true
			local packed = pack_pairs(subject.record)
			local streak = whole_text(subject.streak)
			if packed ~= subject.packed then
				append(health_words, name, packed)
			end
			if streak ~= (subject.old_streak or '0') then
				append(streak_words, name, streak)
			end
			if subject.due then
				append(due_words, subject.due, name)
			end
			if subject.leaves_failing then
				recovered[#recovered + 1] = name
			elseif subject.enters_failing then
				append(failing_words, subject.record.of.failed, name)
			end
			if subject.has_fallen then
				append(fallen_words, now_whole, name)
			elseif subject.leaves_fallen then
				risen[#risen + 1] = name
			end
		end
	end
	zrem_with_stale(failing, recovered)
	zrem_with_stale(fallen, risen)
	redis.call('ZREM', due, '', unpack(strangers))
	hset(health, health_words)
	hset(streaks, streak_words)
	zadd(failing, failing_words)
	zadd(fallen, fallen_words)
	zadd(due, due_words)
	if is_alarmed then
		local keep_ms = whole_text(2 * rule.check_interval_ms)
		redis.call('SET', alarm, now_whole, 'PX', keep_ms)
	end
end

local answer = {}
for i, name in ipairs(names) do
	local subject = subjects[name]
	local standing = subject and (subject.is_in_pool and ELIGIBLE or PARKED) or UNKNOWN
	append(answer, standing, flags[i] + (subject and must_place(subject) and MUST_PLACE or 0))
end
return answer
