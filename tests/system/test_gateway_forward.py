"""Plain HTTP requests: bodies and their framing in both directions, kept connections, upgrades, what was cut short."""

import contextlib
import hashlib
import os
import threading

import pytest

import peers
import wire

BIG = bytes(range(256)) * 160_000  # 40 MB, more than all kernel buffers on the way
URL = "http://origin.test/"


# --- response bodies ------------------------------------------------------------------------------------------------

BODIES = {
    "length": (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", "content-length"),
    "chunked": (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + wire.chunked(b"hel", b"lo"),
                "transfer-encoding"),
    "Chunked": (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n" + wire.chunked(b"hello"),
                "transfer-encoding"),
    "until close": (b"HTTP/1.1 200 OK\r\n\r\nhello", "connection"),
    "until close, HTTP/1.0": (b"HTTP/1.0 200 OK\r\n\r\nhello", "connection"),
    "space before the colon": (b"HTTP/1.1 200 OK\r\nContent-Length : 5\r\n\r\nhello", "content-length"),
    "no reason": (b"HTTP/1.1 200\r\nContent-Length: 5\r\n\r\nhello", "content-length"),
}
SPLIT = (b"HT|TP/1.1| 2|00| |OK|\r|\n|Date: x\r\nCont|ent-Length:| |5|\r\n|\r|\n|he|llo",
         b"HTTP/1.1 200 OK\r\nDate: x\r\nTransfer-Encoding: chunked\r\n|\r\n|3|\r|\nhe|l\r|\n2\r\nl|o|\r\n|0|\r|\n|\r|\n")


@pytest.mark.core
@pytest.mark.parametrize("name", BODIES)
def test_a_response_body_arrives_whole(gateway_to, name):
    raw, framing = BODIES[name]
    gateway, _ = gateway_to(wire.answers(raw))
    with gateway.connect() as client:
        answer = client.get()
        assert answer.body == b"hello" and framing in answer.fields
    line = gateway.request()
    assert (line["reason"], line["status"]) == ("ok", 200)


@pytest.mark.core
@pytest.mark.parametrize("head, method", [(b"200 OK\r\nContent-Length: 0", "GET"), (b"204 No", "GET"),
                                          (b"304 Same", "GET"), (b"200 OK\r\nContent-Length: 2", "HEAD")])
def test_bytes_behind_a_response_without_body_do_not_hold_it_up(gateway_to, head, method):
    def answers(connection):
        connection.read_request()
        connection.send(b"HTTP/1.1 " + head + b"\r\n\r\nxx")
        connection.read_to_end()

    gateway, _ = gateway_to(answers)
    with gateway.connect() as client:
        answer = client.ask(wire.request(method, URL), method)
        assert str(answer.status) in head.decode() and answer.body == b""


@pytest.mark.core
@pytest.mark.parametrize("marked", SPLIT)
def test_a_response_split_at_any_border_is_the_same_response(gateway_to, marked):
    pieces = marked.split(b"|")
    ways = [[b"".join(pieces)], pieces]
    ways += [[b"".join(pieces[:i]), b"".join(pieces[i:])] for i in range(1, len(pieces))]
    gateway, _ = gateway_to(*(wire.answers(*way) for way in ways))
    with gateway.connect() as client:
        answers = [client.get() for _ in ways]
    assert [a.body for a in answers] == [b"hello"] * len(ways)
    assert len({a.raw for a in answers}) == 1


@pytest.mark.parametrize("raw, method, length", [
    (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", "HEAD", "5"),
    (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "HEAD", None),
    (b"HTTP/1.1 204 No Content\r\n\r\n", "GET", None),
    (b"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", "GET", "5"),
    (b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "GET", "0")])
def test_a_response_without_a_body_keeps_the_connection(gateway_to, raw, method, length):
    gateway, _ = gateway_to(wire.answers(raw), wire.serves())
    with gateway.connect() as client:
        answer = client.ask(wire.request(method, URL), method)
        assert answer.fields.get("content-length") == length
        assert client.get().body == b"hello"


def test_a_client_of_http_1_0_gets_no_chunks(gateway_to):
    gateway, _ = gateway_to(wire.answers(BODIES["chunked"][0]))
    with gateway.connect() as client:
        client.send(b"GET http://origin.test/ HTTP/1.0\r\n\r\n")
        head = wire.Head(client.read_head())
        assert "transfer-encoding" not in head.fields and "content-length" not in head.fields
        assert client.read_to_end() == b"hello"


# --- what was cut short ---------------------------------------------------------------------------------------------

CUT = {
    "length": b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello",
    "chunked, in a chunk": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\na\r\nhello",
    "chunked, between chunks": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
    "chunked, before the last CRLF": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                                     b"5\r\nhello\r\n0\r\n",
    "chunked, bad size": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0x1\r\n",
}


@pytest.mark.core
@pytest.mark.parametrize("name", CUT)
def test_a_body_that_was_cut_short_does_not_look_complete(gateway_to, name):
    gateway, _ = gateway_to(wire.answers(CUT[name]))
    with gateway.connect() as client:
        client.send(wire.request("GET", URL))
        with pytest.raises((wire.Truncated, ConnectionResetError)):
            client.read_response()
    line = gateway.request()
    assert (line["reason"], line["tries"]) == ("response-incomplete", 1)


def until_close_then(act):
    def script(connection):
        connection.read_head()
        connection.send(b"HTTP/1.1 200 OK\r\n\r\nhello")
        act(connection)

    return script


def read_until_close(client):
    client.send(wire.request("GET", URL))
    client.read_head()
    while client.read_some():
        pass


def test_a_reset_cuts_short_what_would_last_until_the_close(gateway_to):
    gateway, server = gateway_to(until_close_then(
        lambda c: (c.wait_until_acknowledged(), c.reset())))
    with gateway.connect() as client, pytest.raises(ConnectionResetError):
        read_until_close(client)
    assert gateway.request()["reason"] == "response-incomplete"


def test_a_time_out_cuts_short_what_would_last_until_the_close(gateway_to):
    gateway, server = gateway_to(until_close_then(wire.is_silent), words=["--idle-timeout", "1s"])
    with gateway.connect() as client, pytest.raises(ConnectionResetError):
        read_until_close(client)
    assert gateway.request()["reason"] == "idle-timeout"


def test_a_drain_that_is_over_cuts_short_what_would_last_until_the_close(gateway_to):
    gateway, server = gateway_to(until_close_then(wire.is_silent), words=["--drain-timeout", "300ms"])
    with gateway.connect() as client, pytest.raises(ConnectionResetError):
        client.send(wire.request("GET", URL))
        client.read_head()
        gateway.terminate()
        while client.read_some():
            pass
    gateway.stop()
    assert gateway.request()["reason"] == "shutdown"


@pytest.mark.parametrize("raw", [
    b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nhello",
    b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nhello", b"HTTP/1.1 200 OK\nX: y\n\n",
    b"HTTP/1.1 2000 OK\r\n\r\n", b"ICY 200 OK\r\n\r\n", b"HTTP/1.1 101 Up\r\nUpgrade: x\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nX: a\r\n b\r\n\r\n", b"HTTP/1.1 200 OK\r\nnothing\r\n\r\n"])
def test_a_faulty_response_is_the_members_fault(gateway_to_two, raw):
    gateway, first, second = gateway_to_two(wire.answers(raw), wire.serves())
    with gateway.connect() as client:
        assert client.get().body == b"hello"
        answer = client.ask(wire.request("POST", URL, b"x"))
        assert client.read_to_end() == b""
    lines = gateway.requests(2)
    assert (lines[0]["tries"], lines[0]["reason"]) == (2, "ok")
    # Then the counts stand at 1 and 1, and the first is asked again; a POST may not be repeated.
    assert answer.status == 502
    assert lines[1]["reason"] == "response-syntax"


def test_a_response_head_without_an_end_is_cut_off(gateway_to):
    def endless(connection):
        connection.read_head()
        connection.send(b"HTTP/1.1 200 OK\r\n")
        while True:
            connection.send(b"X-Field: yyyyyyyyyyyyyyyyyyyyyyyyyyyyyy\r\n" * 1000)

    gateway, _ = gateway_to(endless)
    with gateway.connect() as client:
        answer = client.get()
    assert answer.status == 502
    assert "error=http_response_header_section_size" in answer.fields["proxy-status"]


def test_bytes_behind_the_response_are_nobodys(gateway_to):
    spill = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil"
    gateway, _ = gateway_to(wire.answers(BODIES["length"][0] + spill),
                            wire.answers(BODIES["chunked"][0] + spill), wire.serves(b"third"))
    with gateway.connect() as client:
        assert [client.get().body for _ in range(3)] == [b"hello", b"hello", b"third"]
    assert b"evil" not in client.received


# --- request bodies -------------------------------------------------------------------------------------------------


@pytest.mark.core
@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "GET", "DELETE"])
def test_a_request_body_arrives_whole(gateway_to, method):
    gateway, server = gateway_to(wire.echoes)
    with gateway.connect() as client:
        answer = client.ask(wire.request(method, URL, b"hello"))
        assert answer.body == f"{method} {URL} hello".encode()
        head = wire.request(method, URL, Transfer_Encoding="chunked")
        answer = client.ask(head + wire.chunked(b"hel", b"lo"))
        assert answer.body == f"{method} {URL} hello".encode()
    assert "content-length" not in server.connections[1].head.fields


@pytest.mark.core
@pytest.mark.parametrize("is_chunked", [False, True])
def test_twenty_megabytes_go_up_and_down(gateway_to, is_chunked):
    def digests(connection):
        body = connection.read_request().body
        connection.send(wire.response(BIG, X_Digest=hashlib.sha256(body).hexdigest()))

    gateway, _ = gateway_to(digests)
    body = wire.chunked(*(BIG[i:i + 70_000] for i in range(0, len(BIG), 70_000)))
    raw = wire.request("PUT", URL, Transfer_Encoding="chunked") + body if is_chunked else (
        wire.request("PUT", URL, BIG))
    with gateway.connect() as client:
        answer = client.ask(raw)
    assert answer.fields["x-digest"] == hashlib.sha256(BIG).hexdigest()
    assert hashlib.sha256(answer.body).digest() == hashlib.sha256(BIG).digest()


@pytest.mark.core
def test_100_continue_passes_through(gateway_to):
    def asks_for_the_body(connection):
        head = wire.Head(connection.read_head())
        assert head.fields["expect"] == "100-continue"
        connection.send(b"HTTP/1.1 100 Continue\r\n\r\n")
        connection.send(wire.response(connection.read_exactly(5)))

    gateway, _ = gateway_to(asks_for_the_body)
    with gateway.connect() as client:
        client.send(wire.request("POST", URL, Expect="100-continue", Content_Length=5))
        assert client.read_response().status == 100
        client.send(b"hello")
        assert client.read_response().body == b"hello"


def test_a_final_answer_in_place_of_100_ends_the_connection(gateway_to):
    """What follows would be taken for the body or for the next request: nobody can know."""
    gateway, server = gateway_to(lambda c: (c.read_head(), c.send(
        b"HTTP/1.1 417 No\r\nContent-Length: 0\r\n\r\n")))
    with gateway.connect() as client:
        client.send(wire.request("POST", URL, Expect="100-continue", Content_Length=5))
        answer = client.read_response()
        assert answer.status == 417 and answer.fields["connection"] == "close"
        assert client.is_closed()


def test_interim_responses_do_not_reach_http_1_0(gateway_to):
    gateway, _ = gateway_to(wire.answers(b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n",
                                        wire.response(b"hello")))
    with gateway.connect() as client:
        client.send(b"GET http://origin.test/ HTTP/1.0\r\n\r\n")
        assert client.read_response().status == 200
    with gateway.connect() as client:
        assert client.get().status == 103
        assert client.read_response().body == b"hello"


@pytest.mark.core
def test_an_early_answer_to_a_large_upload_is_not_lost(gateway_to):
    """A server may answer and close without reading all; its reset must not swallow the answer."""

    def too_large(connection):
        connection.read_head()
        connection.send(wire.response(b"too large", "413 Content Too Large", Connection="close"))

    gateway, _ = gateway_to(too_large)
    with gateway.connect() as client:
        client.send(wire.request("POST", URL, Content_Length=len(BIG)))
        sender = threading.Thread(target=send_what_is_taken, args=(client,))
        sender.start()
        answer = client.read_response()
        assert (answer.status, answer.body) == (413, b"too large")
        client.read_to_end()
        sender.join(wire.LIMIT_S)
    assert gateway.request()["status"] == 413


def send_what_is_taken(client):
    with contextlib.suppress(OSError):
        client.send(BIG)


def test_an_answer_may_come_while_the_body_goes_up(gateway_to):
    def answers_first(connection):
        head = wire.Head(connection.read_head())
        connection.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nready\r\n")
        body = connection.read_exactly(int(head.fields["content-length"]))
        connection.send(b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body))

    gateway, _ = gateway_to(answers_first)
    with gateway.connect() as client:
        client.send(wire.request("POST", URL, Content_Length=4))
        client.read_head()
        assert client.read_exactly(10) == b"5\r\nready\r\n"
        client.send(b"body")
        assert client.read_to_end() == b"4\r\nbody\r\n0\r\n\r\n"


def test_repeated_fields_stay_apart_and_in_order(gateway_to):
    cookies = b"Set-Cookie: a=1\r\nX: y\r\nset-cookie: b=2, c\r\nSet-Cookie:\r\n"
    gateway, server = gateway_to(wire.answers(b"HTTP/1.1 200 OK\r\n" + cookies
                                              + b"Content-Length: 0\r\n\r\n"))
    with gateway.connect() as client:
        answer = client.ask(b"GET http://origin.test/ HTTP/1.1\r\nHost: origin.test\r\n"
                            b"Cookie: a\r\nX: \xe9\r\ncookie: b\r\n\r\n")
    kept = [line for line in answer.raw.split(b"\r\n") if line.lower().startswith((b"set-", b"x"))]
    assert [line.replace(b": ", b":") for line in kept] == (
        cookies[:-2].replace(b": ", b":").split(b"\r\n"))
    assert b"\r\nCookie: a\r\nX: \xe9\r\ncookie: b\r\n" in server.connections[0].received


def test_an_answer_that_drips_is_not_given_more_time(gateway_to):
    gateway, _ = gateway_to(wire.drips(b"HTTP/1.1 200 OK\r\nX: ", b"y"),
                            words=["--response-timeout", "400ms"])
    with gateway.connect() as client:
        client.sock.settimeout(5)
        assert client.get().status == 504
    assert gateway.request()["reason"] == "response-timeout"


@pytest.mark.core
def test_another_parser_reads_the_same_requests(node, run, peer):
    """What leaves for an origin means to nginx what it meant to the gateway: no request more, none less."""
    origin = peer(peers.Nginx)
    run("pool", "add", "--eligible", "--allow-private", "direct://")
    gateway = node()
    smuggled = b"GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n"
    raws = [wire.request("GET", f"{origin.url}/who?1"),
            wire.request("GET", f"{origin.url}/who?2", smuggled),
            wire.request("GET", f"{origin.url}/who?3", TRANSFER_ENCODING="CHUNKED")
            + wire.chunked(smuggled, smuggled),
            wire.request("GET", f"{origin.url}/who?4", Content_Length="00"),
            wire.request("GET", f"{origin.url}/who?5", Content_Length="0005") + b"GET /",
            wire.request("GET", f"{origin.url}/who?6", X="a\x80\t b", Connection="Content-Length, X"),
            wire.request("GET", f"{origin.url}?7", Upgrade="h2c", Connection="Upgrade, HTTP2-Settings",
                         HTTP2_Settings="AAMAAABkAARAAAAAAAIAAAAA")]
    with gateway.connect() as client:
        client.send(b"".join(raws))
        statuses = [client.read_response().status for _ in raws]
    assert statuses[:6] == [200] * 6
    peers.wait_for(lambda: len(origin.log()) >= len(raws), "nginx has logged all requests")
    assert [e["uri"] for e in origin.log()] == [f"/who?{i}" for i in range(1, 7)] + ["/?7"]


# --- upgrades -------------------------------------------------------------------------------------------------------


@pytest.mark.core
def test_a_websocket_passes_through(gateway_to):
    def upgrades(connection):
        head = wire.Head(connection.read_head())
        assert head.fields["connection"].lower() == "upgrade"
        assert head.fields["upgrade"] == "websocket"
        connection.send(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n"
                        b"Upgrade: websocket\r\nSec-WebSocket-Accept: x\r\n\r\nfirst")
        wire.returns_all(connection)

    gateway, _ = gateway_to(upgrades)
    with gateway.connect() as client:
        answer = client.get(Connection="Upgrade", Upgrade="websocket", Sec_WebSocket_Key="k")
        assert answer.status == 101 and answer.fields["upgrade"] == "websocket"
        assert client.read_exactly(5) == b"first"
        client.send(b"\x00GET http://smuggled.test/ HTTP/1.1\r\n\r\n")
        assert client.read_exactly(39) == b"\x00GET http://smuggled.test/ HTTP/1.1\r\n\r\n"
        client.end()
        assert client.read_to_end() == b""
    line = gateway.request()
    assert (line["status"], line["reason"]) == (101, "ok")


def test_an_upgrade_that_is_refused_is_a_plain_answer(gateway_to):
    gateway, _ = gateway_to(wire.serves(b"no"), wire.serves(b"next"))
    with gateway.connect() as client:
        assert client.get(Connection="Upgrade", Upgrade="websocket").body == b"no"
        assert client.get().body == b"next"


# --- kept connections, pipelines (T24, H28) -------------------------------------------------------------------------


@pytest.mark.core
def test_each_request_of_a_kept_connection_takes_its_turn(node, add, upstream):
    servers = [upstream(wire.serves(name), host=f"127.0.0.{i}")
               for i, name in ((2, b"two"), (3, b"three"), (4, b"four"))]
    add(*(server.url for server in servers))
    gateway = node()
    with gateway.connect() as client:
        bodies = [client.get().body for _ in range(10)]
    assert bodies == ([b"two", b"three", b"four"] * 4)[:10]
    assert [line["tries"] for line in gateway.requests(10)] == [1] * 10


@pytest.mark.core
def test_pipelined_requests_are_answered_in_order(gateway_to):
    gateway, server = gateway_to(wire.echoes)
    raws = [wire.request("GET" if i % 3 else "PUT", f"http://h{i}.test/{i}", b"" if i % 3 else b"body")
            for i in range(20)]
    with gateway.connect() as client:
        client.send(b"".join(raws))
        bodies = [client.read_response().body for _ in raws]
    assert [body.split()[1] for body in bodies] == [f"http://h{i}.test/{i}".encode() for i in range(20)]
    assert [c.head.fields["host"] for c in server.connections] == [f"h{i}.test" for i in range(20)]


def test_a_flood_of_pipelined_requests_is_answered_in_order(gateway_to):
    gateway, server = gateway_to(wire.echoes)
    count = 400
    with gateway.connect() as client:
        flood = b"".join(wire.request("GET", f"http://o.test/{i}") for i in range(count))
        sender = threading.Thread(target=client.send, args=(flood,))
        sender.start()
        for i in range(count):
            assert client.read_response().body == b"GET http://o.test/%d " % i
        sender.join(wire.LIMIT_S)


def test_interim_responses_without_end_end_in_time(gateway_to):
    gateway, _ = gateway_to(wire.drips(b"", b"HTTP/1.1 102 Processing\r\n\r\n"),
                            words=["--response-timeout", "400ms"])
    with gateway.connect() as client:
        statuses = [client.get().status]
        while statuses[-1] == 102 and len(statuses) < 200:
            statuses.append(client.read_response().status)
    assert statuses[-1] == 504


@pytest.mark.parametrize("first", [wire.request("GET", URL), wire.request("POST", URL, b"12345"),
                                   wire.request("PUT", URL, Transfer_Encoding="chunked")
                                   + wire.chunked(b"12345")])
def test_a_faulty_request_behind_a_good_one_is_refused_in_its_turn(gateway_to, first):
    gateway, server = gateway_to(wire.serves())
    with gateway.connect() as client:
        client.send(first + b"GET /origin-form HTTP/1.1\r\nHost: x.test\r\n\r\n" + wire.request("GET", URL))
        assert client.read_response().body == b"hello"
        assert client.read_response().status == 400
        assert client.is_closed()
    assert len(server.connections) == 1


def test_a_connect_behind_a_get_is_a_tunnel(gateway_to):
    gateway, server = gateway_to(wire.serves(), wire.tunnels(wire.returns_all))
    with gateway.connect() as client:
        client.send(wire.request("GET", URL)
                    + b"CONNECT o.test:443 HTTP/1.1\r\nHost: o.test:443\r\n\r\nearly")
        assert client.read_response().body == b"hello"
        assert client.read_response("CONNECT").status == 200
        assert client.read_exactly(5) == b"early"


@pytest.mark.parametrize("field", [{"Connection": "close"}, {"Proxy-Connection": "close"}])
def test_a_client_that_wants_the_end_gets_it(gateway_to, field):
    gateway, _ = gateway_to(wire.serves())
    with gateway.connect() as client:
        assert client.get(**field).fields["connection"] == "close"
        assert client.is_closed()


def test_an_idle_kept_connection_ends_in_time(gateway_to):
    gateway, _ = gateway_to(wire.serves(), words=["--idle-timeout", "1s"])
    with gateway.connect() as client:
        client.get()
        assert client.is_closed()


# --- back-pressure --------------------------------------------------------------------------------------------------


def resident_bytes(pid):
    with open(f"/proc/{pid}/statm", encoding="ascii") as statm:
        return int(statm.read().split()[1]) * 4096


@pytest.mark.core
@pytest.mark.parametrize("is_tunnel", [False, True])
def test_a_slow_reader_holds_up_the_sender_not_the_memory(gateway_to, is_tunnel):
    sent = [0]

    def sends(connection):
        if not is_tunnel:
            connection.read_head()
            connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(BIG))
        for i in range(0, len(BIG), 65536):
            connection.send(BIG[i:i + 65536])
            sent[0] += 65536

    gateway, _ = gateway_to(wire.tunnels(sends) if is_tunnel else sends)
    before = resident_bytes(gateway.pid)
    with gateway.connect(receive_buffer=65536) as client:
        if is_tunnel:
            client.tunnel()
        else:
            client.send(wire.request("GET", URL))
            client.read_head()
        assert 0 < peers.steady(lambda: sent[0], 0.3) < len(BIG) * 3 / 4
        # The address sanitizer keeps what was freed.
        assert "ASAN_OPTIONS" in os.environ or resident_bytes(gateway.pid) - before < len(BIG) / 10
        digest = hashlib.sha256()
        left = len(BIG)
        while left:
            piece = client.read_some()
            digest.update(piece)
            left -= len(piece)
    assert digest.digest() == hashlib.sha256(BIG).digest()


def test_a_slow_upstream_holds_up_the_client(gateway_to):
    go = threading.Event()
    got = []

    def waits(connection):
        connection.read_head()
        go.wait(wire.LIMIT_S)
        got.append(connection.read_exactly(len(BIG)))
        connection.send(wire.response(b"done"))

    gateway, server = gateway_to(waits, receive_buffer=65536)
    sent = [0]
    with gateway.connect() as client:
        client.send(wire.request("POST", URL, Content_Length=len(BIG)))

        def send():
            for i in range(0, len(BIG), 65536):
                client.send(BIG[i:i + 65536])
                sent[0] += 65536

        sender = threading.Thread(target=send)
        sender.start()
        server.wait_for_connection()
        assert peers.steady(lambda: sent[0], 0.3) < len(BIG) * 3 / 4
        go.set()
        assert client.read_response().body == b"done"
        sender.join()
    assert hashlib.sha256(got[0]).digest() == hashlib.sha256(BIG).digest()
