"""SOCKS5, SOCKS4 and SOCKS4a against the real program, as a server and towards members: rows K of
tests/data/protocol/rows.tsv. Each exchange is sent whole and split at each byte."""

import socket
import struct
import threading
import time

import pytest

import conftest
import protocol
import wire

BYTE = rb"."
NONE, LOGIN, EITHER = b"\5\1\0", b"\5\1\2", b"\5\2\0\2"
NO_METHOD = b"\5\xff"
GRANTED5, GRANTED4, REJECTED4 = b"\5\0\0\1" + bytes(6), b"\0\x5a" + bytes(6), b"\0\x5b" + bytes(6)
CONNECT_PASSED = b"CONNECT origin.test:443 HTTP/1.1\r\nHost: origin.test:443\r\n\r\n"


def refused5(reply):
    return b"\5%c\0\1" % reply + bytes(6)


def name(text, port=443):
    return b"\3%c%s" % (len(text), text) + struct.pack(">H", port)


def address(text, port=443):
    family = socket.AF_INET6 if ":" in text else socket.AF_INET
    return (b"\4" if ":" in text else b"\1") + socket.inet_pton(family, text) + struct.pack(">H", port)


def ask5(target, command=1, reserved=0):
    return b"\5%c%c" % (command, reserved) + target


def login(user, password, version=1):
    return b"%c%c%s%c%s" % (version, len(user), user, len(password), password)


def ask4(ip="0.0.0.1", user=b"", host=b"origin.test", port=443, command=1):
    tail = host + b"\0" if host is not None else b""
    return b"\4%c" % command + struct.pack(">H", port) + socket.inet_aton(ip) + user + b"\0" + tail


ORIGIN = name(b"origin.test")


@pytest.fixture(scope="module")
def stage(binary):
    with conftest.short_folder() as folder, protocol.Stage(binary, folder) as it:
        yield it


@pytest.fixture(scope="module")
def closed(binary):
    """A stage whose gateway wants to know who asks, and protects private addresses."""
    with conftest.short_folder() as folder:
        accounts = protocol.account_file(folder, alice="open sesame", bob="b" * 255)
        with protocol.Stage(binary, folder, words=("--auth-file", accounts)) as it:
            yield it


@pytest.fixture(scope="module")
def guarded(binary):
    """A stage whose gateway protects private addresses."""
    with conftest.short_folder() as folder, protocol.Stage(binary, folder, words=()) as it:
        yield it


@pytest.fixture(scope="module")
def behind(binary):
    """behind(scheme) -> a stage whose member speaks that."""
    stages = {}
    with conftest.short_folder() as folder:
        def get(scheme):
            if scheme not in stages:
                words = ("--allow-private", "--dial-timeout", "300ms")
                stages[scheme] = protocol.Stage(binary, folder / scheme.replace(":", ""), f"{scheme}127.0.0.1", words)
            return stages[scheme]

        yield get
        for it in stages.values():
            it.__exit__()


def rows(table):
    for number, (row, *rest) in enumerate(table):
        text = next(x for x in rest if isinstance(x, bytes))
        yield pytest.param(*rest, marks=pytest.mark.row(row), id=f"{row} {number} {text[:24].hex()}")


# --- what is granted ------------------------------------------------------------------------------------------------

PASSED = [
    ("K1", NONE + ask5(ORIGIN), b"\5\0" + GRANTED5),
    ("K1", EITHER + login(b"x", b"y") + ask5(ORIGIN), b"\5\2\1\0" + GRANTED5),
    ("K1", b"\5\4\1\x80\0\3" + ask5(ORIGIN), b"\5\0" + GRANTED5),
    ("K2", LOGIN + login(b"x", b"y") + ask5(ORIGIN), b"\5\2\1\0" + GRANTED5),
    ("K5", NONE + ask5(name(b"ORIGIN.test.")), b"\5\0" + GRANTED5),
    ("K7", ask4(), GRANTED4), ("K7", ask4("0.0.0.255", b"user", b"Origin.Test"), GRANTED4),
]


@pytest.mark.parametrize("raw, replies", rows(PASSED))
def test_a_tunnel_stands_and_bytes_behind_the_request_go_through(stage, raw, replies):
    stage.play(wire.tunnels(wire.returns_all))

    def read(client):
        got = client.read_exactly(len(replies) + 5)
        client.end()
        return got + client.read_to_end()

    ways = protocol.ways(raw + b"early", BYTE)
    assert set(stage.ask(ways, read)) == {replies + b"early"}
    assert set(stage.received()) == {CONNECT_PASSED + b"early"} and len(stage.received()) == len(ways)


@pytest.mark.parametrize("target, seen", [
    pytest.param(address("192.0.2.1"), b"192.0.2.1:443", marks=pytest.mark.row("K5")),
    pytest.param(address("2001:db8::1", 80), b"[2001:db8::1]:80", marks=pytest.mark.row("K5")),
    pytest.param(name(b"192.0.2.1"), b"192.0.2.1:443", marks=pytest.mark.row("K5")),
    pytest.param(name(b"2001:DB8:0::1", 65535), b"[2001:db8::1]:65535", marks=pytest.mark.row("K5")),
    pytest.param(name(b"a" * 63 + b"." + b"b" * 63 + b"." + b"c" * 63 + b"." + b"d" * 61),
                 b"%s.%s.%s.%s:443" % (b"a" * 63, b"b" * 63, b"c" * 63, b"d" * 61), marks=pytest.mark.row("K10"))])
def test_the_member_is_asked_for_the_same_target(stage, target, seen):
    stage.play(wire.tunnels(lambda connection: None))
    assert set(stage.ask(protocol.ways(NONE + ask5(target), BYTE), lambda client: client.read_exactly(12))) == {
        b"\5\0" + GRANTED5}
    assert {received.split(b" ")[1] for received in stage.received()} == {seen}


@pytest.mark.row("K7")
def test_socks4_asks_for_an_address_as_it_is(stage):
    stage.play(wire.tunnels(lambda connection: None))
    raw = ask4("192.0.2.1", b"somebody", host=None, port=80)
    assert set(stage.ask(protocol.ways(raw, BYTE), lambda client: client.read_exactly(8))) == {GRANTED4}
    assert {received.split(b" ")[1] for received in stage.received()} == {b"192.0.2.1:80"}


@pytest.mark.row("K1")
@pytest.mark.parametrize("offered, chosen", [(NONE, 0), (LOGIN, 2), (EITHER, 2), (b"\5\2\2\0", 2),
                                             (b"\5\xff" + bytes(range(255)), 2), (b"\5\3\1\0\3", 0)])
def test_only_a_method_that_was_offered_is_chosen(stage, offered, chosen):
    assert set(stage.ask(protocol.ways(offered, BYTE), lambda client: client.read_exactly(2))) == {b"\5%c" % chosen}


# --- what is refused ------------------------------------------------------------------------------------------------

LONGEST = b"a" * 63 + b"." + b"b" * 63 + b"." + b"c" * 63 + b"." + b"d" * 61
BAD_NAMES = (b"\0", b"a\0b", b"a b", b" a", b"a\r\nb", b"a%2eb", b"[::1]", b"[a]", b"a:443", b"u@a", b"a/b", b"a,b",
             b"*", b"127.1", b"0x7f.1", b"2130706433", b"127.0.0.01", b"a..b", b".a", b"a\xe9", b"fe80::1%eth0",
             b"a\\b")
REFUSED = [
    ("K1", b"\5\0", (NO_METHOD, b"")), ("K1", b"\5\1\1", (NO_METHOD,)), ("K1", b"\5\2\1\x80", (NO_METHOD,)),
    ("K1", b"\5\1\xff", (NO_METHOD,)), ("K1", NONE + b"\4\1\0" + ORIGIN, (b"\5\0" + refused5(1),)),
    ("K1", NONE + ask5(ORIGIN, reserved=1), (b"\5\0" + refused5(1),)),
    ("K3", LOGIN + login(b"x", b"y", version=5), (b"\5\2\1\1",)),
    ("K3", LOGIN + login(b"", b"y"), (b"\5\2\1\1",)),
    *(("K4", NONE + ask5(ORIGIN, command), (b"\5\0" + refused5(7),)) for command in (2, 3, 0x7f, 0, 0xff)),
    *(("K5", NONE + ask5(b"%c" % kind + b"\0" * 18), (b"\5\0" + refused5(8),)) for kind in (0, 2, 5, 0xff)),
    ("K5", NONE + ask5(name(b"")), (b"\5\0" + refused5(8), b"\5\0" + refused5(1))),
    *(("K5", NONE + ask5(name(text)), (b"\5\0" + refused5(8), b"\5\0" + refused5(1))) for text in BAD_NAMES),
    ("K5", NONE + ask5(name(b"origin.test", 0)), (b"\5\0" + refused5(1),)),
    *(("K7", ask4(host=text), (REJECTED4,)) for text in (b"", b"a b", b"127.1", b"a\r\nb", b"[::1]", b"a%00")),
    ("K7", ask4(port=0), (REJECTED4,)),
    *(("K7", ask4(command=command), (REJECTED4,)) for command in (2, 3, 0, 0x7f)),
    *(("K10", NONE + ask5(name(text)), (b"\5\0" + refused5(8),)) for text in (
        LONGEST + b"d", LONGEST + b"dd", b"a" * 255, b"a" * 64)),
    ("K10", ask4(host=b"a" * 300), (REJECTED4,)), ("K10", ask4(user=b"u" * 300), (REJECTED4,)),
    ("K10", ask4(host=LONGEST + b"d"), (REJECTED4,)),
]


@pytest.mark.parametrize("raw, replies", rows(REFUSED))
def test_it_is_refused_by_code_and_closed(stage, raw, replies):
    stage.play(wire.tunnels(wire.is_silent))
    started = time.monotonic()
    answers = stage.ask([*protocol.ways(raw, BYTE), [raw + b"more"]], lambda client: client.read_to_end())
    assert len(set(answers)) == 1 and answers[0] in replies
    assert stage.received() == [] and time.monotonic() - started < 10


@pytest.mark.row("K1")
@pytest.mark.parametrize("first", [b"\0", b"\1", b"\3", b"\6", b"\xff"])
def test_another_version_is_no_socks(stage, first):
    with stage.gateway.connect() as client:
        client.send(first + b"\1\0")
        assert client.read_to_end().startswith(b"HTTP/1.1 400 ")


# --- credentials ----------------------------------------------------------------------------------------------------

STRANGERS = [
    ("K1", NONE, NO_METHOD), ("K1", b"\5\3\0\1\3", NO_METHOD), ("K2", NONE + ask5(ORIGIN), NO_METHOD),
    ("K2", EITHER + ask5(ORIGIN), b"\5\2\1\1"), ("K2", LOGIN + ask5(ORIGIN), b"\5\2\1\1"),
    ("K2", LOGIN + login(b"alice", b"wrong") + ask5(ORIGIN), b"\5\2\1\1"),
    ("K3", EITHER + login(b"alice", b""), b"\5\2\1\1"), ("K3", LOGIN + login(b"alice", b"open sesame "), b"\5\2\1\1"),
    ("K3", LOGIN + login(b"alice", b"open\0sesame"), b"\5\2\1\1"),
    ("K3", LOGIN + login(b"", b"open sesame"), b"\5\2\1\1"),
    ("K3", LOGIN + login(b"nobody", b"open sesame"), b"\5\2\1\1"),
    ("K3", LOGIN + login(b"alice", b"open sesame", version=0), b"\5\2\1\1"),
    ("K3", LOGIN + login(b"a" * 255, b"b" * 255), b"\5\2\1\1"),
    ("K10", LOGIN + login(b"bob", b"b" * 254), b"\5\2\1\1"),
    ("K7", ask4(), REJECTED4), ("K7", ask4(user=b"alice"), REJECTED4),
]


@pytest.mark.parametrize("raw, reply", rows(STRANGERS))
def test_a_stranger_gets_no_tunnel(closed, raw, reply):
    closed.play(wire.tunnels(wire.is_silent))
    answers = closed.ask([*protocol.ways(raw, BYTE), [raw + ask5(ORIGIN)]], lambda client: client.read_to_end())
    assert set(answers) == {reply}
    assert closed.received() == []


@pytest.mark.parametrize("user, password", [
    pytest.param(b"alice", b"open sesame", marks=pytest.mark.row("K3")),
    pytest.param(b"bob", b"b" * 255, marks=pytest.mark.row("K10"))])
def test_who_is_known_gets_a_tunnel(closed, user, password):
    closed.play(wire.tunnels(wire.is_silent))
    for methods in (LOGIN, EITHER):
        raw = methods + login(user, password) + ask5(ORIGIN)
        assert set(closed.ask(protocol.ways(raw, BYTE), lambda client: client.read_exactly(14))) == {
            b"\5\2\1\0" + GRANTED5}
    assert set(closed.received()) == {CONNECT_PASSED}


# --- the same policy, the same reasons ------------------------------------------------------------------------------

PRIVATE = ("127.0.0.1", "10.0.0.1", "169.254.169.254", "0.0.0.0", "::1", "fe80::1", "::ffff:10.0.0.1", "64:ff9b::a00:1")


@pytest.mark.row("K5")
@pytest.mark.parametrize("target", [*map(address, PRIVATE), *(name(text.encode()) for text in PRIVATE),
                                    name(b"localhost"), name(b"x.localhost")])
def test_what_connect_may_not_reach_socks_may_not_either(guarded, target):
    guarded.play(wire.tunnels(wire.is_silent))
    with guarded.gateway.connect() as client:
        client.send(NONE + ask5(target))
        assert client.read_to_end() == b"\5\0" + refused5(2)
    assert guarded.received() == []


@pytest.mark.row("K7")
@pytest.mark.parametrize("raw", [ask4("10.0.0.1", host=None), ask4("0.0.0.0", host=None), ask4(host=b"10.0.0.1"),
                                 ask4(host=b"localhost")])
def test_nor_may_socks4(guarded, raw):
    with guarded.gateway.connect() as client:
        client.send(raw)
        assert client.read_to_end() == REJECTED4


@pytest.mark.row("K6")
@pytest.mark.parametrize("status, reply", [(403, 2), (404, 4), (502, 4), (503, 4), (504, 6), (407, 1), (301, 1)])
def test_the_status_that_a_member_gives_becomes_a_reply(stage, status, reply):
    stage.play(wire.tunnels(wire.is_silent, b"HTTP/1.1 %d No\r\nContent-Length: 0\r\n\r\n" % status))
    with stage.gateway.connect() as client:
        client.send(NONE + ask5(ORIGIN) + b"early")
        assert client.read_to_end() == b"\5\0" + refused5(reply)
    with stage.gateway.connect() as client:
        client.send(ask4())
        assert client.read_to_end() == REJECTED4
    assert stage.received() == [CONNECT_PASSED] * 2


@pytest.mark.row("K6")
@pytest.mark.parametrize("code, reply", [(1, 4), (2, 2), (3, 3), (4, 4), (5, 5), (6, 6), (7, 1), (8, 1), (9, 1),
                                         (0xff, 1)])
def test_the_reply_that_a_member_gives_becomes_one(behind, code, reply):
    stage = behind("socks5://")
    stage.play(replies(b"\5\0", b"\5%c\0\1" % code + bytes(6)))
    with stage.gateway.connect() as client:
        client.send(NONE + ask5(ORIGIN))
        assert client.read_to_end() == b"\5\0" + refused5(reply)


@pytest.mark.row("K6")
@pytest.mark.parametrize("place", [None, "http://127.0.0.1:1"])
def test_without_a_member_it_is_a_general_failure(node, add, place):
    if place:
        add(place)
    gateway = node()
    with gateway.connect() as client:
        client.send(NONE + ask5(ORIGIN))
        assert client.read_to_end() == b"\5\0" + refused5(1)
    with gateway.connect() as client:
        client.send(ask4())
        assert client.read_to_end() == REJECTED4


# --- members that speak SOCKS ---------------------------------------------------------------------------------------


def replies(*pieces):
    """Sends each piece when something has been read, then gives back what comes."""

    def script(connection):
        for piece in pieces:
            if not connection.read_some():
                return
            connection.send(piece)
        wire.returns_all(connection)

    return script


def hello_through(stage, raw=b"CONNECT origin.test:443 HTTP/1.1\r\nHost: origin.test:443\r\n\r\n"):
    """The status of a CONNECT, its Proxy-Status, and what came behind the head."""
    with stage.gateway.connect() as client:
        answer = client.ask(raw, "CONNECT")
        if answer.status != 200:
            return answer.status, answer.fields["proxy-status"]
        client.send(b"ping")
        client.end()
        return answer.status, client.read_to_end()


BOUND = [b"\1" + bytes(6), b"\1\x7f\0\0\1\x1f\x90", b"\4" + bytes(18), b"\3\0\0\0", b"\3\4host\0\1",
         b"\3\xff" + b"a" * 255 + b"\0\1"]


@pytest.mark.row("K8")
@pytest.mark.parametrize("bound", BOUND)
@pytest.mark.parametrize("scheme", ["socks5://", "socks5h://"])
def test_the_bound_address_of_a_member_may_be_of_any_kind(behind, bound, scheme):
    stage = behind(scheme)
    stage.play(replies(b"\5\0", b"\5\0\0" + bound + b"glued"))
    assert hello_through(stage) == (200, b"gluedping")
    assert stage.received() == [NONE + ask5(ORIGIN) + b"ping"]


GARBAGE = [
    (b"\4\0",), (b"HTTP/1.1 400 Bad\r\n\r\n",), (b"\5\1",), (b"\5\2",), (b"\5\0", b"\4\0\0\1" + bytes(6)),
    (b"\5\0", b"\5\0\1\1" + bytes(6)), (b"\5\0", b"\5\0\0\2" + bytes(6)), (b"\5\0", b"\5\0\0\0" + bytes(6)),
    (b"\5\0", b"HTTP/1.1 200 OK\r\n\r\n"), (b"\5\0", b"\5\x7f\0\1" + bytes(6))]


@pytest.mark.row("K8")
@pytest.mark.parametrize("pieces", GARBAGE)
def test_garbage_of_a_member_is_no_tunnel(behind, pieces):
    stage = behind("socks5://")
    stage.play(replies(*pieces))
    status, told = hello_through(stage)
    assert status == 502 and "error=http_protocol_error" in told


@pytest.mark.row("K8")
@pytest.mark.parametrize("first, second", [(b"", b""), (b"\5", b""), (b"\5\0", b""), (b"\5\0", b"\5\0\0\1\0\0"),
                                           (b"\5\0", b"\5\0\0\3\xff" + b"a" * 254)])
@pytest.mark.parametrize("is_closing", [True, False])
def test_a_reply_that_is_not_whole_is_no_tunnel(behind, first, second, is_closing):
    def script(connection):
        connection.read_some()
        connection.send(first)
        if first == b"\5\0":
            connection.read_some()
            connection.send(second)
        if not is_closing:
            connection.read_to_end()

    stage = behind("socks5://")
    stage.play(script)
    status, told = hello_through(stage)
    if is_closing:
        assert status == 502 and "error=connection_terminated" in told
    else:
        assert status == 504 and "error=connection_read_timeout" in told


@pytest.mark.row("K8")
def test_a_reply_that_drips_is_not_given_more_time(behind):
    def script(connection):
        connection.read_some()
        connection.send(b"\5\0")
        connection.read_some()
        for byte in b"\5\0\0\3\xff" + b"a" * 250:
            connection.send(bytes([byte]))
            if connection.done.wait(0.02):
                return

    stage = behind("socks5://")
    stage.play(script)
    started = time.monotonic()
    status, told = hello_through(stage)
    assert (status, "connection_read_timeout" in told) == (504, True)
    assert time.monotonic() - started < 2


@pytest.mark.row("K8")
def test_a_reset_behind_the_reply_ends_the_tunnel(behind):
    stage = behind("socks5://")
    stage.play(lambda c: (c.read_some(), c.send(b"\5\0"), c.read_some(), c.send(b"\5\0\0\1" + bytes(6)),
                          c.read_exactly(4), c.reset()))
    with stage.gateway.connect() as client:
        assert client.tunnel().status == 200
        client.send(b"ping")
        assert client.is_closed()


@pytest.mark.row("K8")
def test_replies_split_at_each_byte_are_the_same(behind):
    stage = behind("socks5://")
    whole = b"\5\0\0\3\4host\0\1glued"
    for at in range(1, len(whole)):
        stage.play(lambda c: (c.send_pieces([b"\5", b"\0"]), c.read_exactly(len(NONE + ask5(ORIGIN))),
                              c.send_pieces([whole[:at], whole[at:]]), wire.returns_all(c)))
        assert hello_through(stage) == (200, b"gluedping")


CONNECT_V4 = b"CONNECT 192.0.2.1:80 HTTP/1.1\r\nHost: x\r\n\r\n"


@pytest.mark.row("K9")
@pytest.mark.parametrize("scheme, raw, seen", [
    ("socks4a://", None, ask4()), ("socks4a://", CONNECT_V4, ask4("192.0.2.1", host=None, port=80)),
    ("socks4://", CONNECT_V4, ask4("192.0.2.1", host=None, port=80)),
    ("socks4a://", b"CONNECT %s:443 HTTP/1.1\r\nHost: x\r\n\r\n" % LONGEST, ask4(host=LONGEST))])
def test_a_socks4_member_gets_what_it_understands(behind, scheme, raw, seen):
    stage = behind(scheme)
    stage.play(replies(GRANTED4 + b"glued"))
    assert (hello_through(stage, raw) if raw else hello_through(stage)) == (200, b"gluedping")
    assert stage.received() == [seen + b"ping"]


@pytest.mark.row("K9")
@pytest.mark.parametrize("code, error", [(0x5b, "destination_unavailable"), (0x5c, "proxy_configuration_error"),
                                         (0x5d, "proxy_configuration_error"), (0x5e, "http_protocol_error"),
                                         (0, "http_protocol_error"), (0xff, "http_protocol_error")])
def test_the_refusal_of_a_socks4_member_is_told_by_kind(behind, code, error):
    stage = behind("socks4a://")
    stage.play(replies(b"\0%c" % code + bytes(6)))
    status, told = hello_through(stage)
    assert status == 502 and f"error={error}" in told


@pytest.mark.row("K9")
@pytest.mark.parametrize("reply", [b"\4\x5a" + bytes(6), b"\5\0" + bytes(6), b"HTTP/1.1 200 OK\r\n\r\n"])
def test_another_version_is_garbage(behind, reply):
    stage = behind("socks4a://")
    stage.play(replies(reply))
    status, told = hello_through(stage)
    assert status == 502 and "error=http_protocol_error" in told


@pytest.mark.row("K9")
@pytest.mark.parametrize("target", [b"[2001:db8::1]:443", b"0.0.0.1:443", b"0.0.0.255:443"])
def test_what_socks4_cannot_say_is_refused_here(behind, target):
    stage = behind("socks4a://")
    stage.play(replies(GRANTED4))
    status, told = hello_through(stage, b"CONNECT %s HTTP/1.1\r\nHost: x\r\n\r\n" % target)
    assert status == 502 and "error=destination_unavailable" in told
    assert set(stage.received()) <= {b""}


# --- names ----------------------------------------------------------------------------------------------------------


class Stub:
    """A name server that knows nothing and keeps what it was asked for."""

    def __init__(self):
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 0))
        self.place = "127.0.0.1:%d" % self.socket.getsockname()[1]
        self.asked = []
        self.thread = threading.Thread(target=self._answer, daemon=True)
        self.thread.start()

    def _answer(self):
        while True:
            query, peer = self.socket.recvfrom(1500)
            if not query:
                return
            self.asked.append(query[12:query.index(b"\0", 12)])
            self.socket.sendto(query[:2] + b"\x81\x83" + query[4:6] + bytes(6) + query[12:], peer)

    def close(self):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as last:
            last.sendto(b"", self.socket.getsockname())
        self.thread.join(wire.LIMIT_S)
        self.socket.close()


@pytest.fixture
def stub():
    it = Stub()
    yield it
    it.close()


@pytest.mark.row("K11")
def test_no_name_of_a_target_is_looked_up_here(node, add, upstream, stub):
    kinds = {"http": wire.tunnels(wire.is_silent), "socks4a": replies(GRANTED4),
             "socks5": replies(b"\5\0", GRANTED5), "socks5h": replies(b"\5\0", GRANTED5)}
    servers = {kind: upstream(script) for kind, script in kinds.items()}
    add(*(f"{kind}://127.0.0.1:{server.port}" for kind, server in servers.items()))
    gateway = node("--nameserver", stub.place)
    for raw, size in ((NONE + ask5(ORIGIN), 12), (ask4(), 8), (CONNECT_PASSED, 15)):
        for _ in range(2 * len(kinds)):
            with gateway.connect() as client:
                client.send(raw)
                assert client.read_exactly(size)[:9] in (b"\5\0" + GRANTED5[:7], GRANTED4, b"HTTP/1.1 ")
    assert all(len(server.connections) == 6 for server in servers.values())
    assert all(b"origin.test" in bytes(c.received) for s in servers.values() for c in s.connections)
    assert stub.asked == []


@pytest.mark.row("K11")
def test_the_name_of_a_member_is_what_is_looked_up(node, add, stub):
    """The stub counts: without this the test above could not fail."""
    add("http://member.test:3128")
    gateway = node("--nameserver", stub.place)
    with gateway.connect() as client:
        client.send(NONE + ask5(ORIGIN))
        assert client.read_to_end() == b"\5\0" + refused5(1)
    assert stub.asked and all(b"member" in asked.lower() for asked in stub.asked)
