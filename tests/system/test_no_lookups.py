"""Who looks up which name: targets are the upstream's affair, of every kind but direct. A name server of our own counts
(T19, K11)."""

import os

import pytest

import names
import peers
import scripted
import wire
import world

USER = "x-pool-{}"


@pytest.fixture(scope="module")
def place(session_folder):
    """A gateway with a pool for each kind, all names looked up at `names`."""
    with world.Fairlead(session_folder / "lookups") as it:
        it.names = names.NameServer(**{"proxy.test": "127.0.0.1", "direct.test": "127.0.0.1"})
        it.ends.callback(it.names.close)
        authority = peers.Authority(it.folder / "ca")
        it.upstreams = {}
        it.words = ["--nameserver", it.names.place, "--upstream-ca", authority.certificate]
        for kind in scripted.KINDS:
            upstream = it.upstreams[kind] = scripted.Upstream(
                kind, wire.serves(), certificate=authority.issue("upstream", "IP:127.0.0.1"), forwards=True)
            it.ends.callback(upstream.close)
            admit(it, kind, upstream.url)
        admit(it, "named", f"http://proxy.test:{it.upstreams['http'].port}")
        admit(it, "direct", "direct://")
        it.node = it.gateway(*it.words)
        yield it


def admit(it, pool, url):
    it.add(pool, url)
    it.words += ["--alias", f"{pool}={pool}"]


def login(kind):
    return scripted.basic(USER.format(kind))


# Clients: each returns the status of the answer from the far end, or what the gateway said in its place.


def by_connect(client, kind, host, port):
    answer = scripted.connect(client, host, port, Proxy_Authorization=login(kind))
    return client.get(f"http://{host}/").status if answer.status == 200 else answer.status


def by_get(client, kind, host, port):
    return client.get(f"http://{host}:{port}/", Proxy_Authorization=login(kind)).status


def by_socks5(client, kind, host, port):
    reply = scripted.socks5(client, host, port, USER.format(kind), "any")
    return client.get(f"http://{host}/").status if reply == 0 else reply


def by_socks4(client, kind, host, port):
    reply = scripted.socks4(client, host, port, USER.format(kind))
    return client.get(f"http://{host}/").status if reply == 90 else reply


CLIENTS = [by_connect, by_get, by_socks5, by_socks4]


def ask(node, client, *words):
    with node.connect() as wire_to_it:
        return client(wire_to_it, *words)


@pytest.mark.core
@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("kind", scripted.KINDS)
def test_the_upstream_gets_the_name_and_nobody_is_asked_for_it(place, kind, client):
    name, upstream = f"{client.__name__.replace('_', '-')}.{kind}.test", place.upstreams[kind]
    count, served = len(place.names.asked), len(upstream.connections)
    assert ask(place.node, client, kind, name, 443) == 200
    if client is by_get and kind in ("http", "https"):
        assert upstream.connections[served].head.target == f"http://{name}:443/"
    else:
        asked = upstream.asked[-1]
        assert (asked.form, asked.host, asked.port) == ("name", name, 443)
    assert place.names.asked[count:] == []


@pytest.mark.parametrize("client", CLIENTS)
def test_direct_looks_up_where_it_was_told_to(place, client):
    origin = place.upstreams["http"]
    count, served = place.names.asked_for("direct.test"), len(origin.connections)
    assert ask(place.node, client, "direct", "direct.test", origin.port) == 200
    assert place.names.asked_for("direct.test") > count
    assert len(origin.connections) == served + 1


def test_a_name_that_is_nowhere_is_the_targets_fault(place):
    assert ask(place.node, by_get, "direct", "nowhere.test", 443) == 502
    assert place.names.asked_for("nowhere.test") > 0
    assert place.node.requests(1, reason="target-name")


def test_the_proxys_own_name_is_looked_up_and_the_targets_is_not(place):
    assert ask(place.node, by_connect, "named", "target.test", 443) == 200
    assert place.names.asked_for("proxy.test") > 0
    assert place.names.asked_for("target.test") == 0


def test_no_other_resolver_is_asked(place):
    """The C library's would ask port 53, or nscd by a socket of its own: neither appears among the system calls."""
    trace = place.folder / "trace"
    # LeakSanitizer does not work beside strace.
    options = os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"
    words = ["strace", "-D", "-f", "-o", str(trace), "-e", "trace=connect,sendto,sendmsg,sendmmsg",
             "-E", f"ASAN_OPTIONS={options}"]
    node = place.gateway(*place.words, before=words)
    for client in CLIENTS:
        assert ask(node, client, "socks5h", "traced.test", 443) == 200
        assert ask(node, client, "named", "traced.test", 443) == 200
        assert ask(node, client, "direct", "direct.test", place.upstreams["http"].port) == 200
    node.stop()
    calls = trace.read_text()
    assert f"htons({place.names.place.split(':')[1]})" in calls
    assert "htons(53)" not in calls and "nscd" not in calls
