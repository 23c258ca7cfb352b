"""acquire.lua: who is taken, who is passed over, and what is recorded."""

import pytest
import redis
from leases import (
    ACQUIRE_KEYS,
    EMPTY,
    ENDED,
    FINE,
    FULL,
    GRANTED,
    LIVE_UNIT,
    NONCE,
    NOW_MS,
    STALE,
    TTL_MS,
    contents,
)


def add(store, pool):
    """Members as `place` puts them: in the pool and among the busy."""
    store.zadd("pool", pool)
    store.zadd("busy", pool)


def members(count):
    return [f"m{i:03d}" for i in range(count)]


def taken(leases, count, **options):
    return [leases.acquire(**options).member for _ in range(count)]


# Who is taken -------------------------------------------------------------------------------------


def test_the_member_with_the_fewest_leases_is_taken(store, leases):
    add(store, {"a": 0, "b": 5, "c": 9})
    assert taken(leases, 4) == [b"a", b"b", b"c", b"a"]


def test_of_as_many_leases_the_fewest_allocations_decide(store, leases):
    add(store, {"a": 7, "b": 5, "c": 6})
    assert taken(leases, 3) == [b"b", b"c", b"a"]


def test_of_as_many_of_both_the_bytes_decide(store, leases):
    add(store, {"b": 5, "B": 5, "a": 5})
    assert taken(leases, 3) == [b"B", b"a", b"b"]


def test_a_lease_is_an_allocation(store, leases):
    add(store, {"a": 3, "b": 3})
    for _ in range(5):
        leases.acquire()
    assert leases.counts() == {b"a": 6, b"b": 5}
    assert leases.busy() == {b"a": 3 * LIVE_UNIT + 6, b"b": 2 * LIVE_UNIT + 5}


def test_a_lease_is_recorded(store, leases):
    add(store, {"a": 0})
    lease = leases.acquire("beef-1", ttl=500)
    assert (lease.code, lease.member, lease.expires_ms, lease.now_ms) == (GRANTED, b"a", NOW_MS + 500, NOW_MS)
    assert lease.token == b"1-" + NONCE.encode()
    assert store.hgetall("holders") == {b"next": b"1", b"beef-1": b"token=1-" + NONCE.encode() + b"\tmember=a"}
    assert store.zrange("leases", 0, -1, withscores=True) == [(b"beef-1", NOW_MS + 500)]


def test_tokens_are_counted_on(store, leases):
    add(store, {"a": 0})
    tokens = [leases.acquire().token for _ in range(3)]
    assert tokens == [f"{n}-{NONCE}".encode() for n in (1, 2, 3)]
    assert store.hget("holders", "next") == b"3"


def test_the_counter_goes_on_when_all_leases_have_ended(store, leases):
    add(store, {"a": 0})
    leases.release(leases.acquire())
    assert leases.acquire().token == f"2-{NONCE}".encode()


def test_a_counter_that_cannot_be_read_begins_anew(store, leases):
    add(store, {"a": 0})
    store.hset("holders", "next", "x")
    assert leases.acquire().token == f"1-{NONCE}".encode()


def test_the_counts_of_others_are_looked_up(store, leases, five_lines):
    """What `busy` says of a and b is older than what others have taken."""
    add(store, {"a": 0, "b": 0, "c": 3})
    five_lines("pool", 8)
    assert leases.counts() == {b"a": 4, b"b": 4, b"c": 3}
    assert leases.acquire().member == b"c"
    assert leases.busy() == {b"a": 4, b"b": 4, b"c": LIVE_UNIT + 4}


@pytest.mark.parametrize("stale, member", [(1, b"m001"), (63, b"m063"), (64, b"m064"), (65, b"m064"), (90, b"m064")])
def test_of_stale_heads_64_are_rewritten_then_one_is_taken_as_it_is(store, leases, stale, member):
    names = members(100)
    store.zadd("busy", {m: 0 if i < stale else 50 for i, m in enumerate(names)})
    store.zadd("pool", {m: 100 if i < stale else 50 for i, m in enumerate(names)})
    assert leases.acquire().member == member
    assert leases.busy()[member] == LIVE_UNIT + leases.counts()[member]


def test_a_count_that_others_have_lowered_does_not_hide_its_member(store, leases):
    """Rewritten it would stand before those that were passed over already."""
    add(store, {"a": 5, "b": 6, "c": 9})
    store.zadd("pool", {"c": 1})
    assert leases.acquire(avoid=["a", "b"]).member == b"c"
    assert leases.busy()[b"c"] == LIVE_UNIT + 2


@pytest.mark.parametrize("score, count", [(3.7, 4), (-5, 0), (float("inf"), LIVE_UNIT - 1), (float("-inf"), 0)])
def test_any_score_of_the_pool_can_be_taken(store, leases, score, count):
    store.zadd("pool", {"a": score})
    assert leases.acquire().member == b"a"
    assert leases.busy() == {b"a": LIVE_UNIT + count}


# Who is passed over -------------------------------------------------------------------------------


def test_an_empty_pool_gives_nobody(store, leases):
    lease = leases.acquire()
    assert (lease.code, lease.member, lease.token, lease.expires_ms) == (EMPTY, b"", b"", -1)
    assert store.keys() == []


def test_members_to_avoid_are_not_taken(store, leases):
    add(store, {"a": 0, "b": 0, "c": 0})
    assert taken(leases, 2, avoid=["a", "c", "nobody"]) == [b"b", b"b"]


def test_when_all_are_to_be_avoided_the_pool_counts_as_empty(store, leases):
    add(store, {"a": 0, "b": 0})
    store.hset("rules", "max_concurrent", 1)
    leases.acquire()
    assert leases.acquire(avoid=["a", "b"]).code == EMPTY


def test_nobody_has_more_leases_than_the_rule_says(store, leases):
    add(store, {"a": 0, "b": 0})
    store.hset("rules", "max_concurrent", 2)
    assert taken(leases, 4) == [b"a", b"b", b"a", b"b"]
    leases.now += 1
    lease = leases.acquire()
    assert (lease.code, lease.member, lease.token) == (FULL, b"", b"")
    assert (lease.expires_ms, lease.now_ms) == (NOW_MS + TTL_MS, NOW_MS + 1)


@pytest.mark.parametrize("own, most", [(1, 1), (3, 3), (0, 5), ("x", 2), ("", 2), (-1, 2), (1.5, 2)])
def test_the_number_of_a_member_goes_before_the_rule(store, leases, own, most):
    """0 is no limit, and what cannot be read is none of its own."""
    add(store, {"a": 0})
    store.hset("rules", "max_concurrent", 2)
    store.hset("admin", "a", f"state=enabled\tmax_concurrent={own}\tx=y")
    codes = [leases.acquire().code for _ in range(5)]
    assert codes == [GRANTED] * most + [FULL] * (5 - most)


@pytest.mark.parametrize("rule", ["0", "x", "-1", "1.5", "1000001", ""])
def test_a_rule_that_cannot_be_read_is_no_limit(store, leases, rule):
    add(store, {"a": 0})
    store.hset("rules", "max_concurrent", rule)
    assert taken(leases, 5) == [b"a"] * 5


def test_full_members_are_passed_over_for_others(store, leases):
    add(store, {"a": 0, "b": 9})
    store.hset("admin", mapping={"a": "max_concurrent=1", "b": "max_concurrent=0"})
    assert taken(leases, 4) == [b"a", b"b", b"b", b"b"]


def test_full_is_told_when_the_others_are_to_be_avoided(store, leases):
    add(store, {"a": 0, "b": 9})
    store.hset("rules", "max_concurrent", 1)
    leases.acquire()
    assert leases.acquire(avoid=["b"]).code == FULL


@pytest.mark.parametrize("count, code", [(255, GRANTED), (256, FULL)])
def test_256_members_are_looked_at(store, leases, count, code):
    """They have one lease each and may have no other; the one behind them may."""
    names = members(count)
    add(store, {m: 0 for m in names})
    store.hset("admin", mapping={m: "max_concurrent=1" for m in names})
    assert len(set(taken(leases, count))) == count
    add(store, {"z": 99})
    leases.acquire(only="z")
    assert leases.acquire().code == code


def test_with_stale_heads_and_full_members_somebody_is_found(store, leases):
    """60 that may be taken but are stale stand among 180 that are full."""
    names = members(240)
    add(store, {m: 0 for m in names})
    store.hset("live", mapping={m: 1 for m in names})
    store.zadd("busy", {m: LIVE_UNIT for m in names})
    store.zadd("leases", {f"{i:x}": NOW_MS + 1 for i in range(240)})
    store.hset("holders", mapping={f"{i:x}": f"token={i}-ab\tmember={m}" for i, m in enumerate(names)})
    free = names[::4]
    store.hset("admin", mapping={m: "max_concurrent=1" for m in names if m not in free})
    store.zadd("pool", {m: 100 - i for i, m in enumerate(free)})
    assert leases.acquire().member == free[-1].encode()


# One member only ----------------------------------------------------------------------------------


def test_one_member_alone_is_taken_without_counting_it_again(store, leases):
    add(store, {"a": 0, "b": 7})
    lease = leases.acquire(only="b")
    assert (lease.code, lease.member) == (GRANTED, b"b")
    assert leases.counts() == {b"a": 0, b"b": 7}
    assert leases.busy() == {b"a": 0, b"b": LIVE_UNIT + 7}


def test_one_member_alone_that_busy_does_not_know_joins_it(store, leases):
    store.zadd("pool", {"a": 4})
    assert leases.acquire(only="a").code == GRANTED
    assert leases.busy() == {b"a": LIVE_UNIT + 4}


@pytest.mark.parametrize("only, avoid", [("nobody", []), ("parked", []), ("a", ["a"])])
def test_one_member_alone_that_may_not_be_taken_is_nobody(store, leases, only, avoid):
    add(store, {"a": 0, "b": 0})
    store.zadd("parked", {"parked": 0})
    assert leases.acquire(only=only, avoid=avoid).code == EMPTY
    assert leases.counts() == {b"a": 0, b"b": 0}


def test_one_member_alone_has_its_cap(store, leases):
    add(store, {"a": 0, "b": 0})
    store.hset("rules", "max_concurrent", 1)
    assert [leases.acquire(only="a").code for _ in range(2)] == [GRANTED, FULL]


# The same operation -------------------------------------------------------------------------------


def test_the_same_operation_is_given_the_same_lease(store, leases):
    add(store, {"a": 0, "b": 0})
    lease = leases.acquire("abc")
    again = leases.acquire("abc", ttl=9, nonce="0" * 8)
    assert again == lease
    assert leases.counts() == {b"a": 1, b"b": 0}


def test_the_same_operation_is_given_its_lease_also_when_all_are_full(store, leases):
    add(store, {"a": 0})
    store.hset("rules", "max_concurrent", 1)
    assert leases.acquire("abc") == leases.acquire("abc")


def test_an_operation_whose_lease_rests_has_ended(store, leases):
    add(store, {"a": 0})
    store.hset("rules", "rest_ms", 50)
    leases.release(leases.acquire("abc"))
    lease = leases.acquire("abc")
    assert (lease.code, lease.member, lease.token, lease.expires_ms) == (ENDED, b"", b"", -1)
    assert leases.counts() == {b"a": 1}


def test_an_operation_whose_lease_has_expired_is_a_new_one(store, leases):
    """As it would be if the janitor had collected the old one already. The old token is worth nothing."""
    add(store, {"a": 0})
    old = leases.acquire("abc")
    leases.now += TTL_MS
    new = leases.acquire("abc")
    assert (new.code, new.expires_ms) == (GRANTED, leases.now + TTL_MS)
    assert (leases.release(old), leases.live()) == ([STALE], {b"a": 1})
    assert leases.release(new) == [FINE]


def test_its_own_expired_lease_is_collected_behind_64_others(store, leases):
    add(store, {"a": 0, "b": 0})
    old = leases.acquire("ffff", ttl=64, only="a")
    for i in range(64):
        leases.acquire(ttl=i + 1, only="b")
    leases.now += 64
    assert leases.acquire("ffff", only="b").token != old.token
    assert leases.live() == {b"b": 1}


# Expiry -------------------------------------------------------------------------------------------


def test_an_expired_lease_makes_room(store, leases):
    add(store, {"a": 0})
    store.hset("rules", "max_concurrent", 1)
    leases.acquire(ttl=10)
    leases.now += 9
    assert leases.acquire().code == FULL
    leases.now += 1
    assert leases.acquire().code == GRANTED
    assert leases.live() == {b"a": 1}


def test_64_expired_leases_are_collected_at_once(store, leases):
    names = members(70)
    add(store, {m: 0 for m in names})
    for i in range(70):
        leases.acquire(ttl=i + 1)
    leases.now += 100
    leases.acquire()
    assert len(leases.held()) == 70 - 64 + 1
    leases.check()


def test_leases_are_collected_also_when_nothing_is_granted(store, leases):
    add(store, {"a": 0})
    leases.acquire(ttl=1)
    leases.now += 1
    assert leases.acquire(avoid=["a"]).code == EMPTY
    assert (leases.live(), leases.busy()) == ({}, {b"a": 1})


@pytest.mark.parametrize("rule, ttl", [(None, 60_000), ("5000", 5_000), ("x", 60_000), ("99", 60_000), ("3600001", 60_000)])
def test_without_a_time_to_live_the_rule_holds(store, leases, rule, ttl):
    add(store, {"a": 0})
    if rule:
        store.hset("rules", "lease_ms", rule)
    assert leases.acquire(ttl="").expires_ms == NOW_MS + ttl


def test_the_clock_is_that_of_redis(store, leases):
    add(store, {"a": 0})
    leases.now = ""
    lease = leases.acquire(ttl=1000)
    seconds, micros = store.time()
    assert 0 <= seconds * 1000 + micros // 1000 - lease.now_ms < 20_000
    assert lease.expires_ms == lease.now_ms + 1000


# Foreign hands ------------------------------------------------------------------------------------


def test_a_pool_that_was_never_leased_joins_busy_by_its_heads(store, leases):
    store.zadd("pool", {m: i for i, m in enumerate(members(70))})
    assert leases.acquire().member == b"m000"
    assert store.zcard("busy") == 64


def test_foreign_members_join_when_busy_has_nobody_to_offer(store, leases):
    add(store, {"a": 0})
    store.zadd("pool", {"f": 0, "g": 3})
    assert leases.acquire(avoid=["a"]).member == b"f"
    assert leases.busy() == {b"a": 0, b"f": LIVE_UNIT + 1, b"g": 3}


def test_members_that_foreign_hands_removed_leave_busy(store, leases):
    add(store, {"a": 0, "b": 0})
    store.zrem("pool", "a")
    assert leases.acquire().member == b"b"
    assert leases.busy() == {b"b": LIVE_UNIT + 1}
    assert leases.counts() == {b"b": 1}


def test_a_pool_that_foreign_hands_replaced_is_leased_at_once(store, leases):
    """1,000 that are gone stand in front of those that are there."""
    store.zadd("busy", {m: 0 for m in members(1000)})
    add(store, {"x": 5, "y": 4})
    assert leases.acquire().member == b"y"
    assert store.zcard("busy") == 1002 - 256


def test_a_removed_member_is_not_brought_back_by_its_leases(store, leases):
    add(store, {"a": 0, "b": 0})
    lease = leases.acquire()
    store.zrem("pool", "a")
    leases.remove("a")
    assert (leases.live(), leases.busy()) == ({b"a": 1}, {b"b": 0})
    assert leases.renew(lease) == [FINE]
    assert leases.release(lease) == [FINE]
    assert (leases.live(), leases.busy(), leases.counts()) == ({}, {b"b": 0}, {b"b": 0})


def test_a_member_that_foreign_hands_took_away_and_put_back_is_as_busy_as_before(store, leases):
    add(store, {"a": 0, "b": 0})
    leases.acquire(only="a")
    leases.remove("a")
    store.zadd("pool", {"a": 0})
    assert taken(leases, 2) == [b"b", b"b"]
    assert leases.acquire(avoid=["b"]).member == b"a"
    assert leases.busy()[b"a"] == 2 * LIVE_UNIT + 1


@pytest.mark.parametrize("member", [b"", b"a\tb", b"x\tmember=y", b"\trest=1\t", b"\0\xff\n", b"token=1-ab\tmember=q"])
def test_a_member_may_hold_any_bytes(store, leases, member):
    store.zadd("pool", {member: 0})
    store.hset("rules", "rest_ms", 10)
    lease = leases.acquire()
    assert lease.member == member
    assert leases.acquire(lease.id) == lease
    assert (leases.renew(lease), leases.release(lease), leases.release(lease)) == ([FINE], [FINE], [FINE])
    leases.now += 10
    assert leases.expire() == [1, -1, leases.now]
    assert leases.busy() == {member: 1}


# Refusals -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", ACQUIRE_KEYS)
def test_a_key_of_another_type_changes_nothing(store, leases, key):
    add(store, {"a": 0})
    store.hset("admin", "a", "max_concurrent=9")
    store.hset("rules", "max_concurrent", 9)
    leases.acquire(ttl=1)
    leases.now += 1
    kept = store.dump(key)
    store.delete(key)
    store.set(key, "text")
    before = contents(store)
    with pytest.raises(redis.ResponseError, match="WRONGTYPE"):
        leases.acquire()
    assert contents(store) == before
    store.delete(key)
    if kept:
        store.restore(key, 0, kept)


@pytest.mark.parametrize(
    "words, message",
    [
        ({"id": "next"}, "an id is"),
        ({"id": "A"}, "an id is"),
        ({"id": "a" * 65}, "an id is"),
        ({"id": "a\tb"}, "an id is"),
        ({"nonce": "1234567"}, "a nonce is"),
        ({"nonce": "1" * 33}, "a nonce is"),
        ({"nonce": "12345678\t"}, "a nonce is"),
        ({"ttl": 0}, "ttl_ms is"),
        ({"ttl": 3_600_001}, "ttl_ms is"),
        ({"ttl": "1.5"}, "ttl_ms is"),
        ({"ttl": "nan"}, "ttl_ms is"),
        ({"avoid": members(65)}, "at most 64"),
    ],
)
def test_what_is_not_allowed_is_refused_and_changes_nothing(store, leases, words, message):
    add(store, {"a": 0})
    before = contents(store)
    with pytest.raises(redis.ResponseError, match=f"^fairlead: {message}"):
        leases.acquire(**words)
    assert contents(store) == before


@pytest.mark.parametrize("now", ["x", "1.5", "-1", "nan", "inf"])
def test_a_time_is_a_whole_number(store, leases, now):
    add(store, {"a": 0})
    leases.now = now
    with pytest.raises(redis.ResponseError, match="^fairlead: now_ms"):
        leases.acquire()


def test_leases_are_granted_at_maxmemory(store, leases, full_store):
    add(store, {"a": 0})
    leases.acquire(ttl=1)
    full_store()
    leases.now += 1
    assert leases.acquire().code == GRANTED
    assert leases.live() == {b"a": 1}
