"""Proxies that lie, stall and break off, of each kind: what each client is told, and that another member serves."""

import concurrent.futures
import contextlib
import os
import time
import urllib.parse

import pytest

import peers
import scripted
import wire
import world

KINDS = ("http", "https", "socks4", "socks5")
HASTE = "300ms"
PACE_S = 0.05
BLOB = os.urandom(2_000_000)
TARGET = ("target.test", 443)


@pytest.fixture(scope="module")
def place(session_folder):
    """Two gateways on one pool: `hasty` for what takes its whole deadline, `node`."""
    with world.Arena(session_folder / "hostile") as it:
        authority = peers.Authority(it.folder / "ca")
        it.certificate = authority.issue("upstream", "IP:127.0.0.1", "IP:127.0.0.2")
        it.misnamed = authority.issue("misnamed", "IP:127.0.0.9", "DNS:other.test")
        it.untrusted = peers.Authority(it.folder / "other").issue("untrusted", "IP:127.0.0.1")
        it.node, it.hasty = (it.gateway("--dial-timeout", limit, "--upstream-ca", authority.certificate)
                             for limit in ("10s", HASTE))
        yield it


@pytest.fixture
def members(place):
    """members(server, ...): the pool; they end with the test."""
    with contextlib.ExitStack() as ends:

        def fill(*servers):
            for server in servers:
                ends.callback(server.close)
            place.set_members(*servers)

        yield fill


@pytest.fixture
def raw(place):
    return lambda kind, script, **options: scripted.Raw(
        kind, script, **{"certificate": place.certificate} | options)


def serves(connection):
    """Stays until the client has gone: what comes behind an end would be answered by a reset."""
    wire.serves()(connection)
    connection.read_to_end()


@pytest.fixture
def good(place):
    """The second member: it serves."""
    return lambda kind, script=serves: scripted.Upstream(
        kind, script, certificate=place.certificate, forwards=True, host="127.0.0.2")


# --- clients: what they were told, and the wire ---------------------------------------------------------------------


def by_connect(client):
    return scripted.connect(client, *TARGET).status


def by_socks5(client):
    return scripted.socks5(client, *TARGET)


def by_socks4(client):
    return scripted.socks4(client, *TARGET)


GRANTED = {by_connect: 200, by_socks5: 0, by_socks4: 90}


def ask_all(node, then=lambda client: None):
    """All clients at once -> client -> (what it was told, what `then` made of the wire). And the lines of the log."""

    def one(ask):
        with node.connect() as client:
            told = ask(client)
            return told, then(client)

    before = len(node.requests())
    with concurrent.futures.ThreadPoolExecutor() as pool:
        told = dict(zip(GRANTED, pool.map(one, GRANTED)))
    return told, node.requests(before + len(GRANTED))[before:]


def gateway_for(place, reason):
    return place.hasty if reason == "proxy-silent" else place.node


# --- faults ---------------------------------------------------------------------------------------------------------


def behind_the_request(script):
    """The fault comes in place of the reply."""
    return lambda kind: lambda connection: (scripted.take(kind, connection), script(kind, connection))


def at_once(script):
    return lambda kind: script


def drip(kind, connection):
    """A reply that never ends and never stands still."""
    start = {"http": b"HTTP/1.1 200 OK\r\nX: ", "socks5": b"\5\0\0\3\xff", "socks4": b""}
    connection.send(start[scripted.FAMILY[kind]])
    for byte in b"\0\x5a\0\0\0\0\0" if kind == "socks4" else b"a" * 250:
        connection.send(bytes([byte]))
        time.sleep(PACE_S)
    connection.read_to_end()


def endless_head(kind, connection):
    connection.send(b"HTTP/1.1 200 OK\r\n")
    while True:
        connection.send(b"X: " + b"a" * 1000 + b"\r\n")


def says(**replies):
    return lambda kind, connection: (connection.send(replies[scripted.FAMILY[kind]]), connection.read_to_end())


def half_a_reply(kind, connection):
    connection.send(scripted.GRANT[scripted.FAMILY[kind]][:-1])


# name -> script of a kind, reason, kinds that cannot do it
FAULTS = {
    "silent from the start": (at_once(wire.is_silent), "proxy-silent", ()),
    "silent behind the request": (behind_the_request(lambda kind, c: c.read_to_end()), "proxy-silent", ()),
    "drip": (behind_the_request(drip), "proxy-silent", ()),
    "end at once": (at_once(lambda c: None), "proxy-reset", ()),
    "end behind the request": (behind_the_request(lambda kind, c: None), "proxy-reset", ()),
    "end in the reply": (behind_the_request(half_a_reply), "proxy-reset", ()),
    "reset at once": (at_once(lambda c: c.reset()), "proxy-reset", ()),
    "reset behind the request": (behind_the_request(lambda kind, c: c.reset()), "proxy-reset", ()),
    "another protocol": (at_once(lambda c: (c.send(b"SSH-2.0-x\r\n\r\n"), c.read_to_end())), "proxy-garbage", ()),
    "another version": (behind_the_request(says(
        http=b"HTTP/2.0 200 OK\r\n\r\n", socks4=b"\4\x5a" + bytes(6), socks5=b"\4\0\0\1" + bytes(6))),
        "proxy-garbage", ()),
    "no such code": (behind_the_request(says(
        http=b"HTTP/1.1 99 OK\r\n\r\n", socks4=b"\0\x59" + bytes(6), socks5=b"\5\x09\0\1" + bytes(6))),
        "proxy-garbage", ()),
    "no such address type": (behind_the_request(says(socks5=b"\5\0\0\2" + bytes(6))), "proxy-garbage",
                             ("http", "https", "socks4")),
    "a method that was not offered": (at_once(lambda c: (c.send(b"\5\1"), c.read_to_end())), "proxy-garbage",
                                      ("http", "https", "socks4")),
    "no method is good enough": (at_once(lambda c: (c.send(b"\5\xff"), c.read_to_end())), "auth-failed",
                                 ("http", "https", "socks4")),
    "identd is missing": (behind_the_request(says(socks4=b"\0\x5c" + bytes(6))), "auth-failed",
                          ("http", "https", "socks5")),
    "wants a password": (behind_the_request(says(
        http=b"HTTP/1.1 407 No\r\nProxy-Authenticate: Basic realm=x\r\nContent-Length: 0\r\n\r\n")),
        "auth-failed", ("socks4", "socks5")),
    "head without end": (behind_the_request(endless_head), "proxy-garbage", ("socks4", "socks5")),
}
CASES = [(name, kind) for name, (_, _, without) in FAULTS.items() for kind in KINDS if kind not in without]


@pytest.mark.core
@pytest.mark.parametrize("name, kind", CASES)
def test_a_faulty_proxy_is_told_as_such(place, members, raw, name, kind):
    script, reason, _ = FAULTS[name]
    members(raw(kind, script(kind)))
    told, lines = ask_all(gateway_for(place, reason))
    status = 504 if reason == "proxy-silent" else 502
    assert {client: told[client][0] for client in told} == {by_connect: status, by_socks5: 1, by_socks4: 91}
    assert {(line["reason"], line["fault"], line["tries"]) for line in lines} == {(reason, "proxy", 1)}


@pytest.mark.core
@pytest.mark.parametrize("name, kind", CASES)
def test_another_member_serves_in_its_place(place, members, raw, good, name, kind):
    faulty = raw(kind, FAULTS[name][0](kind))
    second = good(kind)
    members(faulty, second)
    told, lines = ask_all(gateway_for(place, FAULTS[name][1]), lambda client: client.get("http://target.test/").body)
    assert told == {client: (GRANTED[client], b"hello") for client in GRANTED}
    assert {(line["reason"], line["tries"], line["member"]) for line in lines} == {("ok", 2, second.url)}
    assert len(faulty.connections) == len(second.asked) == len(GRANTED)


# --- TLS ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("certificate", ["untrusted", "misnamed"])
def test_a_certificate_that_does_not_verify_is_no_proxy(place, members, raw, certificate):
    server = raw("https", wire.is_silent, certificate=getattr(place, certificate))
    server.script = lambda connection: pytest.fail("the handshake was finished")
    members(server)
    told, lines = ask_all(place.node)
    assert told[by_connect][0] == 502
    assert {line["reason"] for line in lines} == {"proxy-certificate"}


@pytest.mark.parametrize("script, reason", [
    (lambda c: (c.send(b"HTTP/1.1 400 Bad Request\r\n\r\n"), c.read_to_end()), "proxy-tls"),
    (wire.is_silent, "proxy-silent"),
    (lambda c: None, "proxy-reset"),
    (lambda c: (c.read_some(), c.reset()), "proxy-reset"),
    (lambda c: (c.read_some(), c.send(b"\x15\x03\x03\0\2\2\x28")), "proxy-alert"),  # handshake_failure
])
def test_what_speaks_no_tls_is_told_apart(place, members, script, reason):
    server = scripted.Raw("http", script)
    server.url = server.url.replace("http", "https", 1)
    members(server)
    told, lines = ask_all(gateway_for(place, reason))
    assert told[by_connect][0] == (504 if reason == "proxy-silent" else 502)
    assert {line["reason"] for line in lines} == {reason}


# --- behind the grant -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_glued_to_the_reply_comes_first(place, members, raw, kind):
    grant = scripted.GRANT[scripted.FAMILY[kind]]
    members(raw(kind, lambda c: (scripted.take(kind, c), c.send(grant + b"first" + BLOB))))
    told, lines = ask_all(place.node, lambda client: client.read_to_end())
    assert told == {client: (GRANTED[client], b"first" + BLOB) for client in GRANTED}


@pytest.mark.parametrize("bound", [b"\1" + bytes(6), b"\4" + bytes(18), b"\3\0\0\0", b"\3\xff" + b"a" * 257])
@pytest.mark.parametrize("is_split", [False, True])
def test_any_bound_address_is_passed_over(place, members, raw, bound, is_split):
    """K8: a name of 0 to 255 bytes, too, and in any number of pieces."""
    reply = b"\5\0\0" + bound + b"next"

    def script(connection):
        scripted.take_socks5(connection)
        connection.send_pieces([bytes([byte]) for byte in reply] if is_split else [reply])

    members(raw("socks5", script))
    told, _ = ask_all(place.node, lambda client: client.read_to_end())
    assert told == {client: (GRANTED[client], b"next") for client in GRANTED}


@pytest.mark.parametrize("kind", KINDS)
def test_a_tunnel_that_is_reset_ends_and_is_not_tried_again(place, members, raw, good, kind):
    def script(connection):
        scripted.take(kind, connection)
        connection.send(scripted.GRANT[scripted.FAMILY[kind]])
        connection.read_some()
        connection.reset()

    second = good(kind)
    members(raw(kind, script), second)
    told, lines = ask_all(place.node, lambda client: (client.send(b"hello"), client.is_closed())[1])
    assert told == {client: (GRANTED[client], True) for client in GRANTED}
    assert {(line["reason"], line["tries"]) for line in lines} == {("relay-reset", 1)}
    assert not second.connections


# --- what is the target's fault (T15, K6) ---------------------------------------------------------------------------

REFUSALS = [
    ("socks5", b"\5\2\0\1" + bytes(6), "target-denied", 502, 2),
    ("socks5", b"\5\3\0\1" + bytes(6), "target-unreachable", 502, 3),
    ("socks5", b"\5\4\0\1" + bytes(6), "target-failed", 502, 4),
    ("socks5", b"\5\5\0\1" + bytes(6), "target-refused", 502, 5),
    ("socks5", b"\5\6\0\1" + bytes(6), "target-timeout", 504, 6),
    ("http", b"HTTP/1.1 403 No\r\n\r\n", "target-denied", 502, 2),
    ("http", b"HTTP/1.1 404 No\r\n\r\n", "target-unknown", 502, 4),
    ("http", b"HTTP/1.1 504 No\r\n\r\n", "target-timeout", 504, 6),
    ("https", b"HTTP/1.1 504 No\r\n\r\n", "target-timeout", 504, 6),
]


@pytest.mark.core
@pytest.mark.parametrize("kind, reply, reason, status, code", REFUSALS)
def test_a_refusal_for_the_target_is_told_and_not_tried_elsewhere(
        place, members, raw, good, kind, reply, reason, status, code):
    second = good(kind)
    members(raw(kind, lambda c: (scripted.take(kind, c), c.send(reply))), second)
    told, lines = ask_all(place.node)
    assert {client: told[client][0] for client in told} == {by_connect: status, by_socks5: code, by_socks4: 91}
    assert {(line["reason"], line["fault"], line["tries"]) for line in lines} == {(reason, "target", 1)}
    assert not second.connections


@pytest.mark.parametrize("kind, reply", [
    ("socks4", b"\0\x5b" + bytes(6)), ("socks5", b"\5\1\0\1" + bytes(6)),
    ("http", b"HTTP/1.1 502 No\r\n\r\n"), ("http", b"HTTP/1.1 503 No\r\n\r\n")])
def test_a_failure_without_a_cause_is_not_held_against_the_proxy(place, members, raw, kind, reply):
    members(raw(kind, lambda c: (scripted.take(kind, c), c.send(reply))))
    told, lines = ask_all(place.node)
    assert {(line["reason"], line["fault"]) for line in lines} == {("target-failed", "target")}
    assert told[by_socks4][0] == 91


# --- requests that are no tunnel ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["socks4", "socks5"])
@pytest.mark.parametrize("name", ["end at once", "another protocol", "reset behind the request"])
def test_a_plain_request_moves_on_to_the_next_member(place, members, raw, good, name, kind):
    """POST as well: nothing has left for the target."""
    second = good(kind, wire.echoes)
    members(raw(kind, FAULTS[name][0](kind)), second)
    target = "moves-on.test:443"
    before = len(place.node.requests(target=target))
    with place.node.connect() as client:
        for method in ("GET", "POST"):
            answer = client.ask(wire.request(method, f"http://{target}/x", b"body"))
            assert answer.body == f"{method} /x body".encode()
    assert {line["tries"] for line in place.node.requests(before + 2, target=target)[before:]} == {2}


# --- credentials (T10, T13) -----------------------------------------------------------------------------------------

SECRETS = [("user", "a:b"), ("user", "p@ss"), ("user", "100%"), ("user", "%40x"), ("user", "%zz"), ("user", "pä€ß"),
           ("u" * 255, "p" * 255), ("u@:r", " x"), ("user", "")]
# RFC 7617 2: a user has no colon; RFC 1929 2: each has a byte at least
UNFIT = {"http": ("u@:r", " x"), "socks5": ("user", "")}


@pytest.mark.parametrize("kind", ["http", "https", "socks5", "socks5h"])
def test_the_upstream_gets_the_exact_bytes_of_the_credentials(place, members, good, kind):
    upstream = good(kind)
    members(upstream)
    for user, password in SECRETS:
        if (user, password) == UNFIT[scripted.FAMILY[kind]]:
            continue
        place.set_members()
        place.add("proxies", with_login(upstream.url, user, password))
        with place.node.connect() as client:
            assert scripted.connect(client, *TARGET).status == 200
        assert upstream.asked[-1][3:] == (user.encode(), password.encode())


def with_login(url, user, password):
    login = ":".join(urllib.parse.quote(text, safe="") for text in (user, password))
    return url.replace("://", f"://{login}@", 1)
