"""rules_set.lua: the rules of a pool, its wire version and its salt."""

import pytest
import redis

SALT = "5a" * 32


def rules(store):
    return {name.decode(): value.decode() for name, value in store.hgetall("rules").items()}


def test_a_new_pool_gets_wire_salt_and_rules(store, script):
    assert script("rules_set")("rules", 1, SALT, "join", "keep", "start", "10") == SALT.encode()
    assert rules(store) == {"wire": "1", "salt": SALT, "join": "keep", "start": "10"}


def test_the_first_salt_stays(store, script):
    rules_set = script("rules_set")
    rules_set("rules", 1, SALT)
    assert rules_set("rules", 1, "00" * 32, "join", "zero") == SALT.encode()
    assert rules(store) == {"wire": "1", "salt": SALT, "join": "zero"}


def test_a_newer_wire_is_refused_and_nothing_changes(store, script):
    store.hset("rules", mapping={"wire": 2, "join": "keep"})
    with pytest.raises(redis.ResponseError) as refusal:
        script("rules_set")("rules", 1, SALT, "join", "zero")
    assert str(refusal.value).startswith("fairlead: wire 2 is newer than this node")
    assert rules(store) == {"wire": "2", "join": "keep"}


def test_an_older_wire_is_kept(store, script):
    store.hset("rules", "wire", 1)
    assert script("rules_set")("rules", 2, SALT) == SALT.encode()
    assert rules(store)["wire"] == "1"


@pytest.mark.parametrize(
    "args",
    [
        [],
        [1],
        ["x", SALT],
        ["1.5", SALT],
        [0, SALT],
        [1, ""],
        [1, SALT, "join"],
        [1, SALT, "salt", "1"],
        [1, SALT, "join", "keep", "wire", "9"],
        [1, SALT, "", "1"],
        [1, SALT] + ["a", "1"] * 257,
    ],
    ids=str,
)
def test_bad_arguments_are_refused_before_any_write(store, script, args):
    with pytest.raises(redis.ResponseError, match="^fairlead: "):
        script("rules_set")("rules", *args)
    assert not store.exists("rules")


def test_an_unreadable_wire_is_refused(store, script):
    store.hset("rules", "wire", "one")
    with pytest.raises(redis.ResponseError, match="^fairlead: .* not a number"):
        script("rules_set")("rules", 1, SALT)
    assert rules(store) == {"wire": "one"}


def test_a_key_of_another_type_is_refused(store, script):
    store.set("rules", "text")
    with pytest.raises(redis.ResponseError, match="WRONGTYPE"):
        script("rules_set")("rules", 1, SALT)


def test_rules_can_be_set_at_maxmemory(store, script, full_store):
    full_store()
    assert script("rules_set")("rules", 1, SALT, "join", "keep") == SALT.encode()
