"""A new program takes over a running node (SIGUSR2): nobody is refused, nothing is lost, what is broken changes nothing."""

import contextlib
import hashlib
import os
import shutil
import signal
import threading

import pytest

import conftest
import demonstration
import look
import peers
import wire
from demonstration import ORIGIN, UPSTREAMS, nodes_of
from test_listen import listening

demo = demonstration.demo
HALF = 40_000
BROKEN = "#!/bin/sh\necho 'I am broken' >&2\nexit 1\n"


@pytest.fixture
def binary(folder):
    """A copy of the program, which can be replaced while it runs."""
    return str(shutil.copy(conftest.BINARY, folder / "fairlead"))


@pytest.fixture
def replace(binary):
    """Puts another file in the program's place, as packages do: a copy of the program, or a script."""

    def put(script=None):
        new = binary + ".new"
        if script:
            with open(new, "w", encoding="ascii") as file:
                file.write(script)
            os.chmod(new, 0o755)
        else:
            shutil.copy(conftest.BINARY, new)
        os.rename(new, binary)

    return put


def take_over(running):
    """SIGUSR2, and waits until the new program serves."""
    count = running.text.count(" is up\n")
    before = running.children()
    os.kill(running.pid, signal.SIGUSR2)
    peers.wait_for(lambda: running.text.count(" is up\n") > count, f"it takes over\n{running.text[-3000:]}")
    return before


def gone(pids):
    peers.wait_for(lambda: not any(map(look.is_alive, pids)), f"{pids} have ended")


def body(name):
    """What the origin sends for a name: of it half is sent at once."""
    return hashlib.sha256(name.encode()).digest() * (2 * HALF // 32)


def sends_half(go):
    """Serves plain requests and tunnels; all but /quick wait in the middle of their answer."""

    def script(connection):
        head = wire.Head(connection.read_head())
        name = head.target.rpartition("/")[2]
        if head.method == "CONNECT":
            connection.send(b"HTTP/1.1 200 OK\r\n\r\n")
            name = connection.read_until(b"\n").decode().strip()
        elif name != "quick":
            connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (2 * HALF))
        if name == "quick":
            connection.send(wire.response(b"quick"))
            return
        connection.send(body(name)[:HALF])
        go.wait(60)
        connection.send(body(name)[HALF:])

    return script


@pytest.fixture
def go():
    """The second half of a download waits for it."""
    event = threading.Event()
    yield event
    event.set()


def begin_downloads(running, stack, count):
    """As many downloads that have begun, every other one in a tunnel: (client, name)."""
    downloads = []
    for i in range(count):
        client, name = stack.enter_context(running.connect()), f"d{i}"
        if i % 2:
            assert client.tunnel().status == 200
            client.send(f"{name}\n".encode())
        else:
            client.send(wire.request("GET", f"http://origin.test/{name}"))
            assert wire.Head(client.read_head()).status == 200
        downloads.append((client, name))
    return downloads


@contextlib.contextmanager
def connecting_all_the_time(running, url="http://origin.test/quick"):
    """Clients that come one after the other; each must be served. Yields how many were."""
    served, troubles, is_over = [], [], threading.Event()

    def come():
        while not is_over.is_set():
            try:
                with running.connect() as client:
                    answer = client.get(url)
                assert answer.status == 200, answer.raw
                served.append(answer.body)
            except Exception as trouble:  # told below
                troubles.append(repr(trouble))

    threads = [threading.Thread(target=come) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        yield served
    finally:
        is_over.set()
        for thread in threads:
            thread.join(wire.LIMIT_S)
    assert troubles == []


@pytest.mark.core
def test_two_hundred_downloads_go_on_and_nobody_is_refused(node, add, upstream, replace, go):
    add(upstream(sends_half(go)).url)
    running = node("--workers", 2, role="up")
    with contextlib.ExitStack() as stack, connecting_all_the_time(running) as served:
        downloads = begin_downloads(running, stack, 200)
        replace()
        old = take_over(running)
        count = len(served)
        peers.wait_for(lambda: len(served) > count + 20, "new clients are served")
        assert set(old[1:]) <= set(running.children())  # the gateways; the keeper may have ended
        go.set()
        for client, name in downloads:
            assert hashlib.sha256(client.read_exactly(2 * HALF)).digest() == hashlib.sha256(body(name)).digest()
            client.close()
        gone(old)
    running.stop()
    assert {line["reason"] for line in running.log(message="request")} == {"ok"}


@pytest.mark.core
def test_it_can_be_done_three_times_in_a_row(node, add, upstream, replace, store, go):
    add(upstream(sends_half(go)).url)
    running = node(role="up")
    descriptors = len(os.listdir(f"/proc/{running.pid}/fd"))
    old = []
    with contextlib.ExitStack() as stack, connecting_all_the_time(running):
        for i in range(3):
            downloads = begin_downloads(running, stack, 10)
            replace()
            old += take_over(running)
        go.set()
        for client, name in downloads:
            assert client.read_exactly(2 * HALF) == body(name)
    gone(old)
    assert len(running.children()) == 2
    assert len(os.listdir(f"/proc/{running.pid}/fd")) == descriptors
    peers.wait_for(lambda: {int(x["pid"]) for x in nodes_of(store).values()} == set(running.children()),
                   "the entries are those of the new ones")


def test_signals_that_come_too_often_do_no_harm(node, add, upstream, go):
    add(upstream(sends_half(go)).url)
    running = node("--workers", 2, role="up")
    first = running.children()
    with connecting_all_the_time(running):
        for _ in range(6):
            os.kill(running.pid, signal.SIGUSR2)
            threading.Event().wait(0.015)
        gone(first)
        peers.wait_for(lambda: len(running.children()) == 3, "one keeper and two gateways are left")
    assert not running.log(level="error")


def test_old_ones_keep_an_entry_of_their_own_while_they_serve(node, add, upstream, store, go):
    add(upstream(sends_half(go)).url)
    running = node(role="up")
    with contextlib.ExitStack() as stack:
        begin_downloads(running, stack, 2)
        old = take_over(running)
        peers.wait_for(lambda: len(nodes_of(store)) == 3, "the old gateway, the new one, the keeper")
        (mine,) = [x for x in nodes_of(store).values() if int(x["pid"]) == old[-1]]
        assert mine["role"] == "gateway" and mine["allocations_total"] == "2"
        go.set()
    gone(old)
    peers.wait_for(lambda: len(nodes_of(store)) == 2, "its entry goes with it")


BAD = {"exits": BROKEN, "is no program": "nonsense\n", "is killed": "#!/bin/sh\nkill -9 $$\n"}


@pytest.mark.core
@pytest.mark.parametrize("what", BAD)
def test_a_broken_program_changes_nothing_and_is_told(node, replace, what):
    running = node(role="up")
    children = running.children()
    replace(BAD[what])
    os.kill(running.pid, signal.SIGUSR2)
    # The trial may have told something before.
    peers.wait_for(lambda: "failed its trial" in running.text, "it is told")
    peers.wait_for(lambda: running.children() == children, "nobody else runs")
    assert ("I am broken" in running.text) == (what == "exits")
    replace()
    take_over(running)
    gone(children)


def test_a_configuration_that_cannot_be_used_changes_nothing_and_is_told(node, folder):
    conf = folder / "conf"
    conf.write_text("tries = 2\n")
    running = node("--config", conf, role="up")
    children = running.children()
    for content, told in (("tries = many\n", f"{conf}:1: tries = many"),
                          ("[source x]\nplace = /nonexistent\n", "/nonexistent"),
                          ("nonsense = 1\n", f"{conf}:1: unknown setting")):
        conf.write_text(content)
        count = len(running.log(context="up", level="error"))
        os.kill(running.pid, signal.SIGUSR2)
        peers.wait_for(lambda: len(running.log(context="up", level="error")) > count, f"{told} is told")
        assert told in running.text
    assert running.children() == children and running.text.count(" is up\n") == 1


def test_listeners_follow_the_configuration(binary, environment, folder, store):
    """What stays is inherited, what is new is bound, what is gone is closed; one that cannot be had stops it all."""
    conf, ports = folder / "conf", [peers.free_port() for _ in range(3)]
    conf.write_text(f"listen = 127.0.0.1:{ports[0]}, 127.0.0.1:{ports[1]}\n")
    words = [binary, "up", "--log-format", "json", "--redis", store.url, "--config", str(conf)]
    running = conftest.Node(words, folder / "own", environment)
    try:
        peers.wait_for(lambda: " is up\n" in running.text, "it is up")
        conf.write_text(f"listen = 127.0.0.1:{ports[1]}, 0.0.0.0:{ports[2]}\n")
        os.kill(running.pid, signal.SIGUSR2)
        peers.wait_for(lambda: "open proxy" in running.text, "it is told")
        assert peers.is_serving("127.0.0.1", ports[0])
        conf.write_text(f"listen = 127.0.0.1:{ports[1]}, 127.0.0.1:{ports[2]} protocol=http\n")
        old = take_over(running)
        gone(old)
        assert [peers.is_serving("127.0.0.1", port) for port in ports] == [False, True, True]
    finally:
        running.stop()


def test_the_demonstration_goes_on(demo, store):
    running = demo("--workers", 2)
    with connecting_all_the_time(running, ORIGIN):
        old = take_over(running)
        gone(old)
    assert sorted(store.client.zrange("proxies", 0, -1)) == [f"http://{host}:8901" for host in UPSTREAMS]
    with running.connect() as client:
        assert client.get(ORIGIN).status == 200
    running.stop()
    assert store.client.zcard("proxies") == 0
    assert all(map(demonstration.can_bind, demonstration.PLACES))


@pytest.mark.parametrize("delay_ms", [0, 5, 20, 60, 150])
def test_sigterm_right_behind_ends_all_of_it(node, delay_ms):
    running = node(role="up")
    children = running.children()
    os.kill(running.pid, signal.SIGUSR2)
    threading.Event().wait(delay_ms / 1000)
    running.stop()
    gone(children)


def test_sigterm_ends_old_ones_by_the_drain_timeout(node, add, upstream, go):
    add(upstream(sends_half(go)).url)
    running = node("--drain-timeout", "300ms", role="up")
    with contextlib.ExitStack() as stack:
        begin_downloads(running, stack, 2)
        old = take_over(running)
        peers.wait_for(lambda: running.log(message="handing over", context="gateway.1"), "the old one hands over")
        assert look.is_alive(old[-1])
        running.stop()
        gone(old)
    assert len(running.log(message="request", reason="shutdown")) == 2


def test_handover_timeout_bounds_what_old_ones_may_take(node, add, upstream, go):
    add(upstream(sends_half(go)).url)
    running = node("--handover-timeout", "300ms", role="up")
    with contextlib.ExitStack() as stack:
        begin_downloads(running, stack, 2)
        gone(take_over(running))
    assert len(running.requests(2, reason="shutdown")) == 2


def test_a_killed_old_child_is_told_and_not_started_again(node, add, upstream, go):
    add(upstream(sends_half(go)).url)
    running = node(role="up")
    with contextlib.ExitStack() as stack:
        begin_downloads(running, stack, 2)
        old = take_over(running)
        os.kill(old[-1], signal.SIGKILL)
        peers.wait_for(lambda: running.log(message="a child of the program before has ended", signal=9), "it is told")
        gone(old)
        assert len(running.children()) == 2
        with running.connect() as client:
            assert client.get("http://origin.test/quick").status == 200
        go.set()


def test_a_killed_supervisor_takes_old_children_along(node, add, upstream, go):
    add(upstream(sends_half(go)).url)
    running = node(role="up")
    with contextlib.ExitStack() as stack:
        begin_downloads(running, stack, 2)
        pids = [*take_over(running), *running.children()]
        running.kill()
        gone(pids)


def test_the_private_server_runs_on(node, run, folder, add):
    running = node(role="up", redis=None)
    run("pool", "add", "--eligible", "http://member.example:3128", redis=None)
    (server,) = look.processes(f"unixsocket:{folder}")
    take_over(running)
    assert look.processes(f"unixsocket:{folder}") == [server]
    assert "member.example" in run("pool", "list", redis=None).stdout
    running.stop()
    gone([server])


def test_credentials_are_kept_and_never_seen(redis_server, node, folder):
    server = redis_server(password="sesame")
    seen, is_over = set(), threading.Event()
    running = node(role="up", redis=server)

    def watch():
        while not is_over.is_set():
            for pid in [running.pid, *running.children()]:
                seen.add(look.command_line(pid))

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        for _ in range(2):
            gone(take_over(running))
    finally:
        is_over.set()
        watcher.join()
    assert not any(b"sesame" in line for line in seen)
    assert any(b"--print-config" in line for line in seen)
    assert "sesame" not in running.text and running.text.count("were visible to other users") == 1


def test_it_runs_under_the_number_that_systemd_knows_and_tells_it(node, folder):
    name = f"{folder}/notify"
    with listening(name) as heard:
        running = node(role="up", env={"NOTIFY_SOCKET": name})
        pid = running.pid
        take_over(running)
        peers.wait_for(lambda: len(heard()) == 3, "it has told")
        assert [x.split("\n")[0] for x in heard()] == ["READY=1", "RELOADING=1", "READY=1"]
        assert look.command_line(pid)  # it is the process that was started
