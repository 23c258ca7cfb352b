"""The gateway under least-concurrent: a lease for as long as a member is used, given back once, waited for in order."""

import concurrent.futures
import contextlib
import threading

import pytest

import peers
import scripted
import wire
from test_clients import basic

POOL = "{proxies}:pool"
HOLDING = wire.tunnels(wire.returns_all)
TAIL = ("--lease-wait", "20s")

pytestmark = pytest.mark.core


@pytest.fixture
def rules(run):
    return lambda *words: run("pool", "rules", "policy=least-concurrent", *words)


@pytest.fixture
def live(store):
    """Live leases by member, as the pool counts them."""
    return lambda: {m: int(n) for m, n in store.client.hgetall(f"{POOL}:live").items()}


@pytest.fixture
def all_returned(store, live):
    def wait():
        peers.wait_for(lambda: live() == {}, "all leases are back")
        assert store.client.zcard(f"{POOL}:leases") == 0
        assert all(score < 2**40 for _, score in store.client.zscan_iter(f"{POOL}:busy"))
    return wait


@pytest.fixture
def members(add, upstream):
    """members(count, script): scripted upstreams; their URLs in the order of their bytes."""

    def start(count, script=HOLDING):
        servers = [upstream(script, host=f"127.0.0.{n + 1}") for n in range(count)]
        add(*(server.url for server in servers))
        return servers

    return start


def open_tunnel(gateway, stack):
    client = stack.enter_context(gateway.connect())
    assert client.tunnel().status == 200
    return client


def script_calls(store):
    return store.client.info("commandstats").get("cmdstat_evalsha", {"calls": 0})["calls"]


def seconds(store):
    """The clock of Redis."""
    whole, micro = store.client.time()
    return whole + micro / 1e6


def cools_down(store, *servers):
    until = int(seconds(store) * 1000) + 60_000
    store.client.zadd(f"{POOL}:cooldown", {f"origin.test\t{server.url}": until for server in servers})


def test_a_tunnel_holds_one_lease_from_its_beginning_to_its_end(node, members, rules, live, all_returned, store):
    server, = members(1)
    rules()
    gateway = node()
    with gateway.connect() as client:
        assert client.tunnel().status == 200
        assert live() == {server.url: 1}
        assert store.client.zscore("proxies", server.url) == 1
    all_returned()
    assert store.client.zscore("proxies", server.url) == 1


def test_a_plain_request_holds_its_lease_until_its_response_has_come(node, members, rules, live, all_returned):
    go = threading.Event()

    def waits(connection):
        connection.read_head()
        go.wait(wire.LIMIT_S)
        connection.send(wire.response(b"done"))

    server, = members(1, waits)
    rules()
    gateway = node()
    with gateway.connect() as client:
        client.send(wire.request("GET", "http://origin.test/"))
        peers.wait_for(lambda: live() == {server.url: 1}, "it is leased")
        go.set()
        assert client.read_response().body == b"done"
    all_returned()


def test_the_member_with_the_fewest_tunnels_is_taken_whatever_the_counts_say(node, members, rules, live, store):
    first, second = members(2)
    rules()
    store.client.zadd("proxies", {second.url: 1000})
    gateway = node()
    with contextlib.ExitStack() as stack:
        for _ in range(4):
            open_tunnel(gateway, stack)
        assert live() == {first.url: 2, second.url: 2}


def test_who_finds_all_at_their_cap_waits_in_order_of_arrival(node, members, rules, all_returned, live):
    server, = members(1)
    rules("max_concurrent=1")
    gateway = node(*TAIL)
    order = []

    def one_after(number, previous):
        with gateway.connect() as client:
            client.send(b"CONNECT origin.test:443 HTTP/1.1\r\nHost: origin.test:443\r\n\r\n")
            gateway_has(number + 1)
            previous.set()
            assert wire.Head(client.read_head()).status == 200
            order.append(number)
            assert live() == {server.url: 1}

    def gateway_has(count):
        peers.wait_for(lambda: gateway.descriptors() >= base + count, "the gateway has taken the connection")

    base = gateway.descriptors()
    with contextlib.ExitStack() as stack:
        holder = open_tunnel(gateway, stack)
        base = gateway.descriptors() - 1
        threads = stack.enter_context(concurrent.futures.ThreadPoolExecutor(3))
        ends = []
        for number in range(3):
            sent = threading.Event()
            ends.append(threads.submit(one_after, number + 1, sent))
            assert sent.wait(wire.LIMIT_S)
        holder.close()
        for end in ends:
            end.result(wire.LIMIT_S)
    assert order == [1, 2, 3]
    all_returned()


def test_who_waits_too_long_is_told_when_to_come_again(node, members, rules, all_returned):
    members(1)
    rules("max_concurrent=1")
    gateway = node("--lease-wait", "100ms", "--retry-after", "7s")
    with contextlib.ExitStack() as stack:
        open_tunnel(gateway, stack)
        with gateway.connect() as late:
            answer = late.tunnel()
        assert answer.status == 503 and answer.fields["retry-after"] == "7"
        assert "error=connection_limit_reached" in answer.fields["proxy-status"]
        assert gateway.request(reason="pool-full")
    all_returned()


def test_a_client_that_leaves_the_line_does_not_hold_up_the_others(node, members, rules, all_returned):
    members(1)
    rules("max_concurrent=1")
    gateway = node(*TAIL)
    with contextlib.ExitStack() as stack:
        holder = open_tunnel(gateway, stack)
        with gateway.connect() as impatient:
            impatient.send(b"CONNECT origin.test:443 HTTP/1.1\r\nHost: origin.test:443\r\n\r\n")
            peers.wait_for(lambda: gateway.log(message="request") == [], "nothing has ended")
            impatient.reset()
        peers.wait_for(lambda: gateway.log(message="request", reason="client-gone"), "it has gone")
        holder.close()
        open_tunnel(gateway, stack)
    all_returned()


def test_a_member_that_fails_gives_its_lease_back_before_the_next_is_tried(node, members, rules, live, all_returned):
    bad, good = members(2)
    bad.refuse()
    rules("max_concurrent=1")
    gateway = node()
    with contextlib.ExitStack() as stack:
        open_tunnel(gateway, stack)
        peers.wait_for(lambda: live() == {good.url: 1}, "the failed one is back")
    all_returned()


def test_a_sticky_session_leases_its_own_member_and_counts_each_request_once(node, members, rules, live, all_returned,
                                                                             store):
    servers = members(3)
    rules()
    gateway = node()
    asking = f"CONNECT origin.test:443 HTTP/1.1\r\nHost: origin.test:443\r\nProxy-Authorization: {basic('me-session-a', 'x')}\r\n\r\n"
    with contextlib.ExitStack() as stack:
        for _ in range(3):
            client = stack.enter_context(gateway.connect())
            client.send(asking.encode())
            assert wire.Head(client.read_head()).status == 200
        assert sorted(live().values()) == [3]
    all_returned()
    assert sum(store.client.zscore("proxies", server.url) for server in servers) == 3


def test_a_lease_is_renewed_for_as_long_as_its_tunnel_lives(node, members, rules, live, all_returned, store):
    server, = members(1)
    rules("lease_ms=300")
    gateway = node()
    with contextlib.ExitStack() as stack:
        client = open_tunnel(gateway, stack)
        lease, expiry = store.client.zrange(f"{POOL}:leases", 0, 0, withscores=True)[0]
        peers.wait_for(lambda: store.client.zscore(f"{POOL}:leases", lease) > expiry + 600, "it is renewed thrice")
        client.send(b"still here")
        assert client.read_exactly(10) == b"still here" and live() == {server.url: 1}
    all_returned()


def test_what_a_killed_gateway_held_runs_out_and_the_keeper_takes_it_back(node, members, rules, live, all_returned, run):
    server, = members(1)
    rules("lease_ms=300")
    gateway = node()
    keeper = node(role="up")
    with contextlib.ExitStack() as stack:
        open_tunnel(gateway, stack)
        assert live() == {server.url: 1}
        gateway.kill()
    all_returned()
    assert keeper.log(level="error") == []


def test_a_gateway_that_drains_gives_its_leases_back(node, members, rules, all_returned):
    members(1)
    rules()
    gateway = node("--drain-timeout", "100ms")
    with contextlib.ExitStack() as stack:
        open_tunnel(gateway, stack)
        gateway.stop()
    all_returned()


def test_a_cooling_member_is_passed_over_and_its_lease_given_back(node, members, rules, live, all_returned, store):
    first, second = members(2)
    rules()
    cools_down(store, first)
    gateway = node()
    with contextlib.ExitStack() as stack:
        # The copy of the table is read when it is first asked for.
        peers.wait_for(lambda: open_tunnel(gateway, stack) and live().get(second.url), "the other is taken")
    all_returned()


def test_the_lease_is_that_of_the_member_in_use_when_all_are_cooling(node, members, rules, live, all_returned, store):
    # So many that not all of them are passed over: the last one offered is leased when the first is taken.
    servers = members(9)
    rules()
    cools_down(store, *servers)
    gateway = node()
    tried = []

    def is_known():
        with gateway.connect() as client:
            assert client.tunnel().status == 200
            leased = live()
        tried.append((leased, gateway.requests(len(tried) + 1)[-1]["member"]))
        all_returned()
        return gateway.log(message="all members offered are cooling for this host")

    peers.wait_for(is_known, "all are known to be cooling")
    assert all(leased == {member: 1} for leased, member in tried)


def test_a_cooling_member_serves_while_all_others_are_at_their_cap(node, members, rules, live, all_returned, store):
    first, second = members(2)
    rules("max_concurrent=1")
    cools_down(store, first)
    gateway = node("--lease-wait", "100ms")
    with contextlib.ExitStack() as stack:
        peers.wait_for(lambda: open_tunnel(gateway, stack) and len(live()) == 2, "both are taken")
        assert live() == {first.url: 1, second.url: 1}
    all_returned()


def test_a_member_that_cannot_be_read_keeps_no_lease(node, members, rules, live, all_returned, store):
    server, = members(1)
    rules()
    store.client.zadd("proxies", {"?": 0})
    gateway = node()
    with contextlib.ExitStack() as stack:
        open_tunnel(gateway, stack)
        peers.wait_for(lambda: live() == {server.url: 1}, "the other is back")
    store.client.zrem("proxies", server.url)
    with gateway.connect() as client:
        assert client.tunnel().status == 502
    all_returned()


@pytest.mark.parametrize("script", [wire.answers(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n"), wire.resets])
def test_an_exchange_that_fails_holds_no_lease(node, members, rules, all_returned, script):
    members(3, script)
    rules()
    gateway = node()
    with gateway.connect() as client:
        assert client.tunnel().status in (403, 502)
    with gateway.connect() as client:
        assert client.get("http://origin.test/").status in (403, 502)
    all_returned()


def test_a_tunnel_by_socks_holds_a_lease_like_any_other(node, members, rules, live, all_returned):
    bad, good = members(2)
    bad.refuse()
    rules()
    gateway = node()
    with gateway.connect() as client:
        assert scripted.socks5(client, "origin.test", 443) == 0
        peers.wait_for(lambda: live() == {good.url: 1}, "the failed one is back")
    all_returned()
    good.refuse()
    with gateway.connect() as client:
        assert scripted.socks5(client, "origin.test", 443) != 0
    all_returned()


def test_a_session_that_moves_takes_its_lease_along(node, members, rules, live, all_returned):
    servers = {server.url: server for server in members(2)}
    rules()
    gateway = node()
    user = {"Proxy_Authorization": basic("me-session-a", "x")}
    with gateway.connect() as client:
        assert scripted.connect(client, "origin.test", 443, **user).status == 200
        pinned, = live()
    all_returned()
    servers.pop(pinned).refuse()
    with gateway.connect() as client:
        answer = scripted.connect(client, "origin.test", 443, **user)
        assert (answer.status, answer.fields["fairlead-session"]) == (200, "moved")
        peers.wait_for(lambda: live() == {next(iter(servers)): 1}, "the failed one is back")
    all_returned()


@pytest.mark.parametrize("user", ["me", "me-session-a"])
def test_a_client_that_leaves_before_its_lease_is_granted_leaves_none_behind(node, members, rules, all_returned, store, user):
    server, = members(1)
    rules()
    gateway = node()
    with gateway.connect() as client:
        assert scripted.connect(client, "origin.test", 443, Proxy_Authorization=basic(user, "x")).status == 200
    all_returned()
    allocations = store.client.zscore("proxies", server.url)
    store.client.execute_command("CLIENT", "PAUSE", 20_000, "WRITE")
    with gateway.connect() as client:
        client.send(wire.request("GET", "http://origin.test/", Proxy_Authorization=basic(user, "x")))
        peers.wait_for(lambda: any("b" in it["flags"] for it in store.client.client_list()), "it has asked")
        client.reset()
    gateway.request(reason="client-gone")
    store.client.execute_command("CLIENT", "UNPAUSE")
    peers.wait_for(lambda: store.client.zscore("proxies", server.url) == allocations + 1, "it is granted")
    all_returned()


def test_a_gateway_that_drains_sends_those_who_wait_away(node, members, rules, all_returned, store):
    members(1)
    rules("max_concurrent=1")
    gateway = node("--drain-timeout", "100ms", *TAIL)
    with contextlib.ExitStack() as stack:
        open_tunnel(gateway, stack)
        calls_before = script_calls(store)
        with gateway.connect() as late:
            late.send(wire.request("GET", "http://origin.test/"))
            peers.wait_for(lambda: script_calls(store) > calls_before, "it has asked")
            gateway.stop()
            assert wire.Head(late.read_head()).status == 503
    all_returned()


@pytest.mark.parametrize("policies", [("least-concurrent", "least-allocated"), ("least-allocated", "least-concurrent")])
def test_each_pool_has_its_own_policy_the_one_that_stands_in_too(node, run, members, upstream, live, all_returned, store,
                                                                 policies):
    spare = upstream(HOLDING)
    run("pool", "add", "--eligible", "--allow-private", "--pool", "spare", spare.url)
    run("pool", "rules", f"policy={policies[0]}", "fallback=spare")
    run("pool", "rules", "--pool", "spare", f"policy={policies[1]}")
    gateway = node("--alias", "spare=spare")
    with gateway.connect() as client:
        assert client.tunnel().status == 200
        leased = store.client.hgetall("{spare}:pool:live")
        assert leased == ({spare.url: "1"} if policies[1] == "least-concurrent" else {})
        assert live() == {}
    peers.wait_for(lambda: not store.client.hgetall("{spare}:pool:live"), "it is back")
    assert store.client.zscore("spare", spare.url) == 1


def test_a_tunnel_outlives_a_lease_that_was_lost_and_its_end_touches_no_other(node, members, rules, run, live, store):
    server, = members(1)
    rules("lease_ms=300", "max_concurrent=1")
    gateway = node()
    with contextlib.ExitStack() as stack:
        client = open_tunnel(gateway, stack)
        lease = store.client.zrange(f"{POOL}:leases", 0, 0)[0]
        token = dict(pair.split("=", 1) for pair in store.client.hget(f"{POOL}:holders", lease).split("\t"))["token"]
        run("pool", "release", f"{lease}:{token}")
        other = run("pool", "acquire", "--ttl", "60s").stdout.split("\t")[1]
        begun = seconds(store)
        peers.wait_for(lambda: seconds(store) > begun + 0.3, "a renewal, due three times, is refused")
        client.send(b"still here")
        assert client.read_exactly(10) == b"still here"
    gateway.request(reason="ok")
    assert live() == {server.url: 1} and store.client.zrange(f"{POOL}:leases", 0, -1) == [other.partition(":")[0]]


FIVE_LINES = """\
local chosen = redis.call('ZRANGE', KEYS[1], 0, 0)[1]
if not chosen then
    return nil
end

redis.call('ZINCRBY', KEYS[1], 1, chosen)
return chosen
"""


@pytest.fixture
def under_load(store, members, all_returned):
    """under_load(gateways, work): runs `work(tunnels)` while three threads make tunnels and a fourth runs the five lines."""

    def run_load(gateways, work):
        servers = members(5)
        stop, foreign, tunnels = threading.Event(), [], []

        def runs_five_lines():
            while not stop.is_set():
                foreign.append(store.client.eval(FIVE_LINES, 1, "proxies"))

        def makes_tunnels():
            while not stop.is_set():
                for gateway in list(gateways):
                    with gateway.connect() as client:
                        assert client.tunnel().status == 200
                        tunnels.append(1)

        with concurrent.futures.ThreadPoolExecutor(4) as threads:
            ends = [threads.submit(each) for each in (runs_five_lines, makes_tunnels, makes_tunnels, makes_tunnels)]
            try:
                work(tunnels)
            finally:
                stop.set()
            for end in ends:
                end.result(wire.LIMIT_S)
        all_returned()
        # Nothing failed, so nothing was asked for twice: each count is an allocation that somebody got.
        assert None not in foreign
        assert sum(store.client.zscore("proxies", server.url) for server in servers) == len(foreign) + len(tunnels)

    return run_load


def test_gateways_of_different_policies_and_foreign_scripts_share_a_pool(node, run, under_load):
    gateways = []

    def work(tunnels):
        # A gateway that has begun hears of a change seconds later only: each goes by the policy it began with.
        for policy in ("least-concurrent", "least-allocated", "least-concurrent"):
            run("pool", "rules", f"policy={policy}", "max_concurrent=3")
            gateways.append(node(*TAIL))
            count = len(tunnels)
            peers.wait_for(lambda: len(tunnels) > count + 200, "tunnels are made")

    under_load(gateways, work)


@pytest.mark.nightly
def test_the_policy_may_change_both_ways_under_load_and_tunnels_end_as_they_began(node, run, live, under_load):
    gateway = node(*TAIL)

    def work(tunnels):
        with contextlib.ExitStack() as stack:
            for policy in ("least-concurrent", "least-allocated", "least-concurrent", "least-allocated"):
                run("pool", "rules", f"policy={policy}")
                is_leased = policy == "least-concurrent"
                peers.wait_for(lambda: opens_with_lease(gateway, stack, live, tunnels) == is_leased,
                               f"{policy} is followed", pause_s=0.2)

    under_load([gateway], work)


def opens_with_lease(gateway, stack, live, tunnels):
    """Opens tunnels that stay; did they take leases? Those of the load are few."""
    before = sum(live().values())
    for _ in range(10):
        open_tunnel(gateway, stack)
        tunnels.append(1)
    return sum(live().values()) >= before + 7
