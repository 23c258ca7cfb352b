"""Members that one target host has refused: avoided for that host, eligible and used for all others."""

import collections
import itertools

import pytest

import peers
import wire
import world

TABLE = "{proxies}:pool:cooldown"
COOLING = "all members offered are cooling for this host"

numbers = itertools.count()


@pytest.fixture(scope="module")
def arena(session_folder):
    with world.Arena(session_folder / "cooldown") as it:
        it.run("pool", "rules", "cooldown_ms=60000", "fall=1000")
        yield it


@pytest.fixture(scope="module")
def gateway(arena):
    return arena.gateway("--tries", "3")


@pytest.fixture
def host():
    """One that no test has asked for: what cools down for it does so in this test alone."""
    return f"site{next(numbers)}.test"


def another(host):
    """A host that nobody is refused by."""
    return host.replace("site", "else")


def refuses(host, reply):
    """A proxy that gives `reply` for one host, and serves or tunnels to all others."""

    def script(connection):
        got = connection.read_request()
        if host in got.target:
            connection.send(reply)
        elif got.method == "CONNECT":
            connection.send(b"HTTP/1.1 200 OK\r\n\r\n")
            wire.returns_all(connection)
        else:
            connection.send(wire.response(b"hello"))

    return script


def status(gateway, host, is_tunnel=False):
    with gateway.connect() as client:
        return client.tunnel(f"{host}:443").status if is_tunnel else client.get(f"http://{host}/").status


def members(gateway, host, is_tunnel=False):
    """Whom the requests to a host went through, in order."""
    return [line["member"] for line in gateway.log(message="request", target=f"{host}:{443 if is_tunnel else 80}")]


def seen(gateway, count, host, is_tunnel=False):
    peers.wait_for(lambda: len(members(gateway, host, is_tunnel)) >= count, "the log lines")
    return members(gateway, host, is_tunnel)


def cooling(arena, host):
    """The members that the store has for the host."""
    entries = arena.store.client.zrange(TABLE, 0, -1)
    return [entry.partition("\t")[2] for entry in entries if entry.startswith(host + "\t")]


@pytest.mark.core
@pytest.mark.parametrize("word", ["403 No", "429 Too Many Requests", "503 Busy"])
def test_a_proxy_that_a_site_has_banned_serves_the_other_sites(arena, gateway, upstream, host, word):
    banned = upstream(refuses(host, wire.response(b"go away", word)), host="127.0.0.2")
    other = upstream(wire.serves(), host="127.0.0.3")
    arena.set_members(banned, other)
    assert [status(gateway, host) for _ in range(4)] == [int(word[:3]), 200, 200, 200]
    assert seen(gateway, 4, host) == [banned.url, *[other.url] * 3]
    assert [status(gateway, another(host)) for _ in range(3)] == [200, 200, 200]
    assert seen(gateway, 3, another(host)) == [banned.url] * 3
    peers.wait_for(lambda: cooling(arena, host) == [banned.url], "the store is told")
    assert arena.store.client.zscore("proxies", banned.url) is not None


@pytest.mark.core
@pytest.mark.parametrize("reply", ["403", "404", "502", "503", "504"])
def test_a_proxy_that_fails_for_one_target_tunnels_to_others(arena, gateway, upstream, host, reply):
    failing = upstream(refuses(host, f"HTTP/1.1 {reply} No\r\n\r\n".encode()), host="127.0.0.2")
    other = upstream(wire.tunnels(wire.returns_all), host="127.0.0.3")
    arena.set_members(failing, other)
    assert status(gateway, host, True) in (502, 504)
    assert [status(gateway, host, True) for _ in range(2)] == [200, 200]
    assert seen(gateway, 3, host, True) == [failing.url, other.url, other.url]
    assert status(gateway, another(host), True) == 200
    assert seen(gateway, 1, another(host), True) == [failing.url]
    peers.wait_for(lambda: cooling(arena, host) == [failing.url], "the store is told")
    assert arena.store.client.zscore("proxies", failing.url) is not None


@pytest.mark.parametrize("word", ["404 Gone", "500 Oops", "401 Who", "200 OK"])
def test_other_answers_say_nothing_of_the_member(arena, gateway, upstream, host, word):
    server = upstream(wire.serves(status=word), host="127.0.0.2")
    arena.set_members(server, upstream(wire.serves(), host="127.0.0.3"))
    assert {status(gateway, host) for _ in range(3)} == {int(word[:3])}
    assert seen(gateway, 3, host) == [server.url] * 3


def test_a_proxy_that_is_down_does_not_cool_for_the_target(arena, gateway, upstream, host):
    dead, other = upstream(wire.resets, host="127.0.0.2"), upstream(wire.serves(), host="127.0.0.3")
    arena.set_members(dead, other)
    assert status(gateway, host) == 200
    assert gateway.requests(1, target=f"{host}:80")[0]["tries"] == 2
    assert cooling(arena, host) == []


def test_when_all_are_cooling_the_lowest_is_used_and_that_is_logged(arena, gateway, upstream, host):
    banned = [upstream(wire.serves(status="403 No"), host=f"127.0.0.{i}") for i in (2, 3, 4)]
    arena.set_members(*banned)
    assert [status(gateway, host) for _ in range(6)] == [403] * 6
    first, second, third = (server.url for server in banned)
    assert seen(gateway, 6, host) == [first, second, third, first, first, first]
    assert {line["tries"] for line in gateway.requests(6, target=f"{host}:80")} == {1}
    lines = gateway.log(message=COOLING, host=host)
    assert 1 <= len(lines) <= 3  # at most one a second
    assert lines[0]["member"] == first


def test_each_member_that_is_passed_over_is_an_allocation(arena, gateway, upstream, host):
    banned = [upstream(wire.serves(status="403 No"), host=f"127.0.0.{i}") for i in (2, 3)]
    arena.set_members(*banned)
    for _ in range(3):
        status(gateway, host)
    # 1, then 1 + 1, then both are passed over and the first is used.
    assert [arena.store.client.zscore("proxies", server.url) for server in banned] == [3, 1002]


def test_no_more_than_eight_are_asked_for(arena, gateway, upstream, host):
    banned = [upstream(wire.serves(status="403 No"), host=f"127.0.0.{i}") for i in range(2, 13)]
    arena.set_members(*banned)
    for _ in range(8):
        status(gateway, host)
    arena.set_members(*banned)
    assert status(gateway, host) == 403
    given = [arena.store.client.zscore("proxies", server.url) % 1000 for server in banned]
    assert given == [1] * 8 + [0] * 3
    assert seen(gateway, 9, host)[8] == banned[0].url


def test_a_member_that_was_passed_over_is_used_when_the_others_fail(arena, gateway, upstream, host):
    banned = upstream(wire.answers(wire.response(b"", "403 No")), wire.serves(), host="127.0.0.2")
    dead = upstream(wire.resets, host="127.0.0.3")
    arena.set_members(banned, dead)
    assert [status(gateway, host) for _ in range(2)] == [403, 200]
    line = gateway.requests(2, target=f"{host}:80")[1]
    assert (line["member"], line["tries"], line["reason"]) == (banned.url, 2, "ok")


def test_a_session_keeps_a_member_that_is_cooling(arena, gateway, upstream, host):
    banned = upstream(wire.serves(status="403 No"), host="127.0.0.2")
    arena.set_members(banned, upstream(wire.serves(), host="127.0.0.3"))
    for _ in range(3):
        with gateway.connect() as client:
            assert client.get(f"http://{host}/", Proxy_Authorization="Basic dS1zZXNzaW9uLWE6eA==").status == 403
    assert seen(gateway, 3, host) == [banned.url] * 3
    assert status(gateway, host) == 200


def test_another_gateway_knows_within_a_second_or_two(arena, gateway, upstream, host):
    second = arena.gateway()

    def reads():
        return arena.store.client.info("commandstats")["cmdstat_zrevrangebyscore"]["calls"]

    banned = upstream(refuses(host, wire.response(b"", "403 No")), host="127.0.0.2")
    other = upstream(wire.serves(), host="127.0.0.3")
    arena.set_members(banned, other)
    assert status(second, another(host)) == 200
    assert seen(second, 1, another(host)) == [banned.url]
    assert status(gateway, host) == 403
    peers.wait_for(lambda: cooling(arena, host) == [banned.url], "the store is told")

    # A 403 would teach it itself: it is asked for another host, until the table was read twice: once by the first at most.
    before = reads()
    peers.wait_for(lambda: status(second, another(host)) == 200 and reads() >= before + 2, "they read", pause_s=0.05)
    assert status(second, host) == 200
    assert seen(second, 1, host) == [other.url]
    second.stop()


def test_direct_members_never_cool(arena, gateway, upstream):
    origin = upstream(wire.serves(status="403 No"), host="127.0.0.7")
    arena.store.client.delete("proxies")
    arena.store.client.zadd("proxies", {"direct://": 0})
    with gateway.connect() as client:
        assert client.get(f"{origin.url}/").status == 403
    with gateway.connect() as client:
        assert client.tunnel(f"127.0.0.8:{peers.free_port('127.0.0.8')}").status == 502
    assert cooling(arena, "127.0.0.7") == cooling(arena, "127.0.0.8") == []


def test_real_proxies_of_which_a_site_bans_one(arena, gateway, peer, upstream):
    def bans(connection):
        connection.read_request()
        is_banned = connection.peer[0] == "127.0.0.2"
        connection.send(wire.response(b"", "403 Banned") if is_banned else wire.response(b"hello"))

    proxies = [peer(peers.Tinyproxy, f"127.0.0.{i}") for i in (2, 3)]
    site, other = upstream(bans, host="127.0.0.8"), upstream(wire.serves(), host="127.0.0.9")
    arena.set_members(*proxies)
    arena.store.client.zadd("proxies", {proxy.url: 0 for proxy in proxies})

    def ask(server):
        with gateway.connect() as client:
            return client.get(server.url + "/").status

    answers = collections.Counter(ask(site) for _ in range(10))
    assert answers == {403: 1, 200: 9}
    before = len(other.connections)
    assert {ask(other) for _ in range(10)} == {200}
    assert {c.peer[0] for c in other.connections[before:]} == {"127.0.0.2", "127.0.0.3"}
    assert arena.store.client.zcard("proxies") == 2
