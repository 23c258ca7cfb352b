"""Clients that vanish, nodes that stop, many at once: everything returns to where it was."""

import contextlib
import socket
import threading
import time

import pytest

import peers
import wire

URL = "http://origin.test/"
GET = wire.request("GET", URL)
CONNECT = b"CONNECT o.test:443 HTTP/1.1\r\nHost: o.test:443\r\n\r\n"


def settles_at(gateway, count, what="descriptors return to their baseline"):
    peers.wait_for(lambda: gateway.descriptors() == count, what)


# --- clients that vanish --------------------------------------------------------------------------------------------


def body_without_end(connection):
    connection.read_head()
    connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\nhello")
    wire.is_silent(connection)


STATES = {
    "before the first byte": (wire.is_silent, b""),
    "in the head": (wire.is_silent, GET[:20]),
    "in the handshake of its tunnel": (wire.is_silent, CONNECT),
    "in its tunnel": (wire.tunnels(wire.is_silent), CONNECT + b"x"),
    "in its request body": (wire.is_silent, wire.request("POST", URL, Content_Length=10) + b"x"),
    "in a chunk": (wire.is_silent, wire.request("POST", URL, Transfer_Encoding="chunked") + b"5\r\nx"),
    "waiting for the answer": (wire.is_silent, GET),
    "waiting, with another request behind": (wire.is_silent, GET + GET),
    "in the answer's body": (body_without_end, GET),
    "behind a refusal": (wire.is_silent, b"GET / HTTP/1.1\r\n\r\n"),
}


@pytest.mark.core
@pytest.mark.parametrize("how", ["reset", "close"])
@pytest.mark.parametrize("where", STATES)
def test_a_client_that_vanishes_leaves_nothing_behind(gateway_to, where, how):
    script, raw = STATES[where]
    gateway, server = gateway_to(script, words=["--response-timeout", "1s", "--dial-timeout", "1s",
                                                "--head-timeout", "1s", "--idle-timeout", "1s"])
    baseline = peers.steady(gateway.descriptors)
    clients = [gateway.connect() for _ in range(5)]
    for client in clients:
        client.send(raw)
        if where in ("in its tunnel", "in the answer's body"):
            client.read_some()
    if b"\r\nHost: " in raw:
        server.wait_for_connection(4)
    for client in clients:
        getattr(client, how)()
    settles_at(gateway, baseline)
    assert [c.done.wait(wire.LIMIT_S) for c in server.connections] == [True] * len(server.connections)


def test_a_client_that_resets_while_it_waits_frees_its_upstream_at_once(gateway_to):
    gateway, server = gateway_to(wire.is_silent)
    with gateway.connect() as client:
        client.send(GET)
        server.wait_for_connection()
        peers.wait_for(lambda: b"\r\n\r\n" in server.connections[0].received, "the request arrives")
        client.reset()
        peers.wait_for(server.connections[0].done.is_set, "the upstream's connection ends", 5)
    assert gateway.request()["reason"] == "client-gone"


def test_an_upstream_that_vanishes_leaves_nothing_behind(gateway_to):
    gateway, server = gateway_to(wire.closes, wire.resets, wire.tunnels(lambda c: c.reset()),
                                 wire.tunnels(lambda c: None), wire.serves())
    baseline = peers.steady(gateway.descriptors)
    for raw in (GET, CONNECT, CONNECT, CONNECT, GET):
        with gateway.connect() as client, contextlib.suppress(ConnectionResetError):
            client.send(raw)
            client.end()
            client.read_to_end()
    settles_at(gateway, baseline)
    assert len(gateway.requests(5)) == 5


# --- many -----------------------------------------------------------------------------------------------------------


@pytest.mark.core
def test_five_hundred_tunnels_at_once(gateway_to):
    gateway, server = gateway_to(wire.tunnels(wire.returns_all))
    baseline = peers.steady(gateway.descriptors)
    clients = [gateway.connect() for _ in range(500)]
    for client in clients:
        client.send(CONNECT)
    for i, client in enumerate(clients):
        assert client.read_response("CONNECT").status == 200
        client.send(b"%d" % i)
    assert gateway.descriptors() >= baseline + 1000
    for i, client in enumerate(clients):
        assert client.read_exactly(len(b"%d" % i)) == b"%d" % i
        client.end()
    assert all(client.read_to_end() == b"" for client in clients)
    for client in clients:
        client.close()
    settles_at(gateway, baseline)
    assert len(gateway.requests(500, reason="ok")) == 500


def test_more_clients_than_are_admitted_wait_their_turn(gateway_to):
    gateway, server = gateway_to(wire.serves(), words=["--max-clients", "3"])
    clients = [gateway.connect() for _ in range(6)]
    for client in clients[:3]:
        assert client.get().status == 200
    for client in clients[3:]:
        client.send(GET)
    for client in clients[:3]:
        client.close()
    assert [client.read_response().status for client in clients[3:]] == [200] * 3
    for client in clients[3:]:
        client.close()


@pytest.mark.core
def test_two_workers_share_the_listener_and_the_pool(node, add, run, upstream):
    servers = [upstream(wire.serves(), host=f"127.0.0.{i}") for i in range(2, 6)]
    add(*(server.url for server in servers))
    gateway = node("--workers", 2, role="up")

    def ask():
        for _ in range(25):
            with gateway.connect() as client:
                assert client.get().status == 200

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(wire.LIMIT_S)
    lines = gateway.requests(200)
    assert [len(server.connections) for server in servers] == [50] * 4
    assert {line["context"] for line in lines} == {"gateway.1", "gateway.2"}


# --- who may come, and what is written down --------------------------------------------------------------------------


@pytest.mark.core
def test_clients_may_come_by_a_unix_socket(node, add, upstream, folder):
    add(upstream(wire.serves()).url)
    for _ in range(2):  # the second finds what the first left behind
        gateway = node("--listen", f"unix:{folder}/gw")
        with wire.Wire(socket.socket(socket.AF_UNIX)) as client:
            client.sock.connect(f"{folder}/gw")
            client.send(GET)
            assert client.read_response().body == b"hello"
        assert gateway.request()["client"] == "unix"
        gateway.stop()


def test_only_allowed_networks_may_use_a_listener_beyond_loopback(node, add, upstream):
    server = upstream(wire.serves())
    add(server.url)
    port = peers.free_port()
    gateway = node("--listen", f"0.0.0.0:{port}", "--allow-client", "127.0.0.9/32")
    for source, status in (("127.0.0.1", 403), ("127.0.0.9", 200), ("127.0.0.10", 403)):
        for raw in (GET, CONNECT.replace(b"o.test", b"192.0.2.1")) if status == 403 else (GET,):
            with wire.Wire(socket.create_connection(("127.0.0.1", port), 10, (source, 0))) as client:
                client.send(raw)
                assert client.read_response().status == status
    assert len(server.connections) == 1
    assert {line["client"] for line in gateway.requests(5)} == {"127.0.0.1", "127.0.0.9", "127.0.0.10"}


@pytest.mark.core
def test_the_access_log_has_a_line_for_each_request(gateway_to):
    gateway, server = gateway_to(wire.serves(b"hello"), wire.serves(b"x" * 100_000))
    with gateway.connect() as client:
        answers = [client.get(), client.ask(wire.request("POST", "http://Origin.test:8080/x", b"body"))]
    first, second = gateway.requests(2)
    expected = {"client": "127.0.0.1", "method": "GET", "target": "origin.test:80", "member": server.url,
                "tries": 1, "status": 200, "reason": "ok", "in": len(GET), "out": len(answers[0].raw) + 5}
    assert expected.items() <= first.items()
    assert second["in"] == len(wire.request("POST", "http://Origin.test:8080/x", b"body"))
    assert second["out"] == len(answers[1].raw) + 100_000
    assert second["target"] == "origin.test:8080" and 0 <= second["ms"] < 60_000


def test_the_access_log_can_be_left_out(gateway_to):
    gateway, server = gateway_to(wire.serves(), words=["--no-access-log"])
    with gateway.connect() as client:
        client.get()
    gateway.stop()
    assert gateway.log(message="request") == []


# --- the end --------------------------------------------------------------------------------------------------------


def sends_when_told(go, size):
    def script(connection):
        connection.read_head()
        connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size + b"x" * 1000)
        go.wait(wire.LIMIT_S)
        connection.send(b"x" * (size - 1000))

    return script


@pytest.mark.core
@pytest.mark.parametrize("role", ["gateway", "up"])
def test_sigterm_lets_a_download_end_and_takes_no_new_client(node, add, upstream, role):
    go, size = threading.Event(), 5_000_000
    server = upstream(sends_when_told(go, size))
    add(server.url)
    gateway = node(role=role)
    idle = gateway.connect()
    with gateway.connect() as client:
        client.send(GET)
        client.read_head()
        gateway.terminate()
        peers.wait_for(lambda: not peers.is_serving("127.0.0.1", gateway.port), "it takes nobody new", 5)
        assert idle.is_closed()
        assert gateway.process.poll() is None
        go.set()
        assert len(client.read_exactly(size)) == size
    gateway.stop()
    assert gateway.request()["reason"] == "ok"


@pytest.mark.core
def test_sigterm_lets_a_tunnel_end(gateway_to):
    gateway, server = gateway_to(wire.tunnels(wire.returns_all))
    with gateway.connect() as client:
        client.tunnel()
        gateway.terminate()
        peers.wait_for(lambda: gateway.log(message="stopping"), "it is stopping")
        client.send(b"still here")
        assert client.read_exactly(10) == b"still here"
        client.end()
        assert client.read_to_end() == b""
    gateway.stop()
    assert gateway.request()["reason"] == "ok"


def test_a_request_behind_the_one_that_drains_is_not_begun(gateway_to):
    go = threading.Event()
    gateway, server = gateway_to(sends_when_told(go, 2000))
    with gateway.connect() as client:
        client.send(GET + GET)
        client.read_head()
        gateway.terminate()
        peers.wait_for(lambda: gateway.log(message="stopping"), "it is stopping")
        go.set()
        client.read_exactly(2000)
        assert client.is_closed()
    gateway.stop()
    assert len(server.connections) == 1


def test_what_does_not_end_in_time_is_ended(gateway_to):
    gateway, server = gateway_to(wire.tunnels(wire.is_silent), words=["--drain-timeout", "300ms"])
    with gateway.connect() as client:
        client.tunnel()
        started = time.monotonic()
        gateway.terminate()
        assert client.is_closed()
        gateway.stop()
        assert time.monotonic() - started < 10
    assert gateway.request()["reason"] == "shutdown"


def test_a_second_sigterm_ends_at_once_and_well(gateway_to):
    gateway, server = gateway_to(wire.tunnels(wire.is_silent))
    with gateway.connect() as client:
        client.tunnel()
        gateway.terminate()
        peers.wait_for(lambda: gateway.log(message="stopping"), "it is stopping")
        gateway.is_told = False
        gateway.terminate()
        assert gateway.wait(10) == 0


def test_many_sigterms_in_a_row_end_it_with_status_0(node):
    for _ in range(10):
        gateway = node()
        with gateway.connect() as client:
            assert client.get().status == 503
        while gateway.process.poll() is None:
            gateway.is_told = False
            gateway.terminate()
        assert gateway.process.returncode == 0
