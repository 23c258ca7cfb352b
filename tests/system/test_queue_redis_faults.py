"""A queue on a Redis that is full, evicts, forgets its scripts, cannot write, or whose clock steps.

Shown elsewhere: each policy of eviction and a missing append-only file as `doctor` tells them in test_cli_doctor.py; every
script at maxmemory in script/test_queue_*.py; an input that meets maxmemory in test_cli_queue_push.py; a Redis that is
killed in test_queue_waits.py and, at any moment, in kill/test_kill_queue.py."""

import resource
import time

import pytest
import redis as redis_client

import peers
from queue_world import NOWHERE, Queue, Worker, end, repeating, result
from queues import LISTS, QUEUE, objects
from stepping import SteppingRedis, build_clock

HOUR_S = 3600


@pytest.fixture
def queue(binary, environment, store):
    with Queue(binary, environment, store) as it:
        yield it


@pytest.fixture
def queue_on(binary, environment):
    """queue_on(server) -> its queue."""
    queues = []

    def make(server):
        queues.append(Queue(binary, environment, server))
        return queues[-1]

    yield make
    for it in queues:
        it.__exit__()


# --- full ---------------------------------------------------------------------------------------------------------


def test_at_maxmemory_pushes_fail_and_all_else_goes_on_until_it_has_drained(redis_server, queue_on):
    queue = queue_on(redis_server(maxmemory_policy="noeviction"))
    tasks = [f"{i:04}" + "x" * 1000 for i in range(2000)]
    queue("push", "-", input="\n".join(tasks).encode())
    queue("push", "--level", "low", "--delay", "1s", *(f"later{i}" for i in range(10)))
    queue.claim("--tasks", "20", "--lease", "100ms")
    queue.redis.config_set("maxmemory", queue.redis.info("memory")["used_memory"] - 200_000)
    text = queue("push", "x", check=1).stderr.decode()
    assert "OOM" in text and "Redis is at its maxmemory" in text and "0 pushed" in text
    assert "OOM" in queue("push", "--delay", "1h", "x", check=1).stderr.decode()
    with pytest.raises(redis_client.ResponseError, match="OOM"):
        queue.push("x")
    # The keeper collects lost claims and promotes what is due.
    keeper = queue.keeper()
    peers.wait_for(lambda: queue.counter("lost") == 20 and not queue.places()["later"], "it sweeps")
    assert queue.redis.llen(LISTS["low"]) == 10
    end(keeper)
    rows = queue.claim("--tasks", "40")
    queue("extend", *(row["claim"] for row in rows))
    queue("nack", "--delay", "0", *(row["claim"] for row in rows[:10]))
    queue("nack", "--dead", *(row["claim"] for row in rows[10:15]))
    queue("ack", *(row["claim"] for row in rows[15:]))
    seen = [row["payload"] for row in rows[10:]] + drain(queue)
    assert sorted(seen) == sorted(tasks + [f"later{i}" for i in range(10)])
    assert queue.places() == NOWHERE | {"dead": 5} and queue.counter("acked") == 2005
    queue("push", "there is room again")


def drain(queue):
    """Claims and acknowledges until nothing is left."""
    seen = []
    while True:
        done = queue("claim", "--json", "--tasks", "256", check=None)
        rows = objects(done.stdout)
        assert done.returncode == (0 if rows else 3), done.stderr
        if not rows:
            return seen
        queue("ack", *(row["claim"] for row in rows))
        seen += [row["payload"] for row in rows]


# --- one that evicts, or keeps nothing ----------------------------------------------------------------------------


def keeper_says(queue):
    """What a node says at its start, to one who looks for `what`."""
    process = queue.keeper()
    try:
        process.wait(peers.WAIT_S)
    finally:
        process.kill()
    return process.returncode, process.communicate()[1].decode()


def test_a_node_refuses_a_redis_that_evicts_what_it_likes(redis_server, queue_on):
    status, text = keeper_says(queue_on(redis_server(maxmemory_policy="allkeys-lru")))
    assert status == 1 and "allkeys-lru" in text and "noeviction" in text


@pytest.mark.parametrize("options, words", [({"maxmemory_policy": "volatile-ttl"}, ["volatile-ttl", "noeviction"]),
                                            ({"appendonly": "no"}, ["append-only file is off", "appendonly yes"])])
def test_a_node_warns_of_a_redis_that_may_lose_something(redis_server, run, node, options, words):
    server = redis_server(**{"appendonly": "yes"} | options)
    it = node(role="up", redis=server)
    peers.wait_for(lambda: it.log(level="warn", message="the store"), "it warns")
    assert all(word in str(it.log(level="warn", message="the store")) for word in words)


def test_no_key_of_a_queue_expires(queue):
    """So a policy that evicts what expires evicts no lease and no task."""
    queue("push", "a", "b", "c", "d", "e")
    queue("push", "--id", "key", "--delay", "1h", "f")
    queue("pause", "high")
    rows = queue.claim("--tasks", "4")
    queue("ack", rows[0]["claim"])
    queue("nack", "--dead", rows[1]["claim"])
    queue("nack", "--delay", "0", rows[2]["claim"])
    queue.sweep()
    names = queue.redis.keys("{jobs}:*")
    assert {name.removeprefix(QUEUE) for name in names} == {
        LISTS["normal"], "retry:normal", "later", "held", "claims", "leases", "settled", "dead", "ids", "stats", "paused"}
    assert {queue.redis.ttl(name) for name in names} == {-1}


# --- one that forgets ---------------------------------------------------------------------------------------------


def test_scripts_that_are_forgotten_again_and_again_lose_and_double_nothing(queue):
    tasks = [f"t{i}" for i in range(200)]
    workers = [Worker(queue, tasks=7) for _ in range(3)]
    with repeating(queue.redis.script_flush):
        for worker in workers:
            worker.start()
        for i in range(0, 200, 20):
            queue("push", *tasks[i:i + 20])
        peers.wait_for(lambda: queue.counter("acked") == 200, "all is done", 60)
    assert sorted(sum((worker.stop() for worker in workers), [])) == sorted(tasks)
    assert queue.places() == NOWHERE and queue.counter("lost") == 0


# --- one that cannot write ----------------------------------------------------------------------------------------


class BoundedRedis(peers.RedisServer):
    """Its files cannot grow beyond limit(): EFBIG stands for a full disk."""

    def command(self):
        return ["env", "--ignore-signal=XFSZ", *super().command()]

    def limit(self, size):
        resource.prlimit(self.process.pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

    def file_size(self):
        return max(path.stat().st_size for path in (self.folder / "appendonlydir").glob("*.incr.aof"))


def test_while_the_disk_is_full_nothing_goes_in_and_then_all_goes_on(folder, queue_on):
    server = BoundedRedis(folder / "bounded", appendonly="yes", appendfsync="everysec").start()
    try:
        queue = queue_on(server)
        queue("push", "a", "b", "c")
        row, = queue.claim()
        queue("pause")
        waiter = queue.wait()
        server.limit(server.file_size())
        # The write that meets the limit has been answered already.
        server.client.set("last", "1")
        peers.wait_for(lambda: server.client.info("persistence")["aof_last_write_status"] == "err", "it cannot write")
        for words in (["push", "x"], ["claim"], ["ack", row["claim"]]):
            text = queue(*words, "--store-wait", "100ms", check=1).stderr.decode()
            assert "MISCONF" in text and text.count("\n") <= 2
        assert waiter.poll() is None and queue.places() == NOWHERE | {"ready": 2, "claimed": 1}
        server.limit(resource.RLIM_INFINITY)
        peers.wait_for(lambda: server.client.info("persistence")["aof_last_write_status"] == "ok", "it writes again")
        queue("ack", row["claim"])
        queue("resume")
        assert result(waiter)[0]["payload"] == "b"
        server.kill()
        server.start()
        assert queue.places() == NOWHERE | {"ready": 1, "claimed": 1}
    finally:
        server.stop()


# --- one whose clock steps ----------------------------------------------------------------------------------------


@pytest.fixture
def stepping(folder, session_folder):
    server = SteppingRedis(folder / "stepping", build_clock(session_folder)).start()
    yield server
    server.stop()


@pytest.mark.core
def test_a_step_ahead_ends_claims_early_and_each_once_in_bounded_portions(stepping, queue_on):
    queue = queue_on(stepping)
    queue.push(*range(600))
    old = sum((queue.claim("--tasks", "200", "--lease", "60s") for _ in range(3)), [])
    stepping.step(HOUR_S)
    queue.claim()
    assert 1 <= queue.counter("lost") <= 256
    keeper = queue.keeper()
    peers.wait_for(lambda: queue.counter("lost") == 600, "the keeper has collected them")
    end(keeper)
    assert queue.places() == NOWHERE | {"claimed": 1, "returned": 599}
    text = queue("ack", *(row["claim"] for row in old), check=1).stderr.decode()
    assert text.count(" is stale") == 600 and queue.counter("acked") == 0
    assert {row["lost"] for row in queue.claim("--tasks", "256")} == {1}


@pytest.mark.core
def test_a_step_back_lets_claims_live_longer_and_nothing_spins(stepping, queue_on):
    queue = queue_on(stepping)
    queue.push("a")
    row, = queue.claim("--lease", "1s")
    queue("push", "--delay", "500ms", "later")
    waiter = queue.wait()
    stepping.step(-HOUR_S)
    queue.sweep()
    calls = lambda: stepping.client.info("commandstats")["cmdstat_evalsha"]["calls"]
    before, since = calls(), time.monotonic()
    # Over the time at which the waiter thinks that something is due.
    peers.wait_for(lambda: time.monotonic() - since > 1.5, "a while passes", pause_s=0.1)
    assert calls() - before <= 10 and queue.counter("lost") == 0
    queue.push("b")
    other, = result(waiter)
    assert other["payload"] == "b"
    queue("ack", row["claim"], other["claim"])
    stepping.step(0)
    assert queue.claim("--block", "20s")[0]["payload"] == "later"


# --- a large one --------------------------------------------------------------------------------------------------


@pytest.mark.nightly
def test_a_hundred_thousand_lost_claims_beside_a_million_tasks_are_collected_in_portions(redis_server, queue_on):
    queue = queue_on(redis_server(slowlog_log_slower_than=1000, slowlog_max_len=1000))
    redis = queue.redis
    pipe = redis.pipeline(transaction=False)
    for start in range(0, 1_000_000, 10_000):
        pipe.lpush(LISTS["low"], *range(start, start + 10_000))
    for start in range(0, 100_000, 1000):
        names = [f"{id}:1-0123456789abcdef" for id in range(start + 1, start + 1001)]
        pipe.hset(QUEUE + "claims", mapping={
            name: f"level=high\tfailures=0\tlost=0\treleased=0\tlost_max=3\tat=1\tpayload=p{name}" for name in names})
        pipe.zadd(QUEUE + "leases", {name: 1 for name in names})
    pipe.execute()
    redis.slowlog_reset()
    keeper = queue.keeper()
    peers.wait_for(lambda: queue.counter("lost") == 100_000, "all are collected", 120, 0.1)
    end(keeper)
    calls = redis.info("commandstats")["cmdstat_evalsha"]
    longest_us = max(entry["duration"] for entry in redis.slowlog_get(1000))
    print(f"{calls['calls']} calls, of {calls['usec_per_call']} us, the longest {longest_us} us")
    # 5 ms, and four times as much for a machine that is busy.
    assert calls["calls"] >= 100_000 / 256 and calls["usec_per_call"] < 20_000
    assert queue.places() == NOWHERE | {"ready": 1_000_000, "returned": 100_000}
