"""Members that are no proxy (direct://), and what may not be reached."""

import socket

import pytest

import peers
import wire


@pytest.fixture
def direct(node, run):
    """direct(source="", words=..., **options of node) -> a gateway whose only member egresses directly."""

    def start(source="", words=(), **options):
        run("pool", "add", "--eligible", "--allow-private", f"direct://{source}")
        return node(*words, **options)

    return start


@pytest.mark.core
@pytest.mark.parametrize("is_tunnel", [False, True])
def test_the_origin_sees_the_address_that_was_named(direct, upstream, is_tunnel):
    origin = upstream(wire.serves())
    gateway = direct("127.0.0.5")
    with gateway.connect() as client:
        if is_tunnel:
            assert client.tunnel(f"127.0.0.1:{origin.port}").status == 200
        client.send(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n" if is_tunnel
                    else wire.request("GET", origin.url + "/"))
        assert client.read_response().body == b"hello"
    assert origin.connections[0].peer[0] == "127.0.0.5"
    assert gateway.request()["member"] == "direct://127.0.0.5"


@pytest.mark.core
def test_an_origin_gets_origin_form(direct, upstream):
    origin = upstream(wire.serves())
    gateway = direct()
    for path, seen in (("/a/b?c=d", "/a/b?c=d"), ("", "/"), ("?c=d", "/?c=d")):
        with gateway.connect() as client:
            assert client.get(origin.url + path).status == 200
        assert origin.connections[-1].head.line == f"GET {seen} HTTP/1.1"
    assert origin.connections[0].head.fields["host"] == f"127.0.0.1:{origin.port}"


def test_a_body_goes_up_to_an_origin(direct, upstream):
    origin = upstream(wire.echoes)
    gateway = direct()
    with gateway.connect() as client:
        raw = wire.request("POST", origin.url + "/x", Transfer_Encoding="chunked")
        assert client.ask(raw + wire.chunked(b"a" * 70_000)).body == b"POST /x " + b"a" * 70_000


@pytest.mark.parametrize("is_tunnel", [False, True])
def test_a_target_that_refuses_is_the_targets_fault(direct, is_tunnel):
    gateway = direct()
    port = peers.free_port()
    with gateway.connect() as client:
        answer = client.tunnel(f"127.0.0.1:{port}") if is_tunnel else client.get(f"http://127.0.0.1:{port}/")
    assert answer.status == 502
    line = gateway.request()
    assert (line["reason"], line["fault"], line["tries"]) == ("target-refused", "target", 1)


# --- what may not be reached ----------------------------------------------------------------------------------------

PRIVATE = ("127.0.0.1", "localhost", "LOCALHOST.", "x.localhost", "10.0.0.1", "192.168.1.1", "169.254.169.254",
           "0.0.0.0", "100.64.0.1", "172.16.0.1", "[::1]", "[::ffff:127.0.0.1]", "[fe80::1]", "[fd00::1]",
           "[64:ff9b::7f00:1]", "255.255.255.255", "224.0.0.1", "[::]")


@pytest.mark.core
@pytest.mark.parametrize("kind", ["direct", "proxy"])
def test_private_targets_are_refused(node, add, run, upstream, kind):
    server = upstream(wire.serves())
    run("pool", "add", "--eligible", "--allow-private", "direct://" if kind == "direct" else server.url)
    run("pool", "rules", "allow_private=1")
    gateway = node(private=False)
    for host in PRIVATE:
        for raw in (f"CONNECT {host}:{server.port} HTTP/1.1\r\nHost: x.test\r\n\r\n",
                    f"GET http://{host}:{server.port}/ HTTP/1.1\r\nHost: x.test\r\n\r\n"):
            with gateway.connect() as client:
                answer = client.ask(raw.encode())
            assert (host, answer.status) == (host, 403)
            assert "error=destination_ip_prohibited" in answer.fields["proxy-status"]
    assert server.connections == []
    assert {line["fault"] for line in gateway.requests(2 * len(PRIVATE))} == {"client"}


@pytest.mark.parametrize("host", ["127.1", "0x7f000001", "2130706433", "0177.0.0.1", "127.0.0.1.", "1.2.3"])
def test_other_spellings_of_addresses_are_refused(direct, upstream, host):
    origin = upstream(wire.serves())
    gateway = direct(private=False)
    with gateway.connect() as client:
        assert client.get(f"http://{host}:{origin.port}/").status in (400, 403)
    assert origin.connections == []


def test_a_network_that_is_allowed_is_reached_and_no_other(direct, upstream):
    allowed, other = upstream(wire.serves(), host="127.0.0.7"), upstream(wire.serves(), host="127.0.0.8")
    gateway = direct(private=False, words=["--allow-target", "127.0.0.7/32"])
    with gateway.connect() as client:
        assert client.get(allowed.url + "/").status == 200
        assert client.get(other.url + "/").status == 403
    assert other.connections == []


def test_a_name_is_judged_by_the_address_that_is_connected_to(direct, upstream):
    """The machine's own name resolves to an address of its own, or not at all: no way to a private place."""
    origin = upstream(wire.serves())
    gateway = direct(private=False)
    with gateway.connect() as client:
        answer = client.get(f"http://{socket.gethostname()}:{origin.port}/")
    assert answer.status in (400, 403, 502)
    assert origin.connections == []


@pytest.mark.core
@pytest.mark.parametrize("host", ["127.0.0.1", "[::ffff:127.0.0.1]", "0.0.0.0"])
@pytest.mark.parametrize("kind", ["direct", "proxy"])
def test_the_gateway_itself_is_no_target(node, run, upstream, kind, host):
    server = upstream(wire.serves())
    run("pool", "add", "--eligible", "--allow-private", "direct://" if kind == "direct" else server.url)
    gateway = node()
    for raw in (f"CONNECT {host}:{gateway.port} HTTP/1.1\r\nHost: x\r\n\r\n",
                f"GET http://{host}:{gateway.port}/ HTTP/1.1\r\nHost: x\r\n\r\n"):
        with gateway.connect() as client:
            answer = client.ask(raw.encode())
        assert answer.status == 502
        assert "error=proxy_loop_detected" in answer.fields["proxy-status"]
    assert {line["reason"] for line in gateway.requests(2)} == {"request-loop"}


def test_a_name_of_the_gateway_is_no_way_round(direct):
    gateway = direct()
    with gateway.connect() as client:
        assert client.get(f"http://localhost:{gateway.port}/").status in (403, 502)
    assert len(gateway.requests(1)) == 1


def test_redis_is_no_target(node, redis_server, run):
    store = redis_server(tcp=True)
    run("pool", "add", "--eligible", "--allow-private", "direct://", redis=store)
    gateway = node(redis=store)
    with gateway.connect() as client:
        assert client.tunnel(f"127.0.0.1:{store.port}").status == 502
    assert gateway.request()["reason"] == "request-loop"


@pytest.mark.core
def test_a_private_member_needs_the_pools_leave(node, add, run, upstream):
    server = upstream(wire.serves())
    add(server.url)
    run("pool", "rules", "allow_private=0")
    gateway = node(private=False)
    with gateway.connect() as client:
        assert client.get().status == 502
    assert gateway.request()["reason"] == "proxy-prohibited"
    assert server.connections == []
