"""The cases of test_protocol_http.py: what is sent, and what must become of it.

A line of a table: the row of tests/data/protocol/rows.tsv, the bytes, what is required of them."""

import re

import pytest

from protocol import OK

GOOD = b"GET http://origin.test/good HTTP/1.1\r\nHost: origin.test\r\n\r\n"
GOOD_PASSED = b"GET http://origin.test/good HTTP/1.1\r\nHost: origin.test\r\nConnection: close\r\n\r\n"
GET, POST = b"GET http://origin.test/", b"POST http://origin.test/"
CHUNKED = b"Transfer-Encoding: chunked"
TUNNEL = b"HTTP/1.1 200 Connection established\r\n\r\n"


def sent(line=GET, *fields, host=b"Host: origin.test", body=b"", version=b"HTTP/1.1"):
    """A request of a client; `line` without the version."""
    lines = [line + b" " + version, *([host] if host else []), *fields]
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


def passed(line=GET, *fields, body=b"", last=b"Connection: close"):
    """The same on its way to the member."""
    return b"\r\n".join([line + b" HTTP/1.1", b"Host: origin.test", *fields, last]) + b"\r\n\r\n" + body


def cases(table):
    """Parameters of a table whose rows begin with the row of the list."""
    for number, (row, *rest) in enumerate(table):
        raw = next(x for x in rest if isinstance(x, bytes))
        tail = re.sub(rb"[^0-9A-Za-z:,+/*;.@_-]+", b" ", raw.replace(b"Host: origin.test", b""))[:60].decode()
        yield pytest.param(*rest, marks=pytest.mark.row(row), id=f"{row} {number} {tail.strip()}")


# --- requests that are refused: the status --------------------------------------------------------------------------

REFUSED = [
    ("H2", 400, sent(host=None)),
    ("H2", 400, sent(GET, b"Host: origin.test")),
    ("H2", 400, sent(GET, b"host: other.test")),
    ("H2", 400, sent(b"CONNECT origin.test:443", host=None)),
    *(("H2", 400, sent(host=b"Host: " + host)) for host in (
        b"or igin.test", b"u@origin.test", b"a,b", b"a/b", b"[::1", b"::1", b"a:x", b"a:65536", b"http://a", b"a\x80")),
    ("H3", 400, sent(b"GET /")), ("H3", 400, sent(b"GET /path?query")), ("H3", 400, sent(b"GET //origin.test/")),
    ("H3", 400, sent(b"GET origin.test")), ("H3", 400, sent(b"GET origin.test:80")),
    *(("H4", 400, sent(b"CONNECT " + target)) for target in (
        b"origin.test", b"origin.test:", b"origin.test:0", b"origin.test:65536", b"origin.test:+80", b"origin.test:-1",
        b"origin.test:080", b":443", b"/", b"*", b"http://origin.test:80", b"user@origin.test:443", b"a,b:443",
        b"[::1%25x]:1", b"[::1]", b"::1:443", b"[127.0.0.1]:1", b"127.1:443", b"0x7f.1:443", b"origin.test:443/")),
    ("H5", 400, sent(b"GET *")), ("H5", 400, sent(b"POST *")), ("H5", 400, sent(b"options *")),
    ("H6", 400, sent(b"GET http://user:hunter2@origin.test/")), ("H6", 400, sent(b"GET http://user@origin.test/")),
    ("H6", 400, sent(b"GET http://@origin.test/")), ("H6", 400, sent(b"CONNECT user:hunter2@origin.test:443")),
    ("H7", 400, sent(GET, b"X : y")), ("H7", 400, sent(GET, b"X\t: y")), ("H7", 400, sent(host=b"Host : origin.test")),
    ("H7", 400, sent(POST, b"Content-Length : 2", body=b"ab")),
    ("H8", 400, sent(GET, b"X: y\r\n z")), ("H8", 400, sent(GET, b"X: y\r\n\tz")), ("H8", 400, sent(GET, b"X:\r\n ")),
    ("H8", 400, sent(POST, b"Transfer-Encoding:\r\n chunked")),
    *(("H9", 400, sent(GET, field)) for field in (
        b"X: a\rb", b"X: a\0b", b"X: a\nb: c", b"X\xe9: a", b"\x80: a", b": a", b"nothing", b"X Y: a", b"X\0: a",
        b"X: \x0b", b"X: \x7f", b"\"X\": a", b"X: a\r")),
    ("H9", 400, sent(host=b" X: y\r\nHost: origin.test")), ("H9", 400, sent(host=b"\tX: y\r\nHost: origin.test")),
    ("H9", 400, sent(b"GET\0http://origin.test/")), ("H9", 400, sent(b"GET  http://origin.test/")),
    ("H9", 400, sent(b"GET\thttp://origin.test/")), ("H9", 400, sent(b"GET http://origin.test/\x80")),
    ("H10", 400, b"GET http://origin.test/ HTTP/1.1\nHost: origin.test\n\n"),
    ("H10", 400, b"GET http://origin.test/ HTTP/1.1\r\nHost: origin.test\n\r\n"),
    ("H10", 400, b"GET http://origin.test/ HTTP/1.1\r\nHost: origin.test\r\n\n"),
    ("H11", 400, sent(POST, b"Content-Length: 4", CHUNKED, body=b"0\r\n\r\n")),
    ("H11", 400, sent(POST, CHUNKED, b"Content-Length: 4", body=b"0\r\n\r\n")),
    ("H11", 400, sent(POST, b"Content-Length: 0", b"Transfer-Encoding: identity")),
    *(("H12", status, sent(POST, b"Transfer-Encoding:" + coding, body=b"0\r\n\r\n")) for status, codings in (
        (400, (b" ,chunked", b" chunked,", b" chunked,chunked", b" chunked\r\nTransfer-Encoding: chunked",
               b" chunked;a=b", b" chunked\x0b", b" \x0bchunked", b" gzip,chunked", b" chunked, gzip", b"", b" ",
               b" \"chunked\"", b" chun ked", b" chunked\r\n chunked")),
        (501, (b" identity", b" xchunked", b" gzip", b" chunke"))) for coding in codings),
    ("H12", 400, sent(POST, b"Transfer_Encoding: chunked", body=b"0\r\n\r\n")),
    ("H13", 400, sent(POST, CHUNKED, version=b"HTTP/1.0", body=b"0\r\n\r\n")),
    ("H13", 400, sent(POST, CHUNKED, host=None, version=b"HTTP/1.0", body=b"0\r\n\r\n")),
    *(("H14", 400, sent(POST, b"Content-Length:" + length, body=b"hello")) for length in (
        b" +1", b" -0", b" -5", b" 0x10", b" 1_0", b" ", b"", b" 5,5", b" 5, 5", b" 5,6", b" 5;", b" 5 5", b" 5.0",
        b" 5\r\nContent-Length: 5", b" 5\r\ncontent-length: 6", b" 9223372036854775808", b" 18446744073709551616",
        b" 18446744073709551621", b" " + b"1" * 40, b" \xb2")),
    ("H14", 400, sent(POST, b"Content_Length: 5", body=b"hello")),
    ("H16", 400, sent(b"CONNECT origin.test:443", CHUNKED, body=b"0;a=b\r\n\r\n")),
    ("H20", 400, sent(b"CONNECT origin.test:443", b"Content-Length: 5", body=b"hello")),
    ("H27", 400, sent(b"OPTIONS http://origin.test/", b"Max-Forwards: -1")),
    ("H27", 400, sent(b"OPTIONS http://origin.test/", b"Max-Forwards: 1, 2")),
    ("H27", 400, sent(b"OPTIONS http://origin.test/", b"Max-Forwards:")),
    ("H27", 400, sent(b"TRACE http://origin.test/", b"Max-Forwards: 1", b"Max-Forwards: 0")),
    ("H27", 400, sent(b"TRACE http://origin.test/", b"Content-Length: 2", body=b"ab")),
    ("H27", 400, sent(b"TRACE http://origin.test/", CHUNKED, body=b"0\r\n\r\n")),
    ("H30", 400, b"GET http://origin.test/\r\n"), ("H30", 400, b"GET /\r\n\r\n"),
    ("H30", 400, sent(version=b"HTTP/1.32")), ("H30", 400, sent(version=b"HTTP/1.")),
    ("H30", 400, sent(version=b"http/1.1")), ("H30", 400, sent(version=b"HTTP/11")),
    ("H30", 505, sent(version=b"HTTP/1.2")), ("H30", 505, sent(version=b"HTTP/2.0")),
    ("H30", 505, sent(version=b"HTTP/0.9")), ("H30", 505, b"PRI * HTTP/2.0\r\n\r\n"),
    ("H30", 400, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(range(40))),
    ("H30", 400, b"SSH-2.0-OpenSSH_9.2\r\n"), ("H30", 400, b"\x80\x2e\x01\x00\x02"),
    ("H33", 414, sent(GET + b"a" * 20_000)), ("H33", 431, sent(GET, b"X: " + b"a" * 70_000)),
    ("H33", 431, sent(GET, *(b"X-%d: y" % i for i in range(200)))),
    ("H33", 501, sent(b"GET https://origin.test/")), ("H33", 501, sent(b"GET ftp://origin.test/")),
]

# --- requests that are passed on: what the member gets ---------------------------------------------------------------

PASSED = [
    ("H1", sent(host=b"Host: other.test"), passed()), ("H1", sent(host=b"Host:"), passed()),
    ("H1", sent(b"GET http://Origin.TEST:80/a?b", host=b"hOST: [::1]:81"), passed(GET + b"a?b")),
    ("H1", sent(b"GET HTTP://origin.test./"), passed()),
    ("H5", sent(b"GET http://origin.test"), passed()), ("H5", sent(b"GET http://origin.test?q"), passed(GET + b"?q")),
    ("H5", sent(b"OPTIONS http://origin.test"), passed(b"OPTIONS http://origin.test")),
    ("H5", sent(b"OPTIONS http://origin.test/"), passed(b"OPTIONS http://origin.test/")),
    ("H12", sent(POST, b"Transfer-Encoding: Chunked", body=b"2\r\nab\r\n0\r\n\r\n"),
     passed(POST, CHUNKED, body=b"2\r\nab\r\n0\r\n\r\n")),
    ("H12", sent(POST, b"TRANSFER-ENCODING:\tchunked ", body=b"0\r\n\r\n"), passed(POST, CHUNKED, body=b"0\r\n\r\n")),
    ("H14", sent(POST, b"Content-Length: 005", body=b"hello"), passed(POST, b"Content-Length: 5", body=b"hello")),
    ("H14", sent(POST, b"Content-Length: 0"), passed(POST, b"Content-Length: 0")),
    ("H16", sent(POST, CHUNKED, body=b"2;a\r\nab\r\n0;b=\"c;\\\"\"\r\n\r\n"),
     passed(POST, CHUNKED, body=b"2\r\nab\r\n0\r\n\r\n")),
    ("H16", sent(POST, CHUNKED, body=b"2 ; a = b\r\nab\r\n0\r\n\r\n"),
     passed(POST, CHUNKED, body=b"2\r\nab\r\n0\r\n\r\n")),
    *(("H18", sent(POST, b"Trailer: X", CHUNKED, body=b"2\r\nab\r\n0\r\n" + trailer + b"\r\n\r\n"),
       passed(POST, CHUNKED, body=b"2\r\nab\r\n0\r\n\r\n")) for trailer in (
        b"Content-Length: 9", b"Host: evil.test", b"Authorization: Basic eDp5", b"Transfer-Encoding: gzip",
        b"X: 1\r\nY: 2")),
    *(("H23", sent(GET, *fields), passed(GET, *left)) for fields, left in (
        ((b"Connection: X-One", b"X-One: 1", b"X-Two: 2"), (b"X-Two: 2",)),
        ((b"X-One: 1", b"connection: ,x-ONE,, X-Two", b"X-Two: 2"), ()),
        ((b"Connection: X-One", b"Connection: x-two,keep-alive", b"X-One: 1", b"X-TWO: 2", b"X-On: 3"), (b"X-On: 3",)),
        ((b"Connection: Host, Content-Length", b"X: 1"), (b"X: 1",)),
        ((b"Proxy-Connection: X-One", b"X-One: 1"), (b"X-One: 1",)))),
    ("H23", sent(POST, b"Connection: Content-Length", b"Content-Length: 2", body=b"ab"),
     passed(POST, b"Content-Length: 2", body=b"ab")),
    ("H23", sent(POST, b"Connection: Transfer-Encoding", CHUNKED, body=b"0\r\n\r\n"),
     passed(POST, CHUNKED, body=b"0\r\n\r\n")),
    *(("H24", sent(GET, field, b"X: 1"), passed(GET, b"X: 1")) for field in (
        b"Keep-Alive: 300", b"Proxy-Connection: keep-alive", b"TE: trailers, deflate", b"Upgrade: h2c", b"Trailer: X",
        b"Connection: keep-alive", b"Connection: Upgrade\r\nUpgrade: h2c", b"Proxy-Authenticate: Basic realm=x",
        b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk",
        b"Connection: Upgrade\r\nUpgrade: TLS/1.2, HTTP/1.1", b"Proxy-Authentication-Info: x", b"Fairlead-Session: x",
        b"fairlead-member: x")),
    ("H25", sent(POST, b"Expect: 100-continue", b"Content-Length: 2", body=b"ab"),
     passed(POST, b"Expect: 100-continue", b"Content-Length: 2", body=b"ab")),
    ("H26", sent(GET, b"Via: 1.1 other, 1.0 fairleads (x)"), passed(GET, b"Via: 1.1 other, 1.0 fairleads (x)")),
    *(("H27", sent(method + b" http://origin.test/", b"Max-Forwards: " + was),
       passed(method + b" http://origin.test/", b"Max-Forwards: " + becomes)) for method, was, becomes in (
        (b"OPTIONS", b"1", b"0"), (b"OPTIONS", b"10", b"9"), (b"TRACE", b"3", b"2"), (b"OPTIONS", b"007", b"6"),
        (b"GET", b"0", b"0"), (b"POST", b"x", b"x"), (b"OPTIONS", b"9" * 40, b"2147483646"))),
    ("H29", sent(GET, b"X-A:b", b"X-B: \t c d\t ", b"X-C:"), passed(GET, b"X-A: b", b"X-B: c d", b"X-C: ")),
    ("H29", sent(b"M-SEARCH http://origin.test/", b"!#$%&'*+-.^_`|~: \xe9\"(),/:;<=>?@[]{}"),
     passed(b"M-SEARCH http://origin.test/", b"!#$%&'*+-.^_`|~: \xe9\"(),/:;<=>?@[]{}")),
    ("H29", sent(POST, CHUNKED, body=b"1\r\na\r\n1\r\nb\r\n00\r\n\r\n"),
     passed(POST, CHUNKED, body=b"1\r\na\r\n1\r\nb\r\n0\r\n\r\n")),
    ("H33", sent(GET + b"a" * 8000), passed(GET + b"a" * 8000)),
    ("H33", sent(GET, b"X: " + b"a" * 30_000), passed(GET, b"X: " + b"a" * 30_000)),
    ("H35", sent(POST, b"Content-Length: %d" % len(GOOD), body=GOOD),
     passed(POST, b"Content-Length: %d" % len(GOOD), body=GOOD)),
    ("H35", sent(POST, CHUNKED, body=b"%x\r\n%s\r\n0\r\n\r\n" % (len(GOOD), GOOD)),
     passed(POST, CHUNKED, body=b"%x\r\n%s\r\n0\r\n\r\n" % (len(GOOD), GOOD))),
    ("H35", sent(GET, b"X: Transfer-Encoding: chunked", b"X-Content-Length: 5"),
     passed(GET, b"X: Transfer-Encoding: chunked", b"X-Content-Length: 5")),
]

# --- chunked bodies that break off -----------------------------------------------------------------------------------

BROKEN = [
    *(("H15", b"2\r\nab\r\n" + size + b"\r\nab\r\n0\r\n\r\n") for size in (
        b"+2", b"-2", b"0x2", b"2_", b" 2", b"2 ", b"2\t", b"", b"1" * 17, b"0" * 16 + b"2", b"7fffffffffffffff",
        b"ffffffffffffffff", b"10000000000000002", b"g", b"2h", b"2,2", b"\xb2")),
    ("H16", b"2;" + b"a" * 5000 + b"\r\nab\r\n0\r\n\r\n"), ("H16", b"2;a\nb\r\nab\r\n0\r\n\r\n"),
    ("H16", b"2;a\0b\r\nab\r\n0\r\n\r\n"), ("H16", b"2;a\rb\r\nab\r\n0\r\n\r\n"),
    ("H16", (b"1;" + b"a" * 900 + b"\r\nx\r\n") * 100 + b"0\r\n\r\n"),
    ("H17", b"2\r\nab0\r\n\r\n"), ("H17", b"2\r\nabc\r\n0\r\n\r\n"), ("H17", b"3\r\nab\r\n0\r\n\r\n"),
    ("H17", b"2\nab\r\n0\r\n\r\n"), ("H17", b"2\r\nab\n0\r\n\r\n"), ("H17", b"0\n\r\n"), ("H17", b"0\r\n\n"),
    ("H18", b"0\r\nX : y\r\n\r\n"), ("H18", b"0\r\nnothing\r\n\r\n"), ("H18", b"0\r\nX: y\r\n z\r\n\r\n"),
    ("H18", b"0\r\nX: " + b"y" * 20_000 + b"\r\n\r\n"),
]

# --- responses: what the client gets, (status, error type), or CUT ---------------------------------------------------

CUT = "cut"


def reply(status=b"200 OK", *fields, body=b"", version=b"HTTP/1.1"):
    return b"\r\n".join([version + b" " + status, b"Date: x", *fields]) + b"\r\n\r\n" + body


def given(status=b"200 OK", *fields, body=b""):
    """The same as the client gets it, who asked for the end of the connection."""
    return reply(status, *fields, b"Connection: close", body=body)


FIVE = b"Content-Length: 5"
GARBAGE, TOO_LARGE = (502, "http_protocol_error"), (502, "http_response_header_section_size")

RESPONSES = [
    ("H7", b"GET", reply(b"200 OK", b"X : y", b"Content-Length\t : 5", body=b"hello"),
     given(b"200 OK", b"X: y", FIVE, body=b"hello")),
    ("H8", b"GET", reply(b"200 OK", b"X: a\r\n b", FIVE, body=b"hello"), GARBAGE),
    ("H8", b"GET", reply(b"200 OK", b"Content-Length: 5\r\n 0", body=b"hello"), GARBAGE),
    *(("H9", b"GET", reply(b"200 OK", field, FIVE, body=b"hello"), GARBAGE) for field in (
        b"X: a\rb", b"X: a\0b", b"X\xe9: a", b": a", b"nothing", b"X Y: a", b" X: a")),
    ("H10", b"GET", b"HTTP/1.1 200 OK\nContent-Length: 5\n\nhello", GARBAGE),
    ("H11", b"GET", reply(b"200 OK", FIVE, CHUNKED, body=b"0\r\n\r\n"), GARBAGE),
    *(("H12", b"GET", reply(b"200 OK", b"Transfer-Encoding: " + coding, body=b"0\r\n\r\n"), GARBAGE) for coding in (
        b"gzip", b"identity", b"gzip, chunked", b"chunked, chunked", b"", b"chunked\r\nTransfer-Encoding: chunked")),
    ("H12", b"GET", reply(b"200 OK", b"Transfer-Encoding: CHUNKED", body=b"5\r\nhello\r\n0\r\n\r\n"),
     given(b"200 OK", CHUNKED, body=b"5\r\nhello\r\n0\r\n\r\n")),
    ("H13", b"GET", reply(b"200 OK", CHUNKED, body=b"0\r\n\r\n", version=b"HTTP/1.0"), GARBAGE),
    *(("H14", b"GET", reply(b"200 OK", b"Content-Length: " + length, body=b"hello"), GARBAGE) for length in (
        b"+5", b"5,5", b"5\r\nContent-Length: 5", b"5\r\nContent-Length: 6", b"", b"0x5", b"18446744073709551621")),
    *(("H15", b"GET", reply(b"200 OK", CHUNKED, body=b"5\r\nhello\r\n" + size + b"\r\n"), CUT) for size in (
        b"+0", b"0x0", b"-0", b" 0", b"0 ", b"g", b"1" * 17)),
    ("H16", b"GET", reply(b"200 OK", CHUNKED, body=b"5;a=\"b\"\r\nhello\r\n0;c\r\n\r\n"),
     given(b"200 OK", CHUNKED, body=b"5\r\nhello\r\n0\r\n\r\n")),
    ("H17", b"GET", reply(b"200 OK", FIVE, body=b"hell"), CUT),
    ("H17", b"GET", reply(b"200 OK", CHUNKED, body=b"5\r\nhell"), CUT),
    ("H17", b"GET", reply(b"200 OK", CHUNKED, body=b"5\r\nhello\r\n0\r\n"), CUT),
    ("H17", b"GET", reply(b"200 OK", CHUNKED, body=b"5\r\nhello0\r\n\r\n"), CUT),
    ("H17", b"GET", reply(b"200 OK", FIVE, body=b"hello, and more"), given(b"200 OK", FIVE, body=b"hello")),
    ("H17", b"GET", reply(b"200 OK", CHUNKED, body=b"5\r\nhello\r\n0\r\n\r\n" + OK),
     given(b"200 OK", CHUNKED, body=b"5\r\nhello\r\n0\r\n\r\n")),
    ("H18", b"GET", reply(b"200 OK", b"Trailer: X", CHUNKED,
                          body=b"5\r\nhello\r\n0\r\nX: 1\r\nSet-Cookie: a=b\r\nContent-Length: 1\r\n\r\n"),
     given(b"200 OK", CHUNKED, body=b"5\r\nhello\r\n0\r\n\r\n")),
    *(("H19", method, reply(status, *fields, body=body), given(status, *left))
      for method, status, fields, left, body in (
        (b"HEAD", b"200 OK", (FIVE,), (FIVE,), b""), (b"HEAD", b"200 OK", (FIVE,), (FIVE,), b"hello"),
        (b"HEAD", b"200 OK", (CHUNKED,), (), b"0\r\n\r\n"), (b"HEAD", b"404 No", (), (), b""),
        (b"GET", b"204 No Content", (FIVE,), (), b"hello"), (b"GET", b"304 Not Modified", (FIVE,), (FIVE,), b"hello"),
        (b"GET", b"304 Not Modified", (CHUNKED,), (), b"0\r\n\r\n"))),
    ("H19", b"GET", reply(b"200 OK", body=b"hello"), given(b"200 OK", body=b"hello")),
    ("H19", b"GET", reply(b"200 OK", FIVE, body=b"hello", version=b"HTTP/1.0"), given(b"200 OK", FIVE, body=b"hello")),
    ("H19", b"GET", reply(b"205 Reset", b"Content-Length: 0"), given(b"205 Reset", b"Content-Length: 0")),
    ("H23", b"GET", reply(b"200 OK", b"Connection: X-Mine, close", b"X-Mine: 1", b"X-Other: 2", FIVE, body=b"hello"),
     given(b"200 OK", b"X-Other: 2", FIVE, body=b"hello")),
    *(("H24", b"GET", reply(b"200 OK", field, FIVE, body=b"hello"), given(b"200 OK", FIVE, body=b"hello"))
      for field in (
        b"Keep-Alive: timeout=5", b"Proxy-Connection: close", b"Proxy-Authenticate: Basic realm=x", b"Upgrade: h2c",
        b"Proxy-Authentication-Info: x", b"Fairlead-Member: evil", b"TE: x", b"Connection: Upgrade\r\nUpgrade: h2c")),
    ("H24", b"GET", reply(b"401 No", b"WWW-Authenticate: Basic realm=x", FIVE, body=b"hello"),
     given(b"401 No", b"WWW-Authenticate: Basic realm=x", FIVE, body=b"hello")),
    ("H24", b"GET", reply(b"407 No", b"Proxy-Authenticate: Basic realm=x", FIVE, body=b"hello"),
     (502, "proxy_configuration_error")),
    *(("H25", b"GET", interim + reply(b"200 OK", FIVE, body=b"hello"),
       interim + given(b"200 OK", FIVE, body=b"hello")) for interim in (
        b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n",
        b"HTTP/1.1 102 x\r\n\r\n" * 3, b"HTTP/1.1 199 x\r\nX: y\r\n\r\n")),
    ("H25", b"GET", b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n", GARBAGE),
    ("H25", b"GET", b"HTTP/1.1 100 Continue\r\nContent-Length: 5\r\n\r\n" + reply(b"200 OK", FIVE, body=b"hello"),
     b"HTTP/1.1 100 Continue\r\n\r\n" + given(b"200 OK", FIVE, body=b"hello")),
    *(("H30", b"GET", raw, GARBAGE) for raw in (
        b"HTTP/2.0 200 OK\r\n\r\n", b"HTTP/1.2 200 OK\r\n\r\n", b"ICY 200 OK\r\n\r\n", b"HTTP/1.1 2000 OK\r\n\r\n",
        b"HTTP/1.1 20 OK\r\n\r\n", b"HTTP/1.1  200 OK\r\n\r\n", b"HTTP/1.1 99 OK\r\n\r\n", b"HTTP/1.1 600 OK\r\n\r\n",
        b"\x15\x03\x01\x00\x02\x02\x46", b"SSH-2.0-x\r\n", b"hello\r\n")),
    ("H33", b"GET", reply(b"200 OK", *(b"X-%d: y" % i for i in range(200)), FIVE, body=b"hello"), TOO_LARGE),
    ("H33", b"GET", reply(b"200 OK", b"X: " + b"y" * 70_000, FIVE, body=b"hello"), TOO_LARGE),
    ("H33", b"GET", reply(b"200 OK", b"X: " + b"y" * 60_000, FIVE, body=b"hello"),
     given(b"200 OK", b"X: " + b"y" * 60_000, FIVE, body=b"hello")),
]


# --- answers to CONNECT ---------------------------------------------------------------------------------------------

CONNECT = sent(b"CONNECT origin.test:443", host=b"Host: other.test")
CONNECT_PASSED = b"CONNECT origin.test:443 HTTP/1.1\r\nHost: origin.test:443\r\n\r\n"
NO_TUNNEL = [
    *(("H20", status, b"HTTP/1.1 %d No\r\nContent-Length: 5\r\n\r\nhello" % status) for status in (
        407, 502, 403, 301, 400)),
    *(("H20", 0, raw) for raw in (
        b"HTTP/1.1 2000 OK\r\n\r\n", b"HTTP/1.1 20 OK\r\n\r\n", b"HTTP/1.1 200 OK\n\n", b"HTTP/2 200 OK\r\n\r\n",
        b"HTTP/1.1 101 x\r\n\r\n", b"HTTP/1.1 200OK\r\n\r\n", b"\r\nHTTP/1.1 200 OK\r\n\r\n", b"200 OK\r\n\r\n")),
]
TUNNELS = [
    ("H20", b"HTTP/1.1 200 OK\r\n\r\n"), ("H20", b"HTTP/1.0 200 Connection established\r\n\r\n"),
    ("H20", b"HTTP/1.1 200\r\n\r\n"), ("H20", b"HTTP/1.1 299 Fine\r\nX: y\r\n\r\n"),
    ("H20", b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 x\r\nX: y\r\n\r\nHTTP/1.1 200 OK\r\n\r\n"),
    ("H21", b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"), ("H21", b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"),
    ("H21", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"),
    ("H21", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: x\r\nContent-Length: -1\r\n\r\n"),
]
