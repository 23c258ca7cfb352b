"""The checker: who is probed when, whose failure it is, what becomes of members; keepers on real Redis, scripted
proxies."""

import signal
import time

import pytest


import peers
import scripted
import wire
from checked import QUICK, Proxy, Sampler, health, wait_eligible, wait_for_tries, wait_parked
from conftest import Node
from demonstration import nodes_of
from supplies import eligible, members, parked, text_of

TARGET = "check_target=http://target.test/ok"
HELD = "more members fail than max_parked_percent: none is parked"
UNREACHED = "no member reaches a check target: what fails there is nobody's fault"


@pytest.fixture
def keeper(binary, environment, folder, store):
    """keeper(...) starts one; ended by SIGTERM, which must end it well."""
    keepers = []

    def start(*words):
        path = folder / f"keeper{len(keepers)}"
        it = Node([binary, "keeper", "--log-format", "json", "--redis", store.url, *map(str, words)], path, environment)
        keepers.append(it)
        return it

    yield start
    for it in keepers:
        it.terminate()
    for it in keepers:
        if it.process.returncode is None:
            it.stop()


@pytest.fixture
def rules(run):
    return lambda *words: run("pool", "rules", *words)


@pytest.fixture
def proxies():
    """proxies(n, ...) -> n of them, each at an address of its own."""
    servers = []

    def start(count, **options):
        for _ in range(count):
            servers.append(Proxy(host=f"127.0.1.{len(servers) + 1}", **options))
        return servers[-count:]

    yield start
    for server in servers:
        server.gate.set()
        server.close()


def urls(servers):
    return [server.url for server in servers]


# --- a member's life ------------------------------------------------------------------------------------------------


@pytest.mark.core
def test_a_candidate_is_eligible_after_a_check(keeper, rules, run, store, proxies):
    good, bad = proxies(1) + proxies(1, status=407)
    rules(*QUICK, TARGET)
    run("pool", "add", good.url, bad.url)
    assert eligible(store) == {}
    keeper()
    wait_eligible(store, good.url)
    peers.wait_for(lambda: health(store, bad.url).get("reason") == "auth-failed", "the other was refused")
    assert parked(store).keys() == {bad.url}


@pytest.mark.core
def test_a_dead_member_is_parked_with_its_count_and_comes_back(keeper, rules, run, store, proxies):
    (proxy,) = proxies(1)
    rules(*QUICK, TARGET, "fall=2", "rise=2")
    run("pool", "add", "--eligible", proxy.url)
    run("pool", "allocate", "--count", 5)
    keeper()
    wait_for_tries(2, proxy)
    assert eligible(store) == {proxy.url: 5}
    proxy.refuse()
    wait_parked(store, proxy.url)
    assert parked(store) == {proxy.url: 5}
    again = Proxy(host=proxy.host, port=proxy.port)
    try:
        wait_eligible(store, proxy.url)
        assert len(again.tries) >= 2 and eligible(store) == {proxy.url: 5}
    finally:
        again.close()


def test_a_pause_by_the_operator_is_never_undone(keeper, rules, run, store, proxies):
    paused, other = proxies(2)
    rules(*QUICK, TARGET)
    run("pool", "add", "--eligible", paused.url, other.url)
    run("pool", "park", paused.url)
    with Sampler(store) as seen:
        keeper()
        wait_for_tries(8, other)
    assert seen.states[paused.url] == ["parked"] and eligible(store).keys() == {other.url}


def test_an_expired_member_is_parked_on_time(keeper, rules, run, store, proxies):
    brief, other = proxies(2)
    rules(*QUICK, TARGET)
    run("pool", "add", "--eligible", brief.url, other.url)
    until = time.time() + 1
    store.client.hset("{proxies}:pool:admin", brief.url, f"expires_at={int(until * 1000)}")
    keeper()
    wait_parked(store, brief.url)
    assert -0.01 <= time.time() - until < 1
    wait_for_tries(3, other)
    assert eligible(store).keys() == {other.url}


def test_without_checks_nobody_is_tried(keeper, rules, run, store, proxies, folder):
    (proxy,) = proxies(1)
    rules(*QUICK, TARGET)
    run("pool", "add", proxy.url)
    (folder / "list").write_text(text_of(1))
    it = keeper("--no-check", "--list", folder / "list")
    peers.wait_for(lambda: it.log(message="source loaded"), "it has read the list")
    it.process.send_signal(signal.SIGHUP)
    peers.wait_for(lambda: len(it.log(message="source loaded")) == 2, "it has had its turn again")
    assert eligible(store).keys() == members(1)
    assert proxy.connections == [] and parked(store) == {proxy.url: 0}


def test_sighup_begins_checks_that_were_off(keeper, rules, run, store, proxies, folder):
    (proxy,) = proxies(1)
    rules(*QUICK, TARGET)
    run("pool", "add", proxy.url)
    (folder / "conf").write_text("check = false\n")
    it = keeper("--config", folder / "conf")
    peers.wait_for(lambda: nodes_of(store), "it is there")
    assert proxy.connections == []
    (folder / "conf").write_text("check = true\n")
    it.process.send_signal(signal.SIGHUP)
    wait_eligible(store, proxy.url)


def test_rules_are_followed_as_they_change(keeper, rules, run, store, proxies):
    (proxy,) = proxies(1)
    rules(*QUICK, "check_target=http://target.test/one")
    run("pool", "add", proxy.url)
    keeper()
    wait_eligible(store, proxy.url)
    rules("check_target=http://target.test/two http://other.test/three")

    def targets():
        return {connection.head.target for connection in proxy.connections if connection.done.is_set()}

    peers.wait_for(lambda: targets() >= {"http://target.test/two", "http://other.test/three"}, "both are asked")


# --- whose failure it is --------------------------------------------------------------------------------------------


@pytest.mark.core
def test_a_check_target_that_dies_moves_nobody(keeper, rules, run, store, proxies):
    """T15; then it answers 429 to most, and the guard holds."""
    servers = proxies(6)
    rules(*QUICK, TARGET)
    run("pool", "add", "--eligible", *urls(servers))
    it = keeper()
    wait_for_tries(1, *servers)
    with Sampler(store) as seen:
        for server in servers:
            server.status = 502
        peers.wait_for(lambda: it.log(message=UNREACHED), "it is told")
        wait_for_tries(4, *servers)
        for server in servers[1:]:
            server.status = 429
        servers[0].status = 200
        peers.wait_for(lambda: it.log(message=HELD), "the guard holds")
        wait_for_tries(4, *servers)
    assert seen.moves() == dict.fromkeys(urls(servers), 0) and eligible(store).keys() == set(urls(servers))


def test_a_few_that_fail_while_others_pass_are_parked(keeper, rules, run, store, proxies):
    servers = proxies(6)
    rules(*QUICK, TARGET)
    run("pool", "add", "--eligible", *urls(servers))
    keeper()
    servers[0].status = 503
    wait_parked(store, servers[0].url)
    assert health(store, servers[0].url)["reason"] == "check-status"
    assert eligible(store).keys() == set(urls(servers[1:]))


@pytest.mark.parametrize("control", ["members", "direct"])
def test_a_direct_request_tells_that_the_target_is_good(keeper, rules, run, store, proxies, upstream, control):
    """Only if it is asked for: it shows the operator's address."""
    origin = upstream(wire.serves())
    (bad,) = proxies(1, status=502)
    rules(*QUICK, f"check_target={origin.url}/ok", f"check_control={control}", "max_parked_percent=100")
    run("pool", "add", "--eligible", bad.url)
    began = time.monotonic()
    keeper()
    if control == "direct":
        wait_parked(store, bad.url)
        windows = (time.monotonic() - began) / 0.2
        assert 1 <= len(origin.connections) <= windows + 1
    else:
        wait_for_tries(6, bad)
        assert origin.connections == [] and eligible(store).keys() == {bad.url}



@pytest.mark.core
def test_credentials_decide_and_a_probe_says_what_a_client_says(keeper, node, rules, run, store, upstream):
    """T13: the bytes of a probe and of a client's tunnel are the same up to the target."""

    def guarded(connection):
        head = wire.Head(connection.read_head())
        is_right = head.fields.get("proxy-authorization") == "Basic dXNlcjpyaWdodA=="  # user:right
        connection.send(b"HTTP/1.1 200 OK\r\n\r\n" if is_right else
                        b"HTTP/1.1 407 No\r\nProxy-Authenticate: Basic realm=\"x\"\r\nContent-Length: 0\r\n\r\n")

    right, wrong = upstream(guarded, host="127.0.1.1"), upstream(guarded, host="127.0.1.2")
    rules(*QUICK, "check_target=origin.test:443")
    run("pool", "add", "-", input=f"{right.url.replace('//', '//user:right@')}\n"
                                  f"{wrong.url.replace('//', '//user:wrong@')}\n")
    it = keeper()
    peers.wait_for(lambda: eligible(store), "one is eligible")
    (good,), (bad,) = eligible(store), parked(store)
    assert good.startswith(right.url + "#") and bad.startswith(wrong.url + "#")
    peers.wait_for(lambda: health(store, bad).get("reason") == "auth-failed", "its verdict")
    it.stop()
    probed = bytes(right.connections[-1].received)
    with node().connect() as client:
        assert client.tunnel("origin.test:443").status == 200
    assert bytes(right.connections[-1].received) == probed


@pytest.mark.parametrize("method", ["password", "none"])
def test_socks5_members_are_checked_with_their_password(keeper, node, rules, run, store, method):
    server = scripted.Upstream("socks5", lambda connection: None)
    login = "user:right@" if method == "password" else ""
    try:
        rules(*QUICK, "check_target=origin.test:443")
        run("pool", "add", "-", input=f"socks5h://{login}{server.host}:{server.port}\n")
        it = keeper()
        peers.wait_for(lambda: eligible(store), "it is eligible")
        it.stop()
        probed = bytes(server.connections[-1].received)
        with node().connect() as client:
            assert client.tunnel("origin.test:443").status == 200
        assert bytes(server.connections[-1].received) == probed
        assert server.asked[-1] == server.asked[0] and server.asked[0].password == (b"right" if login else b"")
    finally:
        server.close()


# --- several keepers ------------------------------------------------------------------------------------------------


def gaps(server):
    return [b - a for a, b in zip(server.tries, server.tries[1:])]


def test_three_keepers_try_each_member_once_in_a_window(keeper, rules, run, store, proxies):
    servers = proxies(9)
    rules(*QUICK, TARGET, "check_interval_ms=400")
    run("pool", "add", "--eligible", *urls(servers))
    for _ in range(3):
        keeper()
    wait_for_tries(5, *servers)
    # The interval give or take a fifth, and what Redis and two cores take.
    assert min(gap for server in servers for gap in gaps(server)) > 0.3


@pytest.mark.nightly
def test_one_of_three_keepers_is_killed_and_nobody_is_forgotten(keeper, rules, run, store, proxies):
    servers = proxies(12)
    interval, timeout = 1, 1.5
    rules(*QUICK, TARGET, f"check_interval_ms={interval * 1000}", f"check_timeout_ms={int(timeout * 1000)}")
    run("pool", "add", "--eligible", *urls(servers))
    keepers = [keeper() for _ in range(3)]
    wait_for_tries(2, *servers)
    # In the middle: probes are under way that nobody will report.
    for server in servers:
        server.gate.clear()
    wait_for_tries(1, *servers)
    keepers[0].kill()
    for server in servers:
        server.gate.set()
    wait_for_tries(3, *servers)
    shortest = min(gap for server in servers for gap in gaps(server))
    longest = max(gap for server in servers for gap in gaps(server))
    print(f"three keepers, one killed: between two checks of a member {shortest:.2f} to {longest:.2f} s")
    assert shortest > 0.75 * interval
    assert longest < 1.2 * interval + timeout + 5 + 1
    assert eligible(store).keys() == set(urls(servers))


@pytest.mark.core
def test_a_keeper_that_ends_gives_back_what_it_has_taken(keeper, rules, run, store, proxies):
    (proxy,) = proxies(1)
    rules(*QUICK, TARGET, "check_timeout_ms=20000")
    run("pool", "add", proxy.url)
    proxy.gate.clear()
    first = keeper()
    wait_for_tries(1, proxy)
    first.stop()
    proxy.gate.set()
    began = time.monotonic()
    keeper()
    wait_eligible(store, proxy.url)
    assert time.monotonic() - began < 5


# --- flapping -------------------------------------------------------------------------------------------------------


@pytest.mark.nightly
def test_a_flapping_member_moves_no_more_often_than_the_rules_say(keeper, rules, run, store, proxies):
    flapping, *_ = proxies(4)
    rules(*QUICK, TARGET, "fall=2", "rise=2", "min_state_ms=3000", "check_interval_ms=100")
    run("pool", "add", "--eligible", flapping.url, *urls(_))
    keeper()
    wait_for_tries(1, flapping)
    seconds = 14
    with Sampler(store) as seen:
        for i in range(seconds):
            flapping.status = 200 if i % 2 else 503
            time.sleep(1)  # the flapping itself: up and down each second
    moves = seen.moves()[flapping.url]
    print(f"flapping each second for {seconds} s: {moves} moves")
    assert 1 <= moves <= seconds / 3 + 1


# --- what is told ---------------------------------------------------------------------------------------------------


def test_counters_tell_of_checks(keeper, rules, run, store, proxies):
    (good,) = proxies(1)
    rules(*QUICK, TARGET)
    run("pool", "add", good.url)
    keeper()

    def told():
        (it,) = nodes_of(store).values() or ({},)
        return int(it.get("checks_total", 0)) >= 2 and it

    it = peers.wait_for(told, "the keeper tells")
    assert it["admitted_total"] == "1" and it["parked_total"] == "0" and it["checks_inconclusive_total"] == "0"
    assert 0 <= int(it["check_age_ms"]) < 5000


def test_rules_that_cannot_be_followed_are_told_and_check_nobody(keeper, rules, run, store, proxies):
    (proxy,) = proxies(1)
    rules(*QUICK)
    store.client.hset("{proxies}:pool:rules", "check_target", "ftp://target.test/")
    run("pool", "add", proxy.url)
    it = keeper()
    peers.wait_for(lambda: it.log(level="error", pool="proxies"), "it is told")
    assert proxy.connections == [] and eligible(store) == {}


def test_a_country_database_that_is_none_ends_the_start(run, folder):
    (folder / "none.mmdb").write_text("none")
    done = run("keeper", "--country-database", folder / "none.mmdb", check=False)
    assert done.returncode in (1, 2) and "--country-database" in done.stderr and done.stderr.count("\n") == 1
