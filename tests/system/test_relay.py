"""Much through a tunnel: nothing is lost, nobody is outrun, and what it took is given back."""

import contextlib
import os
import pathlib
import re
import threading

import pytest

import peers
import wire
from test_gateway_connect import pattern, sha

DATA_SIZE = 16 << 20
# Of the gateway itself, whatever kernels hold for it.
GROWTH_MAX = 4 << 20
# More than there are pipes (src/gateway/pipe.c).
SLOW_TUNNELS = 24
PIPE_DESCRIPTORS_MAX = 2 * 16

REQUEST = b"CONNECT origin.test:443 HTTP/1.1\r\nHost: origin.test:443\r\n\r\n"
ANSWER = b"HTTP/1.1 200 Connection established\r\n\r\n"


class Gate:
    """A script that reads nothing until it is told to, then everything; `got` is its hash."""

    def __init__(self):
        self.go = threading.Event()
        self.got = None

    def __call__(self, connection):
        self.go.wait(wire.LIMIT_S)
        self.got = sha(connection.read_to_end())


class Sender(threading.Thread):
    """Sends, then half-closes; `sent` grows."""

    def __init__(self, wire_end, data):
        super().__init__(daemon=True)
        self.wire_end, self.data, self.sent = wire_end, data, 0

    def run(self):
        with contextlib.suppress(OSError):
            for at in range(0, len(self.data), 65536):
                self.wire_end.send(self.data[at:at + 65536])
                self.sent = at + 65536
            self.wire_end.end()


def memory_of(gateway):
    status = pathlib.Path(f"/proc/{gateway.serving_pid()}/status").read_text()
    return int(re.search(r"RssAnon:\s*(\d+) kB", status)[1]) * 1024


def open_tunnel(gateway, **options):
    client = gateway.connect(**options)
    assert client.tunnel().status == 200
    return client


# --- back-pressure ----------------------------------------------------------------------------------------------------


@pytest.mark.core
def test_an_upstream_that_does_not_read_costs_no_memory(gateway_to):
    gate, data = Gate(), pattern(DATA_SIZE)
    gateway, server = gateway_to(wire.tunnels(gate), receive_buffer=65536)
    with open_tunnel(gateway) as client:
        before = memory_of(gateway)
        sender = Sender(client, data)
        sender.start()
        peers.steady(lambda: sender.sent, 0.2)
        # The address sanitizer keeps what was freed.
        assert "ASAN_OPTIONS" in os.environ or memory_of(gateway) - before < GROWTH_MAX
        gate.go.set()
        assert client.read_to_end() == b""
    assert server.connections[0].done.wait(wire.LIMIT_S)
    assert gate.got == sha(data)
    line = gateway.request()
    assert (line["reason"], line["in"]) == ("ok", len(REQUEST) + len(data))


@pytest.mark.core
def test_a_client_that_does_not_read_costs_no_memory(gateway_to):
    data, senders = pattern(DATA_SIZE), []

    def sends(connection):
        senders.append(Sender(connection, data))
        senders[0].run()

    gateway, _ = gateway_to(wire.tunnels(sends))
    before = memory_of(gateway)
    with open_tunnel(gateway, receive_buffer=65536) as client:
        peers.wait_for(lambda: senders, "the upstream sends")
        peers.steady(lambda: senders[0].sent, 0.2)
        # The address sanitizer keeps what was freed.
        assert "ASAN_OPTIONS" in os.environ or memory_of(gateway) - before < GROWTH_MAX
        assert sha(client.read_to_end()) == sha(data)
    line = gateway.request()
    assert (line["reason"], line["out"]) == ("ok", len(ANSWER) + len(data))


def test_many_that_do_not_read_share_a_bounded_number_of_pipes(gateway_to):
    data = pattern(6 << 20)
    gateway, _ = gateway_to(wire.tunnels(lambda connection: Sender(connection, data).run()))
    baseline = peers.steady(gateway.descriptors)
    clients = [open_tunnel(gateway, receive_buffer=65536) for _ in range(SLOW_TUNNELS)]
    held = peers.steady(gateway.descriptors, 0.2) - baseline - 2 * SLOW_TUNNELS
    assert 0 < held <= PIPE_DESCRIPTORS_MAX
    for client in clients:
        assert sha(client.read_to_end()) == sha(data)
        client.close()
    peers.wait_for(lambda: gateway.descriptors() == baseline, "all descriptors are given back")
    assert {line["out"] for line in gateway.requests(SLOW_TUNNELS)} == {len(ANSWER) + len(data)}


# --- order ------------------------------------------------------------------------------------------------------------


@pytest.mark.core
def test_much_and_little_by_turns_stay_in_order(gateway_to):
    """Bytes that were moved in the kernel, and bytes that were copied."""
    sizes = [1, 700_000, 10, 65536, 3, 3_000_000, 100, 16384, 2_000_000, 1]
    data = pattern(sum(sizes))
    gateway, _ = gateway_to(wire.tunnels(wire.returns_all))
    with open_tunnel(gateway) as client:
        at = 0
        for size in sizes:
            piece = data[at:at + size]
            sender = threading.Thread(target=client.send, args=(piece,), daemon=True)
            sender.start()
            assert client.read_exactly(size) == piece
            sender.join(wire.LIMIT_S)
            at += size
        client.end()
        assert client.read_to_end() == b""


# --- ends -------------------------------------------------------------------------------------------------------------


def test_a_tunnel_that_rests_keeps_nothing_of_its_bulk(gateway_to):
    gateway, _ = gateway_to(wire.tunnels(wire.returns_all))
    baseline = peers.steady(gateway.descriptors)
    with open_tunnel(gateway) as client:
        data = pattern(4 << 20)
        Sender(client, data).run()
        assert sha(client.read_exactly(len(data))) == sha(data)
        peers.wait_for(lambda: gateway.descriptors() <= baseline + 2, "two descriptors a tunnel")


def fills(connection):
    """Sends until nothing more goes, waits for the gateway's answer to that, and resets."""
    connection.sock.settimeout(0.3)
    with contextlib.suppress(TimeoutError):
        connection.send(pattern(64 << 20))
    connection.reset()


@pytest.mark.parametrize("who", ["reader", "writer"])
def test_a_reset_in_the_middle_ends_both_sides(gateway_to, who):
    data = pattern(DATA_SIZE)
    gateway, server = gateway_to(wire.tunnels(
        fills if who == "writer" else lambda connection: connection.send(data)))
    baseline = peers.steady(gateway.descriptors)
    with open_tunnel(gateway, receive_buffer=65536) as client:
        peers.wait_for(lambda: gateway.descriptors() > baseline + 2, "a pipe is in use")
        if who == "reader":
            client.reset()
        elif server.connections[0].done.wait(wire.LIMIT_S):
            with contextlib.suppress(ConnectionResetError):
                assert len(client.read_to_end()) < 64 << 20
        assert server.connections[0].done.wait(wire.LIMIT_S)
    assert gateway.request()["reason"] == "relay-reset"
    peers.wait_for(lambda: gateway.descriptors() == baseline, "all descriptors are given back")
