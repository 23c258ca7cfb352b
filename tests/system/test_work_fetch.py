"""`fairlead work fetch`: tasks of a queue in, requests through the members of a pool out, results, and nothing lost."""

import collections
import json
import signal
import threading

import pytest

import peers
import wire
from queues import LISTS, QUEUE

WAITS = "no member of the pool can be "
REFUSED = ("the claim of a task was lost", "refused, because it came too late")


@pytest.fixture
def gate(upstream):
    """gate() -> a member that answers no request before `open` is set."""

    def start(**options):
        opened = threading.Event()

        def script(connection):
            connection.read_request()
            opened.wait(wire.LIMIT_S)
            connection.send(wire.response(b"done"))

        server = upstream(script, **options)
        server.open = opened
        opened_servers.append(opened)
        return server

    opened_servers = []
    yield start
    for opened in opened_servers:
        opened.set()


def tasks_in_queue(store):
    """Ready, returned and claimed; later ones not."""
    lists = [*LISTS.values(), *(QUEUE + f"retry:{level}" for level in LISTS)]
    return sum(map(store.client.llen, lists)) + store.client.hlen(QUEUE + "claims")


def lease_end(store):
    """When the lease of the only claim ends."""
    (_, ends_ms), = store.client.zrange(QUEUE + "leases", 0, -1, withscores=True)
    return ends_ms


# --- real peers ---------------------------------------------------------------------------------------------------


@pytest.fixture
def origin(peer):
    return peer(peers.Nginx)


def test_every_task_is_done_once_the_urgent_first_and_members_share_evenly(worker, push, peer, origin, add, store):
    proxies = [peer(peers.Tinyproxy, "127.0.0.2"), peer(peers.Squid, "127.0.0.3", user="u", password="p"),
               peer(peers.Microsocks, "127.0.0.4")]
    add(*(proxy.url for proxy in proxies))
    for level in ("low", "normal", "high"):
        push(*(f"{origin.url}/who?{level}{n}" for n in range(30)), level=level)
    one = worker("--drain", "--concurrency", 6)
    one.ends()
    results = one.results()
    assert len({result["task"] for result in results}) == len(results) == 90
    assert {(result["outcome"], result["status"]) for result in results} == {("done", 200)}
    # A task gets its number when it is claimed; results are in the order of endings.
    claimed = [result["level"] for result in sorted(results, key=lambda result: int(result["task"]))]
    assert claimed == ["high"] * 30 + ["normal"] * 30 + ["low"] * 30
    seen = collections.Counter(entry["addr"] for entry in origin.log())
    assert seen == {"127.0.0.2": 30, "127.0.0.3": 30, "127.0.0.4": 30}
    assert set(store.client.zrange("proxies", 0, -1, withscores=True)) == {
        (member, 30) for member in store.client.zrange("proxies", 0, -1)}
    assert "90 done, 0 failed" in one.text


def test_when_all_proxies_die_nothing_goes_direct_and_all_is_done_once_they_are_back(
        worker, push, peer, origin, add, count):
    proxies = [peer(peers.Tinyproxy, f"127.0.0.{n}") for n in (2, 3)]
    add(*(proxy.url for proxy in proxies))
    for proxy in proxies:
        proxy.kill()
    push(*(f"{origin.url}/who?{n}" for n in range(20)))
    one = worker()
    one.says(WAITS)
    assert origin.log() == []
    for proxy in proxies:
        proxy.start()
    assert {result["status"] for result in one.results(20)} == {200}
    peers.wait_for(lambda: count("acked") == 20)
    assert {entry["addr"] for entry in origin.log()} <= {"127.0.0.2", "127.0.0.3"}
    assert count("dead") == 0


# --- the pool -----------------------------------------------------------------------------------------------------


@pytest.mark.core
def test_without_a_member_the_worker_waits_and_says_so_once(worker, push, upstream, add, store):
    target = upstream(wire.serves())
    push(*(f"{target.url}/{n}" for n in range(3)))
    one = worker()
    one.says(WAITS)
    peers.steady(lambda: one.text, 1)
    assert one.text.count(WAITS) == 1
    assert tasks_in_queue(store) == 3
    assert target.connections == []
    member = upstream(wire.serves())
    add(member.url)
    assert {result["outcome"] for result in one.results(3)} == {"done"}
    assert target.connections == []
    assert {connection.head.target for connection in member.connections} == {f"{target.url}/{n}" for n in range(3)}


@pytest.mark.core
def test_a_dead_proxy_costs_a_try_and_no_task(worker, push, upstream, add, count):
    dead = upstream(wire.serves())
    dead.refuse()
    alive = upstream(wire.serves(), host="127.0.0.2")
    add(dead.url, alive.url)
    push(*(f"http://target.test/{n}" for n in range(4)))
    one = worker("--drain", "--concurrency", 1)
    one.ends()
    results = one.results()
    assert {result["member"] for result in results} == {alive.url}
    assert {result["tries"] for result in results} == {1, 2}
    assert count("acked") == 4


def test_under_least_concurrent_a_request_is_a_lease(worker, push, gate, add, run, store):
    run("pool", "rules", "policy=least-concurrent", "max_concurrent=2")
    member = gate()
    add(member.url)
    push(*(f"http://target.test/{n}" for n in range(5)))
    one = worker("--drain", "--concurrency", 5, "--lease-wait", "20s")
    member.wait_for_connection(1)
    assert store.client.zcard("{proxies}:pool:leases") == 2
    member.open.set()
    one.ends()
    assert len(one.results()) == 5
    peers.wait_for(lambda: store.client.zcard("{proxies}:pool:leases") == 0)


# --- how tasks end ------------------------------------------------------------------------------------------------


@pytest.mark.core
def test_what_can_never_work_is_dead_at_once_with_its_reason(worker, push, upstream, add, store):
    member = upstream(wire.serves())
    add(member.url)
    push("ftp://target.test/", "target.test/without-a-scheme", "http://")
    one = worker("--drain")
    one.ends()
    assert {(result["outcome"], result["error"]["reason"]) for result in one.results()} == {("dead", "task-invalid")}
    letters = store.client.lrange(QUEUE + "dead", 0, -1)
    assert len(letters) == 3 and all("reason=task-invalid: " in letter for letter in letters)
    assert member.connections == []


def test_a_host_that_says_retry_after_is_asked_again_then_and_not_before(worker, push, upstream, add, store):
    member = upstream(wire.answers(wire.response(status="429 Too Many Requests", Retry_After="1000")))
    add(member.url)
    push("http://target.test/")
    one = worker()
    (_, due_ms), = peers.wait_for(lambda: store.client.zrange(QUEUE + "later", 0, -1, withscores=True))
    seconds, _ = store.client.time()
    assert 900_000 < due_ms - seconds * 1000 < 1_001_000
    assert one.results() == []
    assert len(member.connections) == 1


def test_what_fails_too_often_is_a_dead_letter_and_has_a_result(worker, push, upstream, add, store):
    member = upstream(wire.answers(wire.response(b"no", status="503 Not Now")))
    add(member.url)
    push("http://target.test/")
    one = worker("--drain", "--failures-max", 3, "--backoff", "10ms", "--backoff-longest", "20ms")
    one.ends()
    result, = one.results()
    assert (result["outcome"], result["status"], result["attempts"]) == ("dead", 503, 3)
    assert "reason=status 503" in store.client.lindex(QUEUE + "dead", 0)
    assert len(member.connections) == 3


def test_a_task_may_be_json(worker, push, upstream, add):
    member = upstream(wire.echoes)
    add(member.url)
    push(json.dumps({"url": "http://target.test/a", "method": "POST", "body": "x=1", "id": "order-7"}))
    one = worker("--drain", "--tasks-are", "json")
    one.ends()
    result, = one.results()
    assert result["body"] == "POST http://target.test/a x=1"
    assert "order-7" in result.values()


@pytest.mark.core
def test_a_task_whose_result_cannot_be_written_is_not_acknowledged(worker, push, upstream, add, store, count):
    member = upstream(wire.serves())
    add(member.url)
    push("http://target.test/")
    one = worker(output="/dev/full")
    one.says("results cannot be written")
    peers.wait_for(lambda: count("released") >= 2)
    assert count("acked") == count("failed") == 0
    assert tasks_in_queue(store) == 1


def test_results_may_go_to_a_list(worker, push, upstream, add, store):
    member = upstream(wire.serves())
    add(member.url)
    push("http://target.test/")
    one = worker("--drain", "--results", "answers")
    one.ends()
    assert [json.loads(line) for line in store.client.lrange("answers", 0, -1)] == one.results()
    assert len(one.results()) == 1


# --- the end ------------------------------------------------------------------------------------------------------


@pytest.mark.core
def test_sigterm_lets_what_is_under_way_end_and_takes_nothing_more(worker, push, gate, add, store, count):
    member = gate()
    add(member.url)
    push(*(f"http://target.test/{n}" for n in range(10)))
    one = worker("--concurrency", 4)
    member.wait_for_connection(3)
    one.terminate()
    one.says("stopping")
    member.open.set()
    one.ends()
    assert len(one.results()) == count("acked") == 4
    assert tasks_in_queue(store) == store.client.llen(LISTS["normal"]) == 6


@pytest.mark.core
def test_what_outlasts_the_grace_period_is_given_back(worker, push, gate, add, store, count):
    member = gate()
    add(member.url)
    push("http://target.test/1", "http://target.test/2")
    one = worker("--drain-timeout", "100ms")
    member.wait_for_connection(1)
    one.terminate()
    one.ends()
    assert one.results() == []
    assert (count("released"), count("failed"), tasks_in_queue(store)) == (2, 0, 2)
    assert store.client.hlen(QUEUE + "claims") == 0


def test_a_worker_that_slept_past_its_lease_is_refused_and_says_so(worker, push, gate, upstream, add, run, count):
    """The other does the task once more; what comes too late changes nothing."""
    slow = gate()
    add(slow.url)
    push("http://target.test/")
    one = worker("--lease", "1s")
    slow.wait_for_connection()
    one.process.send_signal(signal.SIGSTOP)
    run("pool", "remove", slow.url)
    quick = upstream(wire.serves(), host="127.0.0.2")
    add(quick.url)
    two = worker("--lease", "1s")
    assert two.results(1)[0]["member"] == quick.url
    peers.wait_for(lambda: count("acked") == 1)
    slow.open.set()
    slow.connections[0].done.wait(wire.LIMIT_S)
    one.process.send_signal(signal.SIGCONT)
    peers.wait_for(lambda: any(text in one.text for text in REFUSED), "it is told and tells")
    assert (count("acked"), count("lost"), count("dead")) == (1, 1, 0)


def test_a_claim_lives_as_long_as_its_request(worker, push, gate, add, store, count):
    """Two workers: the second would take what the first does not keep."""
    member = gate()
    add(member.url)
    push("http://target.test/")
    one, two = worker("--lease", "1s"), worker("--lease", "1s")
    member.wait_for_connection()
    ends_ms = lease_end(store)
    peers.wait_for(lambda: lease_end(store) > ends_ms + 2000, "the claim outlives its first lease twice")
    member.open.set()
    peers.wait_for(lambda: count("acked") == 1)
    assert len(one.results()) + len(two.results()) == 1
    assert (count("lost"), len(member.connections)) == (0, 1)


def test_no_more_than_so_many_go_to_a_host_at_a_time_over_all_workers(worker, push, gate, add, count):
    member = gate()
    add(member.url)
    push(*(f"http://target.test/{n}" for n in range(6)))
    for _ in range(2):
        worker("--per-host", 2)
    member.wait_for_connection(1)
    peers.steady(lambda: len(member.connections), 0.5)
    assert len(member.connections) == 2
    member.open.set()
    peers.wait_for(lambda: count("acked") == 6)


def test_bytes_are_counted_for_their_member(worker, push, upstream, add, store):
    member = upstream(wire.serves(b"x" * 1000))
    add(member.url)
    push("http://target.test/")
    worker("--drain").ends()
    counted = store.client.hgetall("{proxies}:pool:traffic")
    assert 1000 < int(counted[f"out:{member.url}"]) < 2000
    assert int(counted[f"in:{member.url}"]) == len(member.connections[0].received)
