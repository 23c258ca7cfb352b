"""Sticky sessions: one member for a client's session on all gateways, moved together, or lost on purpose."""

import concurrent.futures

import pytest

import wire
from test_clients import get


@pytest.fixture
def members(add, upstream):
    """Three scripted upstreams, each of which answers with its own port."""
    servers = []
    for number in range(3):
        server = upstream(lambda connection: wire.serves(str(connection.sock.getsockname()[1]).encode())(connection),
                          host=f"127.0.0.{number + 1}")
        servers.append(server)
    add(*(server.url for server in servers))
    return {str(server.port).encode(): server for server in servers}


def ask(gateway, user):
    with gateway.connect() as client:
        return get(client, user, "any")


def ask_together(gateways, user, count=20):
    with concurrent.futures.ThreadPoolExecutor(count) as threads:
        return list(threads.map(lambda i: ask(gateways[i % len(gateways)], user), range(count)))


@pytest.mark.core
def test_a_session_is_one_member_for_all_gateways_and_moves_as_one(node, members, store):
    gateways = [node() for _ in range(3)]
    answers = ask_together(gateways, "acme-session-a")
    assert {answer.status for answer in answers} == {200}
    assert len({answer.body for answer in answers}) == 1
    # Each request is an allocation of the member.
    assert sum(score for _, score in store.client.zscan_iter("proxies")) == 20

    first = answers[0].body
    members[first].refuse()
    moved = ask_together(gateways, "acme-session-a")
    assert {answer.status for answer in moved} == {200}
    assert len({answer.body for answer in moved}) == 1
    assert moved[0].body != first
    assert any(answer.fields.get("fairlead-session") == "moved" for answer in moved)
    assert "fairlead-session" not in ask(gateways[0], "acme-session-a").fields


@pytest.mark.core
def test_a_strict_session_is_lost_with_its_member(node, members, store):
    gateway = node()
    first = ask(gateway, "acme-session-a-strict").body
    members[first].refuse()
    answer = ask(gateway, "acme-session-a-strict")
    assert answer.status == 502 and "error=connection_refused" in answer.fields["proxy-status"]
    store.client.zrem("proxies", members[first].url)
    answer = ask(gateway, "acme-session-a-strict")
    assert answer.status == 502 and "session-lost" in answer.fields["proxy-status"]


def test_sessions_of_two_clients_are_two(node, members):
    gateway = node()
    bodies = {ask(gateway, f"client{i}-session-a").body for i in range(3)}
    assert len(bodies) == 3


def test_a_client_has_no_more_sessions_than_it_may(node, members):
    gateway = node("--session-limit", 2)
    assert [ask(gateway, f"acme-session-{name}").status for name in "abca"] == [200, 200, 503, 200]
    assert ask(gateway, "other-session-c").status == 200
    assert gateway.requests(1, reason="session-limit")


def test_a_session_ends_after_its_lifetime(node, members, store):
    gateway = node()
    ask(gateway, "acme-session-a-lifetime-30s")
    key = next(store.client.scan_iter("*:pool:sticky:*"))
    assert 25_000 < store.client.pttl(key) <= 30_000
    ask(gateway, "acme-session-a")
    assert 590_000 < store.client.pttl(key) <= 600_000


def test_a_session_over_socks_is_the_same_session(node, add, upstream):
    servers = [upstream(wire.tunnels(wire.returns_all), host=f"127.0.0.{n}") for n in (1, 2, 3)]
    add(*(server.url for server in servers))
    gateway = node()
    for _ in range(4):
        with gateway.connect() as client:
            client.send(b"\x05\x01\x02\x01\x0eacme-session-a\x01x\x05\x01\x00\x03\x06a.test\x01\xbb")
            assert client.read_exactly(14)[5] == 0
    assert sorted(len(server.connections) for server in servers) == [0, 0, 4]
