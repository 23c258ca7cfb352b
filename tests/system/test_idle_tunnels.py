"""Crowds: tunnels that rest, handshakes that never end, clients that vanish in every state. What they cost is bounded, and
returns to its baseline.

The small numbers run always; 10,000 in `make nightly`."""

import contextlib
import os
import pathlib
import re
import selectors
import signal
import socket
import threading

import pytest

import peers
import wire

TUNNEL_BYTES_MAX = 2048
# A second crowd finds the memory that the first one left: what it may add, with room for its pieces.
GROWTH_MAX = 256 << 10
GROWTH_SHARE = 0.1
CROWDS = [200, pytest.param(1_700, marks=pytest.mark.nightly)]


class Upstream:
    """A proxy for a crowd, one thread: answers a CONNECT unless to silent.test, then echoes; begins an answer to anything else."""

    def __init__(self):
        self.selector = selectors.DefaultSelector()
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=4096)
        self.listener.setblocking(False)
        self.url = "http://127.0.0.1:%d" % self.listener.getsockname()[1]
        self.selector.register(self.listener, selectors.EVENT_READ)
        self.waker, self.woken = socket.socketpair()
        self.selector.register(self.woken, selectors.EVENT_READ)
        self.tunnels = set()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self):
        while True:
            for key, _ in self.selector.select():
                if key.fileobj is self.woken:
                    return
                if key.fileobj is self.listener:
                    self._accept()
                else:
                    self._read(key.fileobj)

    def _accept(self):
        with contextlib.suppress(BlockingIOError):
            while True:
                sock, _ = self.listener.accept()
                self.selector.register(sock, selectors.EVENT_READ)

    def _read(self, sock):
        """Heads and answers are small: each is one segment."""
        try:
            data = sock.recv(4096)
            if sock in self.tunnels:
                sock.sendall(data)
            elif data.startswith(b"CONNECT tunnel.test"):
                self.tunnels.add(sock)
                sock.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
            elif data.startswith(b"GET"):
                sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\nhello")
        except OSError:
            data = b""
        if not data:
            self.selector.unregister(sock)
            self.tunnels.discard(sock)
            sock.close()

    def close(self):
        self.waker.close()
        self.thread.join(wire.LIMIT_S)
        for key in list(self.selector.get_map().values()):
            key.fileobj.close()
        self.selector.close()


@pytest.fixture
def crowd_upstream():
    upstream = Upstream()
    yield upstream
    upstream.close()


def connect(host):
    return f"CONNECT {host}:443 HTTP/1.1\r\nHost: {host}:443\r\n\r\n".encode()


def memory_of(gateway):
    status = pathlib.Path(f"/proc/{gateway.serving_pid()}/status").read_text()
    return int(re.search(r"RssAnon:\s*(\d+) kB", status)[1]) * 1024


def gather(gateway, count, raw, answer=b""):
    """`count` clients that have sent `raw`, and have read `answer` where one is due."""
    clients = []
    for _ in range(count):
        clients.append(gateway.connect())
        clients[-1].send(raw)
    for client in clients:
        if answer:
            assert client.read_some().startswith(answer)
    return clients


def vanish(clients):
    for client in clients:
        client.reset()


def assert_no_growth(gateway, before):
    assert is_sanitized() or memory_of(gateway) - before < GROWTH_MAX + GROWTH_SHARE * before


def is_sanitized():
    return "ASAN_OPTIONS" in os.environ


# --- tunnels that rest ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1_000, pytest.param(9_000, marks=pytest.mark.nightly)])
def test_an_idle_tunnel_costs_two_kibibytes(node, add, crowd_upstream, count):
    add(crowd_upstream.url)
    gateway = node()
    vanish(gather(gateway, 10, connect("tunnel.test"), b"HTTP/1.1 200"))
    baseline, before = peers.steady(gateway.descriptors), memory_of(gateway)
    clients = gather(gateway, count, connect("tunnel.test"), b"HTTP/1.1 200")
    for client in clients:
        client.send(b"ping")
        assert client.read_exactly(4) == b"ping"
    assert gateway.descriptors() == baseline + 2 * count
    assert is_sanitized() or (memory_of(gateway) - before) / count <= TUNNEL_BYTES_MAX
    vanish(clients)
    peers.wait_for(lambda: gateway.descriptors() == baseline, "all descriptors are given back")


# --- handshakes that never end ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("count, limit", [(500, "1s"), pytest.param(9_000, "8s", marks=pytest.mark.nightly)])
def test_half_a_head_is_not_waited_for_for_ever(node, add, crowd_upstream, count, limit):
    """All of them are there at once before the first one's time is over."""
    add(crowd_upstream.url)
    gateway = node("--head-timeout", limit, "--no-access-log")

    def one_round():
        clients = gather(gateway, count, connect("tunnel.test")[:30])
        peers.wait_for(lambda: gateway.descriptors() == baseline + count, "all are there")
        for client in clients:
            assert b"408" in client.read_to_end()
            client.close()

    baseline = peers.steady(gateway.descriptors)
    one_round()
    before = memory_of(gateway)
    one_round()
    peers.wait_for(lambda: gateway.descriptors() == baseline, "all descriptors are given back")
    assert_no_growth(gateway, before)


# --- clients that vanish ----------------------------------------------------------------------------------------------

# What they have sent, what they have read, and how many descriptors each has in the gateway then.
STATES = {
    "before the head": (b"", b"", 1),
    "in the head": (connect("tunnel.test")[:30], b"", 1),
    "while a member is dialled": (connect("silent.test"), b"", 2),
    "in the tunnel": (connect("tunnel.test"), b"HTTP/1.1 200", 2),
    "in the answer": (wire.request("GET", "http://origin.test/"), b"HTTP/1.1 200", 2),
}


@pytest.mark.parametrize("count", CROWDS)
def test_clients_that_vanish_leave_nothing_behind(node, add, crowd_upstream, count):
    add(crowd_upstream.url)
    gateway = node("--no-access-log")
    baseline = peers.steady(gateway.descriptors)

    def one_round():
        for where, (raw, answer, descriptors) in STATES.items():
            clients = gather(gateway, count, raw, answer)
            peers.wait_for(lambda: gateway.descriptors() == baseline + count * descriptors, f"all are {where}")
            vanish(clients)
            peers.wait_for(lambda: gateway.descriptors() == baseline, f"those who were {where} are gone")

    one_round()
    before = memory_of(gateway)
    one_round()
    assert_no_growth(gateway, before)


@pytest.mark.parametrize("count", CROWDS)
def test_clients_that_vanish_while_they_wait_for_a_member_leave_nothing_behind(
        node, add, crowd_upstream, redis_server, count):
    store = redis_server()
    add(crowd_upstream.url, redis=store)
    gateway = node("--no-access-log", redis=store)
    vanish(gather(gateway, 1, connect("tunnel.test"), b"HTTP/1.1 200"))
    baseline = peers.steady(gateway.descriptors)
    store.signal(signal.SIGSTOP)
    try:
        clients = gather(gateway, count, connect("tunnel.test"))
        peers.wait_for(lambda: gateway.descriptors() == baseline + count, "all wait for a member")
        vanish(clients)
        peers.wait_for(lambda: gateway.descriptors() == baseline, "those who waited are gone")
    finally:
        store.signal(signal.SIGCONT)
    # The gateway serves as before.
    vanish(gather(gateway, 1, connect("tunnel.test"), b"HTTP/1.1 200"))
