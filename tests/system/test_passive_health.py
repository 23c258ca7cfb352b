"""Members that fail under clients' requests: what is counted, when they are parked, and what is never held against them."""

import contextlib
import threading

import pytest

import peers
import wire
import world

POOL = "{proxies}:pool:"
URL = "http://origin.test/"


@pytest.fixture(scope="module")
def arena(session_folder):
    with world.Arena(session_folder / "passive") as it:
        # Moves may follow one another at once.
        it.run("pool", "rules", "min_state_ms=0", "fall=3")
        yield it


@pytest.fixture(scope="module")
def gateway(arena):
    return arena.gateway("--tries", "4")


@pytest.fixture(autouse=True)
def nothing_is_remembered(arena):
    client = arena.store.client
    for key in client.scan_iter(POOL + "*"):
        if key != POOL + "rules":
            client.delete(key)


def streak(arena, server):
    """Failures in a row are below 0."""
    return int(arena.store.client.hget(POOL + "streaks", server.url) or 0)


def is_eligible(arena, server):
    return arena.store.client.zscore("proxies", server.url) is not None


def clock_ms(arena):
    seconds, microseconds = arena.store.client.time()
    return seconds * 1000 + microseconds // 1000


def wait_for_streak(arena, server, value):
    """And for the next millisecond: what begins in the one of the last counted failure does not count."""
    peers.wait_for(lambda: streak(arena, server) == value, f"a streak of {value}")
    reached = clock_ms(arena)
    peers.wait_for(lambda: clock_ms(arena) > reached + 1, "the clock goes on", pause_s=0.001)


def status(gateway):
    with gateway.connect() as client:
        return client.get(URL).status


@pytest.fixture
def served(upstream):
    """Two members that serve, for the first not to be most of the pool."""
    return [upstream(wire.serves(), host=f"127.0.0.{i}") for i in (8, 9)]


@pytest.mark.core
def test_failures_in_a_row_park_a_member_and_it_is_asked_no_more(arena, gateway, upstream, served):
    dead = upstream(wire.resets, host="127.0.0.2")
    dead.refuse()
    arena.set_members(dead, *served)
    for failures in (1, 2):
        assert status(gateway) == 200
        wait_for_streak(arena, dead, -failures)
    assert is_eligible(arena, dead)
    assert status(gateway) == 200
    peers.wait_for(lambda: not is_eligible(arena, dead), "it is parked")
    assert arena.store.client.zscore(POOL + "parked", dead.url) == 3  # it keeps its count
    before = len(gateway.requests())
    assert [status(gateway) for _ in range(5)] == [200] * 5
    assert {(line["tries"], line["member"]) for line in gateway.requests(before + 5)[before:]} == {(1, served[0].url)}


@pytest.mark.core
def test_two_hundred_requests_on_a_dying_member_count_one_failure(arena, upstream, served):
    """T6, T15."""
    dies = threading.Event()

    def dies_at_once_for_all(connection):
        connection.read_head()
        dies.wait(wire.LIMIT_S)
        connection.reset()

    gateway = arena.gateway("--tries", "1")
    dying = upstream(dies_at_once_for_all, host="127.0.0.2")
    arena.set_members(dying, *served)
    clients = [gateway.connect() for _ in range(200)]
    for client in clients:
        client.send(wire.request("POST", URL))
    dying.wait_for_connection(199)
    dies.set()
    assert {client.read_response().status for client in clients} == {502}
    for client in clients:
        client.close()
    wait_for_streak(arena, dying, -1)
    assert peers.steady(lambda: streak(arena, dying)) == -1
    assert status(gateway) == 502
    wait_for_streak(arena, dying, -2)
    assert is_eligible(arena, dying)
    assert status(gateway) == 502
    peers.wait_for(lambda: not is_eligible(arena, dying), "it is parked")
    gateway.stop()


@pytest.mark.core
def test_what_a_target_does_is_not_held_against_a_member(arena, gateway, upstream, served):
    replies = [b"HTTP/1.1 %d No\r\n\r\n" % reply for reply in (403, 404, 502, 503, 504)]
    server = upstream(*(wire.answers(reply) for reply in replies), wire.resets, host="127.0.0.2")
    arena.set_members(server, *served)
    for i in range(len(replies)):
        with gateway.connect() as client:
            assert client.tunnel(f"host{i}.test:443").status in (502, 504)
    assert status(gateway) == 200
    # One failure of its own shows that reports arrive; the others before it were none.
    wait_for_streak(arena, server, -1)
    assert is_eligible(arena, server)


def wait_for_pass(arena, server, ask):
    """A process knows of a failing member within a second, and reports its passes from then on."""
    peers.wait_for(lambda: ask() and streak(arena, server) >= 0, "a pass is reported", pause_s=0.05)


def test_a_pass_ends_a_row_of_failures(arena, gateway, upstream, served):
    script = [wire.resets]
    server = upstream(lambda connection: script[0](connection), host="127.0.0.2")
    arena.set_members(server, *served)
    for _ in range(2):
        for value in (-1, -2):
            assert status(gateway) == 200
            wait_for_streak(arena, server, value)
        script[0] = wire.serves()
        wait_for_pass(arena, server, lambda: status(gateway) == 200)
        script[0] = wire.resets
    assert is_eligible(arena, server)


def test_a_tunnel_that_stands_is_a_pass(arena, gateway, upstream, served):
    server = upstream(wire.resets, wire.tunnels(wire.returns_all), host="127.0.0.2")
    arena.set_members(server, *served)
    assert status(gateway) == 200
    wait_for_streak(arena, server, -1)
    with contextlib.ExitStack() as tunnels:
        def stands():
            return tunnels.enter_context(gateway.connect()).tunnel("else.test:443").status == 200

        wait_for_pass(arena, server, stands)


def test_failures_seen_by_two_gateways_add_up(arena, gateway, upstream, served):
    second = arena.gateway("--tries", "4")
    dead = upstream(wire.resets, host="127.0.0.2")
    arena.set_members(dead, *served)
    assert status(gateway) == 200
    wait_for_streak(arena, dead, -1)
    assert status(second) == 200
    wait_for_streak(arena, dead, -2)
    assert status(gateway) == 200
    peers.wait_for(lambda: not is_eligible(arena, dead), "it is parked")
    second.stop()


def test_when_most_fail_together_none_is_parked(arena, gateway, upstream, served):
    dead = [upstream(wire.resets, host=f"127.0.0.{i}") for i in (2, 3, 4)]
    arena.set_members(*dead, served[0])
    for failures in range(1, 6):
        assert status(gateway) == 200
        for server in dead:
            peers.wait_for(lambda: streak(arena, server) <= -failures, "it is counted")
    assert [is_eligible(arena, server) for server in dead] == [True] * 3
    assert arena.store.client.exists(POOL + "alarm")
