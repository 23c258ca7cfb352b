"""Bytes by member and client, as the commands print them."""

import json

import pytest

MEMBER = "http://m.example:3128"


@pytest.fixture
def counted(store, run):
    run("pool", "add", "--eligible", MEMBER)
    store.client.hset("{proxies}:pool:traffic", mapping={"in:" + MEMBER: 7, "out:" + MEMBER: 8_000_000_000, "in:": 9,
                                                         "out:": 8_000_000_001})
    store.client.hset("{proxies}:pool:clients", mapping={"in:bob": 1, "out:bob": 1, "in:al\x1bice": 2, "out:al\x1bice": 5})
    return store


def test_a_member_is_shown_with_its_bytes(counted, run):
    shown = json.loads(run("pool", "show", MEMBER, "--json").stdout)
    assert (shown["bytes_in"], shown["bytes_out"]) == (7, 8_000_000_000)
    run("pool", "remove", MEMBER)
    assert set(counted.client.hgetall("{proxies}:pool:traffic")) == {"in:", "out:"}


def test_stats_are_sums_and_then_clients(counted, run):
    sums, *clients = [json.loads(line) for line in run("pool", "stats", "--json").stdout.splitlines()]
    assert (sums["eligible"], sums["bytes_in"], sums["bytes_out"]) == (1, 9, 8_000_000_001)
    assert clients == [{"client": "al\x1bice", "bytes_in": 2, "bytes_out": 5},
                       {"client": "bob", "bytes_in": 1, "bytes_out": 1}]


def test_stats_for_people_are_a_record_and_a_table(counted, run):
    lines = run("pool", "stats").stdout.splitlines()
    assert lines[-3].split() == ["client", "bytes_in", "bytes_out"]
    assert (lines[-2].split(), lines[-1].split()) == (["al\\x1bice", "2", "5"], ["bob", "1", "1"])
    assert ["bytes_out", "8000000001"] in [line.split() for line in lines]


def test_a_hundred_clients_are_listed(counted, run):
    counted.client.hset("{proxies}:pool:clients", mapping={f"in:c{i}": i for i in range(10, 160)})
    ran = run("pool", "stats", "--json")
    clients = [json.loads(line)["client"] for line in ran.stdout.splitlines()[1:]]
    assert clients == [f"c{i}" for i in range(159, 59, -1)]
    assert "152 clients" in ran.stderr
