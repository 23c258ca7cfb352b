"""traffic.lua: counts of bytes that grow, within bounds."""

import pytest
import redis


@pytest.fixture
def traffic(script):
    run = script("traffic")
    return lambda *pairs, most=100: run("traffic", most, *pairs)


def test_bytes_are_added_up(store, traffic):
    assert traffic("in:a", 5, "out:a", 7, "in:a", 1) == 3
    assert traffic("in:a", "100000000000000000", "in:b", 2) == 2
    assert store.hgetall("traffic") == {b"in:a": b"100000000000000006", b"out:a": b"7", b"in:b": b"2"}


def test_a_full_hash_takes_no_new_field(store, traffic):
    assert traffic("in:a", 1, "in:b", 1, "in:c", 1, most=2) == 2
    assert traffic("in:c", 1, "in:a", 1, most=2) == 1
    assert store.hgetall("traffic") == {b"in:a": b"2", b"in:b": b"1"}


@pytest.mark.parametrize("held", ["x", "-1", "1.5", "1" * 19, ""])
def test_a_field_that_is_no_count_is_left_alone(store, traffic, held):
    store.hset("traffic", "in:a", held)
    assert traffic("in:a", 1, "in:b", 1) == 1
    assert store.hgetall("traffic") == {b"in:a": held.encode(), b"in:b": b"1"}


@pytest.mark.parametrize("pairs", [[], ["a"], ["a", "x"], ["a", "-1"], ["a", "1" * 19], ["a", 1] * 129])
def test_bad_pairs_are_refused(store, traffic, pairs):
    with pytest.raises(redis.ResponseError, match="^fairlead: "):
        traffic(*pairs)
    assert not store.exists("traffic")


def test_traffic_is_added_at_maxmemory(store, traffic, full_store):
    full_store()
    assert traffic(*[word for i in range(128) for word in (f"in:{i}", 1)], most=1000) == 128
