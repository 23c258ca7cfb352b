"""How members get in: as candidates that a check admits, at once with --eligible, not at all with --parked."""

import re

import pytest

import demonstration
import peers
import wire
from checked import Proxy, health, wait_eligible
from supplies import eligible, members, parked, record, replace, text_of

demo = demonstration.demo
QUICK = ("check_interval_ms=200", "check_timeout_ms=500", "min_state_ms=0")


@pytest.fixture
def proxy():
    server = Proxy()
    yield server
    server.close()


@pytest.mark.core
def test_a_list_is_admitted_within_seconds(node, store, folder, upstream):
    """Without a check_target a check is the connection only, and no third party is asked."""
    servers = [upstream(wire.is_silent, host=f"127.0.1.{i}") for i in range(1, 4)]
    path = folder / "list.txt"
    path.write_text("".join(f"{server.url}\n" for server in servers) + "127.0.1.9:1\n")
    it = node("--list", path, role="up", checks=True)
    wait_eligible(store, *(server.url for server in servers))
    assert parked(store).keys() == {"http://127.0.1.9:1"}
    assert record(store, servers[0].url)["sources"] == {f"list:{path}"}
    assert "checks  connection only; set check_target for more" in it.text
    assert all(not connection.received for server in servers for connection in server.connections)


def test_a_newcomer_of_a_list_that_changes_is_admitted(node, store, folder, proxy):
    path = folder / "list.txt"
    path.write_text(text_of(1))
    node("--list", path, role="up", checks=True)
    replace(path, f"{text_of(1)}{proxy.url}\n")
    wait_eligible(store, proxy.url)


def test_a_pool_that_a_source_splits_off_is_checked_too(node, store, folder, proxy):
    path = folder / "list.csv"
    path.write_text(f"ip,port,country\n{proxy.host},{proxy.port},US\n")
    node("--list", path, "--list-split", "country", role="up", checks=True)
    wait_eligible(store, proxy.url)
    wait_eligible(store, proxy.url, pool="proxies.us")


def test_the_greeting_names_the_target(node, run):
    run("pool", "rules", "check_target=http://judge.test/page")
    assert re.search(r"^  checks  http://judge\.test/page$", node(role="up", checks=True).text, re.M)


@pytest.mark.core
def test_without_checks_a_list_is_admitted_at_once(node, store, folder):
    path = folder / "list.txt"
    path.write_text(text_of(1, 2))
    it = node("--list", path, role="up")
    assert eligible(store).keys() == members(1, 2)
    assert re.search(r"^  checks  none \(--no-check\)$", it.text, re.M)


@pytest.mark.parametrize("words, where", [((), "parked"), (("--eligible",), "eligible"), (("--parked",), "parked")])
def test_what_is_added_while_nobody_checks(run, store, words, where):
    said = run("pool", "add", *words, "http://192.0.2.1:8080").stderr
    assert (eligible(store) if where == "eligible" else parked(store)).keys() == members(1)
    assert ("candidate" in said) == (words == ())


@pytest.mark.parametrize("words", [("pool", "add"), ("pool", "import")])
def test_what_is_added_while_a_node_runs_is_admitted(node, run, store, proxy, words):
    run("pool", "rules", "allow_private=1", *QUICK)
    node(role="up", checks=True)
    run(*words, "-", input=f"{proxy.url}\n")
    wait_eligible(store, proxy.url)


def test_what_is_added_as_parked_stays_so(node, run, store):
    kept, other = Proxy(host="127.0.1.1"), Proxy(host="127.0.1.2")
    try:
        run("pool", "rules", "allow_private=1", *QUICK)
        run("pool", "add", "--parked", kept.url)
        run("pool", "add", other.url)
        node(role="up", checks=True)
        wait_eligible(store, other.url)
        peers.wait_for(lambda: len(other.connections) > 4, "more checks have been made")
        assert parked(store).keys() == {kept.url}
        run("pool", "restore", kept.url)
        assert kept.url in eligible(store)
    finally:
        kept.close()
        other.close()


@pytest.mark.core
def test_the_demonstration_works_at_once_and_stays(demo, store, run):
    run("pool", "rules", *QUICK)
    running = demo()
    names = store.client.zrange("proxies", 0, -1)
    assert len(names) == 3
    with running.connect() as client:
        assert client.get(demonstration.ORIGIN).status == 200
    peers.wait_for(lambda: all("checked" in health(store, name) for name in names), "all were checked")
    assert sorted(store.client.zrange("proxies", 0, -1)) == sorted(names)
