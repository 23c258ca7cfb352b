"""One pool, several kinds of clients at once: fairlead, and the five-line script run by anybody else."""

import collections
import random
import subprocess
import sys

import pytest

import wire

FIVE_LINES = """\
local chosen = redis.call('ZRANGE', KEYS[1], 0, 0)[1]
if not chosen then
    return nil
end

redis.call('ZINCRBY', KEYS[1], 1, chosen)
return chosen
"""
# A foreign worker: redis-py alone. It waits until all are there, then prints what it was given.
WORKER = """\
import redis, sys
path, script, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
client = redis.Redis(unix_socket_path=path, decode_responses=True)
client.ping()
sys.stdout.write("ready\\n"); sys.stdout.flush()
sys.stdin.readline()
for _ in range(count):
    print(client.eval(script, 1, "proxies"))
"""
TEN = [f"http://192.0.2.{i}:{port}" for i, port in enumerate((80, 8, 808, 8080, 3128, 1, 10, 100, 9, 99), 1)]


@pytest.fixture
def pool(run):
    def fill(*members):
        run("pool", "add", "--eligible", "--allow-private", *members)

    return fill


@pytest.fixture
def allocators(binary, environment, store):
    """allocators(processes, count) starts so many `fairlead pool allocate --count --id` at once."""
    started = []

    def start(processes, count):
        words = [binary, "pool", "allocate", "--count", str(count), "--id", "--redis", store.url]
        mine = [subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, encoding="utf-8")
                for _ in range(processes)]
        started.extend(mine)
        return mine

    yield start
    for process in started:
        process.kill()
        process.wait()


@pytest.fixture
def foreigners(store):
    started = []

    def start(processes, count):
        words = [sys.executable, "-c", WORKER, store.socket, FIVE_LINES, str(count)]
        mine = [subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8")
                for _ in range(processes)]
        started.extend(mine)
        for process in mine:
            assert process.stdout.readline() == "ready\n"
        return mine

    yield start
    for process in started:
        process.kill()
        process.wait()


def go(processes):
    for process in processes:
        process.stdin.write("go\n")
        process.stdin.flush()


def outputs(processes):
    """What each printed, line by line, when it has ended well."""
    lines = [process.stdout.read().split() for process in processes]
    assert [process.wait() for process in processes] == [0] * len(processes)
    return sum(lines, [])


def scores(store):
    return {member: score for member, score in store.client.zrange("proxies", 0, -1, withscores=True)}


@pytest.mark.core
def test_the_five_lines_and_fairlead_share_one_pool_exactly(pool, store, allocators, foreigners):
    pool(*TEN)
    theirs = foreigners(8, 503)
    go(theirs)
    ours = allocators(8, 500)
    given = collections.Counter(outputs(ours) + outputs(theirs))
    left = scores(store)
    assert sum(given.values()) == 8 * 503 + 8 * 500
    assert given == left
    assert max(left.values()) - min(left.values()) <= 1
    # 8,024 = 802 rounds of ten, and the first four by their bytes once more.
    order = sorted(TEN, key=str.encode)
    assert [left[member] for member in order] == [803] * 4 + [802] * 6


def test_eight_processes_of_a_thousand_give_each_of_ten_800(pool, store, allocators):
    pool(*TEN)
    given = outputs(allocators(8, 1000))
    assert collections.Counter(given) == {member: 800 for member in TEN}
    assert scores(store) == {member: 800 for member in TEN}


def test_fifty_at_once_get_fifty_different_members(pool, store, allocators):
    pool(*(f"http://192.0.2.{i}:80" for i in range(50)))
    given = outputs(allocators(50, 1))
    assert len(given) == len(set(given)) == 50


@pytest.mark.core
@pytest.mark.parametrize("locale", ["C", "C.UTF-8", "en_US.UTF-8"])
def test_ties_resolve_by_bytes(pool, run, locale):
    names = ["http://a-b.test:80", "http://a.test:80", "http://a.test:8", "http://a.test:800",
             "http://a_b.test:80", "http://ab.test:80", "http://192.0.2.1:80", "http://192.0.2.10:80",
             "http://xn--a.test:80", "socks5://a.test:80", "https://a.test:80", "http://[2001:db8::1]:80"]
    pool(*names)
    given = run("pool", "allocate", "--count", len(names), "--id", env={"LC_ALL": locale}).stdout.split()
    assert given == sorted(names, key=str.encode)


@pytest.mark.parametrize("seed", range(5))
def test_one_call_gives_what_single_runs_of_the_five_lines_give(run, store, seed):
    """A small part of the script ring's comparison, through the whole program."""
    rng = random.Random(seed)
    start = {f"http://192.0.2.{i}:{rng.randint(1, 9)}": rng.choice([0, 1, 2.5, 7, rng.random() * 9])
             for i in range(rng.randint(1, 40))}
    store.client.zadd("proxies", start)
    store.client.zadd("model", start)
    count = rng.randint(1, 600)
    given = run("pool", "allocate", "--count", count, "--id").stdout.split()
    model = [store.client.eval(FIVE_LINES, 1, "model") for _ in range(count)]
    assert given == model
    assert scores(store) == dict(store.client.zrange("model", 0, -1, withscores=True))


@pytest.mark.core
def test_the_gateway_and_a_foreign_worker_share_evenly(node, add, upstream, store, foreigners):
    servers = [upstream(wire.serves(), host=f"127.0.0.{i}") for i in range(2, 6)]
    add(*(server.url for server in servers))
    gateway = node()
    theirs = foreigners(2, 250)
    go(theirs)
    with gateway.connect() as client:
        for _ in range(100):
            assert client.get().status == 200
    outputs(theirs)
    assert scores(store) == {server.url: 150 for server in servers}
