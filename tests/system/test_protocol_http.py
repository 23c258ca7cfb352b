"""HTTP/1.1 against the real program: rows H of tests/data/protocol/rows.tsv.

Each message is sent whole, split once in and behind each element of the grammar, and where another request may follow,
with one behind it. The cases are in protocol_cases.py."""

import base64
import hashlib
import re
import threading

import pytest

import conftest
import peers
import protocol
import wire
from protocol import OK
from protocol_cases import (
    BROKEN, CHUNKED, CONNECT, CONNECT_PASSED, CUT, FIVE, GET, GOOD, GOOD_PASSED, NO_TUNNEL, PASSED, POST, REFUSED,
    RESPONSES, TUNNEL, TUNNELS, cases, given, passed, reply, sent)

@pytest.fixture(scope="module")
def stage(binary):
    with conftest.short_folder() as folder, protocol.Stage(binary, folder) as it:
        yield it


@pytest.fixture(scope="module")
def direct(binary):
    """A stage whose server is the origin itself."""
    with conftest.short_folder() as folder, protocol.Stage(binary, folder, "direct://") as it:
        yield it


@pytest.fixture(scope="module")
def closed(binary):
    """A stage whose gateway wants to know who asks."""
    with conftest.short_folder() as folder:
        accounts = protocol.account_file(folder, alice="open sesame")
        with protocol.Stage(binary, folder, words=("--allow-private", "--auth-file", accounts)) as it:
            yield it


# --- requests that are refused --------------------------------------------------------------------------------------

@pytest.mark.parametrize("status, raw", cases(REFUSED))
def test_it_is_refused_and_the_connection_closed(stage, status, raw):
    stage.play(protocol.until_end(wire.answers(OK)))
    ways = [way for way in protocol.ways(raw) if len(way[0]) < 20_000] + [[raw]]
    answers = stage.ask([*ways, [raw + GOOD]], lambda client: client.read_to_end())
    assert len(set(map(protocol.without_date, answers))) == 1
    head, _, body = answers[0].partition(b"\r\n\r\n")
    head = wire.Head(head + b"\r\n\r\n")
    assert (head.status, head.fields["connection"], head.fields["content-length"]) == (
        status, "close", str(len(body)))
    assert "error=http_request_error" in head.fields["proxy-status"]
    assert stage.received() == []
    assert b"hunter2" not in answers[0] and "hunter2" not in stage.gateway.text


# --- requests that are passed on ------------------------------------------------------------------------------------

def same_request(got, required):
    """Byte for byte; but where a chunk is cut on its way, its parts are chunks."""
    if got == required:
        return True
    (a,), (b,) = protocol.messages(got), protocol.messages(required)
    return got.partition(b"\r\n\r\n")[0] == required.partition(b"\r\n\r\n")[0] and CHUNKED in required and (
        a.is_whole and a.body == b.body)


@pytest.mark.parametrize("raw, required", cases(PASSED))
def test_it_is_passed_on_as_it_must_be(stage, raw, required):
    stage.play(protocol.until_end(wire.answers(OK)))
    ways = protocol.ways(raw)
    answers = stage.ask(ways, lambda client: client.read_response())
    assert {answer.body for answer in answers} == {b"ok"}
    received = stage.received()
    assert required in received
    assert len(received) == len(ways) and all(same_request(got, required) for got in received)


@pytest.mark.parametrize("raw, required", cases(PASSED))
def test_a_request_behind_it_is_one_of_its_own(stage, raw, required):
    stage.play(protocol.until_end(wire.answers(OK)))

    def read_both(client):
        assert [client.read_response().body for _ in range(2)] == [b"ok", b"ok"]
        client.end()
        return client.read_to_end()

    assert stage.ask([[raw + GOOD]], read_both) == [b""]
    assert stage.received() == [required, GOOD_PASSED]


@pytest.mark.parametrize("raw, required", cases(PASSED))
def test_an_origin_gets_the_same_without_its_name(direct, raw, required):
    direct.play(protocol.until_end(wire.answers(OK)))
    place = b"127.0.0.1:%d" % direct.server.port
    raw = re.sub(rb"(?i)(?<=http://)origin\.test\.?(:80)?", place, raw, count=1)
    answers = direct.ask([[raw]], lambda client: client.read_response())
    line, rest = required.split(b"\r\n", 1)
    line = re.sub(rb" http://origin\.test(\S*)", lambda m: b" " + (m[1] or b"*"), line)
    assert answers[0].status == 200
    assert direct.received() == [line + b"\r\n" + rest.replace(b"Host: origin.test", b"Host: " + place, 1)]


@pytest.mark.row("H29")
@pytest.mark.parametrize("raw", [
    sent(GET, b"X: y"), sent(POST, b"Content-Length: 5", body=b"hello"),
    sent(POST, CHUNKED, body=b"2;x\r\nab\r\n0\r\nX: y\r\n\r\n")])
def test_byte_by_byte_it_is_the_same(stage, raw):
    stage.play(protocol.until_end(wire.answers(OK)))
    with stage.gateway.connect() as client:
        client.send(raw)
        assert client.read_response().body == b"ok"
    with stage.gateway.connect() as client:
        client.send_pieces(raw[i:i + 1] for i in range(len(raw)))
        assert client.read_response().body == b"ok"
    whole, split = stage.received()
    assert same_request(split, whole)


@pytest.mark.row("H29")
def test_http_1_0_is_passed_on_as_1_1_and_not_kept(stage):
    stage.play(protocol.until_end(wire.answers(OK)))
    raw = sent(GET, b"Connection: keep-alive", b"Expect: 100-continue", host=None, version=b"HTTP/1.0")
    ways = [*protocol.ways(raw), [raw + GOOD]]
    answers = stage.ask(ways, lambda client: client.read_to_end())
    assert set(answers) == {given(b"200 OK", b"Content-Length: 2", body=b"ok")}
    assert set(stage.received()) == {passed()} and len(stage.received()) == len(ways)


# --- bodies that are not whole --------------------------------------------------------------------------------------

@pytest.mark.parametrize("body", cases(BROKEN))
def test_a_broken_body_is_refused_and_never_whole(stage, body):
    stage.play(protocol.until_end(wire.answers(OK)))
    head = sent(POST, CHUNKED)
    ways = [[head + body], [head, body], [head + body + GOOD], *([head + body[:at], body[at:]]
                                                                 for at in protocol.cuts(body)[:60])]
    answers = stage.ask(ways, lambda client: client.read_to_end())
    assert {wire.Head(answer.partition(b"\r\n\r\n")[0] + b"\r\n\r\n").status for answer in answers} == {400}
    assert all(answer.count(b"HTTP/1.1 ") == 1 for answer in answers)
    for received in stage.received():
        request, = protocol.messages(received)
        assert not request.is_whole


@pytest.mark.row("H17")
@pytest.mark.parametrize("raw", [
    sent(POST, CHUNKED, body=b"5\r\nab"), sent(POST, CHUNKED, body=b"2\r\nab\r\n"),
    sent(POST, CHUNKED, body=b"2\r\nab\r\n0\r\n"), sent(POST, b"Content-Length: 5", body=b"ab")])
def test_a_body_that_ends_early_is_never_whole(stage, raw):
    stage.play(protocol.until_end(wire.answers(OK)))

    def end(client):
        client.end()
        return client.read_to_end()

    assert set(stage.ask(protocol.ways(raw), end)) == {b""}
    for received in stage.received():
        assert [request.is_whole for request in protocol.messages(received)] in ([], [False])


# --- responses ------------------------------------------------------------------------------------------------------

def read_or_cut(client):
    try:
        return client.read_to_end()
    except ConnectionResetError:
        return CUT


@pytest.mark.parametrize("method, raw, required", cases(
    (row, method, raw, required) for row, method, raw, required in RESPONSES))
def test_a_response_is_given_as_it_must_be(stage, method, raw, required):
    ways = protocol.ways(raw)
    stage.play(protocol.answers_in_pieces(iter(ways), len(ways)))
    ask = sent(method + b" http://origin.test/", b"Connection: close")
    answers = stage.ask([[ask]] * len(ways), read_or_cut)
    if isinstance(required, tuple):
        status, error = required
        for answer in answers:
            head = wire.Head(answer.partition(b"\r\n\r\n")[0] + b"\r\n\r\n")
            assert head.status == status and f"error={error}" in head.fields["proxy-status"]
            assert answer.count(b"HTTP/1.1 ") == 1 and "proxy-authenticate" not in head.fields
    elif required is CUT:
        assert set(answers) == {CUT}
    else:
        assert answers[0] == required
        assert all(same_response(answer, required) for answer in answers)
    assert len(stage.received()) == len(ways)


def same_response(got, required):
    """As same_request()."""
    if got == required:
        return True
    head, _, body = required.rpartition(b"\r\n\r\n5\r\nhello")
    return body and got.startswith(head + b"\r\n\r\n") and re.sub(
        rb"[1-5]\r\n([helo]+)\r\n", rb"\1", got[len(head) + 4:]) == b"hello0\r\n\r\n"


@pytest.mark.row("H19")
def test_a_response_without_a_date_gets_one(stage):
    stage.play(wire.answers(b"HTTP/1.1 100 Continue\r\n\r\n", wire.response(b"hello")))
    with stage.gateway.connect() as client:
        assert client.get().names() == set()
        assert re.fullmatch(r"[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d GMT",
                            client.read_response().fields["date"])


@pytest.mark.row("H24")
def test_a_challenge_of_the_target_is_not_the_members(direct):
    direct.play(wire.answers(reply(b"407 No", b"Proxy-Authenticate: Basic realm=x", FIVE, body=b"hello")))
    with direct.gateway.connect() as client:
        answer = client.get(f"http://127.0.0.1:{direct.server.port}/")
    assert (answer.status, "proxy-authenticate" in answer.fields) == (502, False)
    assert direct.gateway.requests(1, reason="target-failed")[0]["fault"] == "target"
    direct.received()


# --- methods and fields that end here -------------------------------------------------------------------------------


@pytest.mark.parametrize("raw", [
    pytest.param(sent(b"OPTIONS *"), marks=pytest.mark.row("H5")),
    pytest.param(sent(b"OPTIONS *", b"Max-Forwards: 5"), marks=pytest.mark.row("H27")),
    pytest.param(sent(b"OPTIONS http://origin.test/", b"Max-Forwards: 0"), marks=pytest.mark.row("H27")),
    pytest.param(sent(b"OPTIONS http://origin.test", b"max-forwards: 00"), marks=pytest.mark.row("H27"))])
def test_options_for_the_gateway_are_answered_by_it(stage, raw):
    stage.play(wire.answers(OK))
    answers = stage.ask([*protocol.ways(raw), [raw + raw]], lambda client: client.read_response())
    assert {(answer.status, answer.body) for answer in answers} == {(200, b"")}
    assert stage.received() == []


@pytest.mark.row("H27")
def test_trace_that_goes_no_further_shows_the_request_without_its_secrets(stage):
    stage.play(wire.answers(OK))
    raw = sent(b"TRACE http://origin.test/a", b"Max-Forwards: 0", b"Authorization: Basic c2VjcmV0", b"X: y",
               b"Cookie: secret", b"Proxy-Authorization: Basic c2VjcmV0")
    for answer in stage.ask(protocol.ways(raw), lambda client: client.read_response()):
        assert (answer.status, answer.fields["content-type"]) == (200, "message/http")
        assert answer.body == sent(b"TRACE http://origin.test/a", b"Max-Forwards: 0", b"X: y")
    assert stage.received() == []


@pytest.mark.row("H27")
def test_trace_does_not_show_the_password_of_a_member(node, add, upstream):
    """It would be the last that the request reaches."""
    first, second = upstream(wire.answers(OK)), upstream(wire.answers(OK), host="127.0.0.2")
    add(f"http://user:hunter2@127.0.0.1:{first.port}", second.url)
    gateway = node()
    for _ in range(2):
        with gateway.connect() as client:
            assert client.ask(sent(b"TRACE http://origin.test/", b"Max-Forwards: 1")).body == b"ok"
    assert all(c.received == b"" for c in first.connections) and len(second.connections) == 2


@pytest.mark.row("H26")
@pytest.mark.parametrize("via", [b"1.1 fairlead", b"1.0 other, 1.1 FairLead", b"HTTP/1.1 fairlead (x)"])
def test_our_own_name_in_via_is_a_loop(stage, via):
    stage.play(wire.answers(OK))
    for target in (GET, b"CONNECT origin.test:443"):
        answers = stage.ask(protocol.ways(sent(target, b"Via: " + via)), lambda client: client.read_response())
        assert {answer.status for answer in answers} == {502}
        assert all("error=proxy_loop_detected" in answer.fields["proxy-status"] for answer in answers)
    assert stage.received() == []


@pytest.mark.row("H24")
@pytest.mark.parametrize("raw, is_tunnel", [
    (b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: WebSocket\r\n\r\n", True),
    (b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\r\n", False),
    (b"HTTP/1.1 101 Switching Protocols\r\n\r\n", False)])
def test_only_the_upgrade_that_was_asked_for_is_a_tunnel(stage, raw, is_tunnel):
    stage.play(protocol.until_end(wire.answers(raw + b"first")))
    ask = sent(GET, b"Connection: Upgrade", b"Upgrade: websocket", b"Sec-WebSocket-Key: k")

    def read(client):
        answer = client.read_response()
        return answer.status, client.read_exactly(5) if is_tunnel else b""

    answers = stage.ask(protocol.ways(ask), read)
    assert set(answers) == {(101, b"first") if is_tunnel else (502, b"")}
    assert set(stage.received()) == {passed(GET, b"Sec-WebSocket-Key: k",
                                            last=b"Connection: upgrade\r\nUpgrade: websocket")}


@pytest.mark.row("H24")
def test_a_switch_while_the_body_is_on_its_way_is_none(stage):
    stage.play(lambda c: (c.read_head(), c.send(
        b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n"), c.read_to_end()))
    with stage.gateway.connect() as client:
        client.send(sent(POST, b"Connection: upgrade", b"Upgrade: websocket", b"Content-Length: 5", body=b"he"))
        assert client.read_response().status == 502


# --- Expect and interim responses -----------------------------------------------------------------------------------


@pytest.mark.row("H25")
def test_the_body_may_wait_for_100(stage):
    def asks(connection):
        connection.read_head()
        connection.send(b"HTTP/1.1 100 Continue\r\n\r\n")
        connection.send(wire.response(connection.read_exactly(5)))

    stage.play(protocol.until_end(asks))
    with stage.gateway.connect() as client:
        client.send(sent(POST, b"Expect: 100-continue", b"Content-Length: 5"))
        assert client.read_response().status == 100
        client.send(b"hello")
        assert client.read_response().body == b"hello"
    assert stage.received() == [passed(POST, b"Expect: 100-continue", b"Content-Length: 5", body=b"hello")]


@pytest.mark.row("H25")
def test_a_final_answer_instead_of_100_ends_the_connection(stage):
    stage.play(lambda c: (c.read_head(), c.send(reply(b"417 No", b"Content-Length: 0")), c.read_to_end()))
    with stage.gateway.connect() as client:
        client.send(sent(POST, b"Expect: 100-continue", b"Content-Length: 5"))
        assert client.read_to_end() == given(b"417 No", b"Content-Length: 0")
    assert stage.received() == [passed(POST, b"Expect: 100-continue", b"Content-Length: 5")]


@pytest.mark.row("H25")
def test_http_1_0_gets_no_interim_response_and_no_chunks(stage):
    stage.play(wire.answers(b"HTTP/1.1 103 x\r\n\r\n" + reply(b"200 OK", CHUNKED, body=wire.chunked(b"he", b"llo"))))
    with stage.gateway.connect() as client:
        client.send(sent(POST, b"Expect: 100-continue", b"Content-Length: 2", version=b"HTTP/1.0", body=b"ab"))
        assert client.read_to_end() == given(b"200 OK", body=b"hello")
    assert stage.received() == [passed(POST, b"Content-Length: 2", body=b"ab")]


# --- CONNECT --------------------------------------------------------------------------------------------------------

def connects_in_pieces(ways):
    pieces, barrier = iter(ways), threading.Barrier(len(ways))

    def script(connection):
        connection.read_head()
        mine = next(pieces)
        connection.send(mine[0])
        barrier.wait(wire.LIMIT_S)
        connection.send(*mine[1:])
        connection.read_to_end()

    return script


@pytest.mark.parametrize("raw", cases(TUNNELS))
def test_a_tunnel_stands_after_a_2xx_and_takes_what_came_early(stage, raw):
    ways = protocol.ways(raw + b"5\r\nhello")
    stage.play(connects_in_pieces(ways))

    def read(client):
        got = client.read_exactly(len(TUNNEL) + 8)
        client.end()
        return got + client.read_to_end()

    answers = stage.ask([[CONNECT + b"early"]] * len(ways), read)
    assert set(answers) == {TUNNEL + b"5\r\nhello"}
    assert set(stage.received()) == {CONNECT_PASSED + b"early"}


@pytest.mark.row("H20")
def test_connect_itself_may_be_split_anywhere(stage):
    stage.play(wire.tunnels(wire.returns_all))
    ways = protocol.ways(CONNECT + b"early")

    def read(client):
        got = client.read_exactly(len(TUNNEL) + 5)
        client.end()
        return got + client.read_to_end()

    assert set(stage.ask(ways, read)) == {TUNNEL + b"early"}
    assert set(stage.received()) == {CONNECT_PASSED + b"early"} and len(stage.received()) == len(ways)


@pytest.mark.parametrize("status, raw", cases(NO_TUNNEL))
def test_without_a_tunnel_early_bytes_are_dropped(stage, status, raw):
    ways = protocol.ways(raw)
    stage.play(connects_in_pieces(ways))
    answers = stage.ask([[CONNECT + GOOD]] * len(ways), lambda client: client.read_to_end())
    for answer in answers:
        head = wire.Head(answer.partition(b"\r\n\r\n")[0] + b"\r\n\r\n")
        assert (head.status, head.fields["connection"]) == (502, "close")
        assert answer.count(b"HTTP/1.1 ") == 1 and b"hello" not in answer
        assert "proxy-authenticate" not in head.fields
        assert not status or f"received-status={status}" in head.fields["proxy-status"]
    assert set(stage.received()) == {CONNECT_PASSED}


BULK = b"".join(hashlib.sha256(b"%d" % i).digest() for i in range(60_000))  # 1.9 MB
SUM = hashlib.sha256(BULK).hexdigest()


def sum_of(wire_end):
    return hashlib.sha256(wire_end.read_to_end()).hexdigest()


@pytest.mark.row("H22")
@pytest.mark.parametrize("first", ["client", "member"])
def test_a_half_close_lets_the_other_direction_finish(stage, first):
    sums = []

    def script(connection):
        if first == "member":
            connection.end()
        sums.append(sum_of(connection))
        if first == "client":
            connection.send(BULK)

    stage.play(wire.tunnels(script))
    with stage.gateway.connect() as client:
        assert client.tunnel().status == 200
        if first == "client":
            client.send(b"question")
            client.end()
            assert sum_of(client) == SUM
        else:
            assert client.read_to_end() == b""
            client.send(BULK)
            client.end()
    stage.received()
    assert sums == [SUM if first == "member" else hashlib.sha256(b"question").hexdigest()]


@pytest.mark.row("H22")
@pytest.mark.parametrize("who", ["client", "member"])
def test_what_was_sent_before_a_close_arrives(stage, who):
    sums = []

    def script(connection):
        if who == "member":
            connection.send(BULK)
        else:
            sums.append(sum_of(connection))

    stage.play(wire.tunnels(script))
    with stage.gateway.connect() as client:
        client.tunnel()
        if who == "client":
            client.send(BULK)
        else:
            sums.append(sum_of(client))
    stage.received()
    assert sums == [SUM]


@pytest.mark.row("H22")
@pytest.mark.parametrize("who", ["client", "member"])
def test_a_reset_reaches_the_other_end(stage, who):
    stage.play(wire.tunnels((lambda c: (c.read_exactly(4), c.reset())) if who == "member" else wire.returns_all))
    with stage.gateway.connect() as client:
        client.tunnel()
        client.send(b"ping")
        if who == "member":
            assert client.is_closed()
        else:
            assert client.read_exactly(4) == b"ping"
            client.reset()
    stage.received()


# --- credentials ----------------------------------------------------------------------------------------------------

ALICE = b"Proxy-Authorization: Basic " + base64.b64encode(b"alice:open sesame")
STRANGERS = [(), (b"Proxy-Authorization: Basic " + base64.b64encode(b"alice:open"),),
             (b"Proxy-Authorization: Basic " + base64.b64encode(b"bob:open sesame"),), (b"Proxy-Authorization: Basic",),
             (b"Proxy-Authorization: Basic ====",), (b"Proxy-Authorization: Bearer x",),
             (b"Authorization: Basic " + base64.b64encode(b"alice:open sesame"),)]


@pytest.mark.row("H32")
@pytest.mark.parametrize("fields", STRANGERS)
@pytest.mark.parametrize("line", [GET, b"CONNECT origin.test:443"])
def test_a_stranger_gets_one_challenge_and_may_try_again(closed, line, fields):
    closed.play(wire.tunnels(wire.returns_all) if line[0:1] == b"C" else protocol.until_end(wire.answers(OK)))

    def read(client):
        answer = client.read_response()
        client.send(sent(line, ALICE))
        return answer, client.read_response("CONNECT" if line[0:1] == b"C" else "GET").status

    raw = sent(line, *fields)
    for answer, status in closed.ask(protocol.ways(raw), read):
        assert (answer.status, status) == (407, 200)
        assert answer.raw.lower().count(b"\r\nproxy-authenticate: basic realm=") == 1
        assert answer.raw.lower().count(b"proxy-authenticate") == 1 and "www-authenticate" not in answer.fields
        assert answer.fields["content-length"] == "0" and "connection" not in answer.fields
    assert all(b"sesame" not in received and base64.b64encode(b"alice:open sesame") not in
               received.replace(fields[0] if fields else b"-", b"") for received in closed.received())


@pytest.mark.row("H32")
@pytest.mark.parametrize("raw", [sent() + GOOD, sent(POST, b"Content-Length: 5", body=b"hello"),
                                 sent(POST, CHUNKED, body=b"0\r\n\r\n") + sent(GET, ALICE),
                                 sent(b"CONNECT origin.test:443") + sent(GET, ALICE)])
def test_what_follows_a_stranger_is_not_read(closed, raw):
    closed.play(wire.answers(OK))
    with closed.gateway.connect() as client:
        client.send(raw)
        answer = client.read_to_end()
    assert answer.startswith(b"HTTP/1.1 407 ") and answer.count(b"HTTP/1.1 ") == 1
    assert b"\r\nConnection: close\r\n" in answer
    assert closed.received() == []


# --- kept connections -----------------------------------------------------------------------------------------------


@pytest.mark.row("H28")
def test_pipelined_requests_go_each_its_own_way_and_are_answered_in_order(stage):
    stage.play(protocol.until_end(wire.echoes))
    targets = [b"http://h%d.test/%d" % (i, i) for i in range(9)]
    raw = b"".join(sent((b"PUT " if i % 2 else b"GET ") + target, *([b"Content-Length: 2"] if i % 2 else []),
                        host=b"Host: x", body=b"ab" if i % 2 else b"") for i, target in enumerate(targets))
    answers = stage.ask([[raw]] + [[raw[:at], raw[at:]] for at in protocol.cuts(raw)[::7]],
                        lambda client: [client.read_response().body.split()[1] for _ in targets])
    assert all(answer == targets for answer in answers)
    for received in stage.received():
        request, = protocol.messages(received)
        assert request.target == f"http://{request.fields['Host']}/{request.fields['Host'][1]}"


@pytest.mark.row("H28")
@pytest.mark.parametrize("second", [
    sent(b"GET /"), sent(POST, b"Content-Length: 1", CHUNKED), b"\x16\x03\x01", b"\r\n\r\n", sent(host=None)])
def test_a_faulty_request_behind_a_good_one_ends_the_connection(stage, second):
    stage.play(protocol.until_end(wire.answers(OK)))

    def read(client):
        return client.read_response().status, client.read_response().status, client.read_to_end()

    assert stage.ask([[GOOD + second + GOOD], [GOOD, second + GOOD]], read) == [(200, 400, b"")] * 2
    assert stage.received() == [GOOD_PASSED] * 2


@pytest.mark.row("H28")
def test_a_connect_behind_a_request_is_a_tunnel(stage):
    def script(connection):
        connection.sock.recv(1, 2)  # MSG_PEEK: which of the two is it?
        if connection.sock.recv(7, 2).startswith(b"GET"):
            protocol.until_end(wire.answers(OK))(connection)
        else:
            wire.tunnels(wire.returns_all)(connection)

    stage.play(script)

    def read(client):
        assert client.read_response().body == b"ok"
        got = client.read_exactly(len(TUNNEL) + 5)
        client.end()
        return got + client.read_to_end()

    raw = GOOD + CONNECT + b"early"
    assert set(stage.ask(protocol.ways(raw), read)) == {TUNNEL + b"early"}
    assert set(stage.received()) == {GOOD_PASSED, CONNECT_PASSED + b"early"}


@pytest.mark.row("H28")
def test_the_next_request_waits_for_its_turn(stage):
    go = threading.Event()

    def script(connection):
        connection.read_request()
        go.wait(wire.LIMIT_S)
        connection.send(OK)
        connection.read_to_end()

    stage.play(script)
    with stage.gateway.connect() as client:
        client.send(GOOD + GOOD)
        stage.server.wait_for_connection()
        go.set()
        assert [client.read_response().body for _ in range(2)] == [b"ok", b"ok"]
    assert stage.received() == [GOOD_PASSED] * 2


# --- members that fail ----------------------------------------------------------------------------------------------


def dies_in_the_answer(connection):
    connection.read_request()
    connection.send(b"HTTP/1.1 200 O")


@pytest.mark.row("H31")
@pytest.mark.parametrize("method, tries, status", [
    ("GET", 2, 200), ("PUT", 2, 200), ("POST", 1, 502), ("PATCH", 1, 502)])
@pytest.mark.parametrize("death", [wire.resets, wire.closes, dies_in_the_answer])
def test_only_what_is_idempotent_is_sent_again(gateway_to_two, death, method, tries, status):
    gateway, first, second = gateway_to_two(death, wire.echoes)
    with gateway.connect() as client:
        answer = client.ask(sent(method.encode() + b" http://origin.test/", b"Content-Length: 4", body=b"body"))
    assert answer.status == status
    assert (len(first.connections), len(second.connections)) == (1, tries - 1)
    assert gateway.request()["tries"] == tries


@pytest.mark.row("H31")
@pytest.mark.parametrize("method", ["POST", "CONNECT"])
def test_anything_is_sent_to_another_when_no_byte_has_left(node, add, upstream, method):
    second = upstream(wire.tunnels(wire.returns_all) if method == "CONNECT" else wire.echoes, host="127.0.0.2")
    add(f"http://127.0.0.1:{peers.free_port()}", second.url)
    gateway = node()
    with gateway.connect() as client:
        if method == "CONNECT":
            assert client.tunnel().status == 200
        else:
            assert client.ask(wire.request("POST", "http://origin.test/", b"body")).body.endswith(b" body")
    assert gateway.request()["tries"] == 2


FAILURES = {
    "refused": (None, "GET", 502, "connection_refused"),
    "refused, CONNECT": (None, "CONNECT", 502, "connection_refused"),
    "dns": ("http://name.invalid:3128", "CONNECT", 502, "dns_error"),
    "closed": (wire.closes, "GET", 502, "connection_terminated"),
    "reset": (wire.resets, "CONNECT", 502, "connection_terminated"),
    "silent": (wire.is_silent, "GET", 504, "http_response_timeout"),
    "silent, CONNECT": (wire.is_silent, "CONNECT", 504, "connection_read_timeout"),
    "drips": (wire.drips(b"HTTP/1.1 200 OK\r\nX: ", b"y"), "GET", 504, "http_response_timeout"),
    "1xx without end": (wire.drips(b"", b"HTTP/1.1 102 x\r\n\r\n"), "CONNECT", 504, "connection_read_timeout"),
    "garbage": (wire.answers(b"SSH-2.0-x\r\n"), "CONNECT", 502, "http_protocol_error"),
    "407": (wire.answers(b"HTTP/1.1 407 No\r\n\r\n"), "GET", 502, "proxy_configuration_error"),
    "no member": ("", "GET", 503, "destination_unavailable"),
    "private target": ("", "PRIVATE", 403, "destination_ip_prohibited"),
}


@pytest.mark.row("H34")
@pytest.mark.parametrize("name", FAILURES)
def test_a_failure_is_told_by_status_and_type_without_names(node, add, upstream, name):
    place, method, status, error = FAILURES[name]
    if callable(place):
        place = upstream(place).url
    elif place is None:
        place = f"http://127.0.0.1:{peers.free_port()}"
    if place:
        add(place)
    gateway = node("--response-timeout", "300ms", "--dial-timeout", "300ms", private=method != "PRIVATE")
    with gateway.connect() as client:
        if method == "CONNECT":
            answer = client.tunnel()
        else:
            answer = client.get("http://10.0.0.1/" if method == "PRIVATE" else "http://origin.test/")
        assert client.is_closed()
    assert answer.status == status
    assert re.fullmatch(rf'fairlead; error={error}(; received-status=407)?; details="[a-z-]+"',
                        answer.fields["proxy-status"])
    assert ("retry-after" in answer.fields) == (status == 503)
    assert not place or place.rpartition(":")[2].encode() not in answer.raw + answer.body


@pytest.mark.row("H34")
def test_1xx_without_end_in_front_of_a_response_end_in_time(gateway_to):
    gateway, _ = gateway_to(wire.drips(b"", b"HTTP/1.1 102 x\r\n\r\n"), words=["--response-timeout", "300ms"])
    with gateway.connect() as client:
        answer = client.get()
        while answer.status == 102:
            answer = client.read_response()
    assert answer.status == 504


# --- all of it ------------------------------------------------------------------------------------------------------


@pytest.mark.row("H35")
@pytest.mark.parametrize("which", ["stage", "direct"])
def test_a_second_reader_finds_the_requests_that_the_gateway_logged(request, which):
    """Over all that the tests above have sent, smuggling included: one connection, one request, and no other."""
    stage = request.getfixturevalue(which)
    stage.play(wire.is_silent)
    seen, tunnels = [], 0
    for connection in stage.seen:
        raw = bytes(connection.received)
        if raw.startswith(b"CONNECT "):
            tunnels += 1
        elif raw:
            one, = protocol.messages(raw)
            seen.append(one)
    lines = [line for line in stage.gateway.requests() if line["tries"]]
    logged = [f"{line['method']} {line['target']}" for line in lines if line["method"] != "CONNECT"]
    hosts = [one.fields["Host"] for one in seen]
    assert sorted(logged) == sorted(f"{one.method} {host if ':' in host else host + ':80'}"
                                    for one, host in zip(seen, hosts))
    assert len(lines) - len(logged) == tunnels
