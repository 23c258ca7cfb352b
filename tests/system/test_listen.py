"""Listeners: what may be served, sockets that come from systemd, and what systemd is told."""

import contextlib
import os
import re
import signal
import socket
import time

import pytest

import look
import peers
import wire
from conftest import Node

# What systemd does: sockets at descriptor 3 and above, their number and for whom they are in the environment.
ACTIVATE = """
import os, socket, sys
places = sys.argv[1].split(",")
for i, place in enumerate(places):
    unix = place.startswith("/")
    s = socket.socket(socket.AF_UNIX if unix else socket.AF_INET)
    s.bind(place if unix else (place.split(":")[0], int(place.split(":")[1])))
    s.listen(64)
    os.dup2(s.fileno(), 20 + i, inheritable=False)
for i in range(len(places)):
    os.dup2(20 + i, 3 + i)
os.environ["LISTEN_FDS"], os.environ["LISTEN_FDNAMES"] = str(len(places)), "a:b"
os.environ["LISTEN_PID"] = str(os.getpid() + int(sys.argv[2]))
os.execv(sys.argv[3], sys.argv[3:])
"""


@pytest.fixture
def activated(binary, environment, folder, store):
    """activated("127.0.0.1:0,/path", role, words...) starts one with these sockets; `own` False: they are for another."""
    nodes = []

    def start(places, role, *words, own=True, env=None, redis=True):
        command = ["/usr/bin/python3", "-c", ACTIVATE, places, "0" if own else "1", binary, role, "--log-format", "json",
                   *(["--redis", store.url] if redis else []), *(str(word) for word in words)]
        it = Node(command, folder / f"activated{len(nodes)}", environment | (env or {}))
        nodes.append(it)
        return it

    yield start
    for it in nodes:
        if it.process.poll() is None:
            it.stop()


def status_at(port, url="http://origin.test/"):
    peers.wait_for(lambda: peers.is_serving("127.0.0.1", port), f"somebody listens at {port}")
    with wire.Client(("127.0.0.1", port)) as client:
        return client.get(url).status


def sockets_of(pid):
    """The ports of the listening sockets that a process has."""
    inodes = set()
    for fd in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(FileNotFoundError):  # it was closed meanwhile
            inodes.add(os.readlink(f"/proc/{pid}/fd/{fd}"))
    ports = set()
    with open("/proc/net/tcp", encoding="ascii") as lines:
        for line in list(lines)[1:]:
            words = line.split()
            if words[3] == "0A" and f"socket:[{words[9]}]" in inodes:
                ports.add(int(words[1].split(":")[1], 16))
    return ports


# --- what may be served ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("words, told", [
    (["--listen", "0.0.0.0:0"], ["--allow-client", "--auth-file"]),
    (["--listen", "0.0.0.0:0 user=acme"], ["--allow-client", "--auth-file"]),
    (["--listen", "0.0.0.0:0 auth=off", "--auth-file", "/dev/null"], ["auth=off"]),
    (["--listen", "127.0.0.1:0", "--listen", "0.0.0.0:0"], ["0.0.0.0:0"]),
    (["--listen", "127.0.0.1:0 auth=on"], ["--auth-file"]),
    (["--listen", "127.0.0.1:0 auth=perhaps"], ["auth=perhaps", "on or off"]),
    (["--listen", "127.0.0.1:0 color=red"], ["color=red"]),
    (["--listen", "localhost:1"], ["localhost:1", "ADDRESS:PORT"]),
])
@pytest.mark.parametrize("role", ["up", "gateway"])
def test_a_listener_that_may_not_be_served_ends_the_start(run, role, words, told):
    done = run(role, *words, check=2)
    assert done.stderr.count("\n") == 1 and all(text in done.stderr for text in told), done.stderr


@pytest.mark.core
def test_the_greeting_has_addresses_only_and_what_clients_type(binary, environment, folder, store):
    words = [binary, "up", "--redis", store.url, "--listen", "127.0.0.1:0 protocol=socks user=acme",
             "--listen", f"unix:{folder}/gw protocol=http", "--listen", "127.0.0.1:0 protocol=http"]
    running = Node(words, folder / "greeting", environment)
    try:
        peers.wait_for(lambda: "  stop " in running.text, "it greets")
        socks, unix, http = re.findall(r"^  gateway (.*)$", running.text, re.M)
        assert unix == f"unix:{folder}/gw" and "acme" not in running.text
        assert f"\n  socks   curl --proxy socks5h://{socks} https" in running.text
        assert f"\n  try     curl -x http://{http} https" in running.text
        assert f"http_proxy=http://{http} https_proxy=http://{http}\n" in running.text
    finally:
        running.stop()


# --- sockets of systemd ------------------------------------------------------------------------------------------


@pytest.mark.core
@pytest.mark.parametrize("role", ["up", "gateway"])
def test_sockets_of_systemd_are_served_as_they_are(activated, folder, role):
    port = peers.free_port()
    running = activated(f"127.0.0.1:{port},{folder}/gw", role)
    assert status_at(port) == 503
    with wire.Wire(socket.socket(socket.AF_UNIX)) as client:
        client.sock.connect(f"{folder}/gw")
        client.send(wire.request("GET", "http://origin.test/"))
        assert client.read_response().status == 503
    assert sockets_of(running.serving_pid()) == {port}


def test_what_systemd_tells_us_is_not_told_to_others(activated, folder):
    port = peers.free_port()
    with listening(f"{folder}/notify"):
        running = activated(f"127.0.0.1:{port}", "up", env={"NOTIFY_SOCKET": f"{folder}/notify"}, redis=False)
        assert status_at(port) == 503
        (server,) = look.processes(f"unixsocket:{folder}")
        with open(f"/proc/{server}/environ", "rb") as environ:
            assert not re.search(rb"(LISTEN_\w+|NOTIFY_SOCKET)=", environ.read())
        assert sockets_of(server) == set()
        running.stop()


def test_they_stay_when_a_new_program_takes_over(activated):
    port = peers.free_port()
    running = activated(f"127.0.0.1:{port}", "up")
    for count in (1, 2, 3):
        peers.wait_for(lambda: running.text.count(" is up\n") == count, "it is up")
        assert status_at(port) == 503 and sockets_of(running.pid) == {port}
        os.kill(running.pid, signal.SIGUSR2)


def test_with_listen_a_socket_at_that_place_is_used_and_others_are_closed(activated):
    first, second, third = (peers.free_port() for _ in range(3))
    running = activated(f"127.0.0.1:{first},127.0.0.1:{second}", "up", "--listen", f"127.0.0.1:{second}",
                        "--listen", f"127.0.0.1:{third}")
    assert [status_at(port) for port in (second, third)] == [503, 503]
    assert sockets_of(running.pid) == {second, third}
    assert not peers.is_serving("127.0.0.1", first)


def test_sockets_that_are_for_another_process_are_not_taken(activated):
    port, own = peers.free_port(), peers.free_port()
    running = activated(f"127.0.0.1:{port}", "gateway", "--listen", f"127.0.0.1:{own}", own=False)
    peers.wait_for(lambda: peers.is_serving("127.0.0.1", own), "it serves")
    assert sockets_of(running.pid) - {port} == {own}


@pytest.mark.parametrize("role", ["up", "gateway"])
def test_an_inherited_socket_that_would_be_an_open_proxy_is_refused(activated, role):
    running = activated(f"0.0.0.0:{peers.free_port()}", role)
    assert running.wait() == 2
    assert running.text.count("\n") == 1 and "open proxy" in running.text and "--allow-client" in running.text


# --- what systemd is told ----------------------------------------------------------------------------------------


@contextlib.contextmanager
def listening(name):
    """Where systemd would listen; yields (address, what has been said so far)."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.bind(("\0" + name[1:]) if name.startswith("@") else name)
        sock.setblocking(False)
        said = []

        def heard():
            with contextlib.suppress(BlockingIOError):
                while True:
                    said.append(sock.recv(4096).decode())
            return said

        yield heard


@pytest.mark.core
@pytest.mark.parametrize("role", ["up", "gateway"])
@pytest.mark.parametrize("abstract", [False, True], ids=["path", "abstract"])
def test_systemd_is_told_of_start_reload_and_stop(activated, folder, role, abstract):
    name = f"@{folder}/n" if abstract else f"{folder}/notify"
    with listening(name) as heard:
        running = activated(f"127.0.0.1:{peers.free_port()}", role, env={"NOTIFY_SOCKET": name})
        peers.wait_for(lambda: heard() == ["READY=1"], "it is ready")
        before = time.monotonic_ns() // 1000
        os.kill(running.pid, signal.SIGHUP)
        peers.wait_for(lambda: len(heard()) == 3, "it has reloaded")
        reloading = re.fullmatch(r"RELOADING=1\nMONOTONIC_USEC=(\d+)", heard()[1])
        assert before <= int(reloading[1]) <= time.monotonic_ns() // 1000 and heard()[2] == "READY=1"
        running.stop()
        assert heard()[3:] == ["STOPPING=1"]
