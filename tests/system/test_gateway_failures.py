"""Members that fail: what is tried again, what is not, what the client is told, and that nothing ever goes direct."""

import contextlib
import signal
import socket
import threading
import time

import pytest

import peers
import wire

URL = "http://origin.test/"


@contextlib.contextmanager
def full_backlog(host):
    """A port that neither answers nor refuses: its queue of connections is full."""
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(socket.socket())
        listener.bind((host, 0))
        listener.listen(0)
        for _ in range(4):
            filler = stack.enter_context(socket.socket())
            filler.setblocking(False)
            filler.connect_ex(listener.getsockname())
        yield "http://%s:%d" % listener.getsockname()


# --- the retry ------------------------------------------------------------------------------------------------------


@pytest.mark.core
@pytest.mark.parametrize("is_tunnel", [False, True])
def test_every_request_is_answered_when_one_upstream_is_killed(node, add, peer, upstream, is_tunnel):
    proxies = [peer(peers.Tinyproxy, f"127.0.0.{i}") for i in (2, 3, 4)]
    origin = upstream(wire.serves())
    add(*(proxy.url for proxy in proxies))
    gateway = node()
    for i in range(30):
        if i == 10:
            proxies[1].kill()
        with gateway.connect() as client:
            if is_tunnel:
                assert client.tunnel(f"{origin.host}:{origin.port}").status == 200
                client.send(wire.request("GET", origin.url + "/"))
                assert client.read_response().body == b"hello"
            else:
                assert client.get(origin.url + "/").body == b"hello"
    lines = gateway.requests(30)
    assert {line["reason"] for line in lines} == {"ok"}
    assert {line["tries"] for line in lines[:10]} == {1}
    assert {line["tries"] for line in lines[10:]} == {1, 2}
    assert proxies[1].member not in {line["member"] for line in lines[10:]}


def dies_in_the_answer(connection):
    connection.read_request()
    connection.send(b"HTTP/1.1 200 O")


@pytest.mark.core
@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "DELETE", "OPTIONS"])
@pytest.mark.parametrize("death", [wire.resets, wire.closes, dies_in_the_answer])
def test_what_may_be_repeated_is_repeated_whole(gateway_to_two, method, death):
    gateway, first, second = gateway_to_two(death, wire.echoes)
    with gateway.connect() as client:
        answer = client.ask(wire.request(method, URL, b"" if method == "HEAD" else b"body"), method)
    assert answer.status == 200
    line = gateway.request()
    assert (line["tries"], line["reason"], line["member"]) == (2, "ok", second.url)
    assert second.connections[0].head.line == f"{method} {URL} HTTP/1.1"


@pytest.mark.core
@pytest.mark.parametrize("method", ["POST", "PATCH", "LOCK"])
@pytest.mark.parametrize("death", [
    lambda c: c.read_request(), wire.resets, dies_in_the_answer,
    lambda c: (c.read_request(), c.send(b"HTTP/1.1 100 Continue\r\n\r\n"))])
def test_a_request_that_has_left_is_not_repeated(gateway_to_two, method, death):
    gateway, first, second = gateway_to_two(death, wire.echoes)
    with gateway.connect() as client:
        client.send(wire.request(method, URL, b"body"))
        answer = client.read_response()
        answer = client.read_response() if answer.status == 100 else answer
    assert answer.status == 502
    assert gateway.request()["tries"] == 1
    assert first.connections and not second.connections


def test_a_post_of_which_nothing_left_is_sent_to_another(node, add, upstream):
    second = upstream(wire.echoes, host="127.0.0.2")
    add(f"http://127.0.0.1:{peers.free_port()}", second.url)
    gateway = node()
    with gateway.connect() as client:
        assert client.ask(wire.request("POST", URL, b"body")).body.endswith(b" body")
    assert gateway.request()["tries"] == 2


@pytest.mark.parametrize("size, tries, status", [(65_000, 2, 200), (70_000, 1, 502)])
def test_only_a_body_that_was_kept_is_repeated(gateway_to_two, size, tries, status):
    def reads_all_and_closes(connection):
        connection.read_request()

    gateway, first, second = gateway_to_two(reads_all_and_closes, wire.echoes)
    with gateway.connect() as client:
        answer = client.ask(wire.request("PUT", URL, b"x" * size))
        assert answer.status == status
    assert gateway.request()["tries"] == tries
    assert status == 502 or answer.body.endswith(b" " + b"x" * size)


@pytest.mark.core
def test_no_member_is_tried_twice_and_not_more_than_tries(node, add, upstream):
    servers = [upstream(wire.closes, host=f"127.0.0.{i}") for i in range(2, 7)]
    add(*(server.url for server in servers))
    gateway = node("--tries", "4")
    with gateway.connect() as client:
        assert client.get().status == 502
    assert sorted(len(server.connections) for server in servers) == [0, 1, 1, 1, 1]
    assert gateway.request()["tries"] == 4


def test_when_all_members_were_tried_the_last_failure_is_told(node, add):
    add(f"http://127.0.0.2:{peers.free_port()}", f"http://127.0.0.3:{peers.free_port()}")
    gateway = node("--tries", "9")
    with gateway.connect() as client:
        answer = client.get()
    assert answer.status == 502
    assert "error=connection_refused" in answer.fields["proxy-status"]
    assert gateway.request()["tries"] == 2


def test_a_member_of_a_kind_that_is_not_spoken_is_passed_over(node, add, upstream):
    server = upstream(wire.serves(), host="127.0.0.2")
    # "http" stands before "socks5" by bytes: the first request makes it the busier one.
    add(server.url, "socks5://127.0.0.1:1080")
    gateway = node()
    for _ in range(4):
        with gateway.connect() as client:
            assert client.get().body == b"hello"
    assert {line["member"] for line in gateway.requests(4)} == {server.url}


def dies_in_the_body(connection):
    connection.read_head()
    connection.read_some()
    connection.reset()


def asks_who_in_the_body(connection):
    connection.read_head()
    connection.read_some()
    connection.send(b"HTTP/1.1 407 Who\r\nContent-Length: 0\r\n\r\n")
    connection.read_to_end()


@pytest.mark.core
@pytest.mark.parametrize("is_chunked", [False, True])
@pytest.mark.parametrize("method, death", [("PUT", dies_in_the_body), ("PUT", asks_who_in_the_body),
                                           ("POST", asks_who_in_the_body)])
def test_a_body_still_on_its_way_is_sent_from_its_beginning(gateway_to_two, method, death, is_chunked):
    gateway, first, second = gateway_to_two(death, wire.echoes)
    framing = {"Transfer_Encoding": "chunked"} if is_chunked else {"Content_Length": "20"}
    halves = (b"a\r\nfirst half\r", b"\na\r\n, and more\r\n0\r\n\r\n") if is_chunked else (
        b"first half", b", and more")
    with gateway.connect() as client:
        client.send(wire.request(method, URL, **framing) + halves[0])
        second.wait_for_connection()
        client.send(halves[1])
        assert client.read_response().body == f"{method} {URL} first half, and more".encode()
    assert gateway.request()["tries"] == 2


def test_a_retry_does_not_mix_pipelined_requests(gateway_to_two, run):
    run("pool", "rules", "fall=1000")
    gateway, first, second = gateway_to_two(wire.closes, wire.echoes)
    raws = [wire.request("PUT", f"http://o.test/{i}", b"body%d" % i) for i in range(6)]
    with gateway.connect() as client:
        client.send(b"".join(raws))
        bodies = [client.read_response().body for _ in raws]
    assert bodies == [b"PUT http://o.test/%d body%d" % (i, i) for i in range(6)]
    assert [line["tries"] for line in gateway.requests(6)] == [2] * 6


# --- members that others wrote --------------------------------------------------------------------------------------


@pytest.mark.core
@pytest.mark.parametrize("is_tunnel", [False, True])
def test_foreign_members_are_used_if_they_can_be_read_and_kept_if_not(node, store, run, upstream, is_tunnel):
    server = upstream(wire.tunnels(wire.returns_all) if is_tunnel else wire.serves())
    strange = ["!", "http://", "not a proxy", "ftp://127.0.0.1:21", "http://127.0.0.1:99999", "\u00e9:80"]
    store.client.zadd("proxies", {f"127.0.0.1:{server.port}": 5, **{member: 0 for member in strange}})
    run("pool", "rules", "allow_private=1")
    gateway = node()
    for _ in range(3):
        with gateway.connect() as client:
            assert (client.tunnel() if is_tunnel else client.get()).status == 200
    assert {line["tries"] for line in gateway.requests(3)} == {1}
    assert set(strange) < set(store.client.zrange("proxies", 0, -1))


@pytest.mark.parametrize("count", [1, 70])
def test_a_pool_of_nothing_readable_is_told_and_ends(node, store, count):
    store.client.zadd("proxies", {f"nonsense {i}": 0 for i in range(count)})
    gateway = node()
    with gateway.connect() as client:
        answer = client.get()
    assert answer.status == 502
    assert "error=proxy_configuration_error" in answer.fields["proxy-status"]
    assert gateway.request()["tries"] == 0
    given = sum(score for _, score in store.client.zrange("proxies", 0, -1, withscores=True))
    assert given <= 65


def test_a_member_whose_secret_is_gone_is_not_used_without_it(node, add, store, upstream):
    server = upstream(wire.serves(), wire.serves())
    add(f"http://user:secret@127.0.0.1:{server.port}")
    for key in store.client.keys("*:pool:secrets"):
        store.client.delete(key)
    gateway = node()
    with gateway.connect() as client:
        assert client.get().status >= 500
    assert server.connections == []


# --- what the client is told (H34) ----------------------------------------------------------------------------------

FAILURES = {
    "refused": (None, 502, "proxy-refused", "connection_refused"),
    "closes": (wire.closes, 502, "proxy-reset", "connection_terminated"),
    "resets": (wire.resets, 502, "proxy-reset", "connection_terminated"),
    "garbage": (wire.answers(b"SSH-2.0-x\r\n"), 502, None, "http_protocol_error"),
}


@pytest.mark.core
@pytest.mark.parametrize("is_tunnel", [False, True])
@pytest.mark.parametrize("name", FAILURES)
def test_a_failure_is_told_by_status_and_error_type(node, add, upstream, name, is_tunnel):
    script, status, reason, error = FAILURES[name]
    place = upstream(script).url if script else f"http://127.0.0.1:{peers.free_port()}"
    add(place)
    gateway = node("--proxy-name", "edge-1")
    with gateway.connect() as client:
        answer = client.tunnel() if is_tunnel else client.get()
    assert answer.status == status
    assert answer.fields["proxy-status"].startswith(f"edge-1; error={error}")
    assert place.split(":")[-1].encode() not in answer.raw + (answer.body or b"")
    assert reason in (None, gateway.request()["reason"])


@pytest.mark.parametrize("is_tunnel", [False, True])
def test_a_member_that_does_not_accept_is_given_up_in_time(node, add, is_tunnel):
    with full_backlog("127.0.0.1") as url:
        add(url)
        gateway = node("--connect-timeout", "200ms")
        with gateway.connect() as client:
            answer = client.tunnel() if is_tunnel else client.get()
        assert answer.status == 504
        assert "error=connection_timeout" in answer.fields["proxy-status"]
        assert gateway.request()["reason"] == "proxy-timeout"
        gateway.stop()


INTERIM = b"HTTP/1.1 100 Continue\r\n\r\n"


@pytest.mark.parametrize("script", [wire.is_silent, wire.drips(b"", INTERIM),
                                    wire.drips(b"HTTP/1.1 200 OK\r\nX: ", b"y")])
def test_a_handshake_has_one_deadline(gateway_to, script):
    gateway, _ = gateway_to(script, words=["--dial-timeout", "400ms"])
    with gateway.connect() as client:
        answer = client.tunnel()
    assert answer.status == 504
    assert "error=connection_read_timeout" in answer.fields["proxy-status"]
    assert gateway.request()["reason"] == "proxy-silent"


def test_a_target_that_does_not_answer_is_given_up_in_time(gateway_to_two):
    gateway, first, second = gateway_to_two(wire.is_silent, wire.serves(),
                                            words=["--response-timeout", "300ms"])
    with gateway.connect() as client:
        answer = client.get()
    assert answer.status == 504
    assert "error=http_response_timeout" in answer.fields["proxy-status"]
    assert second.connections == []


def test_a_name_of_a_member_that_does_not_resolve_is_its_fault(node, add):
    add("http://does-not-exist.invalid:3128")
    gateway = node()
    with gateway.connect() as client:
        answer = client.tunnel()
    assert answer.status == 502
    assert "error=dns_error" in answer.fields["proxy-status"]


# --- nothing available ----------------------------------------------------------------------------------------------


@pytest.mark.core
@pytest.mark.parametrize("is_tunnel", [False, True])
def test_an_empty_pool_is_told_at_once(node, is_tunnel, upstream):
    origin = upstream(wire.serves())
    gateway = node("--retry-after", "7s")
    gateway.connect().get()  # warm
    started = time.monotonic()
    with gateway.connect() as client:
        if is_tunnel:
            answer = client.tunnel(f"127.0.0.1:{origin.port}")
        else:
            answer = client.get(origin.url + "/")
    print(f"503 after {(time.monotonic() - started) * 1000:.1f} ms")
    assert answer.status == 503
    assert answer.fields["retry-after"] == "7"
    assert answer.fields["proxy-status"] == (
        'fairlead; error=destination_unavailable; details="pool-empty"')
    assert gateway.requests(2, reason="pool-empty")[1]["tries"] == 0
    assert origin.connections == []


class Customer(threading.Thread):
    """Asks again and again on a kept connection; notes each status and when it came."""

    def __init__(self, gateway, url):
        super().__init__(daemon=True)
        self.gateway, self.url, self.stopping, self.seen = gateway, url, False, []
        self.trouble = None

    def run(self):
        try:
            while not self.stopping:
                with self.gateway.connect() as client:
                    self.serve(client)
        except Exception as trouble:
            self.trouble = trouble

    def serve(self, client):
        keeps = True
        while keeps and not self.stopping:
            answer = client.get(self.url)
            self.seen.append((answer.status, time.monotonic()))
            keeps = answer.fields.get("connection") != "close"
            if answer.status == 503:
                time.sleep(0.02)  # manners, not synchronisation

    def has_seen_since(self, status, moment):
        return any(s == status and t > moment for s, t in self.seen[-50:])


@pytest.mark.core
def test_a_pool_that_empties_under_load_gives_503_and_never_goes_direct(node, add, run, peer):
    proxies = [peer(peers.Tinyproxy, f"127.0.0.{i}") for i in (2, 3)]
    origin = peer(peers.Nginx)
    add(*(proxy.url for proxy in proxies))
    gateway = node()
    customers = [Customer(gateway, origin.url + "/who") for _ in range(50)]
    for customer in customers:
        customer.start()

    def all_see(status, moment):
        peers.wait_for(lambda: all(c.trouble or c.has_seen_since(status, moment) for c in customers),
                       f"all clients see {status}")

    all_see(200, 0)
    run("pool", "remove", *(proxy.member for proxy in proxies))
    removed = time.monotonic()
    all_see(503, removed)
    last_200 = max(t for c in customers for s, t in c.seen if s == 200)
    print(f"last 200 {(last_200 - removed) * 1000:.1f} ms after the removal")
    add(proxies[0].url)
    all_see(200, time.monotonic())
    for customer in customers:
        customer.stopping = True
    for customer in customers:
        customer.join(wire.LIMIT_S)
    assert [c.trouble for c in customers if c.trouble] == []
    assert {s for c in customers for s, _ in c.seen} == {200, 503}
    assert {entry["addr"] for entry in origin.log()} <= {proxy.host for proxy in proxies}
    assert len(origin.log()) == sum(s == 200 for c in customers for s, _ in c.seen)


def test_a_redis_that_hangs_is_a_bounded_wait_and_then_503(node, add, redis_server, upstream):
    origin = upstream(wire.serves())
    store = redis_server()
    add(origin.url, redis=store)
    gateway = node("--store-timeout", "200ms", "--store-wait", "200ms", redis=store)
    with gateway.connect() as client:
        assert client.get().status == 200
    store.signal(signal.SIGSTOP)
    try:
        for _ in range(3):
            with gateway.connect() as client:
                answer = client.get()
                assert (answer.status, "retry-after" in answer.fields) == (503, True)
    finally:
        store.signal(signal.SIGCONT)

    def serves_again():
        with gateway.connect() as client:
            return client.get().status == 200

    peers.wait_for(serves_again, "the gateway serves again")
    assert all(c.head.line.startswith("GET http://") for c in origin.connections)


def test_a_redis_that_is_away_is_503_and_no_direct_connection(node, redis_server, add, upstream):
    origin = upstream(wire.serves())
    store = redis_server(appendonly="yes", appendfsync="always")
    add(origin.url, redis=store)
    gateway = node("--store-wait", "100ms", redis=store)
    store.kill()
    with gateway.connect() as client:
        answer = client.get(origin.url + "/direct")
    assert (answer.status, "retry-after" in answer.fields) == (503, True)
    assert origin.connections == []
    store.start()

    def serves_again():
        with gateway.connect() as client:
            return client.get().status == 200

    peers.wait_for(serves_again, "the gateway serves again", 2 + peers.WAIT_S)
