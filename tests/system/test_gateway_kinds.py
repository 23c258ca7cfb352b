"""What holds for tunnels and failures by each kind of client and of upstream alike (T13, T18, T20, T23, T25)."""

import concurrent.futures
import contextlib
import os
import time

import pytest

import peers
import scripted
import wire
import world

KINDS = ("http", "https", "socks4", "socks5")
BLOB = os.urandom(3_000_000)
TARGET = ("target.test", 443)
PASSWORD = "correct-horse-battery"


@pytest.fixture(scope="module")
def place(session_folder):
    with world.Arena(session_folder / "kinds") as it:
        authority = peers.Authority(it.folder / "ca")
        it.certificate = authority.issue("upstream", "IP:127.0.0.1")
        it.words = ["--upstream-ca", authority.certificate, "--dial-timeout", "1s"]
        it.node = it.gateway(*it.words)
        yield it


@pytest.fixture
def serve(place):
    """serve(kind, script) -> the pool's one member: an upstream that grants tunnels and runs the script on them."""
    with contextlib.ExitStack() as ends:

        def start(kind, script, **options):
            server = scripted.Upstream(kind, script, certificate=place.certificate, **options)
            ends.callback(server.close)
            place.set_members(server)
            return server

        yield start


def by_connect(client):
    assert scripted.connect(client, *TARGET).status == 200


def by_socks5(client):
    assert scripted.socks5(client, *TARGET) == 0


def by_socks4(client):
    assert scripted.socks4(client, *TARGET) == 90


TUNNELS = [by_connect, by_socks5, by_socks4]


# --- tunnels (T18) --------------------------------------------------------------------------------------------------


@pytest.mark.core
@pytest.mark.parametrize("tunnel", TUNNELS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_client_that_ended_its_side_reads_the_rest(place, serve, kind, tunnel):
    upstream = serve(kind, lambda c: (c.read_to_end(), c.send(BLOB)))
    with place.node.connect() as client:
        tunnel(client)
        client.send(b"question")
        client.end()
        assert client.read_to_end() == BLOB
    assert upstream.connections[0].received.endswith(b"question")


@pytest.mark.core
@pytest.mark.parametrize("tunnel", TUNNELS)
@pytest.mark.parametrize("kind", ["http", "socks4", "socks5"])
def test_an_upstream_that_ended_its_side_reads_the_rest(place, serve, kind, tunnel):
    rest = []
    upstream = serve(kind, lambda c: (c.end(), rest.append(c.read_to_end())))
    with place.node.connect() as client:
        tunnel(client)
        assert client.read_to_end() == b""
        client.send(BLOB)
        client.end()
        upstream.connections[0].done.wait(wire.LIMIT_S)
    assert rest == [BLOB]


def test_the_deadline_of_the_handshake_is_not_that_of_the_tunnel(place, serve):
    """Each lies idle for longer than --dial-timeout, then drips."""
    servers = [serve(kind, wire.returns_all) for kind in KINDS]
    place.set_members(*servers)

    def drip(tunnel):
        with place.node.connect() as client:
            tunnel(client)
            time.sleep(1.1)
            for byte in b"slowly":
                client.send(bytes([byte]))
                assert client.read_exactly(1) == bytes([byte])
                time.sleep(0.02)

    # Counts far apart would send all to one.
    place.store.client.zadd("proxies", {server.url: 0 for server in servers})
    with concurrent.futures.ThreadPoolExecutor(len(KINDS) * len(TUNNELS)) as pool:
        list(pool.map(drip, TUNNELS * len(KINDS)))
    assert [len(server.asked) for server in servers] == [len(TUNNELS)] * len(KINDS)


# --- no member, no way (T20) ----------------------------------------------------------------------------------------


@pytest.mark.core
@pytest.mark.parametrize("state", ["empty", "parked"])
def test_without_an_eligible_member_nothing_is_reached(place, serve, state):
    with contextlib.closing(wire.Server(wire.serves())) as target:
        upstream = serve("socks5", wire.serves())
        if state == "parked":
            place.run("pool", "park", upstream.url)
        else:
            place.set_members()
        began = time.monotonic()
        with place.node.connect() as client:
            answer = scripted.connect(client, target.host, target.port)
        assert (answer.status, "error=destination_unavailable" in answer.fields["proxy-status"]) == (503, True)
        assert int(answer.fields["retry-after"]) >= 1
        with place.node.connect() as client:
            assert scripted.socks5(client, target.host, target.port) == 1
        with place.node.connect() as client:
            assert scripted.socks4(client, target.host, target.port) == 91
        assert time.monotonic() - began < 1
        assert target.connections == upstream.connections == []


# --- who may not (T13, T23) -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def guarded(place):
    """A gateway that wants to know its clients, on the same pool."""
    path = place.folder / "accounts"
    path.write_text(place.run("auth", "acme", input=PASSWORD))
    return place.gateway("--auth-file", path, *place.words)


def refuses(kind):
    """Wants another password than it gets."""
    reply = {"http": b"HTTP/1.1 407 Who\r\nProxy-Authenticate: Basic realm=x\r\nContent-Length: 0\r\n\r\n",
             "socks4": b"\0\x5d" + bytes(6)}

    def script(connection):
        if scripted.FAMILY[kind] == "socks5":
            connection.read_exactly(3)
            connection.send(b"\5\xff")
        else:
            scripted.take(kind, connection)
            connection.send(reply[scripted.FAMILY[kind]])

    return script


@pytest.mark.parametrize("kind", KINDS)
def test_a_known_client_never_gets_the_upstreams_challenge(place, guarded, kind):
    with contextlib.closing(scripted.Raw(kind, refuses(kind), certificate=place.certificate)) as upstream:
        place.set_members(upstream)
        with guarded.connect() as client:
            answer = scripted.connect(client, *TARGET, Proxy_Authorization=scripted.basic("acme", PASSWORD))
        assert (answer.status, "proxy-authenticate" in answer.fields) == (502, False)
        with guarded.connect() as client:
            assert scripted.socks5(client, *TARGET, "acme", PASSWORD) == 1
    assert {line["reason"] for line in guarded.requests(2)[-2:]} == {"auth-failed"}


@pytest.mark.parametrize("kind", ["http", "https", "socks4", "socks5"])
def test_the_target_sees_nothing_of_the_clients_credentials(place, guarded, serve, kind):
    upstream = serve(kind, wire.serves(), forwards=True)
    with guarded.connect() as client:
        login = scripted.basic("acme", PASSWORD)
        assert client.get("http://target.test:443/", Proxy_Authorization=login).body == b"hello"
    with guarded.connect() as client:
        assert scripted.socks5(client, *TARGET, "acme", PASSWORD) == 0
        assert client.get("http://target.test/").body == b"hello"
    for connection in upstream.connections:
        seen = bytes(connection.received).lower()
        assert not [word for word in (b"proxy-auth", b"acme", b"via:", b"forwarded", login[6:].lower().encode())
                    if word in seen]
    assert PASSWORD not in guarded.text and login[6:] not in guarded.text


# --- plain requests through what does not forward them --------------------------------------------------------------


@pytest.mark.parametrize("kind", ["socks4", "socks5"])
def test_a_challenge_of_the_target_is_not_the_members_fault(place, serve, kind):
    serve(kind, wire.answers(b"HTTP/1.1 407 Who\r\nProxy-Authenticate: Basic realm=x\r\nContent-Length: 0\r\n\r\n"))
    with place.node.connect() as client:
        answer = client.get(f"http://{kind}-challenge.test:443/")
    assert (answer.status, "proxy-authenticate" in answer.fields) == (502, False)
    line = place.node.request(target=f"{kind}-challenge.test:443")
    assert (line["fault"], line["tries"]) == ("target", 1)


@pytest.mark.parametrize("kind", ["socks4", "socks5"])
def test_a_target_that_speaks_first_is_not_misread(place, kind):
    """Its first bytes come glued to the reply of the proxy: what follows them is no response."""
    grant = scripted.GRANT[kind]
    with contextlib.closing(scripted.Raw(kind, lambda c: (
            scripted.take(kind, c), c.send(grant + b"220 mail\r\n"), c.read_head(),
            c.send(wire.response(b"hello")), c.read_to_end()))) as upstream:
        place.set_members(upstream)
        with place.node.connect() as client:
            assert client.get("http://target.test:443/").status == 502


# --- many (T25) -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def anything(place):
    """nginx as an upstream: it answers whatever host a request names."""
    return place.start(peers.Nginx(place.folder / "anything"))


def ask_many(node, numbers, user):
    """Plain requests for a host of its own each, pipelined by the hundred, with the user name user(number)."""
    with node.connect() as client:
        for start in range(0, len(numbers), 100):
            some = numbers[start:start + 100]
            client.send(b"".join(wire.request(
                "GET", f"http://h{i}.test/who", Proxy_Authorization=scripted.basic(user(i), PASSWORD))
                for i in some))
            assert {client.read_response().status for _ in some} == {200}


def resident_kib(node):
    with open(f"/proc/{node.pid}/status", encoding="ascii") as status:
        return int(next(line.split()[1] for line in status if line.startswith("VmRSS")))


def cpu_s(node):
    """utime and stime, proc(5)."""
    with open(f"/proc/{node.pid}/stat", encoding="ascii") as stat:
        fields = stat.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def has_sanitizer(node):
    with open(f"/proc/{node.pid}/maps", encoding="utf-8") as maps:
        return "libasan" in maps.read()


def test_sessions_and_hosts_leave_nothing_in_the_process(place, anything):
    if has_sanitizer(place.node):
        pytest.skip("AddressSanitizer keeps what is freed")
    place.set_members(anything)
    ask_many(place.node, range(500), lambda i: f"x-session-a{i}")
    before = resident_kib(place.node)
    ask_many(place.node, range(500, 2500), lambda i: f"x-session-a{i}")
    assert resident_kib(place.node) - before < 256


def test_to_know_a_client_costs_little(place, guarded, anything):
    """Well under a millisecond; 2000 requests tell it to 5 us."""
    place.set_members(anything)
    costs = []
    for node in (place.node, guarded):
        ask_many(node, range(200), lambda i: "acme")
        before = cpu_s(node)
        ask_many(node, range(2000), lambda i: "acme")
        costs.append((cpu_s(node) - before) / 2000)
    assert costs[1] - costs[0] < 0.0001
