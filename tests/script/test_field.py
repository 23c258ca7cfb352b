"""field.lua: one key of the packed values of many members."""

import random

import pytest
import redis

SEED = 20240301


def fields(store):
    return store.hgetall("hash")


def test_a_value_is_created_and_replaced_in_its_place(store, script):
    field = script("field")
    assert field("hash", "set", "state", "a", "up", "b", "down") == 2
    assert field("hash", "set", "since", "a", "5") == 1
    assert field("hash", "set", "state", "a", "down") == 1
    assert fields(store) == {b"a": b"state=down\tsince=5", b"b": b"state=down"}


def test_unknown_pairs_are_kept_in_their_order(store, script):
    store.hset("hash", "a", "z=1\tnot a pair\tstate=up\tstate2=x\t=y\tb=c=d")
    script("field")("hash", "set", "state", "a", "down")
    assert fields(store) == {b"a": b"z=1\tnot a pair\tstate=down\tstate2=x\t=y\tb=c=d"}


def test_an_empty_value_removes_the_pair_and_then_the_member(store, script):
    field = script("field")
    store.hset("hash", mapping={"a": "state=up\ttag=x", "b": "state=up"})
    assert field("hash", "set", "state", "a", "", "b", "", "c", "") == 2
    assert fields(store) == {b"a": b"tag=x"}
    assert field("hash", "set", "tag", "a", "") == 1
    assert not store.exists("hash")


def test_what_stays_the_same_is_not_counted(store, script):
    store.hset("hash", "a", "state=up")
    assert script("field")("hash", "set", "state", "a", "up", "b", "up") == 1


def test_a_key_set_twice_becomes_one(store, script):
    store.hset("hash", "a", "state=up\tx=1\tstate=down")
    assert script("field")("hash", "set", "state", "a", "gone") == 1
    assert fields(store) == {b"a": b"state=gone\tx=1"}


def test_a_member_named_twice_gets_its_last_value(store, script):
    assert script("field")("hash", "set", "k", "a", "1", "b", "2", "a", "3") == 2
    assert fields(store) == {b"a": b"k=3", b"b": b"k=2"}


def test_any_bytes_but_tab_and_newline_are_kept(store, script):
    value = bytes(set(range(256)) - {9, 10})
    script("field")("hash", "set", "k", b"\x00\xff", value, b"\x00", b"%s%1")
    assert fields(store) == {b"\x00\xff": b"k=" + value, b"\x00": b"k=%s%1"}


@pytest.mark.parametrize(
    "args",
    [
        ["k", "a", "tab\there"],
        ["k", "a", "1", "b", "line\nend"],
        ["k=", "a", "1"],
        ["", "a", "1"],
        ["k\t", "a", "1"],
        ["k\n", "a", "1"],
        ["k", "", "1"],
        ["k", "a"],
        ["k"],
        [],
        ["k"] + ["a", "1"] * 257,
    ],
    ids=str,
)
def test_bad_arguments_are_refused_before_any_write(store, script, args):
    store.hset("hash", mapping={"a": "k=0", "b": "k=0"})
    with pytest.raises(redis.ResponseError, match="^fairlead: "):
        script("field")("hash", "set", *args)
    assert fields(store) == {b"a": b"k=0", b"b": b"k=0"}


def test_256_pairs_are_set_in_two_writes(store, script):
    field = script("field")
    store.config_resetstat()
    assert field("hash", "set", "k", *[word for i in range(256) for word in (f"m{i}", i)]) == 256
    stats = store.info("commandstats")
    assert (stats["cmdstat_hset"]["calls"], stats["cmdstat_hdel"]["calls"]) == (1, 1)
    assert store.hget("hash", "m255") == b"k=255"


def test_a_key_of_another_type_is_refused(store, script):
    store.set("hash", "text")
    with pytest.raises(redis.ResponseError, match="WRONGTYPE"):
        script("field")("hash", "set", "k", "a", "1")


def test_a_field_can_be_set_at_maxmemory(store, script, full_store):
    full_store()
    assert script("field")("hash", "set", "state", "a", "down") == 1
    assert fields(store) == {b"a": b"state=down"}


def test_random_settings_leave_what_a_dictionary_would_hold(store, script):
    r = random.Random(SEED)
    field = script("field")
    model = {}
    for _ in range(400):
        key = r.choice(["state", "since", "stat", "s"])
        pairs = {r.choice("abcdef"): r.choice(["", "1", "x=y", "up down"]) for _ in range(3)}
        field("hash", "set", key, *[word for pair in pairs.items() for word in pair])
        for member, value in pairs.items():
            held = model.setdefault(member, {})
            held.update({key: value})
            if value == "":
                del held[key]
        expected = {m: "\t".join(f"{k}={v}" for k, v in held.items()) for m, held in model.items()}
        found = {m.decode(): packed.decode() for m, packed in fields(store).items()}
        assert found == {m: packed for m, packed in expected.items() if packed}


def test_an_item_joins_a_list_once_and_leaves_it(store, script):
    field = script("field")
    store.hset("hash", "a", "sources=x\ttag=y")
    assert field("hash", "join", "sources", "a", "z", "b", "z") == 2
    assert field("hash", "join", "sources", "a", "z", "b", "z") == 0
    assert fields(store) == {b"a": b"sources=x,z\ttag=y", b"b": b"sources=z"}
    assert field("hash", "leave", "sources", "a", "x", "b", "z", "c", "z") == 2
    assert fields(store) == {b"a": b"sources=z\ttag=y", b"b": b"sources="}


@pytest.mark.parametrize(
    "before, left",
    [
        ("sources=x", "sources="),
        ("tag=y\tsources=x\tk=v", "tag=y\tsources=\tk=v"),
        ("sources=", "sources="),
        ("sources=\ttag=y", "sources=\ttag=y"),
        ("tag=y", "tag=y"),
        ("", ""),
    ],
)
def test_a_record_stays_when_its_last_item_leaves(store, script, before, left):
    store.hset("hash", "a", before)
    assert script("field")("hash", "leave", "sources", "a", "x") == int(before != left)
    assert fields(store) == {b"a": left.encode()}


def test_who_has_no_record_gets_none_by_leaving(store, script):
    assert script("field")("hash", "leave", "sources", "a", "x") == 0
    assert not store.exists("hash")


def test_an_empty_list_takes_an_item_in_its_place(store, script):
    store.hset("hash", "a", "k=v\tsources=\ttag=y")
    assert script("field")("hash", "join", "sources", "a", "x") == 1
    assert fields(store) == {b"a": b"k=v\tsources=x\ttag=y"}


def test_setting_an_empty_value_removes_an_empty_list_and_its_record(store, script):
    store.hset("hash", "a", "sources=")
    assert script("field")("hash", "set", "sources", "a", "") == 1
    assert not store.exists("hash")


@pytest.mark.parametrize("how, item", [("join", ""), ("join", "a,b"), ("leave", ""), ("drop", "a")])
def test_a_bad_item_of_a_list_is_refused(store, script, how, item):
    with pytest.raises(redis.ResponseError, match="^fairlead: "):
        script("field")("hash", how, "sources", "m", item)
    assert not store.exists("hash")


# Offering and lifting -----------------------------------------------------------------------------


def test_a_value_is_offered_only_where_the_key_is_absent(store, script):
    store.hset("hash", mapping={"a": "state=disabled\tx=1", "b": "x=1"})
    assert script("field")("hash", "offer", "state", "a", "paused", "b", "paused", "c", "paused") == 2
    assert fields(store) == {b"a": b"state=disabled\tx=1", b"b": b"x=1\tstate=paused", b"c": b"state=paused"}


def test_a_value_is_lifted_only_where_it_is_this_one(store, script):
    store.hset("hash", mapping={"a": "state=disabled", "b": "state=paused\tx=1", "c": "state=paused"})
    words = ["a", "paused", "b", "paused", "c", "paused", "d", "paused"]
    assert script("field")("hash", "lift", "state", *words) == 2
    assert fields(store) == {b"a": b"state=disabled", b"b": b"x=1"}
