"""What clients may reach, and how much of it: ports, hosts, limits; the pool that stands in for an empty one."""

import pytest

import wire


def status(gateway, url="http://origin.test/"):
    with gateway.connect() as client:
        answer = client.get(url)
        return answer.status, answer.fields.get("proxy-status", "")


# --- ports and hosts (S2) -------------------------------------------------------------------------------------------


@pytest.mark.core
@pytest.mark.parametrize("port", [22, 25, 465, 587, 3306, 5432, 6379, 9000])
def test_ports_that_are_not_for_the_web_are_denied_by_default(node, add, upstream, port):
    server = upstream(wire.tunnels(wire.returns_all))
    add(server.url)
    gateway = node("--allow-port", "80", "--allow-port", "443", "--allow-port", "8000-8999")
    with gateway.connect() as client:
        answer = client.tunnel(f"a.test:{port}")
        assert answer.status == 403
        assert "error=http_request_denied" in answer.fields["proxy-status"]
    assert status(gateway, f"http://a.test:{port}/")[0] == 403
    with gateway.connect() as client:
        client.send(b"\x05\x01\x00\x05\x01\x00\x03\x06a.test" + port.to_bytes(2, "big"))
        assert client.read_exactly(12)[2:4] == b"\x05\x02"
    assert not server.connections


@pytest.mark.core
@pytest.mark.parametrize("words, denied, allowed", [
    (["--deny-host", ".evil.test"], ["evil.test", "a.evil.test", "EVIL.test", "evil.test."], ["notevil.test"]),
    (["--deny-host", "evil.test"], ["evil.test"], ["a.evil.test"]),
    (["--allow-host", ".good.test"], ["evil.test", "203.0.113.7"], ["good.test", "a.good.test"]),
    (["--allow-host", ".good.test", "--deny-host", "bad.good.test"], ["bad.good.test"], ["good.test"]),
    (["--deny-host", "203.0.113.0/24"], ["203.0.113.7"], ["198.51.100.7"])])
def test_hosts_are_allowed_and_denied_by_name(gateway_to, words, denied, allowed):
    gateway, server = gateway_to(wire.serves(b"x"), words=words)
    for host in denied:
        code, why = status(gateway, f"http://{host}/")
        assert code == 403 and "host-denied" in why, host
    assert not server.connections
    for host in allowed:
        assert status(gateway, f"http://{host}/")[0] == 200, host


@pytest.mark.parametrize("words", [["--allow-port", "0"], ["--allow-port", "70000"], ["--allow-port", "90-80"],
                                   ["--allow-host", "a b"], ["--deny-host", "10.0.0.0/64"]])
def test_lists_of_targets_are_judged_at_the_start(run, words, store):
    assert words[0] in run("gateway", "--listen", "127.0.0.1:0", *words, check=2).stderr


# --- limits ---------------------------------------------------------------------------------------------------------


@pytest.mark.core
@pytest.mark.parametrize("words", [[], ["--shared-limits"]])
def test_a_client_has_so_many_requests_at_a_time(node, add, upstream, words):
    add(upstream(wire.tunnels(wire.returns_all)).url)
    gateways = [node("--client-concurrent", 2, *words) for _ in range(2 if words else 1)]
    first, last = gateways[0], gateways[-1]
    with first.connect() as one, last.connect() as two, last.connect() as three:
        assert one.tunnel().status == two.tunnel().status == 200
        answer = three.tunnel()
        assert answer.status == 503 and "client-limit" in answer.fields["proxy-status"]
        assert int(answer.fields["retry-after"]) >= 1
    first.requests(1, reason="ok")
    last.requests(1, reason="ok")
    with last.connect() as client:
        assert client.tunnel().status == 200


@pytest.mark.core
@pytest.mark.parametrize("words", [[], ["--shared-limits"]])
def test_a_host_gets_so_many_requests_a_second(node, add, upstream, words):
    add(upstream(wire.serves(b"x")).url)
    gateways = [node("--host-rate", 3, *words) for _ in range(2 if words else 1)]
    found = [status(gateways[i % len(gateways)]) for i in range(5)]
    assert [code for code, _ in found[:3]] == [200] * 3
    code, why = found[4]
    assert code == 429 and "host-rate" in why
    assert status(gateways[0], "http://other.test/")[0] == 200


def test_limits_give_back_what_failed(node, add, run, upstream):
    server = upstream(wire.resets)
    add(server.url)
    run("pool", "rules", "fall=1000")  # or its only member would be parked
    gateway = node("--host-concurrent", 1, "--client-concurrent", 1)
    assert [status(gateway)[0] for _ in range(5)] == [502] * 5


# --- fallback -------------------------------------------------------------------------------------------------------


@pytest.mark.core
def test_an_empty_pool_falls_back_to_the_one_that_its_rule_names(node, run, upstream):
    server = upstream(wire.serves(b"spare"))
    run("pool", "rules", "fallback=spare")
    run("pool", "add", "--eligible", "--allow-private", "--pool", "spare_proxies", server.url)
    gateway = node("--alias", "spare=spare_proxies")
    assert status(gateway)[0] == 200


def test_pools_that_fall_back_to_each_other_are_empty_all_the_same(node, run, store):
    run("pool", "rules", "fallback=b")
    run("pool", "rules", "--pool", "b", "fallback=proxies")
    code, why = status(node("--alias", "b=b"))
    assert code == 503 and "pool-empty" in why


# --- time -----------------------------------------------------------------------------------------------------------


def test_no_member_is_tried_after_the_time_for_trying(node, add, upstream):
    servers = [upstream(wire.is_silent, host=f"127.0.0.{n}") for n in (1, 2, 3)]
    add(*(server.url for server in servers))
    gateway = node("--dial-timeout", "300ms", "--tries-timeout", "400ms")
    with gateway.connect() as client:
        assert client.tunnel().status == 504
    assert gateway.request()["tries"] == 2
