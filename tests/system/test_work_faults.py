"""What can befall a worker: each fault by real means, through the whole of `fairlead work`. Shown elsewhere:

a zombie's late ack               test_work_fetch.py (slept past its lease), test_work_exec.py (refused and shown)
a claim shorter than its request  test_work_fetch.py (lives as long as its request)
a task that kills its workers     test_queue_cases.py (a dead letter, by the claim script)
SIGTERM with tasks in flight      test_work_fetch.py, test_work_exec.py (what is under way ends, the rest is given back)
all proxies dead, then back       test_work_fetch.py (real ones; the origin's log)
rows of tests/data/tasks          the table in unit/test_task.c"""

import base64
import gzip
import json
import os
import pathlib
import re
import select

import pytest

import peers
import wire
from queue_world import Way
from queues import QUEUE

LEASES = QUEUE + "leases"
MIB = 1 << 20
# "had", or "reached".
WAITS = "no member of the pool can be "


@pytest.fixture
def way(store):
    with Way(store) as it:
        yield it


def peak_bytes(worker):
    status = pathlib.Path(f"/proc/{worker.pid}/status").read_text()
    return int(re.search(r"^VmHWM:\s+(\d+) kB", status, re.M)[1]) * 1024


def basic(user, password):
    return b"Basic " + base64.b64encode(f"{user}:{password}".encode())


# --- claims and results -------------------------------------------------------------------------------------------


@pytest.mark.core
def test_what_a_killed_worker_had_is_done_by_another(worker, push, upstream, add, count):
    """One of its tasks was done and is not done again; the other was in the middle of its request."""
    member = upstream(wire.serves(), wire.is_silent, wire.serves())
    add(member.url)
    push("http://target.test/1", "http://target.test/2")
    first = worker("--lease", "1s", "--concurrency", 1)
    member.wait_for_connection(1)
    peers.wait_for(lambda: count("acked") == 1)
    first.kill()
    second = worker("--drain")
    second.ends()
    assert [result["url"] for result in first.results() + second.results()] == ["http://target.test/1", "http://target.test/2"]
    assert second.results()[0]["attempts"] == 2
    assert (count("acked"), count("lost"), count("failed"), count("dead")) == (2, 1, 0, 0)


@pytest.mark.core
def test_an_ack_whose_answer_is_lost_is_one_ack(worker, push, upstream, add, count, way):
    member = upstream(wire.serves())
    add(member.url)
    push("http://target.test/")
    way.cut("settle")
    one = worker("--redis", way.url, "--drain")
    one.ends()
    assert way.struck.is_set()
    assert len(one.results()) == len(member.connections) == 1
    assert (count("acked"), count("lost"), count("failed")) == (1, 0, 0)


def test_a_claim_whose_answer_is_lost_comes_back(worker, push, upstream, add, count, way):
    member = upstream(wire.serves())
    add(member.url)
    push("http://target.test/")
    way.cut("claim")
    one = worker("--redis", way.url, "--drain", "--lease", "1s")
    one.ends()
    assert way.struck.is_set()
    assert len(one.results()) == len(member.connections) == 1
    assert (count("acked"), count("lost")) == (1, 1)


def test_a_reader_that_is_slow_costs_no_claim(worker, push, upstream, add, store, count, folder):
    """Results go to a pipe that nobody reads for longer than a claim lives."""
    member = upstream(wire.serves(b"x" * 300_000))
    add(member.url)
    os.mkfifo(folder / "pipe")
    reader = os.open(folder / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    try:
        push("http://target.test/")
        worker("--lease", "1s", output=folder / "pipe")
        (_, ends_ms), = peers.wait_for(lambda: store.client.zrange(LEASES, 0, -1, withscores=True))
        peers.wait_for(lambda: store.client.zscore(LEASES, store.client.zrange(LEASES, 0, -1)[0]) > ends_ms + 2000)
        assert count("acked") == 0
        line = b""
        while not line.endswith(b"\n"):
            assert select.select([reader], [], [], peers.WAIT_S)[0]
            line += os.read(reader, MIB)
    finally:
        peers.wait_for(lambda: count("acked") == 1)
        os.close(reader)
    assert json.loads(line)["bytes"] == 300_000
    assert count("lost") == 0 and len(member.connections) == 1


# --- the pool -----------------------------------------------------------------------------------------------------


@pytest.mark.core
def test_when_all_members_become_unfit_nothing_goes_direct(worker, push, upstream, add, run, count):
    target, member = upstream(wire.serves()), upstream(wire.serves(), host="127.0.0.2")
    add(member.url)
    run("pool", "park", member.url)
    push(*(f"{target.url}/{n}" for n in range(5)))
    one = worker("--drain")
    one.says(WAITS)
    assert (len(member.connections), count("acked"), count("failed"), count("dead")) == (0, 0, 0, 0)
    run("pool", "restore", member.url)
    one.ends()
    assert {result["outcome"] for result in one.results(5)} == {"done"}
    assert target.connections == []


@pytest.mark.core
def test_the_environment_leads_nothing_past_the_member(worker, push, upstream, add, environment):
    target, other, member = upstream(wire.serves()), upstream(wire.serves()), upstream(wire.serves(), host="127.0.0.2")
    environment |= dict.fromkeys(("http_proxy", "all_proxy", "ALL_PROXY"), other.url) | dict.fromkeys(("no_proxy", "NO_PROXY"), "*")
    add(member.url)
    push(target.url)
    one = worker("--drain")
    one.ends()
    assert one.results()[0]["member"] == member.url
    assert len(member.connections) == 1 and target.connections == other.connections == []


# --- what is hostile ----------------------------------------------------------------------------------------------


@pytest.mark.core
def test_a_bomb_is_dead_at_the_cap_of_what_it_decodes_to(worker, push, upstream, add):
    decoded_bytes = 256 * MIB
    member = upstream(wire.serves(gzip.compress(bytes(decoded_bytes), 1), Content_Encoding="gzip"))
    add(member.url)
    push("http://target.test/")
    one = worker("--body-max", "1m")
    result, = one.results(1)
    assert (result["outcome"], result["error"]["reason"]) == ("dead", "response-body-size")
    assert peak_bytes(one) < decoded_bytes


@pytest.mark.parametrize("place", ["file:///etc/passwd", "gopher://127.0.0.1:6379/_PING", "ftp://127.0.0.1/"])
def test_a_redirect_leaves_neither_http_nor_the_pool(worker, push, upstream, add, place):
    member = upstream(wire.answers(wire.response(status="302 Found", Location=place)))
    add(member.url)
    push("http://target.test/")
    one = worker("--drain")
    one.ends()
    result, = one.results()
    assert (result["outcome"], result["error"]["reason"]) == ("dead", "response-redirect")
    assert "root:" not in json.dumps(result) and len(member.connections) == 1


@pytest.mark.core
def test_the_password_of_a_member_reaches_no_other(worker, push, upstream, add):
    """The first asks for a password again and again, and is left for the second; both are told their own."""
    def refuses(connection):
        connection.read_request()
        connection.send(wire.response(status="407 Proxy Authentication Required", Proxy_Authenticate='Basic realm="x"'))

    first, second = upstream(refuses, host="127.0.0.2"), upstream(wire.serves(), host="127.0.0.3")
    for server, password in (first, "canary-one"), (second, "canary-two"):
        add(server.url.replace("//", f"//user:{password}@"))
    push(*(f"http://target.test/{n}" for n in range(4)))
    one = worker("--drain", "--concurrency", 1)
    one.ends()
    assert len(one.results()) == 4 and first.connections and len(second.connections) == 4
    for server, password in (first, "canary-one"), (second, "canary-two"):
        told = [connection.head.fields.get("proxy-authorization") for connection in server.connections]
        assert set(told) == {basic("user", password).decode()}
    assert "canary" not in one.text + one.output.read_text()


@pytest.mark.core
def test_a_line_end_in_a_password_leads_nowhere(worker, push, upstream, add, store, run, count):
    """No command takes such a password; a foreign hand can put it there."""
    target, member = upstream(wire.serves()), upstream(wire.serves(), host="127.0.0.2")
    refused = run("pool", "add", "--allow-private", member.url.replace("//", "//user:pass%0d%0aX-Evil:%20yes@"), check=2)
    assert "Evil" not in refused.stderr
    add(member.url.replace("//", "//user:password@"))
    (identifier, _), = store.client.hgetall("{proxies}:pool:secrets").items()
    store.client.hset("{proxies}:pool:secrets", identifier, "user:pass%0d%0aX-Evil:%20yes")
    push(target.url)
    worker().says(WAITS)
    assert target.connections == member.connections == []
    assert count("failed") == count("dead") == 0
