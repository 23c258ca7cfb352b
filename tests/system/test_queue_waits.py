"""Claims that wait while things happen: pushes of every kind, other consumers, signals, a Redis that stands still, dies or
is cut off.

Shown elsewhere: what wakes in unit/test_wait.c and test_watch.c (also without tracking, with a paused level, after
FLUSHALL), how fast in bench."""

import collections
import random
import signal
import threading
import time

import pytest

import look
import peers
from queue_world import NOWHERE, Queue, Way, Worker, result, stop_process
from queues import LISTS, QUEUE

LOW = LISTS["low"]
MEBIBYTE = 1 << 20


@pytest.fixture
def queue(binary, environment, store):
    with Queue(binary, environment, store) as it:
        yield it


PUSHES = {
    "LPUSH": lambda redis: redis.lpush(LOW, "x"),
    "RPUSH": lambda redis: redis.rpush(LOW, "x"),
    "MULTI": lambda redis: redis.pipeline(transaction=True).set("{jobs}:other", 1).lpush(LOW, "x").execute(),
    "EVAL": lambda redis: redis.eval("return redis.call('LPUSH', KEYS[1], 'x')", 1, LOW),
    "LMOVE": lambda redis: redis.rpush("other", "x") and redis.lmove("other", LOW),
    "RENAME": lambda redis: redis.rpush("other", "x") and redis.rename("other", LOW),
    "COPY": lambda redis: redis.rpush("other", "x") and redis.copy("other", LOW),
}


# --- pushes -------------------------------------------------------------------------------------------------------


@pytest.mark.core
@pytest.mark.parametrize("way", PUSHES)
def test_a_foreign_push_of_any_kind_wakes(queue, way):
    waiter = queue.wait()
    PUSHES[way](queue.redis)
    row, = result(waiter)
    assert (row["level"], row["payload"], row["attempts"]) == ("low", "x", 1)


def test_a_restored_list_wakes(store, queue):
    with look.raw(store) as client:
        client.lpush("other", b"x")
        value = client.dump("other")
        waiter = queue.wait()
        client.restore(LOW, 0, value)
    assert result(waiter)[0]["payload"] == "x"


def test_who_waits_asks_nothing_meanwhile(queue):
    """No interval of polling: for longer than the longest interval of a fallback (500 ms) nobody claims."""
    waiter = queue.wait()
    calls = lambda: queue.redis.info("commandstats")["cmdstat_evalsha"]["calls"]
    before = peers.steady(calls)
    since = time.monotonic()
    peers.wait_for(lambda: time.monotonic() - since > 1, "a second passes", pause_s=0.1)
    assert calls() == before
    queue.push("x")
    assert len(result(waiter)) == 1


def test_each_of_many_waiters_is_woken_for_a_task_of_its_own(queue):
    waiters = [queue.wait() for _ in range(8)]
    queue.push(*(f"t{i}" for i in range(8)))
    seen = [row["payload"] for waiter in waiters for row in result(waiter)]
    assert sorted(seen) == sorted(f"t{i}" for i in range(8)) and queue.places() == NOWHERE | {"claimed": 8}


# --- other consumers ----------------------------------------------------------------------------------------------


def test_beside_a_foreign_brpop_every_task_is_seen_once(store, queue):
    """Ours loses many races, and says nothing about it."""
    seen, is_over = [], threading.Event()

    def consume():
        with look.raw(store) as client:
            while not is_over.is_set():
                popped = client.brpop(list(LISTS.values()), 0.2)
                seen.extend([popped[1].decode()] if popped else [])

    foreign = threading.Thread(target=consume, daemon=True)
    worker = Worker(queue, tasks=1)
    foreign.start()
    worker.start()
    peers.wait_for(lambda: queue.redis.info("clients")["blocked_clients"] == 1 and queue.watched(), "both wait")
    tasks = [f"t{i}" for i in range(100)]
    for level, part in (("low", tasks[:50]), ("high", tasks[50:99])):
        queue.push(*part, level=level)
    peers.wait_for(lambda: not queue.places()["ready"], "nothing is left")
    # Behind the foreign one, who is served first, ours gets what he cannot take.
    is_over.set()
    foreign.join(peers.WAIT_S)
    queue.push(tasks[99])
    peers.wait_for(lambda: queue.places() == NOWHERE and len(seen) + queue.counter("acked") == 100, "all are done")
    assert sorted(seen + worker.stop()) == sorted(tasks) and tasks[99] in worker.seen


# --- the end of a waiter ------------------------------------------------------------------------------------------


def test_a_waiter_that_is_told_to_end_under_pushes_loses_nothing(queue):
    """One task a millisecond for a second, and six waiters that end meanwhile. What one has printed it has processed."""
    chance, printed, statuses = random.Random(5), [], collections.Counter()
    producer = threading.Thread(target=push_slowly, args=(queue, 1000), daemon=True)
    waiters = [queue.wait("--json", "--tasks", 3) for _ in range(3)]
    producer.start()
    for _ in range(3):
        waiters += [queue.start("claim", "--json", "--block", "60s", "--tasks", 3) for _ in range(2)]
        peers.wait_for(lambda: not chance.randrange(5), "any moment")
        for waiter in waiters:
            waiter.send_signal(signal.SIGTERM)
        for waiter in waiters:
            printed += result(waiter, check=None)
            statuses[waiter.returncode] += 1
        waiters = []
    producer.join(peers.WAIT_S)
    assert set(statuses) <= {0, -signal.SIGTERM}
    places = queue.places()
    assert places["claimed"] == len(printed) and places["ready"] + places["returned"] == 1000 - len(printed)
    assert queue.counter("lost") == 0


def push_slowly(queue, count):
    began = time.monotonic()
    for i in range(count):
        queue.push(f"t{i}")
        time.sleep(max(0, began + i / 1000 - time.monotonic()))


@pytest.mark.core
def test_a_signal_at_the_moment_of_a_claim_leaves_it_printed_or_given_back(queue):
    """Whoever is told to end when Redis has given him a task has printed it, or has it no more."""
    for i in range(30):
        waiter = queue.wait()
        queue.push("x")
        while not queue.redis.hlen(QUEUE + "claims"):
            pass
        for _ in range(i % 10):
            queue.redis.ping()
        waiter.send_signal(signal.SIGTERM)
        rows = result(waiter, check=None)
        assert len(rows) == queue.redis.hlen(QUEUE + "claims"), (i, waiter.returncode)
        assert rows or queue.places() == NOWHERE | {"returned": 1}
        queue.redis.flushall()


# --- a Redis that stands still ------------------------------------------------------------------------------------


@pytest.mark.core
def test_a_waiter_keeps_its_own_deadline_while_redis_stands(redis_server, binary, environment):
    with Queue(binary, environment, redis_server()) as queue:
        patient = queue.wait()
        waiter = queue.wait(block="800ms")
        stop_process(queue.server.process)
        try:
            assert result(waiter, check=3) == []
        finally:
            queue.server.signal(signal.SIGCONT)
        queue.push("x")
        assert result(patient)[0]["payload"] == "x"


def test_a_waiter_outlasts_a_redis_that_sleeps(redis_server, binary, environment):
    with Queue(binary, environment, redis_server(enable_debug_command="yes")) as queue:
        waiters = [queue.wait("--json", "--store-timeout", "300ms"), queue.wait()]
        queue.redis.execute_command("DEBUG", "SLEEP", "1")
        queue.push("x", "y")
        assert sorted(row["payload"] for waiter in waiters for row in result(waiter)) == ["x", "y"]
        assert queue.counter("lost") == 0 and queue.places() == NOWHERE | {"claimed": 2}


@pytest.mark.core
def test_killed_and_restarted_redis_goes_on_where_it_was(redis_server, binary, environment):
    """With an append-only file of every second nothing that was answered is lost when the process dies (not the host)."""
    server = redis_server(appendonly="yes", appendfsync="everysec")
    with Queue(binary, environment, server) as queue:
        queue("push", "-", input=b"".join(b"t%d\n" % i for i in range(400)))
        rows = queue.claim("--tasks", "200", "--lease", "60s")
        queue("ack", *(row["claim"] for row in rows[:100]))
        queue("pause")
        waiter = queue.wait("--json", "--tasks", "200")
        server.kill()
        assert waiter.poll() is None
        server.start()
        assert queue.places() == NOWHERE | {"ready": 200, "claimed": 100}
        queue("ack", *(row["claim"] for row in rows))
        queue("resume")
        assert [row["payload"] for row in result(waiter)] == [f"t{i}" for i in range(200, 400)]
        assert queue.counter("acked") == 200 and queue.counter("lost") == 0


def test_a_half_open_link_is_found_and_leaves_no_claim(store, queue):
    """Both connections of the pair, and that of the claims, become silent. The sign of life, asked for every 5 to 7.5 s,
    finds it, and no push is needed."""
    with Way(store) as way:
        waiter = queue.wait("--json", "--store-timeout", "500ms", url=way.url)
        links = len(way.links)
        way.silence()
        queue.push("x")
        row, = result(waiter)
        assert len(way.links) >= links + 2
    assert (row["payload"], row["lost"]) == ("x", 0)
    assert queue.places() == NOWHERE | {"claimed": 1}


# --- large bodies -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size, count", [
    (MEBIBYTE // 2, 12), pytest.param(64 * MEBIBYTE, 12, marks=pytest.mark.nightly),
    pytest.param(MEBIBYTE // 2, 50, marks=pytest.mark.nightly), pytest.param(64 * MEBIBYTE, 50, marks=pytest.mark.nightly)])
def test_a_large_body_crosses_the_wire_once_whoever_waits(store, queue, folder, size, count):
    """fairlead pushes up to --payload-max; what others push is claimed whatever its size."""
    with open(folder / "printed", "ab") as printed:
        waiters = [queue.wait("--raw", stdout=printed) for _ in range(count)]
    body = random.Random(size).randbytes(1024) * (size // 1024)
    sent = lambda: queue.redis.info("stats")["total_net_output_bytes"]
    before = sent()
    with look.raw(store) as client:
        client.lpush(LOW, body)
    peers.wait_for(lambda: any(waiter.poll() == 0 for waiter in waiters), "it is printed", 60)
    assert size <= sent() - before < size + size // 4 + count * 20_000
    assert (folder / "printed").read_bytes() == body and queue.places() == NOWHERE | {"claimed": 1}
