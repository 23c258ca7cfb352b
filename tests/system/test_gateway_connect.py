"""CONNECT: the answers of upstreams, what passes through a tunnel, how it ends, what the upstream learns."""

import base64
import hashlib
import threading

import pytest

import peers
import wire

BIG = 10 * 1024 * 1024
OK = b"HTTP/1.1 200 OK\r\n\r\n"


def pattern(size, seed=b"fairlead"):
    """Bytes that no other place of the stream repeats."""
    block = b"".join(hashlib.sha256(seed + i.to_bytes(4, "big")).digest() for i in range(2048))
    return (block * (size // len(block) + 1))[:size]


def sha(data):
    return hashlib.sha256(data).hexdigest()


# --- the upstream's answer (T16, H21) -------------------------------------------------------------------------------

ACCEPTED = {
    "plain": OK,
    "no reason": b"HTTP/1.1 200\r\n\r\n",
    "no reason, a space": b"HTTP/1.1 200 \r\n\r\n",
    "HTTP/1.0": b"HTTP/1.0 200 Connection established\r\nProxy-Agent: x\r\n\r\n",
    "another 2xx": b"HTTP/1.1 299 Fine\r\n\r\n",
    "1xx before": b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" + OK,
    "Content-Length": b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n",
    "chunked": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
    "both, and wrong": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: x\r\nContent-Length: -1\r\n\r\n",
}
GARBAGE = {
    "four digits": b"HTTP/1.1 2000 OK\r\n\r\n",
    "two digits": b"HTTP/1.1 20 OK\r\n\r\n",
    "200 in the reason only": b"HTTP/1.1 9xx 200 OK\r\n\r\n",
    "bare LF": b"HTTP/1.1 200 OK\n\n",
    "HTTP/2": b"HTTP/2 200 OK\r\n\r\n",
    "HTTP/1.2": b"HTTP/1.2 200 OK\r\n\r\n",
    "SSH": b"SSH-2.0-OpenSSH_9.2\r\n",
    "a body first": b"\r\n\r\n" + OK,
    "a megabyte of fields": b"HTTP/1.1 200 OK\r\n" + b"X-Field: yyyyyyyy\r\n" * 60000 + b"\r\n",
    "NUL": b"HTTP/1.1 200 OK\r\nX: \0\r\n\r\n",
    "obs-fold": b"HTTP/1.1 200 OK\r\nX: a\r\n b\r\n\r\n",
}
BLAMED = {403: ("target-denied", 502), 404: ("target-unknown", 502), 502: ("target-failed", 502),
          503: ("target-failed", 502), 504: ("target-timeout", 504), 400: ("proxy-cannot", 502),
          405: ("proxy-cannot", 502), 301: ("proxy-cannot", 502)}


@pytest.mark.core
@pytest.mark.parametrize("name", ACCEPTED)
def test_a_tunnel_stands_after_a_whole_2xx_head(gateway_to, name):
    reply = ACCEPTED[name]
    gateway, server = gateway_to(wire.tunnels(wire.returns_all, reply + b"hello"))
    with gateway.connect() as client:
        answer = client.tunnel()
        assert answer.status == 200
        assert not answer.names() & {"content-length", "transfer-encoding"}
        # What the server says first, glued to the head, comes first.
        assert client.read_exactly(5) == b"hello"
        client.send(b"ping")
        assert client.read_exactly(4) == b"ping"
        client.end()
        assert client.read_to_end() == b""
    assert gateway.request()["reason"] == "ok"
    assert server.connections[0].head.raw == (
        b"CONNECT origin.test:443 HTTP/1.1\r\nHost: origin.test:443\r\n\r\n")


@pytest.mark.core
def test_the_answer_may_come_byte_by_byte(gateway_to):
    def drips(connection):
        connection.read_head()
        connection.send_pieces(bytes([b]) for b in ACCEPTED["1xx before"])
        wire.returns_all(connection)

    gateway, _ = gateway_to(drips)
    with gateway.connect() as client:
        assert client.tunnel().status == 200
        client.send(b"ping")
        assert client.read_exactly(4) == b"ping"


@pytest.mark.parametrize("name", GARBAGE)
def test_garbage_is_no_tunnel(gateway_to, name):
    gateway, _ = gateway_to(wire.tunnels(wire.returns_all, GARBAGE[name]))
    with gateway.connect() as client:
        answer = client.tunnel()
        assert answer.status == 502
        assert "error=http_protocol_error" in answer.fields["proxy-status"]
        assert answer.fields["connection"] == "close"
    line = gateway.request()
    assert (line["reason"], line["fault"], line["tries"]) == ("proxy-garbage", "proxy", 1)


@pytest.mark.parametrize("reply", [b"", b"HTTP/1.1 200 OK\r\nX: y\r\n", b"HTTP/1.1 100 Continue\r\n\r\n"])
def test_an_answer_that_ends_early_is_no_tunnel(gateway_to, reply):
    gateway, _ = gateway_to(wire.tunnels(lambda connection: None, reply))
    with gateway.connect() as client:
        answer = client.tunnel()
    assert answer.status == 502
    assert "error=connection_terminated" in answer.fields["proxy-status"]


@pytest.mark.core
@pytest.mark.parametrize("status", BLAMED)
def test_a_refusal_is_told_with_the_status_that_came(gateway_to, status):
    reason, shown = BLAMED[status]
    reply = f"HTTP/1.1 {status} No\r\nContent-Length: 6\r\n\r\nsecret".encode()
    gateway, _ = gateway_to(wire.tunnels(wire.is_silent, reply))
    with gateway.connect() as client:
        answer = client.tunnel()
        assert answer.status == shown
        assert f"received-status={status}" in answer.fields["proxy-status"]
        assert answer.fields["proxy-status"].endswith(f'details="{reason}"')
        assert b"secret" not in answer.body
    assert gateway.request()["reason"] == reason


def test_the_targets_refusal_is_not_tried_on_another_member(gateway_to_two):
    gateway, first, second = gateway_to_two(
        wire.answers(b"HTTP/1.1 403 No\r\n\r\n"), wire.tunnels(wire.returns_all))
    with gateway.connect() as client:
        assert client.tunnel().status == 502
    assert second.connections == []


def test_a_client_of_http_1_0_gets_its_tunnel(gateway_to):
    gateway, server = gateway_to(wire.tunnels(wire.returns_all))
    with gateway.connect() as client:
        assert client.ask(b"CONNECT o.test:443 HTTP/1.0\r\n\r\n", "CONNECT").status == 200
        client.send(b"ping")
        assert client.read_exactly(4) == b"ping"


@pytest.mark.parametrize("target, seen", [("O.Test:443", "o.test:443"), ("o.test.:443", "o.test:443"),
                                          ("[2001:DB8:0::1]:443", "[2001:db8::1]:443"), ("o.test:1", "o.test:1")])
def test_the_upstream_gets_the_canonical_target(gateway_to, target, seen):
    gateway, server = gateway_to(wire.tunnels(wire.returns_all))
    with gateway.connect() as client:
        assert client.tunnel(target).status == 200
    assert server.connections[0].head.line == f"CONNECT {seen} HTTP/1.1"
    assert server.connections[0].head.fields["host"] == seen


# --- bytes that come early (H20) ------------------------------------------------------------------------------------


@pytest.mark.core
def test_bytes_sent_early_are_the_first_of_the_tunnel(gateway_to):
    gateway, server = gateway_to(wire.tunnels(wire.returns_all))
    with gateway.connect() as client:
        client.send(b"CONNECT o.test:443 HTTP/1.1\r\nHost: o.test:443\r\n\r\nearly")
        assert client.read_response("CONNECT").status == 200
        assert client.read_exactly(5) == b"early"


def test_much_may_be_sent_early(gateway_to):
    """More than is held: the client waits, nothing is lost."""
    go, got = threading.Event(), []

    def answers_late(connection):
        connection.read_head()
        go.wait(wire.LIMIT_S)
        connection.send(OK)
        got.append(connection.read_to_end())

    data, sent = pattern(BIG), [0]
    gateway, server = gateway_to(answers_late)
    with gateway.connect() as client:
        client.send(b"CONNECT o.test:443 HTTP/1.1\r\nHost: o.test:443\r\n\r\n")

        def send():
            for i in range(0, BIG, 65536):
                client.send(data[i:i + 65536])
                sent[0] += 65536
            client.end()

        sender = threading.Thread(target=send)
        sender.start()
        server.wait_for_connection()
        assert peers.steady(lambda: sent[0], 0.2) < BIG * 3 / 4
        assert got == [] and len(server.connections[0].received) < 1000
        go.set()
        assert client.read_response("CONNECT").status == 200
        sender.join(wire.LIMIT_S)
        assert server.connections[0].done.wait(wire.LIMIT_S)
    assert sha(got[0]) == sha(data)


@pytest.mark.parametrize("status", [407, 502])
def test_bytes_sent_early_are_discarded_when_there_is_no_tunnel(gateway_to, status):
    gateway, server = gateway_to(wire.tunnels(wire.is_silent, b"HTTP/1.1 %d No\r\n\r\n" % status))
    early = b"GET http://smuggled.test/ HTTP/1.1\r\nHost: smuggled.test\r\n\r\n"
    with gateway.connect() as client:
        client.send(b"CONNECT o.test:443 HTTP/1.1\r\nHost: o.test:443\r\n\r\n" + early)
        answer = client.read_response()
        assert answer.status == 502 and answer.fields["connection"] == "close"
        assert client.is_closed()
    server.connections[0].done.wait(wire.LIMIT_S)
    assert b"smuggled" not in server.connections[0].received
    assert len(gateway.requests(1)) == 1


# --- both directions, to the last byte (T18, H22) -------------------------------------------------------------------


@pytest.mark.core
def test_a_client_that_ended_its_side_reads_ten_megabytes(gateway_to):
    data = pattern(BIG)

    def answers_after_the_end(connection):
        assert connection.read_to_end() == b"question"
        connection.send(data)

    gateway, _ = gateway_to(wire.tunnels(answers_after_the_end))
    with gateway.connect() as client:
        client.tunnel()
        client.send(b"question")
        client.end()
        assert sha(client.read_to_end()) == sha(data)
    line = gateway.request()
    assert line["reason"] == "ok" and line["out"] > BIG


@pytest.mark.core
def test_an_upstream_that_ended_its_side_reads_ten_megabytes(gateway_to):
    got = []

    def ends_first(connection):
        connection.end()
        got.append(connection.read_to_end())

    data = pattern(BIG)
    gateway, server = gateway_to(wire.tunnels(ends_first))
    with gateway.connect() as client:
        client.tunnel()
        assert client.read_to_end() == b""
        client.send(data)
        client.end()
        assert server.connections[0].done.wait(wire.LIMIT_S)
    assert sha(got[0]) == sha(data)


def test_both_directions_at_once(gateway_to):
    up, down, got = pattern(BIG, b"up"), pattern(BIG, b"down"), []

    def script(connection):
        writer = threading.Thread(target=lambda: (connection.send(down), connection.end()))
        writer.start()
        got.append(connection.read_to_end())
        writer.join()

    gateway, server = gateway_to(wire.tunnels(script))
    with gateway.connect() as client:
        client.tunnel()
        writer = threading.Thread(target=lambda: (client.send(up), client.end()))
        writer.start()
        assert sha(client.read_to_end()) == sha(down)
        writer.join()
    assert server.connections[0].done.wait(wire.LIMIT_S)
    assert sha(got[0]) == sha(up)


def test_what_the_upstream_sent_before_its_reset_is_attempted(gateway_to):
    """RFC 9110 9.3.6: a proxy MUST attempt to send outstanding data."""

    def sends_and_closes(connection):
        connection.read_exactly(2)
        connection.send(pattern(100_000))

    gateway, _ = gateway_to(wire.tunnels(sends_and_closes))
    with gateway.connect() as client:
        client.tunnel()
        client.send(b"go" + b"never read" * 100)
        got = bytearray()
        try:
            while piece := client.read_some():
                got += piece
        except ConnectionResetError:
            pass
    assert gateway.request()["reason"] in ("ok", "relay-reset")
    assert pattern(100_000).startswith(bytes(got)) and got


@pytest.mark.parametrize("who", ["client", "upstream"])
def test_a_reset_of_one_side_ends_the_other(gateway_to, who):
    def resets(connection):
        connection.read_exactly(4)
        connection.reset()

    gateway, server = gateway_to(wire.tunnels(resets if who == "upstream" else wire.is_silent))
    with gateway.connect() as client:
        client.tunnel()
        client.send(b"ping")
        if who == "client":
            client.reset()
        else:
            assert client.is_closed()
        assert server.connections[0].done.wait(wire.LIMIT_S)
    assert gateway.request()["reason"] == "relay-reset"


def test_an_idle_tunnel_ends_in_time(gateway_to):
    gateway, server = gateway_to(wire.tunnels(wire.is_silent), words=["--idle-timeout", "1s"])
    with gateway.connect() as client:
        client.tunnel()
        assert client.is_closed()
    assert gateway.request()["reason"] == "idle-timeout"
    assert server.connections[0].done.wait(wire.LIMIT_S)


# --- credentials (T10, T23) -----------------------------------------------------------------------------------------

CREDENTIALS = {
    "owner:pass": b"owner:pass",
    "owner:a:b": b"owner:a:b",
    "owner:p%40ss": b"owner:p@ss",
    "owner:100%25": b"owner:100%",
    "owner:%2540x": b"owner:%40x",
    "owner:%25zz": b"owner:%zz",
    "owner:p%C3%A4ss": "owner:päss".encode(),
    "owner:" + "x" * 255: b"owner:" + b"x" * 255,
    "owner:": b"owner:",
    "owner": b"owner:",
    "u%2Fs:p%3Fq%23r": b"u/s:p?q#r",
}


@pytest.mark.core
@pytest.mark.parametrize("userinfo", CREDENTIALS)
def test_the_upstream_gets_the_exact_bytes_of_the_credentials(node, add, run, upstream, userinfo):
    server = upstream(wire.tunnels(wire.returns_all), wire.serves())
    add(f"http://{userinfo}@127.0.0.1:{server.port}")
    gateway = node("--verbose")
    with gateway.connect() as client:
        assert client.tunnel().status == 200
    with gateway.connect() as client:
        assert client.get().status == 200
    for connection in server.connections:
        scheme, _, encoded = connection.head.fields["proxy-authorization"].partition(" ")
        assert (scheme, base64.b64decode(encoded)) == ("Basic", CREDENTIALS[userinfo])
    gateway.requests(2)
    secret = userinfo.partition(":")[2]
    assert not secret or secret not in gateway.text + run("pool", "list").stdout
    assert "owner" not in gateway.text


@pytest.mark.core
@pytest.mark.parametrize("is_tunnel", [True, False])
def test_a_407_leads_to_the_next_member_and_at_last_to_502(node, add, upstream, is_tunnel):
    wants = b"HTTP/1.1 407 Who\r\nProxy-Authenticate: Basic realm=\"theirs\"\r\nContent-Length: 0\r\n\r\n"
    servers = [upstream(wire.answers(wants), host=f"127.0.0.{i}") for i in (2, 3)]
    add(*(f"http://user:hunter2@{s.host}:{s.port}" for s in servers))
    gateway = node("--verbose")
    with gateway.connect() as client:
        answer = client.tunnel() if is_tunnel else client.get()
        assert answer.status == 502
        assert "proxy-authenticate" not in answer.fields
        assert "received-status=407" in answer.fields["proxy-status"]
        assert 'details="auth-failed"' in answer.fields["proxy-status"]
    line = gateway.request()
    assert (line["reason"], line["tries"]) == ("auth-failed", 2)
    assert [len(s.connections) for s in servers] == [1, 1]
    assert "hunter2" not in gateway.text + answer.raw.decode()


def test_a_post_that_met_a_407_is_sent_whole_to_the_next_member(gateway_to_two):
    wants = wire.answers(b"HTTP/1.1 407 Who\r\nContent-Length: 0\r\n\r\n")
    gateway, first, second = gateway_to_two(wants, wire.echoes)
    with gateway.connect() as client:
        answer = client.ask(wire.request("POST", "http://origin.test/", b"body"))
    assert answer.body == b"POST http://origin.test/ body"
    assert gateway.request()["tries"] == 2


@pytest.mark.core
def test_the_target_sees_nothing_of_the_proxies(node, add, peer, upstream):
    proxy = peer(peers.Tinyproxy, "127.0.0.2", user="owner", password="hunter2")
    origin = upstream(wire.serves())
    add(proxy.url)
    gateway = node()
    with gateway.connect() as client:
        assert client.get(origin.url + "/", Proxy_Authorization="Basic bWluZQ==").status == 200
    with gateway.connect() as client:
        assert client.tunnel(f"{origin.host}:{origin.port}").status == 200
        client.send(b"GET / HTTP/1.1\r\nHost: o.test\r\n\r\n")
        assert client.read_response().body == b"hello"
    assert not [name for c in origin.connections for name in c.head.names() if "proxy" in name]
    assert "hunter2" not in gateway.text
