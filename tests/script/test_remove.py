"""remove.lua: a member and its count are forgotten everywhere."""

import pytest
import redis

ZSETS = ["pool", "parked", "due", "busy"]
HASHES = ["offset", "proxies", "admin", "health", "streaks"]
KEYS = ["pool", "parked", "offset", "proxies", "admin", "health", "streaks", "due", "busy"]


def add_everywhere(store, *members):
    for member in members:
        for key in ZSETS:
            store.zadd(key, {member: 3})
        for key in HASHES:
            store.hset(key, member, "k=v")


def members_of(store, key):
    return set(store.zrange(key, 0, -1) if key in ZSETS else store.hkeys(key))


def test_a_member_is_forgotten_everywhere_and_the_others_stay(store, script):
    add_everywhere(store, "a", "b", "c")
    assert script("remove")(KEYS, "a", "c") == [1, 1]
    assert {key: members_of(store, key) for key in KEYS} == {key: {b"b"} for key in KEYS}


@pytest.mark.parametrize("key, code", [(k, int(k in ("pool", "parked", "proxies"))) for k in KEYS])
def test_known_is_who_is_eligible_parked_or_recorded(store, script, key, code):
    if key in ZSETS:
        store.zadd(key, {"a": 0})
    else:
        store.hset(key, "a", "")
    assert script("remove")(KEYS, "nobody", "a") == [0, code]
    assert not store.exists(key)


@pytest.mark.parametrize("key", KEYS)
def test_a_key_of_another_type_changes_nothing(store, script, key):
    add_everywhere(store, "a")
    store.delete(key)
    store.set(key, "text")
    with pytest.raises(redis.ResponseError, match="WRONGTYPE"):
        script("remove")(KEYS, "a")
    others = [other for other in KEYS if other != key]
    assert all(members_of(store, other) == {b"a"} for other in others)


@pytest.mark.parametrize("count", [0, 257])
def test_too_few_and_too_many_are_refused(store, script, count):
    add_everywhere(store, "m0")
    with pytest.raises(redis.ResponseError, match="^fairlead: 1 to 256 members"):
        script("remove")(KEYS, *[f"m{i}" for i in range(count)])
    assert store.zcard("pool") == 1


def test_256_members_go_in_one_call(store, script):
    members = [f"m{i}" for i in range(256)]
    add_everywhere(store, *members)
    assert script("remove")(KEYS, *members) == [1] * 256
    assert store.dbsize() == 0


def test_a_removal_works_at_maxmemory(store, script, full_store):
    add_everywhere(store, "a")
    full_store()
    assert script("remove")(KEYS, "a") == [1]
    assert store.dbsize() == 0
