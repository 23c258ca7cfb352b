"""`fairlead up`: what it serves, how its processes come and go, what it tells."""

import collections
import contextlib
import os
import re
import shlex
import signal
import socket
import subprocess
import threading

import pytest

import demonstration
import look
import peers
import wire
from demonstration import ORIGIN, UPSTREAMS, can_bind, nodes_of

GONE_S = 15
MEMBER = "http://member.example:3128"
demo = demonstration.demo


def callers(running, count):
    """Who called the origin, for `count` requests."""
    answers = []
    for _ in range(count):
        with running.connect() as client:
            answers.append(client.get(ORIGIN))
    assert [answer.status for answer in answers] == [200] * count
    return collections.Counter(answer.body.decode().strip() for answer in answers)


@pytest.mark.core
def test_the_line_that_it_prints_is_shared_evenly(demo):
    running = demo(redis=None)
    line = re.search(r"^  try +(curl .*)$", running.text, re.M)[1]
    command = [*shlex.split(line), "--silent", "--show-error", "--max-time", "20"]
    said = [subprocess.run(command, check=True, stdout=subprocess.PIPE, encoding="ascii").stdout.strip()
            for _ in range(30)]
    assert collections.Counter(said) == dict.fromkeys(UPSTREAMS, 10)


@pytest.mark.core
def test_sigterm_ends_it_in_order_and_takes_the_demonstration_away(demo, store):
    running = demo()
    pids = [running.pid, *running.children()]
    assert store.client.zrange("proxies", 0, -1) == [f"http://{host}:8901" for host in UPSTREAMS]
    running.stop()
    # Clients first, then who serves them.
    assert [x["context"] for x in running.log(message="stopping")] == ["gateway.1", "keeper.1", "demo.1"]
    assert store.client.zcard("proxies") == 0
    assert [key for key, text in look.contents(store).items() if "8901" in text] == []
    assert not any(map(look.is_alive, pids)) and all(map(can_bind, demonstration.PLACES))


def test_the_demonstration_admits_exactly_its_addresses(demo, store):
    running = demo()
    with running.connect() as client:
        assert client.get(ORIGIN).status == 200
    for url in ("http://127.0.0.1:9/", "http://127.0.0.11:8889/", "http://10.0.0.1:8889/"):
        with running.connect() as client:
            assert client.get(url).status == 403


def test_other_members_stay_when_a_demonstration_ends(demo, store, run):
    run("pool", "add", "--eligible", MEMBER)
    demo().stop()
    assert store.client.zrange("proxies", 0, -1) == [MEMBER]


def test_members_of_a_killed_demonstration_go_at_the_next_start(demo, store, node):
    running = demo()
    os.kill(running.pid, signal.SIGSTOP)  # or it would tell its children, who would take their members along
    look.kill([*running.children(), running.pid])
    running.process.wait(peers.WAIT_S)
    assert store.client.zcard("proxies") == 3
    node(role="up")
    assert store.client.zcard("proxies") == 0


def test_a_second_demonstration_is_told_whose_address_is_taken(demo, run):
    demo()
    done = run("up", "--demo", "--listen", "127.0.0.1:0", check=1)
    assert done.stderr.count("\n") == 1 and "127.0.0.11:8901" in done.stderr and "in use" in done.stderr


@pytest.mark.core
def test_a_second_node_on_the_port_is_told_and_the_first_undisturbed(node, run):
    first = node(role="up")
    children = first.children()
    done = run("up", "--listen", f"127.0.0.1:{first.port}", check=1)
    assert done.stderr.count("\n") == 1 and "in use" in done.stderr and str(first.port) in done.stderr
    with first.connect() as client:
        assert client.get("http://origin.test/").status == 503
    assert first.children() == children


@pytest.mark.core
def test_a_killed_node_leaves_no_process_and_the_next_start_works(demo, folder):
    running = demo(redis=None)
    (server,) = look.processes(f"unixsocket:{folder}")
    pids = [running.pid, *running.children()]
    assert len(pids) == 5 and server in pids
    running.process.kill()
    try:
        peers.wait_for(lambda: not any(map(look.is_alive, pids)), "no process is left", GONE_S)
    finally:
        look.kill(pids)
    assert can_bind(("127.0.0.1", running.port))
    again = demo("--listen", f"127.0.0.1:{running.port}", redis=None)
    assert callers(again, 3).keys() == set(UPSTREAMS)


def test_sigterm_lets_a_request_in_progress_end(node, store, run, upstream):
    go_on = threading.Event()

    def slow(wire):
        wire.read_request()
        go_on.wait(peers.WAIT_S)
        wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nlate")

    run("pool", "add", "--eligible", "--allow-private", upstream(slow).url)
    running = node(role="up")
    with running.connect() as client:
        client.send(b"GET http://origin.test/ HTTP/1.1\r\nHost: origin.test\r\n\r\n")
        peers.wait_for(lambda: store.client.zscore("proxies", store.client.zrange("proxies", 0, 0)[0]) == 1)
        running.terminate()
        peers.wait_for(lambda: "stopping" in running.text, "the gateway stops")
        go_on.set()
        assert client.read_response().body == b"late"
    assert running.wait() == 0


@pytest.mark.core
def test_a_killed_child_is_started_again_and_the_port_stays_usable(demo):
    running = demo()
    for _ in range(3):
        before = running.children()
        killed = running.serving_pid()
        os.kill(killed, signal.SIGKILL)
        # The listener is the supervisor's: a client that comes meanwhile waits, and is served.
        assert callers(running, 3).keys() == set(UPSTREAMS)
        peers.wait_for(lambda: len(running.children()) == len(before), "all children run again")
        assert killed not in running.children()
    assert len(running.log(message="a child ended and is started again", role="gateway", signal=9)) == 3


def test_a_killed_keeper_or_demonstration_is_started_again(demo):
    running = demo()
    for killed in running.children()[:2]:
        os.kill(killed, signal.SIGKILL)
    peers.wait_for(lambda: len(running.log(message="a child ended and is started again")) == 2, "both are told")
    peers.wait_for(lambda: len(running.children()) == 3, "all children run again")
    assert sum(callers(running, 3).values()) == 3


@pytest.mark.core
def test_both_workers_serve(demo, store):
    running = demo("--workers", 2)

    def shares():
        with contextlib.ExitStack() as stack:
            clients = [stack.enter_context(running.connect()) for _ in range(40)]
            assert all(client.get(ORIGIN).status == 200 for client in clients)
        return {line["context"] for line in running.requests(40)}

    peers.wait_for(lambda: shares() == {"gateway.1", "gateway.2"}, "both gateways have served")


@pytest.mark.core
def test_every_process_that_uses_redis_tells_itself_and_its_counters(demo, store):
    running = demo("--workers", 2)
    assert sum(callers(running, 12).values()) == 12

    def told():
        nodes = nodes_of(store)
        total = sum(int(x["allocations_total"]) for x in nodes.values())
        return len(nodes) == 3 and total == 12 and nodes

    nodes = peers.wait_for(told, "all have told")
    assert sorted(x["role"] for x in nodes.values()) == ["gateway", "gateway", "keeper"]
    assert {int(x["pid"]) for x in nodes.values()} <= set(running.children())
    assert {x["host"] for x in nodes.values()} == {socket.gethostname()}
    running.stop()
    assert nodes_of(store) == {}


def test_an_entry_of_a_killed_process_goes_when_it_is_old(node, store):
    store.client.hset("nodes", "host:1:gateway", "role=gateway\thost=host\tpid=1\ttime_ms=1000")
    node(role="up")
    peers.wait_for(lambda: "host:1:gateway" not in store.client.hkeys("nodes"), "it is gone")


def test_a_keeper_runs_alone(binary, environment, store):
    words = [binary, "keeper", "--redis", store.url]
    with subprocess.Popen(words, env=environment, stderr=subprocess.DEVNULL) as process:
        try:
            peers.wait_for(lambda: [x["role"] for x in nodes_of(store).values()] == ["keeper"], "it tells itself")
            process.terminate()
            assert process.wait(peers.WAIT_S) == 0
        finally:
            process.kill()
    assert nodes_of(store) == {}


def test_closed_standard_descriptors_are_nobody_elses(binary, environment, store):
    """A log line must not end up in a client's connection, or in Redis."""
    place = f"127.0.0.1:{peers.free_port()}"
    words = ["sh", "-c", 'exec "$0" "$@" <&- >&- 2>&-', binary, "up", "--listen", place, "--redis", store.url]
    with subprocess.Popen(words, env=environment) as process:
        try:
            peers.wait_for(lambda: len(nodes_of(store)) == 2, "it runs")
            links = {os.readlink(f"/proc/{pid}/fd/{fd}") for pid in look.processes(place) for fd in range(3)}
            assert links == {"/dev/null"}
        finally:
            process.terminate()
            assert process.wait(peers.WAIT_S) == 0


def test_a_node_whose_log_nobody_reads_any_more_serves_on(binary, environment, store):
    place = f"127.0.0.1:{peers.free_port()}"
    with subprocess.Popen([binary, "up", "--listen", place, "--redis", store.url], env=environment,
                          stderr=subprocess.PIPE) as process:
        try:
            peers.wait_for(lambda: peers.is_serving(*place.split(":")), "it serves")
            process.stderr.close()
            for _ in range(3):
                with wire.Client(("127.0.0.1", int(place.split(":")[1]))) as client:
                    assert client.get("http://origin.test/").status == 503
        finally:
            process.terminate()
            assert process.wait(peers.WAIT_S) == 0


@pytest.mark.parametrize("delay_ms", [0, 2, 4, 6, 8, 10, 12, 15, 20, 30, 50])
def test_a_node_killed_at_any_moment_of_its_start_leaves_nothing_in_the_way(node, run, folder, delay_ms):
    running = node(role="up", redis=None, wait=False)
    with contextlib.suppress(subprocess.TimeoutExpired):
        running.process.wait(delay_ms / 1000)
    running.kill()
    run("pool", "add", "--eligible", MEMBER, redis=None)
    run("pool", "allocate", redis=None)
    try:
        peers.wait_for(lambda: look.processes(folder) == [], "no process is left", GONE_S / 3)
    finally:
        look.kill(look.processes(folder))


# --- lists --------------------------------------------------------------------------------------------------------

LIST = "# mine\r\na.example:3128\r\nnonsense\r\nhttp://b.example:3128\r\n10.0.0.1:80\r\n172.16.0.1:80\r\n"


@pytest.mark.core
def test_good_lines_of_a_list_join_and_bad_ones_are_told(node, store, folder):
    path = folder / "list.txt"
    path.write_text(LIST)
    running = node("--list", path, role="up", private=False)
    assert store.client.zrange("proxies", 0, -1) == ["http://a.example:3128", "http://b.example:3128"]
    told = {line["reason"]: line for line in running.log(message="entries rejected", place=str(path))}
    assert told.keys() == {"not-an-endpoint", "bogon"}
    assert (told["not-an-endpoint"]["count"], told["not-an-endpoint"]["first_line"]) == (1, 3)
    assert (told["bogon"]["count"], told["bogon"]["first_line"]) == (2, 5)


def test_a_list_may_be_named_several_times(node, store, folder):
    paths = [folder / f"list{i}" for i in range(2)]
    for i, path in enumerate(paths):
        path.write_text(f"m{i}.example:80\n")
    node("--list", paths[0], "--list", paths[1], role="up")
    assert store.client.zrange("proxies", 0, -1) == ["http://m0.example:80", "http://m1.example:80"]


@pytest.mark.core
def test_sighup_reads_the_lists_again_and_all_goes_on(node, store, folder):
    path = folder / "list.txt"
    path.write_text("a.example:3128\n")
    running = node("--list", path, role="up")
    pids = [running.pid, *running.children()]
    path.write_text("a.example:3128\nb.example:3128\n")
    running.process.send_signal(signal.SIGHUP)
    peers.wait_for(lambda: store.client.zcard("proxies") == 2, "the new line has joined")
    assert [running.pid, *running.children()] == pids and running.process.poll() is None


@pytest.mark.parametrize("content", [None, "", "nonsense\n", "\x1f\x8b"], ids=["gone", "empty", "bad", "gzip"])
def test_a_list_that_went_bad_changes_nothing_and_is_told(node, store, folder, content):
    path = folder / "list.txt"
    path.write_text("a.example:3128\n")
    running = node("--list", path, role="up")
    if content is None:
        path.unlink()
    else:
        path.write_text(content)
    before = store.client.zrange("proxies", 0, -1)
    running.process.send_signal(signal.SIGHUP)
    peers.wait_for(lambda: [x for x in running.log(place=str(path)) if x["level"] in ("warn", "error")], "it is told")
    assert store.client.zrange("proxies", 0, -1) == before and running.process.poll() is None


def test_sighup_without_lists_is_harmless(node, store):
    running = node(role="up")
    pids = running.children()
    running.process.send_signal(signal.SIGHUP)
    peers.wait_for(lambda: "read again" in running.text, "it has heard")
    with running.connect() as client:
        assert client.get("http://origin.test/").status == 503
    assert running.children() == pids


# --- refusals -----------------------------------------------------------------------------------------------------


@pytest.mark.core
def test_a_wrong_redis_password_ends_the_start_and_leaves_no_child(redis_server, run):
    server = redis_server(password="right")
    place = f"127.0.0.1:{peers.free_port()}"
    env = {"FAIRLEAD_REDIS": server.url.replace(":right@", ":sesame@")}
    done = run("up", "--listen", place, redis=None, env=env, check=1)
    assert "WRONGPASS" in done.stderr and server.socket in done.stderr and "sesame" not in done.stderr
    assert done.stderr.count("the store does not answer") == 1
    assert look.processes(place) == []


def test_a_node_that_starts_before_its_redis_waits_for_it(redis_server, node):
    server = redis_server()
    server.kill()
    running = node(role="up", redis=server, wait=False)
    peers.wait_for(lambda: running.log(message="store away"), "it is told")
    server.start()
    peers.wait_for(lambda: "is up" in running.text, "the node is up")


def test_the_greeting_is_one_writing_which_no_line_of_a_child_can_part(store, binary, environment):
    ours, theirs = os.pipe2(os.O_DIRECT)  # a packet pipe: each read is what one write was
    node = subprocess.Popen([binary, "up", "--redis", store.url, "--listen", "127.0.0.1:0"], env=environment,
                            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=theirs)
    os.close(theirs)
    try:
        packets = iter(lambda: os.read(ours, 65536), b"")
        greeting = next(packet for packet in packets if b" is up\n" in packet)
        assert greeting.startswith(b"fairlead ") and greeting.endswith(b"  stop    Ctrl-C\n")
    finally:
        node.terminate()
        for _ in packets:
            pass
        assert node.wait(20) == 0
        os.close(ours)


def test_a_key_of_another_type_ends_the_start_of_a_node_that_would_write_it(store, run, folder):
    store.client.set("proxies", "no sorted set")
    (folder / "list").write_text("a.example:3128\n")
    before = look.dumps(store)
    done = run("up", "--listen", "127.0.0.1:0", "--list", folder / "list", check=1)
    assert "WRONGTYPE" in done.stderr and look.dumps(store) == before


def test_a_node_does_not_write_to_a_pool_of_a_newer_fairlead(store, run, folder):
    run("pool", "add", "--eligible", MEMBER)
    store.client.hset("{proxies}:pool:rules", "wire", 2)
    (folder / "list").write_text("a.example:3128\n")
    before = look.dumps(store)
    done = run("up", "--listen", "127.0.0.1:0", "--list", folder / "list", check=1)
    assert "newer" in done.stderr and look.dumps(store) == before


def test_a_gateway_does_not_allocate_from_a_pool_of_a_newer_fairlead(store, run, node):
    run("pool", "add", "--eligible", MEMBER)
    store.client.hset("{proxies}:pool:rules", "wire", 2)
    gateway = node()
    with gateway.connect() as client:
        assert client.get("http://origin.test/").status == 503
    assert gateway.request()["reason"] == "store-newer"
    assert store.client.zscore("proxies", MEMBER) == 0


@pytest.mark.core
def test_a_listener_that_others_reach_must_name_its_clients(node, run):
    done = run("up", "--listen", "0.0.0.0:0", check=2)
    assert "0.0.0.0:0" in done.stderr and "--allow-client" in done.stderr and done.stderr.count("\n") == 1
    node("--listen", "0.0.0.0:0", "--allow-client", "127.0.0.0/8", role="up")


def test_several_listeners_serve_unix_sockets_too_and_a_stale_one_heals(node, folder):
    node("--listen", f"unix:{folder}/gateway", role="up").kill()
    peers.wait_for(lambda: look.processes(f"unix:{folder}/gateway") == [], "the killed node is gone")
    node("--listen", f"unix:{folder}/gateway", role="up")
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(peers.WAIT_S)
        client.connect(f"{folder}/gateway")
        client.sendall(b"GET http://origin.test/ HTTP/1.1\r\nHost: origin.test\r\n\r\n")
        assert client.recv(64).startswith(b"HTTP/1.1 503 ")
