"""The judge's page: what it tells, what it refuses, and what it makes of real proxies that tell more or less about
their client (issue 5, must show 7)."""

import json
import os
import re
import socket
import subprocess
import time

import pytest

import conftest
import peers
import world
from test_listen import ACTIVATE

CLIENT = "127.0.0.1"


class Judge:
    """A running `fairlead judge`, without Redis."""

    def __init__(self, folder, *words, before=(), wait=True):
        self.environment = world.clean_environment(folder)
        self.node = conftest.Node([*before, conftest.BINARY, "judge", *words], folder / "judge", self.environment)
        if wait:
            peers.wait_for(lambda: " stop " in self.node.text, f"a greeting in {self.node.text}")
            self.port = int(re.search(r"^  judge   http://\S+:(\d+)/$", self.node.text, re.M)[1])

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}/"

    def ask(self, request):
        """The caller's port, and all that the judge answers to these bytes."""
        with socket.create_connection(("127.0.0.1", self.port), peers.WAIT_S) as client:
            client.sendall(request)
            client.shutdown(socket.SHUT_WR)
            parts = []
            while part := client.recv(65536):
                parts.append(part)
            return client.getsockname()[1], b"".join(parts)

    def page(self, *words):
        """The page as curl gets it."""
        done = subprocess.run(["curl", "-sS", "-q", "--max-time", "10", "--noproxy", "", *words, self.url],
                              env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)


@pytest.fixture(scope="module")
def place():
    with conftest.short_folder() as folder:
        folder.chmod(0o755)
        yield folder


@pytest.fixture(scope="module")
def judge(place):
    judge = Judge(place, "--listen", "127.0.0.1:0")
    yield judge
    judge.node.stop()


# --- the page -----------------------------------------------------------------------------------------------------


def status(answer):
    return int(answer.split(b" ")[1])


@pytest.mark.core
def test_it_tells_who_called_and_with_which_fields(judge):
    port, answer = judge.ask(b"GET /a?b HTTP/1.1\r\nHost: judge.test\r\n"
                             b'X-Odd: "\\ caf\xe9\t\xc3\xa9\r\nx-odd: 2\r\n\r\n')
    head, _, body = answer.partition(b"\r\n\r\n")
    lines = head.split(b"\r\n")
    assert lines[0] == b"HTTP/1.1 200 OK"
    assert {b"Fairlead-Judge: 1", b"Content-Type: application/json", b"Cache-Control: no-store", b"Connection: close",
            b"Content-Length: %d" % len(body)} == set(lines[1:])
    assert body.isascii()
    assert json.loads(body) == {
        "judge": 1, "address": CLIENT, "port": port, "method": "GET", "target": "/a?b",
        "headers": [["Host", "judge.test"], ["X-Odd", '"\\ caf\xe9\t\xc3\xa9'], ["x-odd", "2"]]}


def test_head_has_the_head_alone(judge):
    request = b" / HTTP/1.1\r\nHost: a\r\n\r\n"
    _, head = judge.ask(b"HEAD" + request)
    _, whole = judge.ask(b"GET" + request)
    assert head.endswith(b"\r\n\r\n")
    # HEAD is one byte longer than GET, and so is the page that tells it
    length = int(re.search(rb"Content-Length: (\d+)", whole)[1])
    assert head == whole.partition(b"\r\n\r\n")[0].replace(b"%d" % length, b"%d" % (length + 1)) + b"\r\n\r\n"


@pytest.mark.core
def test_a_body_is_not_looked_at(judge):
    _, answer = judge.ask(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n" + b"x" * 100000)
    assert status(answer) == 200
    assert answer.endswith(b"]}\n")


@pytest.mark.parametrize("request_line, expected", [
    (b"CONNECT example.com:443 HTTP/1.1", 405),
    (b"TRACE / HTTP/1.1", 405),
    (b"get / HTTP/1.1", 405),
    (b"GET  / HTTP/1.1", 400),
    (b"GET / HTTP/2.0", 505),
    (b"\x05\x01\x00", 400),
])
def test_what_it_does_not_answer(judge, request_line, expected):
    _, answer = judge.ask(request_line + b"\r\nHost: example.com:443\r\n\r\n")
    assert status(answer) == expected
    assert (b"\r\nAllow: GET, HEAD, POST\r\n" in answer) == (expected == 405)
    assert b"Fairlead-Judge" not in answer


def test_it_is_no_proxy(judge):
    """A request for another server is answered with the page (RFC 9112 3.2.2), never sent on."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        other.setblocking(False)
        target = f"http://127.0.0.1:{other.getsockname()[1]}/"
        _, answer = judge.ask(f"GET {target} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
        assert json.loads(answer.partition(b"\r\n\r\n")[2])["target"] == target
        with pytest.raises(BlockingIOError):
            other.accept()


def test_a_long_head_is_refused_and_what_is_taken_fits_into_64_kib(judge):
    start = b"GET / HTTP/1.1\r\nHost: a\r\nX: "
    _, answer = judge.ask(start + b"\xff" * 8192 + b"\r\n\r\n")
    assert status(answer) == 431
    _, answer = judge.ask(start + b"\xff" * (8192 - len(start) - 4) + b"\r\n\r\n")
    assert status(answer) == 200
    assert len(answer.partition(b"\r\n\r\n")[2]) <= 65536


@pytest.mark.nightly
def test_a_client_that_drips_ends_after_ten_seconds(judge):
    began = time.monotonic()
    with socket.create_connection(("127.0.0.1", judge.port), 0.2) as client:
        client.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n")
        with pytest.raises((ConnectionError, StopIteration)):
            while time.monotonic() - began < peers.WAIT_S:
                client.sendall(b"X: y\r\n")
                try:
                    assert client.recv(1) == b""
                    raise StopIteration
                except TimeoutError:
                    pass
    assert 9 < time.monotonic() - began < 15


# --- life ---------------------------------------------------------------------------------------------------------


def test_the_greeting_says_what_to_type(judge):
    assert f"use     fairlead pool rules check_target={judge.url}\n" in judge.node.text
    assert f"note    only proxies on this host reach it; --listen 0.0.0.0:{judge.port} serves all\n" in judge.node.text


def test_a_public_page_needs_no_more_than_the_word(folder):
    public = Judge(folder, "--listen", "0.0.0.0:0")
    public.node.stop()
    assert f"check_target=http://HOST:{public.port}/\n" in public.node.text
    assert "note" not in public.node.text


def test_it_needs_no_redis_and_leaves_nothing_behind(judge, folder):
    assert judge.node.children() == []
    Judge(folder, "--listen", "127.0.0.1:0").node.stop()
    assert os.listdir(folder) == ["judge"]


@pytest.mark.parametrize("words, expected", [
    (["--listen", "nowhere"], "expected ADDRESS:PORT or [IPV6]:PORT"),
    (["--listen", "unix:/tmp/judge"], "expected ADDRESS:PORT or [IPV6]:PORT"),
    (["--redis", "redis://127.0.0.1"], "--redis is no option of this command"),
])
def test_wrong_usage(run, words, expected):
    assert expected in run("judge", *words, redis=None, check=2).stderr


def test_an_address_that_is_taken_is_named(run, judge):
    error = run("judge", "--listen", f"127.0.0.1:{judge.port}", redis=None, check=1).stderr
    assert f"cannot listen on 127.0.0.1:{judge.port}: in use" in error


def test_it_takes_the_sockets_of_systemd(folder):
    given = Judge(folder, before=["/usr/bin/python3", "-c", ACTIVATE, "127.0.0.1:0", "0"])
    try:
        assert given.port != 8891
        assert status(given.ask(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")[1]) == 200
    finally:
        given.node.stop()


# --- proxies ------------------------------------------------------------------------------------------------------


def tuned(kind, *lines):
    """That proxy with lines of its own configuration."""

    class Tuned(kind):
        def command(self):
            words = super().command()
            with open(self.folder / "conf", "a", encoding="ascii") as conf:
                conf.write("\n".join(lines) + "\n")
            return words

    return Tuned


# name: the proxy, its address, the fields that tell of it, its anonymity
PROXIES = {
    "tinyproxy-x": (tuned(peers.Tinyproxy, "XTinyproxy Yes"), "127.0.0.41", {"Via", "X-Tinyproxy"}, "transparent"),
    "tinyproxy": (peers.Tinyproxy, "127.0.0.42", {"Via"}, "anonymous"),
    "tinyproxy-quiet": (tuned(peers.Tinyproxy, "DisableViaHeader Yes"), "127.0.0.43", set(), "elite"),
    "squid-proxy": (peers.Squid, "127.0.0.44", {"Via", "X-Forwarded-For"}, "transparent"),
    "squid-proxy-off": (tuned(peers.Squid, "forwarded_for off", "via off"), "127.0.0.45",
                        {"X-Forwarded-For"}, "anonymous"),
    "squid-proxy-quiet": (tuned(peers.Squid, "forwarded_for delete", "via off"), "127.0.0.46", set(), "elite"),
}


@pytest.fixture(scope="module")
def proxies(place):
    started = {name: kind(place / name, host) for name, (kind, host, _, _) in PROXIES.items()}
    try:
        yield {name: proxy.start() for name, proxy in started.items()}
    finally:
        for proxy in started.values():
            proxy.stop()


def telling(page):
    """The fields that are not the client's own, but for the one that squid adds about caches."""
    own = {"Host", "User-Agent", "Accept", "Connection", "Cache-Control"}
    return {name for name, _ in page["headers"]} - own


def test_the_page_shows_what_each_proxy_tells(judge, proxies):
    pages = {name: judge.page("--proxy", proxy.url) for name, proxy in proxies.items()}
    assert {name: (page["address"], telling(page)) for name, page in pages.items()} == {
        name: (host, fields) for name, (_, host, fields, _) in PROXIES.items()}
    for name in ("tinyproxy-x", "squid-proxy"):
        assert CLIENT in dict(pages[name]["headers"]).values()


@pytest.mark.core
def test_a_check_tells_them_apart(judge, proxies, run):
    listed = "".join(f"{proxy.url}\n" for proxy in proxies.values())
    done = run("check", "--json", "--allow-private", "--check-target", judge.url, "-", redis=None, input=listed)
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert {row["host"]: (row["ok"], row["exit_address"], row["anonymity"]) for row in rows} == {
        host: (True, host, anonymity) for _, host, _, anonymity in PROXIES.values()}
