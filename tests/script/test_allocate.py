"""allocate.lua and allocate_except.lua against n runs of the five-line script."""

import concurrent.futures
import math
import os
import random

import pytest
import redis

SEED = os.environ.get("FAIRLEAD_TEST_SEED", "20240229")
POOLS_PER_KIND = 84
TOP = 2.0**53


def ulps_above(score, steps):
    for _ in range(steps):
        score = math.nextafter(score, math.inf)
    return score


def equal(r, i, size):
    return [7, 0.7, 1 / 3, TOP - 9, -0.3, 1e-17][size % 6]


def skewed(r, i, size):
    return int(r.paretovariate(0.5)) % 100_000


def few_levels(r, i, size):
    return r.randrange(4)


def fractional(r, i, size):
    return r.random() * r.choice([1, 3])


def staircase(r, i, size):
    return i


def uneven_stairs(r, i, size):
    return i * 0.7 + r.choice([0, 0.25, 1e-9])


def newcomer(r, i, size):
    return 0 if i == 0 else 10_000 + r.randrange(3)


def negative(r, i, size):
    return r.choice([-3, -2, -2.5, -1e-3, -0.1, 0, r.uniform(-300, 0)])


def near_the_top(r, i, size):
    return TOP - r.randrange(60) + r.choice([0, 0, 0, 2 * r.randrange(3)])


def infinite(r, i, size):
    return r.choice([-math.inf, math.inf, 0, 1, TOP, 1e300, -TOP - 6]) if i % 3 else 5


def merging(r, i, size):
    """A few ulps apart: adding 1 makes different scores equal."""
    return ulps_above(r.choice([0.25, 0.0, 2.0]), r.randrange(5))


def crossing(r, i, size):
    """Just below a power of two, where the distance between doubles doubles."""
    return 2.0 ** r.choice([3, 4, 51, 52]) - r.choice([0.5, 1, 1.5, 4]) + r.choice([0, 1e-15])


KINDS = [equal, skewed, few_levels, fractional, staircase, uneven_stairs, newcomer]
KINDS += [negative, near_the_top, infinite, merging, crossing]


def random_member(r, i):
    return r.choice(
        [
            lambda: b"http://10.0.%d.%d:8080" % (i // 256, i % 256),
            lambda: b"a" * r.randrange(1, 40),
            lambda: bytes(r.randrange(256) for _ in range(r.randrange(1, 12))),
            lambda: bytes(r.choice(b"aAbBzZ_-") for _ in range(r.randrange(1, 9))),
            lambda: b"%d" % i,
        ]
    )()


def random_size(r):
    return r.choice([1, 2, 3] + [r.randrange(1, 40)] * 5 + [r.randrange(1, 400)] * 8)


def random_pool(r, kind, size):
    """Scores in the order of a shuffled set of members, so that byte order is no score order."""
    members = list({random_member(r, i) for i in range(size)})
    r.shuffle(members)
    return {member: kind(r, i, size) for i, member in enumerate(members)}


def add_pool(store, key, pool):
    members = list(pool)
    pipeline = store.pipeline(transaction=False)
    for at in range(0, len(members), 5000):
        pipeline.zadd(key, {member: pool[member] for member in members[at : at + 5000]})
    pipeline.execute()


def contents(store, key):
    """The front by value, all by its dump (in which the scores are doubles, not text)."""
    front = store.execute_command("ZRANGE", key, 0, 300, "WITHSCORES")
    return front, store.dump(key)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_one_call_is_n_runs_of_the_five_lines(store, script, five_lines, kind):
    print("seed", SEED)
    r = random.Random(f"{SEED} {kind.__name__}")
    allocate = script("allocate")
    for number in range(POOLS_PER_KIND):
        size = 5000 if number % 42 == 0 else random_size(r)
        n = r.choice([1, 2, 256, r.randrange(1, 257), r.randrange(1, 257)])
        add_pool(store, "one", random_pool(r, kind, size))
        store.copy("one", "many", replace=True)
        where = f"pool {number} of {size}, n {n}"
        assert allocate("one", n) == five_lines("many", n), where
        assert contents(store, "one") == contents(store, "many"), where
        store.delete("one", "many")


def test_two_calls_go_on_where_the_first_ended(store, script, five_lines):
    add_pool(store, "one", {b"m%d" % i: i % 3 for i in range(7)})
    store.copy("one", "many")
    allocate = script("allocate")
    assert allocate("one", 5) + allocate("one", 1) + allocate("one", 90) == five_lines("many", 96)


def allocate_beside_others(store, script, sha, seed):
    """1,000 allocations over a connection of its own, a third of the calls by the five lines."""
    r = random.Random(seed)
    socket = store.connection_pool.connection_kwargs["path"]
    chosen = []
    with redis.Redis(unix_socket_path=socket) as client:
        while len(chosen) < 1000:
            n = min(r.choice([1, 7, 40]), 1000 - len(chosen))
            five = client.evalsha(sha, 1, "pool") if r.random() < 0.4 else None
            chosen += [five] if five else client.evalsha(script.sha, 1, "pool", n)
    return chosen


def test_clients_of_both_scripts_share_evenly(store, script, five_lines):
    add_pool(store, "pool", {b"m%d" % i: 0 for i in range(10)})
    sha, allocate = five_lines.sha, script("allocate")
    with concurrent.futures.ThreadPoolExecutor(8) as threads:
        work = [
            threads.submit(allocate_beside_others, store, allocate, sha, seed) for seed in range(8)
        ]
        chosen = [member for client in work for member in client.result()]
    counts = {member: chosen.count(member) for member in set(chosen)}
    assert counts == {b"m%d" % i: 800 for i in range(10)}
    assert dict(store.zrange("pool", 0, -1, withscores=True)) == counts


def test_a_tie_of_fifty_gives_fifty_different_members(store, script):
    add_pool(store, "pool", {b"m%d" % i: 0 for i in range(50)})
    allocate = script("allocate")
    with concurrent.futures.ThreadPoolExecutor(50) as threads:
        chosen = [one for [one] in threads.map(lambda _: allocate("pool", 1), range(50))]
    assert len(set(chosen)) == 50


def test_an_empty_pool_gives_nothing_and_stays_empty(store, script):
    assert script("allocate")("pool", 1) == []
    assert script("allocate")("pool", 256) == []
    assert not store.exists("pool")


def test_ties_resolve_by_bytes(store, script):
    store.zadd("pool", {b"b": 0, b"a": 0, b"\xff": 0, b"B": 0, b"a\x00": 0})
    assert script("allocate")("pool", 5) == [b"B", b"a", b"a\x00", b"b", b"\xff"]


@pytest.mark.parametrize("n", ["0", "-1", "257", "1.5", "", "x", "nan", "inf"])
def test_a_bad_n_is_refused_and_changes_nothing(store, script, n):
    store.zadd("pool", {"a": 1})
    with pytest.raises(redis.ResponseError) as refusal:
        script("allocate")("pool", n)
    # redis-py cuts the leading "ERR " off.
    assert str(refusal.value).startswith("fairlead: n must be 1 to 256")
    assert store.zscore("pool", "a") == 1


@pytest.mark.parametrize("name", ["allocate", "allocate_except"])
def test_a_key_of_another_type_is_refused(store, script, name):
    store.set("pool", "text")
    with pytest.raises(redis.ResponseError, match="WRONGTYPE"):
        script(name)("pool", 2)
    assert store.get("pool") == b"text"


@pytest.mark.parametrize("n", [1, 2, 256])
def test_allocation_works_at_maxmemory(store, script, full_store, n):
    add_pool(store, "pool", {b"m%d" % i: i for i in range(10)})
    full_store()
    assert len(script("allocate")("pool", n)) == n


# What may be written of a group at once is what bounds the time; time itself is only reported.
WORST = {
    "newcomer": (lambda r, i: 0 if i == 0 else 10_000, 1),
    "level": (lambda r, i: 0, 1),
    "fractional": (lambda r, i: r.random(), 1),
    "sparse fractions": (lambda r, i: r.random() * 1000, 30),
    "staircase": (lambda r, i: i, 30),
    "half stairs": (lambda r, i: i * 0.5, 30),
}


@pytest.mark.parametrize("name", WORST)
def test_the_worst_case_takes_few_commands(store, script, five_lines, capsys, name):
    score, writes = WORST[name]
    r = random.Random(f"{SEED} {name}")
    add_pool(store, "one", {b"http://10.0.0.1:%d" % i: score(r, i) for i in range(100_000)})
    store.copy("one", "many")
    expected = five_lines("many", 256)
    allocate = script("allocate")
    store.config_resetstat()
    assert allocate("one", 256) == expected
    stats = store.info("commandstats")
    assert store.dump("one") == store.dump("many")
    assert stats["cmdstat_zadd"]["calls"] <= writes
    assert stats["cmdstat_zrange"]["calls"] <= 3 * writes
    with capsys.disabled():
        print(f" [n=256 of 100,000, {name}: {stats['cmdstat_evalsha']['usec']} us]", end="")


def test_except_takes_the_first_that_is_not_avoided(store, script):
    store.zadd("pool", {"a": 1, "b": 2, "c": 3})
    except_ = script("allocate_except")
    assert except_("pool", "b", "a", "unknown") == b"c"
    assert store.zrange("pool", 0, -1, withscores=True) == [(b"a", 1), (b"b", 2), (b"c", 4)]
    assert except_("pool") == b"a"
    assert except_("pool", "a") == b"b"


def test_except_gives_nil_when_all_are_avoided(store, script):
    store.zadd("pool", {"a": 1, "b": 2})
    except_ = script("allocate_except")
    assert except_("pool", "a", "b") is None
    assert except_("nowhere", "a") is None
    assert store.zrange("pool", 0, -1, withscores=True) == [(b"a", 1), (b"b", 2)]


def test_except_avoids_64_and_refuses_65(store, script):
    add_pool(store, "pool", {b"m%02d" % i: 0 for i in range(70)})
    avoided = [b"m%02d" % i for i in range(65)]
    except_ = script("allocate_except")
    assert except_("pool", *avoided[:64]) == b"m64"
    with pytest.raises(redis.ResponseError, match="at most 64"):
        except_("pool", *avoided)
    assert store.zscore("pool", "m65") == 0


def test_except_works_at_maxmemory(store, script, full_store):
    store.zadd("pool", {"a": 1, "b": 2})
    full_store()
    assert script("allocate_except")("pool", "a") == b"b"
