"""renew.lua, release.lua, expire.lua and busy_mend.lua; members that move while they are leased."""

import pytest
import redis
from leases import (
    ENTER_KEYS,
    EXPIRE_KEYS,
    FINE,
    LIVE_UNIT,
    MEND_KEYS,
    NONCE,
    NOW_MS,
    RELEASE_KEYS,
    RENEW_KEYS,
    STALE,
    TTL_MS,
    Lease,
    contents,
)

TOKENS_MAX = 65_536


@pytest.fixture
def pool(store):
    for key in ("pool", "busy"):
        store.zadd(key, {"a": 0, "b": 0})


def expiry(store, lease):
    return store.zscore("leases", lease.id)


def forged(lease, **fields):
    """The same lease with something that is not so."""
    other = Lease(lease.id, [lease.code, lease.member, lease.token, lease.expires_ms, lease.now_ms])
    vars(other).update(fields)
    return other


def add_record(store, member):
    store.hset("proxies", member, "sources=operator")
    store.hset("health", member, "state=up")


# Renew --------------------------------------------------------------------------------------------


def test_a_renewed_lease_lives_from_now_on(store, leases, pool):
    lease = leases.acquire(ttl=100)
    leases.now += 99
    assert leases.renew(lease, ttl=500) == [FINE]
    assert expiry(store, lease) == leases.now + 500


def test_renewing_never_shortens(store, leases, pool):
    lease = leases.acquire(ttl=1000)
    assert leases.renew(lease, ttl=10) == [FINE]
    assert expiry(store, lease) == NOW_MS + 1000


def test_a_clock_that_went_back_does_not_shorten_a_lease(store, leases, pool):
    lease = leases.acquire(ttl=1000)
    leases.now -= 999_000
    assert leases.renew(lease, ttl=1000) == [FINE]
    assert expiry(store, lease) == NOW_MS + 1000


def test_an_expired_lease_is_not_revived(store, leases, pool):
    lease = leases.acquire(ttl=100)
    leases.now += 100
    assert leases.renew(lease) == [STALE]
    assert expiry(store, lease) == NOW_MS + 100
    leases.expire()
    assert leases.renew(lease) == [STALE]
    assert leases.held() == {}


@pytest.mark.parametrize("fields", [{"token": "2-" + NONCE}, {"token": ""}, {"id": "abcd"}, {"id": "next"}, {"id": ""}])
def test_another_token_or_id_is_stale(store, leases, pool, fields):
    lease = leases.acquire()
    before = contents(store)
    assert leases.renew(forged(lease, **fields)) == [STALE]
    assert leases.release(forged(lease, **fields)) == [STALE]
    assert contents(store) == before


def test_each_of_many_is_told(store, leases, pool):
    first, second, third = (leases.acquire(ttl=100) for _ in range(3))
    leases.release(second)
    assert leases.renew(first, second, forged(third, token="9-x"), third, first) == [FINE, STALE, STALE, FINE, FINE]
    assert {expiry(store, x) for x in (first, third)} == {NOW_MS + TTL_MS}


def test_128_leases_are_renewed_and_released_in_a_call(store, leases, pool):
    held = [leases.acquire(ttl=100) for _ in range(128)]
    assert leases.renew(*held, ttl=500) == [FINE] * 128
    assert leases.release(*held) == [FINE] * 128
    assert (leases.live(), leases.busy()) == ({}, {b"a": 64, b"b": 64})


# Release ------------------------------------------------------------------------------------------


def test_a_released_lease_counts_no_more(store, leases, pool):
    first, second = leases.acquire(only="a"), leases.acquire(only="a")
    assert leases.release(first) == [FINE]
    assert (leases.live(), leases.busy()[b"a"]) == ({b"a": 1}, LIVE_UNIT)
    assert leases.release(second) == [FINE]
    assert (leases.live(), leases.busy()[b"a"], leases.held()) == ({}, 0, {})
    assert store.zcard("leases") == 0


def test_who_repeats_a_release_is_told_the_same(store, leases, pool):
    lease, other = leases.acquire(only="a"), leases.acquire(only="a")
    assert leases.release(lease, lease) == [FINE, FINE]
    assert leases.release(lease) == [FINE]
    assert leases.live() == {b"a": 1}
    assert leases.release(other) == [FINE]


def test_a_release_does_not_end_the_next_lease_of_that_id(store, leases, pool):
    old = leases.acquire("abc")
    leases.release(old)
    new = leases.acquire("abc", nonce="f" * 8)
    assert leases.release(old) == [FINE]
    assert leases.held() == {b"abc": new.member}


def test_an_expired_lease_is_stale_and_collected(store, leases, pool):
    lease = leases.acquire(ttl=10)
    leases.now += 10
    assert leases.release(lease, lease) == [STALE, STALE]
    assert (leases.held(), leases.live(), leases.busy()[b"a"]) == ({}, {}, 1)
    assert not store.exists("released")


def test_an_expired_lease_is_collected_by_whoever_names_it(store, leases, pool):
    lease = leases.acquire(ttl=10)
    leases.now += 10
    assert leases.release(forged(lease, token="other")) == [STALE]
    assert leases.held() == {}


def test_tokens_are_kept_for_a_day_and_at_most_65536(store, leases, pool):
    store.zadd("released", {f"old-{i}": i for i in range(TOKENS_MAX)})
    lease = leases.acquire()
    leases.release(lease)
    assert store.zcard("released") == TOKENS_MAX
    assert (store.zscore("released", "old-0"), store.zscore("released", "old-1")) == (None, 1)
    assert store.zscore("released", lease.token) == NOW_MS
    assert 86_300_000 < store.pttl("released") <= 86_400_000


def test_a_token_is_not_the_oldest_because_the_clock_went_back(store, leases, pool):
    store.zadd("released", {f"old-{i}": NOW_MS + i for i in range(TOKENS_MAX)})
    lease = leases.acquire()
    assert leases.release(lease) == [FINE]
    assert leases.release(lease) == [FINE]


# Rest ---------------------------------------------------------------------------------------------


@pytest.fixture
def resting(store, leases, pool):
    store.hset("rules", "rest_ms", 500)
    lease = leases.acquire(only="a")
    leases.now += 7
    assert leases.release(lease) == [FINE]
    return lease


def test_a_released_lease_rests_and_counts_on(store, leases, resting):
    assert (leases.live(), leases.busy()[b"a"]) == ({b"a": 1}, LIVE_UNIT)
    assert store.hget("holders", resting.id) == b"token=%s\trest=1\tmember=a" % resting.token
    assert expiry(store, resting) == NOW_MS + 7 + 500


def test_a_rest_may_be_longer_than_the_lease(store, leases, pool):
    store.hset("rules", "rest_ms", 500)
    lease = leases.acquire(ttl=10)
    leases.release(lease)
    assert expiry(store, lease) == NOW_MS + 500


def test_a_repeated_release_does_not_lengthen_the_rest(store, leases, resting):
    leases.now += 100
    assert leases.release(resting, resting) == [FINE, FINE]
    assert expiry(store, resting) == NOW_MS + 507


def test_a_resting_lease_is_not_renewed(store, leases, resting):
    assert leases.renew(resting) == [STALE]
    assert expiry(store, resting) == NOW_MS + 507


def test_a_rest_ends_with_its_expiry(store, leases, resting):
    leases.now = NOW_MS + 507
    assert leases.expire() == [1, -1, NOW_MS + 507]
    assert (leases.live(), leases.busy()[b"a"]) == ({}, 0)
    assert leases.release(resting) == [FINE]


def test_the_owner_is_told_the_same_when_the_rest_is_over_and_nobody_has_collected(store, leases, resting):
    leases.now = NOW_MS + 507
    store.delete("released")
    assert leases.release(resting) == [FINE]
    assert leases.held() == {}


def test_a_member_that_rests_is_at_its_cap(store, leases, resting):
    store.hset("rules", "max_concurrent", 1)
    assert leases.acquire().member == b"b"
    assert leases.acquire().member == b""
    leases.now = NOW_MS + 507
    assert leases.acquire().member == b"a"


@pytest.mark.parametrize("rule", ["0", "x", "-1", "1.5", "3600001", ""])
def test_without_a_rule_that_can_be_read_nobody_rests(store, leases, pool, rule):
    store.hset("rules", "rest_ms", rule)
    leases.release(leases.acquire())
    assert leases.held() == {}


def test_other_pairs_of_a_lease_are_kept(store, leases, pool):
    store.hset("rules", "rest_ms", 500)
    lease = leases.acquire()
    packed = b"token=%s\tx=y\tmember=a" % lease.token
    store.hset("holders", lease.id, packed)
    assert (leases.renew(lease), leases.release(lease)) == ([FINE], [FINE])
    assert store.hget("holders", lease.id) == b"token=%s\tx=y\trest=1\tmember=a" % lease.token
    assert leases.renew(lease) == [STALE]
    store.hset("holders", lease.id, b"token=%s\trest=1\tmember=a" % lease.token)


# Expire -------------------------------------------------------------------------------------------


def test_leases_that_expired_first_are_collected_first(store, leases, pool):
    for ttl in (30, 10, 20, 40):
        leases.acquire(ttl=ttl)
    leases.now += 30
    assert leases.expire(2) == [2, NOW_MS + 30, leases.now]
    assert leases.expire(2) == [1, NOW_MS + 40, leases.now]
    assert leases.expire(2) == [0, NOW_MS + 40, leases.now]


def test_without_leases_there_is_no_next_expiry(leases):
    assert leases.expire() == [0, -1, NOW_MS]


def test_256_leases_are_collected_at_once(store, leases, pool):
    for _ in range(300):
        leases.acquire(ttl=5)
    leases.now += 5
    assert leases.expire(256) == [256, NOW_MS + 5, leases.now]
    assert sum(leases.live().values()) == 44
    leases.check()
    assert leases.expire(256) == [44, -1, leases.now]
    assert (leases.live(), leases.busy()) == ({}, {b"a": 150, b"b": 150})


def test_collecting_brings_nobody_into_busy_or_pool(store, leases, pool):
    leases.acquire(only="a", ttl=5)
    leases.remove("a")
    leases.now += 5
    leases.expire()
    assert (leases.counts(), leases.busy()) == ({b"b": 0}, {b"b": 0})


def test_what_is_no_lease_goes_and_changes_no_member(store, leases, pool):
    """An id without a holder, and one whose value cannot be read."""
    leases.acquire()
    store.zadd("leases", {"aa": 1, "bb": 2})
    store.hset("holders", "bb", "x")
    assert leases.expire() == [2, NOW_MS + TTL_MS, NOW_MS]
    assert leases.live() == {b"a": 1}


def test_live_leases_are_never_below_zero(store, leases, pool):
    lease = leases.acquire()
    store.delete("live")
    assert leases.release(lease) == [FINE]
    assert (leases.live(), leases.busy()) == ({}, {b"a": 1, b"b": 0})


@pytest.mark.parametrize("score", [float("inf"), float("-inf"), 1e300])
def test_a_score_of_busy_that_no_script_wrote_is_put_right(store, leases, pool, score):
    for name in ("release", "expire", "acquire"):
        lease = leases.acquire(only="a", ttl=5)
        store.zadd("busy", {"a": score})
        if name == "release":
            leases.release(lease)
        leases.now += 5
        if name == "expire":
            leases.expire()
        if name == "acquire":
            leases.acquire(only="nobody")
        assert 0 <= leases.busy()[b"a"] < LIVE_UNIT


# Mend ---------------------------------------------------------------------------------------------


def test_eligible_members_that_busy_lacks_join_it(store, leases):
    store.zadd("pool", {"a": 3.5, "b": -1, "c": 2.0**41})
    assert leases.mend("a", "b", "c", "nobody") == [1, 1, 1, 0]
    assert leases.busy() == {b"a": 3, b"b": 0, b"c": LIVE_UNIT - 1}


def test_who_joins_busy_brings_its_leases(store, leases, pool):
    leases.acquire(only="a")
    store.zrem("busy", "a")
    assert leases.mend("a") == [1]
    assert leases.busy()[b"a"] == LIVE_UNIT


def test_members_that_are_not_eligible_leave_busy(store, leases, pool):
    store.zrem("pool", "a")
    assert leases.mend("a", "b", "a") == [3, 0, 3]
    assert leases.busy() == {b"b": 0}


@pytest.mark.parametrize("live, score, mended", [(2, LIVE_UNIT, 2 * LIVE_UNIT + 7), (None, LIVE_UNIT, 7), ("x", LIVE_UNIT, 7)])
def test_wrong_leases_in_busy_are_mended(store, script, live, score, mended):
    store.zadd("pool", {"a": 7})
    store.zadd("busy", {"a": score})
    if live is not None:
        store.hset("live", "a", live)
    assert script("busy_mend")(MEND_KEYS, "a") == [2]
    assert store.zscore("busy", "a") == mended


def test_a_count_that_others_have_raised_is_left_to_acquire(store, leases, pool):
    store.zadd("pool", {"a": 9})
    assert leases.mend("a", "b") == [0, 0]
    assert leases.busy() == {b"a": 0, b"b": 0}


# Members that move while they are leased ----------------------------------------------------------


def test_a_member_that_is_parked_and_restored_is_as_busy_as_its_leases(store, leases):
    add_record(store, "a")
    leases.place("a")
    first, second = leases.acquire(), leases.acquire()
    store.hset("health", "a", "state=down")
    leases.place("a")
    assert (leases.busy(), leases.live()) == ({}, {b"a": 2})
    assert (leases.renew(first), leases.release(second)) == ([FINE], [FINE])
    assert (leases.busy(), leases.counts()) == ({}, {})
    store.hset("health", "a", "state=up")
    leases.place("a")
    assert leases.busy() == {b"a": LIVE_UNIT + 2}


@pytest.mark.parametrize("way", ["place", "enter"])
def test_a_member_that_is_removed_and_comes_back_is_as_busy_as_its_leases(store, leases, way):
    add_record(store, "a")
    leases.place("a")
    held = [leases.acquire() for _ in range(3)]
    leases.remove("a")
    leases.release(held[0])
    assert (leases.busy(), leases.live()) == ({}, {b"a": 2})
    if way == "place":
        add_record(store, "a")
        leases.place("a")
    else:
        leases.script["enter"](ENTER_KEYS, 1, "list", "a", "")
    assert leases.busy() == {b"a": 2 * LIVE_UNIT}
    leases.now += TTL_MS
    assert leases.expire()[0] == 2
    assert leases.busy() == {b"a": 0}


def test_a_cap_holds_over_removal_and_return(store, leases):
    store.hset("rules", "max_concurrent", 1)
    add_record(store, "a")
    leases.place("a")
    leases.acquire()
    leases.remove("a")
    add_record(store, "a")
    leases.place("a")
    assert leases.acquire().member == b""


# Refusals -----------------------------------------------------------------------------------------

KEYS = {"renew": RENEW_KEYS, "release": RELEASE_KEYS, "expire": EXPIRE_KEYS, "busy_mend": MEND_KEYS}


def call(leases, name, lease):
    words = {
        "renew": [leases.now, 100, lease.id, lease.token],
        "release": [leases.now, lease.id, lease.token],
        "expire": [leases.now + TTL_MS, 256],
        "busy_mend": ["a", "b"],
    }
    return leases.script[name](KEYS[name], *words[name])


@pytest.mark.parametrize("name, key", [(name, key) for name, keys in KEYS.items() for key in keys])
def test_a_key_of_another_type_changes_nothing(store, script, leases, pool, name, key):
    lease = leases.acquire()
    store.hset("rules", "rest_ms", 0)
    kept = store.dump(key)
    store.delete(key)
    store.set(key, "text")
    before = contents(store)
    with pytest.raises(redis.ResponseError, match="WRONGTYPE"):
        call(leases, name, lease)
    assert contents(store) == before
    store.delete(key)
    if kept:
        store.restore(key, 0, kept)


@pytest.mark.parametrize(
    "name, words, message",
    [
        ("renew", [1, 100], "1 to 128 pairs"),
        ("renew", [1, 100, "a"], "1 to 128 pairs"),
        ("renew", [1, 100, *["a", "t"] * 129], "1 to 128 pairs"),
        ("renew", [1, 0, "a", "t"], "ttl_ms"),
        ("renew", [1, "", "a", "t"], "ttl_ms"),
        ("renew", [1, 3_600_001, "a", "t"], "ttl_ms"),
        ("renew", ["x", 1, "a", "t"], "now_ms"),
        ("release", [1], "1 to 128 pairs"),
        ("release", [1, "a"], "1 to 128 pairs"),
        ("release", [1, *["a", "t"] * 129], "1 to 128 pairs"),
        ("release", ["1.5", "a", "t"], "now_ms"),
        ("expire", [1], "1 to 256 leases"),
        ("expire", [1, 0], "1 to 256 leases"),
        ("expire", [1, 257], "1 to 256 leases"),
        ("expire", ["nan", 1], "now_ms"),
        ("busy_mend", [], "1 to 128 members"),
        ("busy_mend", ["a"] * 129, "1 to 128 members"),
    ],
)
def test_what_is_not_allowed_is_refused(store, script, name, words, message):
    with pytest.raises(redis.ResponseError, match=f"^fairlead: {message}"):
        script(name)(KEYS[name], *words)
    assert store.keys() == []


def test_leases_end_and_live_on_at_maxmemory(store, leases, pool, full_store):
    store.hset("admin", "a", "max_concurrent=0")
    first, second, third = (leases.acquire(only="a", ttl=100) for _ in range(3))
    store.zrem("busy", "b")
    full_store()
    assert leases.renew(first, ttl=500) == [FINE]
    assert leases.release(second) == [FINE]
    assert leases.mend("b") == [1]
    leases.now += 100
    assert leases.expire()[0] == 1
    assert leases.live() == {b"a": 1}


def test_a_rest_begins_at_maxmemory(store, leases, pool, full_store):
    store.hset("rules", "rest_ms", 500)
    lease = leases.acquire()
    full_store()
    assert leases.release(lease) == [FINE]
    assert leases.live() == {b"a": 1}
