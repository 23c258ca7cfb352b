"""cooldown.lua: members avoided for a host until a time, within bounds."""

import pytest
import redis

NOW = 1_000_000


@pytest.fixture
def cool(script):
    run = script("cooldown")
    return lambda *entries, now=NOW: run(["cooldown", "rules"], now, *entries)


def ends(store):
    return {entry.decode(): int(end) for entry, end in store.zrange("cooldown", 0, -1, withscores=True)}


def test_an_entry_ends_after_a_minute_by_default(store, cool):
    assert cool("a.test\thttp://192.0.2.1:80", "b.test\thttp://192.0.2.1:80") == 2
    assert ends(store) == {"a.test\thttp://192.0.2.1:80": NOW + 60_000, "b.test\thttp://192.0.2.1:80": NOW + 60_000}


def test_the_rule_says_how_long(store, cool):
    store.hset("rules", "cooldown_ms", 500)
    cool("a\tm")
    assert ends(store) == {"a\tm": NOW + 500}


def test_the_rule_zero_adds_nothing_and_leaves_what_stands(store, cool):
    cool("a\tm")
    store.hset("rules", "cooldown_ms", 0)
    assert cool("b\tm") == 0
    assert ends(store) == {"a\tm": NOW + 60_000}


def test_an_entry_is_set_anew(store, cool):
    cool("a\tm")
    cool("a\tm", now=NOW + 7)
    assert ends(store) == {"a\tm": NOW + 60_007}


def test_the_time_is_that_of_redis(store, cool):
    cool("a\tm", now="")
    seconds, micros = store.time()
    now = seconds * 1000 + micros // 1000
    assert now + 55_000 < ends(store)["a\tm"] <= now + 60_000


def test_what_has_ended_is_removed_on_the_way(store, cool):
    store.zadd("cooldown", {f"h\t{i}": NOW - 200 + i for i in range(202)})
    cool("a\tm")
    left = ends(store)
    assert len(left) == 202 - 128 + 1  # of 201 that have ended, as many as one call removes
    cool("a\tm")
    assert sorted(ends(store)) == ["a\tm", "h\t201"]


def test_of_too_many_those_go_that_end_first(store, cool):
    store.zadd("cooldown", {f"h\t{i}": NOW + 10 + i for i in range(10_000)})
    cool("a\tm", "b\tm", "c\tm")
    left = ends(store)
    assert len(left) == 10_000
    assert {"a\tm", "b\tm", "c\tm", "h\t3", "h\t9999"} <= set(left)
    assert not {"h\t0", "h\t1", "h\t2"} & set(left)


def test_the_key_goes_with_its_last_entry(store, cool):
    store.hset("rules", "cooldown_ms", 5000)
    cool("a\tm")
    assert 4000 < store.pttl("cooldown") <= 5000
    store.hset("rules", "cooldown_ms", 100)
    cool("b\tm")
    assert store.pttl("cooldown") > 4000


@pytest.mark.parametrize("entries", [[], ["a\tm"] * 65, ["am"], ["\tm"], ["a\t"], [""], ["a\t" + "m" * 1023]])
def test_bad_entries_are_refused(store, cool, entries):
    with pytest.raises(redis.ResponseError, match="^fairlead: "):
        cool("a\tm", *entries) if entries and len(entries) < 65 else cool(*entries)
    assert not store.exists("cooldown")


@pytest.mark.parametrize("now", ["x", "1.5", "nan"])
def test_a_time_that_is_none_is_refused(store, cool, now):
    with pytest.raises(redis.ResponseError, match="^fairlead: "):
        cool("a\tm", now=now)


@pytest.mark.parametrize("rule", ["x", "-1", "1.5", "86400001", "nan", ""])
def test_a_rule_that_is_no_time_is_refused(store, cool, rule):
    store.hset("rules", "cooldown_ms", rule)
    with pytest.raises(redis.ResponseError, match="^fairlead: the rule cooldown_ms"):
        cool("a\tm")
    assert not store.exists("cooldown")


def test_entries_are_added_at_maxmemory(store, cool, full_store):
    full_store()
    assert cool(*[f"h\t{i}" for i in range(64)]) == 64
    assert cool(*[f"g\t{i}" for i in range(64)], now=NOW + 100_000) == 64
    assert store.zcard("cooldown") == 64


def test_what_is_no_table_is_left_alone(store, cool):
    store.set("cooldown", "text")
    with pytest.raises(redis.ResponseError, match="WRONGTYPE"):
        cool("a\tm")
    assert store.get("cooldown") == b"text"
