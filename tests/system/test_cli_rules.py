"""Rules of a pool, and what its rule `join` does to the next allocations."""

import collections
import itertools
import json

import pytest

import look

MEMBERS = [f"http://m{i}.example:3128" for i in range(6)]
RETURNING = MEMBERS[3]


def five_lines(scores, count):
    """The contract, as a model: the lowest score, then bytewise; scores become those afterwards."""
    chosen = []
    for _ in range(count):
        chosen.append(min(scores, key=lambda member: (scores[member], member.encode())))
        scores[chosen[-1]] += 1
    return chosen


def longest_run(chosen, member):
    return max(len(list(turns)) for who, turns in itertools.groupby(chosen) if who == member)


@pytest.fixture
def returned(store, run):
    """Six members: five stand at 20 allocations, the one that was parked at 10 comes back under the rule `join`."""

    def prepare(join):
        run("pool", "add", "--eligible", *MEMBERS)
        run("pool", "allocate", "--count", 60)
        run("pool", "park", RETURNING)
        run("pool", "allocate", "--count", 50)
        run("pool", "rules", f"join={join}")
        run("pool", "restore", RETURNING)

    return prepare


@pytest.mark.core
@pytest.mark.parametrize("join, score", [("floor", 20), ("keep", 10), ("zero", 0)])
def test_a_member_that_returns_joins_by_the_rule(store, run, returned, join, score):
    returned(join)
    assert store.client.zscore("proxies", RETURNING) == score
    shown = json.loads(run("pool", "show", "--json", RETURNING).stdout)
    assert (shown["score"], shown["allocations"]) == (score, 10)
    assert json.loads(run("pool", "stats", "--json").stdout)["allocations"] == 110


@pytest.mark.core
@pytest.mark.parametrize("join, score, share, in_a_row", [
    ("floor", 20, 100, 1),
    # (5 x 20 + 10 + 600) / 6 = 118.3 for each: he catches up 10, and shares the rest.
    ("keep", 10, 108, 10),
    # (5 x 20 + 0 + 600) / 6 = 116.7: 20 in a row, then his share.
    ("zero", 0, 116, 20),
])
def test_the_next_600_allocations_follow_the_five_lines(run, returned, join, score, share, in_a_row):
    returned(join)
    got = run("pool", "allocate", "--count", 600, "--id").stdout.split()
    assert got == five_lines(dict.fromkeys(MEMBERS, 20) | {RETURNING: score}, 600)
    assert collections.Counter(got)[RETURNING] in (share, share + 1)
    assert longest_run(got, RETURNING) == in_a_row


@pytest.mark.core
@pytest.mark.parametrize("join, start, score", [
    ("floor", 2, 5), ("floor", 50, 50), ("keep", 2, 2), ("keep", 50, 50), ("zero", 2, 0), ("zero", 50, 0)])
def test_a_new_member_joins_by_the_rule(store, run, join, start, score):
    run("pool", "add", "--eligible", *MEMBERS[:2])
    run("pool", "allocate", "--count", 10)
    run("pool", "rules", f"join={join}", f"start={start}")
    run("pool", "add", "--eligible", RETURNING)
    assert store.client.zscore("proxies", RETURNING) == score
    assert json.loads(run("pool", "show", "--json", RETURNING).stdout)["allocations"] == 0


@pytest.mark.core
def test_rules_are_shown_with_where_they_come_from(run):
    run("pool", "rules", "join=keep", "start=1.5")
    rows = map(json.loads, run("pool", "rules", "--json").stdout.splitlines())
    rules = {row["rule"]: (row["value"], row["set"]) for row in rows}
    assert rules["join"] == ("keep", "here") and rules["start"] == ("1.5", "here")
    assert rules["allow_private"] == ("0", "default")


def test_rules_are_those_of_one_pool(run):
    run("pool", "rules", "join=zero", "--pool", "web")
    rows = list(map(json.loads, run("pool", "rules", "--json").stdout.splitlines()))
    assert [row["value"] for row in rows if row["rule"] == "join"] == ["floor"]


def test_private_addresses_become_the_rule_of_the_pool(store, run):
    run("pool", "add", "--eligible", "--allow-private", "http://10.0.0.1:80")
    assert store.client.hget("{proxies}:pool:rules", "allow_private") == "1"
    run("pool", "add", "--eligible", "http://10.0.0.2:80")


@pytest.mark.core
@pytest.mark.parametrize("words", [
    "add " + RETURNING, "add --parked " + RETURNING, "remove " + MEMBERS[0], "park " + MEMBERS[0],
    "restore " + MEMBERS[1], "rules join=keep", "allocate", "allocate --count 9"])
def test_a_pool_of_a_newer_fairlead_is_not_written_to(store, run, words):
    run("pool", "add", "--eligible", *MEMBERS[:2])
    run("pool", "park", MEMBERS[1])
    store.client.hset("{proxies}:pool:rules", "wire", 2)
    before = look.dumps(store)
    stderr = run("pool", *words.split(" "), check=1).stderr
    assert "newer fairlead" in stderr and "update" in stderr and stderr.count("\n") == 1
    assert look.dumps(store) == before


def test_a_pool_of_a_newer_fairlead_is_still_read(store, run):
    run("pool", "add", "--eligible", MEMBERS[0])
    store.client.hset("{proxies}:pool:rules", "wire", 2)
    assert MEMBERS[0] in run("pool", "list").stdout
