"""Requests as bytes: what is refused, with which status, and what of the rest reaches the upstream.

In the texts below `|` marks a border of the grammar. Each message is sent whole, and split once at each border."""

import pytest

import wire

GET = b"GET http://origin.test/ HTTP/1.1\r\nHost: origin.test\r\n"
POST = b"POST http://origin.test/ HTTP/1.1\r\nHost: origin.test\r\n"
CHUNKED = POST + b"Transfer-Encoding: chunked\r\n\r\n"


def line(text, host="origin.test"):
    return f"{text} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode("latin-1")


def fields(text, method=POST):
    return method + text + b"\r\n\r\n"


REFUSED = {
    # RFC 9112 3.2: Host
    "no Host": (400, b"GET http://origin.test/ HTTP/1.1\r\n\r\n"),
    "two Hosts": (400, fields(b"Host: origin.test", GET)),
    "Host with a space": (400, line("GET http://origin.test/", "or igin.test")),
    "Host with userinfo": (400, line("GET http://origin.test/", "u@origin.test")),
    "Host with a comma": (400, line("GET http://origin.test/", "a.test,b.test")),
    # 3.2.1 to 3.2.4: forms of the target
    "origin-form": (400, line("GET /path")),
    "asterisk with GET": (400, line("GET *")),
    "userinfo in the target": (400, line("GET http://user:secret@origin.test/")),
    "a scheme that is not spoken": (501, line("GET ftp://origin.test/")),
    "https in absolute form": (501, line("GET https://origin.test/")),
    "empty host": (400, line("GET http:///")),
    "port 0 in absolute form": (400, line("GET http://origin.test:0/")),
    **{f"CONNECT {target}": (400, line(f"CONNECT {target}")) for target in (
        "origin.test", "origin.test:0", "origin.test:65536", "origin.test:+80", "origin.test:", "/",
        "http://origin.test:80", "user@origin.test:443", "a.test,b.test:443", "[::1%25lo]:1",
        ":443", "origin.test:443/", "origin.test:0443", "origin.test:44 3", "*")},
    "CONNECT with a body": (400, b"CONNECT o.test:443 HTTP/1.1\r\nHost: o.test:443\r\n"
                                 b"Content-Length: 4\r\n\r\nabcd"),
    # 2.2, 5.1, RFC 9110 5.5: bytes
    "space before the colon": (400, fields(b"X : y", GET)),
    "obs-fold": (400, fields(b"X: y\r\n z", GET)),
    "white space before the first field": (400, b"GET http://origin.test/ HTTP/1.1\r\n X: y\r\n"
                                                b"Host: origin.test\r\n\r\n"),
    "bare CR in a value": (400, fields(b"X: a\rb", GET)),
    "NUL in a value": (400, fields(b"X: a\0b", GET)),
    "bare LF in a value": (400, fields(b"X: a\nY: b", GET)),
    "a name outside ASCII": (400, fields(b"X\xe9: b", GET)),
    "an empty name": (400, fields(b": b", GET)),
    "no colon": (400, fields(b"nothing", GET)),
    "bare LF ends the lines": (400, b"GET http://origin.test/ HTTP/1.1\nHost: origin.test\n\n"),
    "two spaces in the request line": (400, line("GET  http://origin.test/")),
    "a tab in the request line": (400, line("GET\thttp://origin.test/")),
    "a fragment": (400, line("GET http://origin.test/#x")),
    # 6.1, 6.3: framing
    "length and coding": (400, fields(b"Content-Length: 3\r\nTransfer-Encoding: chunked")),
    "coding in HTTP/1.0": (400, b"POST http://origin.test/ HTTP/1.0\r\n"
                                b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
    **{f"coding {coding!r}": (status, fields(b"Transfer-Encoding: " + coding) + b"0\r\n\r\n")
       for status, codings in (
           (400, (b",chunked", b"chunked,chunked", b"chunked;a=b", b"chunked\x0b", b"", b"\x0bchunked",
                  b"gzip, chunked", b"chunked\r\nTransfer-Encoding: chunked", b"chunked\r\n chunked")),
           (501, (b"identity", b"xchunked", b"gzip"))) for coding in codings},
    "Transfer_Encoding": (400, fields(b"Transfer_Encoding: chunked") + b"0\r\n\r\n"),
    **{f"length {length!r}": (400, fields(b"Content-Length: " + length))
       for length in (b"+1", b"-0", b"-1", b"0x10", b"1_0", b" ", b"", b"5,5", b"5, 6", b"1 0",
                      b"5\r\nContent-Length: 5", b"9223372036854775808", b"18446744073709551616",
                      b"1" * 40)},
    # 2.3: versions, other protocols
    "HTTP/0.9": (400, b"GET http://origin.test/\r\n"),
    "HTTP/1.32": (400, b"GET http://origin.test/ HTTP/1.32\r\nHost: origin.test\r\n\r\n"),
    "HTTP/2.0 preface": (505, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
    "http in lower case": (400, b"GET http://origin.test/ http/1.1\r\nHost: origin.test\r\n\r\n"),
    "TLS ClientHello": (400, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(40)),
    # sizes
    "a request line of 100 KB": (414, line("GET http://origin.test/" + "a" * 100_000)),
    "a head of 100 KB": (431, fields(b"X: " + b"a" * 100_000, GET)),
    "a thousand fields": (431, fields(b"\r\n".join(b"X-%d: y" % i for i in range(1000)), GET)),
}
CORE = ("two Hosts", "length and coding", "HTTP/2.0 preface", "a head of 100 KB", "CONNECT /")


@pytest.mark.parametrize("name", [
    pytest.param(name, marks=pytest.mark.core if name in CORE else ()) for name in REFUSED])
def test_a_faulty_request_is_refused_and_the_connection_closed(gateway_to, name):
    status, raw = REFUSED[name]
    gateway, server = gateway_to(wire.serves())
    with gateway.connect() as client:
        answer = client.ask(raw)
        assert answer.status == status
        assert answer.fields["connection"] == "close"
        assert answer.fields["proxy-status"].startswith("fairlead; error=http_request_error")
        client.end()
        assert client.is_closed()
    assert server.connections == []
    assert gateway.request()["fault"] == "client"
    assert "secret" not in gateway.text + answer.raw.decode() + answer.body.decode()


@pytest.mark.core
def test_a_faulty_chunk_never_completes_the_body(gateway_to):
    def reads_a_body(connection):
        connection.read_request()
        connection.send(wire.response(b"complete"))

    bad = (b"+1", b"-1", b"0x1", b"1_", b" 1", b"1 ", b"", b"1" * 17, b"7fffffffffffffff",
           b"ffffffffffffffff", b"g")
    gateway, server = gateway_to(reads_a_body)
    for size in bad:
        with gateway.connect() as client:
            answer = client.ask(CHUNKED + size + b"\r\na\r\n0\r\n\r\n")
            assert (size, answer.status) == (size, 400)
            assert answer.fields["connection"] == "close"
    assert len(gateway.requests(len(bad), reason="request-syntax")) == len(bad)
    for connection in server.connections:
        connection.done.wait(wire.LIMIT_S)
        assert not bytes(connection.received).endswith(b"0\r\n\r\n")


@pytest.mark.parametrize("rest", [b"3\r\nabcd\r\n0\r\n\r\n", b"3\r\nabc0\r\n\r\n", b"0\n\r\n",
                                  b"3\nabc\r\n0\r\n\r\n", b"0\r\nbad trailer\r\n\r\n"])
def test_a_body_with_faulty_chunk_borders_is_refused(gateway_to, rest):
    gateway, server = gateway_to(lambda c: (c.read_request(), c.send(wire.response(b"complete"))))
    with gateway.connect() as client:
        assert client.ask(CHUNKED + rest).status == 400
    assert gateway.request()["reason"] == "request-syntax"


def test_a_request_body_that_ends_early_reaches_no_end_upstream(gateway_to):
    gateway, server = gateway_to(wire.echoes)
    for raw in (CHUNKED + b"5\r\nab", POST + b"Content-Length: 5\r\n\r\nab"):
        with gateway.connect() as client:
            client.send(raw)
            client.end()
            assert client.read_to_end() == b""
    assert len(gateway.requests(2, reason="client-gone")) == 2
    for connection in server.connections:
        connection.done.wait(wire.LIMIT_S)
        assert bytes(connection.received).endswith(b"ab") or b"2\r\nab\r\n" in connection.received
        assert not bytes(connection.received).endswith(b"0\r\n\r\n")


# --- splits ---------------------------------------------------------------------------------------------------------

SPLIT = {
    "GET": (b"GE|T| |http://|origin.test|/p|?q=1| |HT|TP/1.1|\r|\n|Ho|st|:| |origin.test|\r|\n|X-A: |b|\r\n|\r|\n|",
            b"GET http://origin.test/p?q=1 "),
    "length": (b"PUT http://origin.test/ HTTP/1.1\r\nHost: origin.test\r\nContent-|Length: |1|1|\r\n|\r\n"
               b"|hello| |world", b"PUT http://origin.test/ hello world"),
    "chunked": (b"PUT http://origin.test/ HTTP/1.1\r\nHost: origin.test\r\nTransfer-Encoding|: chun|ked\r\n\r\n|"
                b"0|6|;|ext=|1|\r|\n|hello| |\r|\n|5\r\n|world|\r\n|0|\r|\n|Trai|ler|: x|\r|\n|\r|\n",
                b"PUT http://origin.test/ hello world"),
}


@pytest.mark.core
@pytest.mark.parametrize("name", SPLIT)
def test_a_request_split_at_any_border_is_the_same_request(gateway_to, name):
    marked, expected = SPLIT[name]
    gateway, server = gateway_to(wire.echoes)
    pieces = marked.split(b"|")
    ways = [[b"".join(pieces)], pieces]
    ways += [[b"".join(pieces[:i]), b"".join(pieces[i:])] for i in range(1, len(pieces))]
    for way in ways:
        with gateway.connect() as client:
            client.send_pieces([piece for piece in way if piece])
            assert (way, client.read_response().body) == (way, expected)
    seen = {bytes(c.received.partition(b"\r\n\r\n")[0]) for c in server.connections}
    assert len(server.connections) == len(ways) and len(seen) == 1


@pytest.mark.parametrize("name", ["two Hosts", "length and coding", "HTTP/1.32", "no colon",
                                  "CONNECT origin.test", "coding b'chunked;a=b'"])
def test_a_faulty_request_split_anywhere_is_refused_alike(gateway_to, name):
    status, raw = REFUSED[name]
    gateway, server = gateway_to(wire.serves())
    for at in range(1, len(raw), 5):
        with gateway.connect() as client:
            client.send_pieces([raw[:at], raw[at:]])
            assert client.read_response().status == status
    assert server.connections == []


# --- what reaches the upstream --------------------------------------------------------------------------------------


@pytest.mark.core
@pytest.mark.parametrize("target, authority", [
    ("http://Origin.TEST:8080", "origin.test:8080"), ("http://origin.test:80", "origin.test"),
    ("HTTP://origin.test.", "origin.test"), ("http://[2001:DB8:0::1]:8080", "[2001:db8::1]:8080"),
    ("http://origin.test:", None), ("http://192.0.2.1", "192.0.2.1")])
def test_host_is_made_from_the_target(gateway_to, target, authority):
    gateway, server = gateway_to(wire.serves())
    with gateway.connect() as client:
        answer = client.ask(f"GET {target}/x HTTP/1.1\r\nHost: other.test\r\n\r\n".encode())
    if answer.status == 200:
        head = server.connections[0].head
        assert head.line == f"GET http://{authority}/x HTTP/1.1"
        assert head.fields["host"] == authority
    else:
        assert authority is None and answer.status == 400


@pytest.mark.core
def test_fields_of_this_hop_end_here(gateway_to):
    gateway, server = gateway_to(wire.serves(Keep_Alive="timeout=5", Proxy_Authenticate="Basic realm=x",
                                             Connection="X-Mine", X_Mine="1", X_Other="2"))
    with gateway.connect() as client:
        answer = client.get(Connection="X-Hop, keep-alive", X_Hop="1", Keep_Alive="300", TE="trailers",
                            Proxy_Connection="keep-alive", Proxy_Authorization="Basic c2VjcmV0",
                            Upgrade="h2c", Trailer="X", X_End="kept")
    assert server.connections[0].head.names() == {"host", "x-end", "connection"}
    assert server.connections[0].head.fields["connection"] == "close"
    assert answer.fields["x-other"] == "2"
    assert not answer.names() & {"x-mine", "keep-alive", "proxy-authenticate"}


def test_connection_cannot_name_away_the_framing(gateway_to):
    gateway, server = gateway_to(wire.echoes)
    with gateway.connect() as client:
        raw = wire.request("PUT", "http://origin.test/", b"abc", Connection="content-length, host")
        assert client.ask(raw).body.endswith(b"abc")
    assert server.connections[0].head.fields["content-length"] == "3"
    assert server.connections[0].head.fields["host"] == "origin.test"


@pytest.mark.core
def test_nothing_tells_the_target_of_the_client(gateway_to):
    gateway, server = gateway_to(wire.serves())
    with gateway.connect() as client:
        client.get()
    assert server.connections[0].head.names() == {"host", "connection"}


def test_trailers_are_dropped(gateway_to):
    def answer_with_trailers(connection):
        connection.read_request()
        connection.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                        b"3\r\nabc\r\n0\r\nContent-Length: 9\r\nSet-Cookie: x=1\r\n\r\n")

    gateway, server = gateway_to(answer_with_trailers)
    with gateway.connect() as client:
        client.send(CHUNKED + b"1\r\na\r\n0\r\nContent-Length: 5\r\nHost: evil.test\r\n"
                    b"Authorization: Basic x\r\nTransfer-Encoding: gzip\r\n\r\n")
        answer = client.read_response()
    assert answer.body == b"abc"
    assert b"evil" not in server.connections[0].received
    assert bytes(server.connections[0].received).endswith(b"\r\n\r\n1\r\na\r\n0\r\n\r\n")
    assert bytes(client.received).endswith(b"3\r\nabc\r\n0\r\n\r\n")


@pytest.mark.parametrize("path, to_proxy, to_origin", [
    ("", "", "*"), ("?a=b", "/?a=b", "/?a=b"), ("/x", "/x", "/x")])
def test_options_names_the_target_as_a_whole(gateway_to, run, upstream, path, to_proxy, to_origin):
    gateway, server = gateway_to(wire.serves())
    origin = upstream(wire.serves())
    url = f"http://127.0.0.1:{origin.port}"
    with gateway.connect() as client:
        client.ask(wire.request("OPTIONS", url + path))
    assert server.connections[0].head.target == url + to_proxy
    run("pool", "remove", server.url)
    run("pool", "add", "--eligible", "--allow-private", "direct://")
    with gateway.connect() as client:
        client.ask(wire.request("OPTIONS", url + path))
    assert origin.connections[0].head.target == to_origin


@pytest.mark.core
def test_options_asterisk_is_answered_by_the_gateway_itself(gateway_to):
    gateway, server = gateway_to(wire.serves())
    with gateway.connect() as client:
        assert client.ask(line("OPTIONS *")).status == 200
        assert client.get().body == b"hello"
    assert len(server.connections) == 1


@pytest.mark.parametrize("via", ["1.1 fairlead", "1.0 other, 1.1 FairLead", "HTTP/1.1 fairlead (x)"])
def test_a_request_that_came_from_here_is_a_loop(gateway_to, via):
    gateway, server = gateway_to(wire.serves())
    with gateway.connect() as client:
        answer = client.get(Via=via)
    assert answer.status == 502
    assert "error=proxy_loop_detected" in answer.fields["proxy-status"]
    assert server.connections == []


def test_the_via_of_others_is_passed_on(gateway_to):
    gateway, server = gateway_to(wire.serves())
    with gateway.connect() as client:
        assert client.get(Via="1.1 fairleads, 1.1 my-fairlead").status == 200
    assert server.connections[0].head.fields["via"] == "1.1 fairleads, 1.1 my-fairlead"


def test_a_head_that_does_not_come_is_told_so_in_time(gateway_to):
    gateway, server = gateway_to(wire.serves(), words=["--head-timeout", "300ms"])
    with gateway.connect() as client:
        client.send(b"GET http://origin.test/ HT")
        assert client.read_response().status == 408
    with gateway.connect() as client:
        assert client.is_closed()


def test_a_head_that_drips_is_not_given_more_time(gateway_to):
    gateway, server = gateway_to(wire.serves(), words=["--head-timeout", "500ms"])
    with gateway.connect() as client:
        client.sock.settimeout(0.05)
        answer, raw = b"", iter(GET + b"X: " + b"y" * 400)
        while not answer:
            client.send(bytes([next(raw)]))
            try:
                answer = client.read_some()
            except TimeoutError:
                pass
    assert answer.startswith(b"HTTP/1.1 408 ")
