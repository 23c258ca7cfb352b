"""Clients as people write them, the pool chosen in the user name: Python requests, Node undici, curl."""

import collections
import os
import pathlib
import subprocess

import pytest
import requests

import peers
import world

POOLS = ("http_squid", "https", "socks4a", "socks5h", "direct")
TARGETS = ("http", "https")
UNDICI = pathlib.Path(__file__).with_name("undici_client.js")


@pytest.fixture(scope="module")
def place(session_folder):
    with world.World(session_folder / "clients") as it:
        yield it


def proxy_url(place, pool, scheme="http"):
    return f"{scheme}://x-pool-{pool}:any@127.0.0.1:{place.node.port}"


def session(place, proxy):
    """A session of requests that heeds no environment."""
    it = requests.Session()
    it.trust_env, it.verify = False, place.origin.certificate
    it.proxies = {"http": proxy, "https": proxy}
    return it


# requests sends names to the proxy by socks5h and socks4a, addresses by socks5 and socks4
@pytest.mark.parametrize("scheme", ["http", "socks5", "socks5h", "socks4", "socks4a"])
@pytest.mark.parametrize("pool", POOLS)
def test_requests_reach_the_target(place, pool, scheme):
    with session(place, proxy_url(place, pool, scheme)) as client:
        for target in TARGETS:
            place.assert_reached(pool, lambda url: client.get(url, timeout=20).content,
                                 place.place(target, "localhost"))


@pytest.mark.parametrize("pool", POOLS)
def test_undici_reaches_the_target(place, pool):
    def fetch(url):
        done = subprocess.run(
            [peers.program("node"), str(UNDICI), proxy_url(place, pool), place.origin.certificate, url],
            env=os.environ | {"NODE_PATH": "/usr/share/nodejs"}, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=30)
        assert done.returncode == 0, done.stderr
        return done.stdout

    for target in TARGETS:
        place.assert_reached(pool, fetch, place.place(target))


def sources_seen(place, path, count):
    return collections.Counter(address for address, _ in place.seen(path, count))


def test_a_kept_connection_takes_turns_and_so_do_tunnels(place):
    """T24: ten GETs on one connection, then ten tunnels."""
    with session(place, place.node.url) as client:
        for _ in range(10):
            assert client.get(place.place("http") + "/who?kept").status_code == 200
        for _ in range(10):
            answer = client.get(place.place("https") + "/who?tunnel", headers={"Connection": "close"})
            assert answer.status_code == 200
    evenly = {host: 5 for host in place.twins}
    assert sources_seen(place, "/who?kept", 10) == sources_seen(place, "/who?tunnel", 10) == evenly


@pytest.mark.parametrize("scheme", ["http", "socks5h", "socks4a"])
def test_a_session_keeps_its_member(place, scheme):
    name = f"{scheme}://x-session-{scheme}:any@127.0.0.1:{place.node.port}"
    for target in TARGETS:
        for _ in range(3):
            with session(place, name) as client:
                assert client.get(f"{place.place(target)}/who?session-{scheme}").status_code == 200
    assert list(sources_seen(place, f"/who?session-{scheme}", 6).values()) == [6]


@pytest.mark.parametrize("scheme", ["http", "socks5h", "socks4a"])
def test_an_unknown_parameter_is_refused_not_ignored(place, scheme):
    name = f"{scheme}://x-pol-direct:any@127.0.0.1:{place.node.port}"
    with session(place, name) as client:
        if scheme == "http":
            answer = client.get(place.place("http") + "/who?unknown")
            assert (answer.status_code, "pol" in answer.headers["Proxy-Status"]) == (400, True)
        else:
            with pytest.raises(requests.exceptions.ConnectionError):
                client.get(place.place("http") + "/who?unknown")
    assert not place.seen("/who?unknown")
