"""What can befall a task between its push and its end, by real means: a worker that dies, a connection that loses an
answer, one who comes too late, clocks of hosts that differ.

Waiting is in test_queue_waits.py, faults of Redis in test_queue_redis_faults.py, starvation in test_queue_starvation.py,
foreign consumers in test_queue_foreign.py. Shown elsewhere:

bodies of any bytes              test_cli_queue.py (binary payloads, raw), script/test_queue_claim.py (each road)
a body over the cap              test_cli_queue_push.py (a line, an argument over the cap)
lists in two slots of a Cluster  test_cli_queue.py (refused, with both slots)
a lease is not collected early   script/test_queue_claim.py (to the millisecond)
kills at each named point        kill/test_kill_queue.py"""

import datetime
import signal

import pytest

import look
import peers
from queue_world import NOWHERE, Queue, Way, Worker, repeating, result, wait_until_stopped
from queues import LISTS, QUEUE, objects
from stepping import skew

BODY = b"\0\r\n\xff{\"id\":9007199254740993,\"list\":[]}"


@pytest.fixture
def queue(binary, environment, store):
    with Queue(binary, environment, store) as it:
        yield it


@pytest.fixture
def way(store):
    with Way(store) as it:
        yield it


def lpush_bytes(store, level, *tasks):
    with look.raw(store) as client:
        client.lpush(LISTS[level], *tasks)


# --- the worker dies ----------------------------------------------------------------------------------------------


@pytest.mark.core
def test_a_worker_killed_between_claim_and_work_loses_no_task(store, queue, way):
    lpush_bytes(store, "low", BODY)
    way.hold("claim")
    worker = queue.start("claim", "--lease", "300ms", url=way.url)
    assert way.struck.wait(peers.WAIT_S)
    assert queue.places() == NOWHERE | {"claimed": 1}
    worker.kill()
    line = queue("claim", "--block", "20s").stdout.rstrip(b"\n").split(b"\t", 3)
    assert line[1:3] == [b"low", b"2"]
    assert line[3] == rb'\x00\r\n\xff{"id":9007199254740993,"list":[]}'
    assert queue.counter("lost") == 1 and queue.places() == NOWHERE | {"claimed": 1}


@pytest.mark.core
def test_a_task_that_kills_its_workers_ends_as_a_dead_letter_and_others_flow(queue, folder):
    """The worker is a shell as in docs/queue.md, and the task ends it."""
    worker = f"""{queue.binary} --redis {queue.server.url} queue claim --lease 200ms --lost-max 3 --block 20s |
        {{ IFS=$'\\t' read -r claim level attempt payload
        echo "$payload" >> {folder}/tries
        [ "$payload" != poison ] || kill -KILL $BASHPID
        {queue.binary} --redis {queue.server.url} queue ack "$claim"; }}"""
    queue.push("poison", *(f"t{i}" for i in range(4)), level="high")
    for _ in range(7):
        result(queue.spawn(["bash", "-c", worker]), check=None)
    # The last of its leases ends.
    peers.wait_for(lambda: queue.sweep() and queue.places() == NOWHERE | {"dead": 1}, "it is a dead letter")
    letter, = objects(queue("dead", "list", "--json").stdout)
    assert (letter["payload"], letter["reason"], letter["lost"]) == ("poison", "claims-lost", 3)
    tries = (folder / "tries").read_text().split()
    assert sorted(tries) == ["poison"] * 3 + ["t0", "t1", "t2", "t3"] and queue.counter("acked") == 4


# --- an answer is lost --------------------------------------------------------------------------------------------


@pytest.mark.core
def test_a_claim_whose_answer_is_lost_comes_back_once(queue, way):
    queue.push("a")
    way.cut("claim")
    row, = result(queue.start("claim", "--json", "--lease", "300ms", "--block", "20s", url=way.url))
    assert way.struck.is_set() and (row["payload"], row["lost"], row["attempts"]) == ("a", 1, 2)
    assert queue.places() == NOWHERE | {"claimed": 1}
    queue("ack", row["claim"])
    assert queue.places() == NOWHERE


def test_who_does_not_wait_is_told_that_it_may_have_been_done(queue, way):
    queue.push("a")
    way.cut("claim")
    text = queue.through(way.url)("claim", check=1).stderr.decode()
    assert "may or may not have been done" in text and text.count("\n") == 1
    assert queue.places() == NOWHERE | {"claimed": 1}


@pytest.mark.core
@pytest.mark.parametrize("words, counter", [(["ack"], "acked"), (["nack", "--delay", "1h"], "failed"),
                                            (["nack", "--dead"], "dead"), (["extend"], "acked")])
def test_a_settlement_whose_answer_is_lost_is_done_once(queue, way, words, counter):
    queue.push("a")
    row, = queue.claim()
    way.cut("settle")
    queue.through(way.url)(*words, row["claim"])
    assert way.struck.is_set() and queue.counter(counter) == (words != ["extend"])
    assert sum(queue.places().values()) == (words != ["ack"])


@pytest.mark.core
def test_a_push_whose_answer_is_lost_is_repeated_by_its_key(queue, way):
    way.cut("push")
    text = queue.through(way.url)("push", "--id", "key", "a", check=1).stderr.decode()
    assert way.struck.is_set() and "may" in text
    assert b"left out" in queue.through(way.url)("push", "--id", "key", "a").stderr
    assert queue.redis.lrange(LISTS["normal"], 0, -1) == ["a"]


# --- one who comes too late ---------------------------------------------------------------------------------------


@pytest.mark.core
@pytest.mark.parametrize("command", ["ack", "nack", "extend"])
def test_a_zombie_is_told_stale_and_changes_nothing(store, queue, command):
    """The worker stops behind its claim for longer than its lease, and goes on when another has the task."""
    zombie = f"""claim=$({queue.binary} --redis {store.url} queue claim --lease 200ms | cut -f1); kill -STOP $$
        exec {queue.binary} --redis {store.url} queue {command} "$claim" """
    queue.push("a")
    worker = queue.spawn(["sh", "-c", zombie])
    wait_until_stopped(worker)
    row, = queue.claim("--block", "20s")
    assert row["lost"] == 1
    before = look.dumps(store)
    worker.send_signal(signal.SIGCONT)
    _, errors = worker.communicate(timeout=peers.WAIT_S)
    assert worker.returncode == 1 and b" is stale: its lease ended" in errors
    assert look.dumps(store) == before
    queue("ack", row["claim"])
    assert queue.counter("acked") == 1


# --- sweepers -----------------------------------------------------------------------------------------------------


def test_no_sweeper_takes_a_claim_that_lives(queue):
    queue.push(*(f"t{i}" for i in range(60)))
    worker = Worker(queue, "--lease", "60s", tasks=5)
    with repeating(queue.sweep), repeating(queue.sweep):
        worker.start()
        peers.wait_for(lambda: queue.counter("acked") == 60, "all is done")
        seen = worker.stop()
    assert seen == [f"t{i}" for i in range(60)] and queue.counter("lost") == 0


def test_many_sweepers_bring_each_lost_claim_back_once(queue):
    queue.push(*range(600))
    rows = sum((queue.claim("--tasks", "200") for _ in range(3)), [])
    keepers = [queue.keeper() for _ in range(2)]
    with repeating(lambda: queue.sweep(limit=7)), repeating(lambda: queue.sweep(limit=20)):
        queue.redis.zadd(QUEUE + "leases", {row["claim"]: 1 for row in rows})
        keepers[0].kill()
        peers.wait_for(lambda: not queue.redis.zcard(QUEUE + "leases"), "all are collected")
    assert queue.counter("lost") == 600 and queue.places() == NOWHERE | {"returned": 600}
    back = queue.redis.lrange(QUEUE + "retry:normal", 0, -1)
    assert sorted(back) == sorted(row["id"] for row in rows)


# --- clocks of hosts ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ahead_s", [600, -600])
def test_the_clock_of_a_worker_does_not_matter(queue, folder, session_folder, ahead_s):
    queue("push", "a", "b")
    skewed = queue.with_environment(skew(folder / "clock", session_folder, ahead_s))
    row, = skewed.claim("--lease", "60s")
    left_ms = queue.redis.zscore(QUEUE + "leases", row["claim"]) - int(queue.redis.time()[0]) * 1000
    assert 20_000 < left_ms <= 61_000
    skewed("extend", "--lease", "60s", row["claim"])
    queue.sweep()
    skewed("ack", row["claim"])
    assert queue.counter("lost") == 0
    assert skewed.claim("--block", "20s")[0]["payload"] == "b"
    skewed("push", "--delay", "1h", "c")
    due_ms = queue.redis.zrange(QUEUE + "later", 0, 0, withscores=True)[0][1] - int(queue.redis.time()[0]) * 1000
    assert 3_580_000 < due_ms <= 3_601_000


# --- order --------------------------------------------------------------------------------------------------------


def test_urgent_stands_at_the_consuming_end_whoever_pushed_it(queue):
    queue.push("a", "b", "c")
    queue.redis.rpush(LISTS["normal"], "U")
    queue("push", "--urgent", "V")
    assert [row["payload"] for row in queue.claim("--tasks", "9")] == ["V", "U", "a", "b", "c"]


def test_one_payload_pushed_100_times_for_one_time_comes_out_100_times(queue):
    seconds, _ = queue.redis.time()
    due = datetime.datetime.fromtimestamp(seconds + 1, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.250Z")
    queue("push", "--at", due, *["same"] * 60)
    queue("push", "--at", due, "-", input=b"same\n" * 40)
    assert queue.redis.zcard(QUEUE + "later") == 100
    seen = []
    while len(seen) < 100:
        seen += queue.claim("--tasks", "100", "--block", "20s")
    assert {row["payload"] for row in seen} == {"same"} and len({row["id"] for row in seen}) == len(seen) == 100
    assert queue.places() == NOWHERE | {"claimed": 100}
