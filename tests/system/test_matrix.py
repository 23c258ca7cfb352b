"""Each kind of client through each kind of upstream to plain and TLS targets: real programs at both ends."""

import os
import subprocess

import pytest

import peers
import scripted
import world

CLIENTS = ("http", "socks5", "socks4")
UPSTREAMS = world.UPSTREAMS
VARIANTS = ("http_basic", "http_squid", "https_basic", "https_squid")
DANTED = ("socks4_danted", "socks4a_danted", "socks5_danted", "socks5h_danted")
TARGETS = ("http", "https")
BLOB = os.urandom(300_000)

# How curl names a client's protocol: by the first the target's address is sent, by the second its name.
CURL = {"http": ("http", "http"), "socks5": ("socks5", "socks5h"), "socks4": ("socks4", "socks4a")}


@pytest.fixture(scope="module")
def place(session_folder):
    with world.World(session_folder / "matrix") as it:
        it.origin.put("blob", BLOB)
        yield it


def curl(place, proxy, *urls, check=True):
    done = subprocess.run(
        ["curl", "-q", "-sS", "--noproxy", "", "--cacert", place.origin.certificate, "--max-time", "20",
         "--proxy", proxy, *urls],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=30)
    assert not check or done.returncode == 0, done.stderr
    return done


def proxy_url(place, scheme, pool):
    return f"{scheme}://x-pool-{pool}:any@127.0.0.1:{place.node.port}"


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("pool", UPSTREAMS + VARIANTS + DANTED)
@pytest.mark.parametrize("client", CLIENTS)
def test_curl_reaches_the_target(place, client, pool, target):
    if pool in DANTED and not peers.Danted.is_installed():
        pytest.skip("dante-server is not here")
    by_address, by_name = (proxy_url(place, scheme, pool) for scheme in CURL[client])
    place.assert_reached(pool, lambda url: curl(place, by_address, url).stdout, place.place(target))
    if pool not in ("socks4_danted", "socks4a_danted"):  # danted does not know the names of 4a
        place.assert_reached(pool, lambda url: curl(place, by_name, url).stdout,
                             place.place(target, "localhost"))


@pytest.mark.parametrize("pool", UPSTREAMS)
@pytest.mark.parametrize("client", CLIENTS)
def test_a_large_body_arrives_whole(place, client, pool):
    proxy = proxy_url(place, CURL[client][0], pool)
    both = curl(place, proxy, *(place.place(target) + "/blob" for target in TARGETS)).stdout
    assert both == BLOB + BLOB


@pytest.mark.parametrize("pool", UPSTREAMS)
@pytest.mark.parametrize("client", CLIENTS)
def test_a_listener_of_a_pool_serves_clients_without_a_name(place, client, pool):
    proxy = f"{CURL[client][0]}://127.0.0.1:{place.listeners[pool]}"
    place.assert_reached(pool, lambda url: curl(place, proxy, url).stdout, place.place("http"))


@pytest.mark.parametrize("pool", ["http_squid", "https_squid", "socks5", "socks5h"])
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("client", ["http", "socks5"])
def test_a_target_of_ipv6_is_reached(place, client, target, pool):
    """These upstreams leave from ::1 then, the others are bound to IPv4."""
    if not place.origin.has_ipv6:
        pytest.skip("there is no IPv6 here")
    url = place.place(target, "[::1]") + "/who"
    assert curl(place, proxy_url(place, CURL[client][0], pool), url).stdout == b"::1 /who\n"


@pytest.mark.parametrize("pool", ["socks4", "socks4a"])
def test_what_a_kind_cannot_carry_is_nobodys_fault(place, pool):
    url = place.place("http", "[::1]") + "/who"
    before = len(place.node.requests(reason="proxy-cannot"))
    done = curl(place, proxy_url(place, "http", pool), "-o", "/dev/null", "-w", "%{http_code}", url)
    assert done.stdout == b"502"
    assert place.node.requests(before + 1, reason="proxy-cannot")


# tinyproxy says 401 to a wrong password, which only as an answer to CONNECT cannot be the origin's.
WRONG = [("http_basic_wrong", "https")] + [
    (pool, target) for target in TARGETS
    for pool in ("http_basic_none", "http_squid_wrong", "http_squid_none", "socks5h_wrong", "socks5h_none")]


@pytest.mark.parametrize("pool, target", WRONG)
def test_a_proxy_that_wants_another_password_is_told_as_such(place, pool, target):
    """T13."""
    before = len(place.node.requests(reason="auth-failed"))
    done = curl(place, proxy_url(place, "http", pool), "-o", "/dev/null", "-w", "%{http_code} %{http_connect}",
                place.place(target) + "/who", check=False)
    assert done.stdout == (b"502 000" if target == "http" else b"000 502")
    assert place.node.requests(before + 1, reason="auth-failed")


@pytest.mark.parametrize("pool", UPSTREAMS)
def test_a_target_that_refuses_is_told_to_each_client(place, pool):
    """By HTTP a status of 502 to 504, by SOCKS5 a code that is no success, by SOCKS4 91."""
    port = peers.free_port()
    with place.node.connect() as client:
        login = scripted.basic(f"x-pool-{pool}")
        answer = scripted.connect(client, "127.0.0.1", port, Proxy_Authorization=login)
    assert answer.status in (502, 503, 504)
    with place.node.connect() as client:
        reply = scripted.socks5(client, "127.0.0.1", port, f"x-pool-{pool}", "any")
    assert reply in (1, 2, 3, 4, 5, 6)
    with place.node.connect() as client:
        assert scripted.socks4(client, "127.0.0.1", port, f"x-pool-{pool}") == 91
    assert pool not in ("direct", "socks5", "socks5h") or reply == 5
