"""due.lua, due_mend.lua: each member's check is given to one checker, and every member has one."""

import pytest
import redis

NOW_MS = 1_000_000
DAY_MS = 86_400_000
MEND_KEYS = ["pool", "parked", "admin", "due"]
STRANGER, FINE, EXPIRED, DROPPED = range(4)


@pytest.fixture
def take(script):
    run = script("due")

    def call(count, lease=1000, now=NOW_MS):
        next_ms, *members = run("due", now, count, lease)
        return next_ms, [m.decode() for m in members]

    return call


@pytest.fixture
def mend(script):
    run = script("due_mend")
    return lambda *pairs, now=NOW_MS: run(MEND_KEYS, now, DAY_MS, *pairs)


def test_nobody_is_due_in_an_empty_pool(store, take):
    assert take(128) == (-1, [])
    assert not store.exists("due")


def test_the_longest_due_come_first_and_the_others_wait(store, take):
    store.zadd("due", {"a": NOW_MS, "b": NOW_MS - 5, "c": NOW_MS + 70})
    assert take(1) == (0, ["b"])
    assert take(9) == (70, ["a"])
    assert take(9) == (70, [])


def test_a_taken_member_is_due_again_only_when_its_lease_has_ended(store, take):
    store.zadd("due", {"a": 0})
    assert take(1, lease=250) == (250, ["a"])
    assert take(1, now=NOW_MS + 249) == (1, [])
    assert take(1, now=NOW_MS + 250) == (1000, ["a"])


def test_three_checkers_share_all_and_nobody_gets_one_twice(store, take):
    store.zadd("due", {f"m{i}": i for i in range(300)})
    taken = [take(128)[1] for _ in range(4)]
    assert [len(x) for x in taken] == [128, 128, 44, 0]
    assert sorted(sum(taken, [])) == sorted(f"m{i}" for i in range(300))


def test_without_a_time_redis_gives_it(store, take):
    now = store.time()[0] * 1000
    store.zadd("due", {"past": now - 60_000, "future": now + 60_000})
    assert take(9, now="")[1] == ["past"]


@pytest.mark.parametrize("count", [0, 129, 1.5, "x"])
def test_a_count_out_of_bounds_is_refused(take, count):
    with pytest.raises(redis.ResponseError, match="^fairlead: 1 to 128"):
        take(count)


@pytest.mark.parametrize("lease", [0, -1, "nan", "x"])
def test_a_lease_that_is_none_is_refused(take, lease):
    with pytest.raises(redis.ResponseError, match="^fairlead: lease_ms"):
        take(1, lease=lease)


def test_taking_works_at_maxmemory(store, take, full_store):
    store.zadd("due", {"a": 0})
    full_store()
    assert take(1) == (1000, ["a"])


def test_128_are_taken_by_one_write(store, take):
    store.zadd("due", {f"m{i}": 0 for i in range(1000)})
    store.config_resetstat()
    assert len(take(128)[1]) == 128
    assert store.info("commandstats")["cmdstat_zadd"]["calls"] == 1


# Mending ------------------------------------------------------------------------------------------


def test_who_has_no_time_gets_one_and_who_has_keeps_it(store, mend):
    store.zadd("pool", {"a": 1, "b": 1})
    store.zadd("parked", {"c": 1})
    store.zadd("due", {"b": 7})
    assert mend("a", 10, "b", 20, "c", 30) == [FINE] * 3
    expected = {b"a": NOW_MS + 10, b"b": 7, b"c": NOW_MS + 30}
    assert dict(store.zrange("due", 0, -1, withscores=True)) == expected


def test_who_is_no_member_is_forgotten(store, mend):
    store.zadd("pool", {"a": 1})
    store.zadd("due", {"a": 5, "gone": 5})
    assert mend("gone", 0, "never", 0, "a", 0) == [STRANGER, STRANGER, FINE]
    assert store.zrange("due", 0, -1) == [b"a"]


@pytest.mark.parametrize(
    "home, expires_at, code",
    [
        ("pool", NOW_MS + 1, FINE),
        ("pool", NOW_MS, EXPIRED),
        ("pool", "soon", EXPIRED),
        ("parked", NOW_MS, FINE),
        ("parked", "soon", FINE),
        ("pool", NOW_MS - DAY_MS, EXPIRED),
        ("parked", NOW_MS - DAY_MS, FINE),
        ("pool", NOW_MS - DAY_MS - 1, DROPPED),
        ("parked", NOW_MS - DAY_MS - 1, DROPPED),
    ],
)
def test_an_expiry_is_told(store, mend, home, expires_at, code):
    store.zadd(home, {"a": 1})
    store.hset("admin", "a", f"state=enabled\texpires_at={expires_at}")
    assert mend("a", 0) == [code]
    assert store.exists("due") == (code != DROPPED)


@pytest.mark.parametrize("key", MEND_KEYS)
def test_a_key_of_another_type_changes_nothing(store, mend, key):
    store.zadd("pool", {"a": 1})
    store.delete(key)
    store.set(key, "text")
    with pytest.raises(redis.ResponseError, match="WRONGTYPE"):
        mend("a", 0, "b", 0)
    assert store.get(key) == b"text" and (key == "due" or not store.exists("due"))


@pytest.mark.parametrize("pairs", [[], ["a"], ["a", 0] * 129, ["a", -1], ["a", "x"]], ids=len)
def test_pairs_that_are_none_are_refused(mend, pairs):
    with pytest.raises(redis.ResponseError, match="^fairlead: "):
        mend(*pairs)


def test_mending_works_at_maxmemory(store, mend, full_store):
    store.zadd("pool", {"a": 1})
    full_store()
    assert mend("a", 0) == [FINE]
    assert store.zcard("due") == 1
