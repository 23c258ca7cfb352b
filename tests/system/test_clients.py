"""Who a client is: accounts, challenges, parameters in the user name, listeners that differ (T23)."""

import base64
import re

import pytest

import peers
import wire

PASSWORD = "correct-horse-battery"


def basic(user, password=PASSWORD):
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


def get(client, user=None, password=PASSWORD, url="http://origin.test/", **fields):
    if user is not None:
        fields["Proxy_Authorization"] = basic(user, password)
    return client.get(url, **fields)


def name_of(body):
    """A script that answers with its own name."""
    return wire.serves(body)


@pytest.fixture
def accounts(run, folder):
    """accounts("acme", "acme-eu pools=eu") writes a file of accounts, all with one password."""

    def write(*lines):
        path = folder / "accounts"
        text = ""
        for line in lines:
            name, _, rest = line.partition(" ")
            text += f"{run('auth', name, input=PASSWORD, redis=None).stdout.strip()} {rest}\n"
        path.write_text(text)
        return path

    return write


@pytest.fixture
def pools(run, upstream):
    """pools("proxies", "paid") -> a scripted upstream each, which answers with the pool's name."""

    def make(*names):
        for name in names:
            server = upstream(wire.serves(name.encode()))
            run("pool", "add", "--eligible", "--allow-private", "--pool", name, server.url)

    return make


# --- accounts -------------------------------------------------------------------------------------------------------


@pytest.mark.core
@pytest.mark.parametrize("user, password", [(None, ""), ("acme", "wrong"), ("nobody", PASSWORD),
                                            ("acme", ""), ("acm", PASSWORD), ("acmes", PASSWORD)])
def test_whoever_is_not_known_is_challenged(node, accounts, pools, user, password):
    pools("proxies")
    gateway = node("--auth-file", accounts("acme"))
    with gateway.connect() as client:
        answer = get(client, user, password)
        assert answer.status == 407
        assert answer.fields["proxy-authenticate"] == 'Basic realm="fairlead", charset="UTF-8"'
        assert answer.fields["content-length"] == "0"
        assert "error=http_request_denied" in answer.fields["proxy-status"]
        # A browser answers on the same connection.
        assert get(client, "acme").body == b"proxies"
    assert PASSWORD not in gateway.text


@pytest.mark.core
def test_a_challenge_to_connect_keeps_the_connection(node, add, accounts, upstream):
    add(upstream(wire.tunnels(wire.returns_all)).url)
    gateway = node("--auth-file", accounts("acme"))
    with gateway.connect() as client:
        assert client.tunnel().status == 407
        client.send(f"CONNECT a.test:443 HTTP/1.1\r\nHost: a.test:443\r\n"
                    f"Proxy-Authorization: {basic('acme')}\r\n\r\n".encode())
        assert client.read_response("CONNECT").status == 200
        client.send(b"ping")
        assert client.read_exactly(4) == b"ping"
    assert gateway.requests(2)[1]["user"] == "acme"


@pytest.mark.core
@pytest.mark.parametrize("behind", [b"", b"GET / HTTP/1.1\r\n"])
def test_a_challenge_ends_the_connection_where_the_next_request_is_not_clear(node, accounts, behind):
    gateway = node("--auth-file", accounts("acme"))
    with gateway.connect() as client:
        raw = wire.request("POST", "http://a.test/", b"body") if not behind else \
            wire.request("GET", "http://a.test/") + behind
        assert client.ask(raw).status == 407
        assert client.is_closed()


def test_two_credentials_or_none_that_can_be_read_are_no_credentials(node, accounts):
    gateway = node("--auth-file", accounts("acme"))
    for value in ("Basic", "Basic !!!", "Basic YWNtZQ==", "Bearer x", "Basic YWNtZTpw YQ=="):
        with gateway.connect() as client:
            assert client.get(Proxy_Authorization=value).status == 407


def test_the_longest_account_wins_and_each_has_its_pools(node, accounts, pools):
    pools("proxies", "eu")
    gateway = node("--auth-file", accounts("acme pools=proxies", "acme-eu pools=eu"), "--alias", "eu=eu")
    with gateway.connect() as client:
        assert get(client, "acme").body == b"proxies"
    with gateway.connect() as client:
        assert get(client, "acme-eu-pool-eu").body == b"eu"
    with gateway.connect() as client:
        answer = get(client, "acme-pool-eu")
        assert answer.status == 403
        assert "there is no pool 'eu' for this client" in answer.fields["proxy-status"]
    with gateway.connect() as client:
        assert get(client, "acme-eu").status == 403


def test_a_file_of_accounts_that_is_wrong_stops_the_start(run, folder, store):
    path = folder / "accounts"
    path.write_text("acme hmac-sha256:00:11\n")
    done = run("gateway", "--listen", "127.0.0.1:0", "--auth-file", path, check=2)
    assert f"{path}:1" in done.stderr


# --- parameters -----------------------------------------------------------------------------------------------------


@pytest.mark.core
def test_parameters_count_without_any_account(node, pools):
    pools("proxies", "paid", "proxies.us", "paid.us")
    gateway = node("--alias", "paid=paid", "--alias", "paid.us=paid.us", "--alias", "proxies.us=proxies.us")
    for user, pool in {"x": b"proxies", "x-pool-paid": b"paid", "x-POOL-paid": b"paid",
                       "x-country-us": b"proxies.us", "x-cc-US": b"proxies.us",
                       "x-pool-paid-country-us": b"paid.us", "-pool-paid": b"paid"}.items():
        with gateway.connect() as client:
            assert get(client, user, "any").body == pool, user


@pytest.mark.core
@pytest.mark.parametrize("user, named", [("x-colour-red", "colour"), ("x-session-a-session-b", "session"),
                                         ("x-pool", "pool"), ("x-lifetime-0", "lifetime"),
                                         ("x-session-a!b", "session"), ("x-lifetime-2000h", "lifetime")])
def test_a_parameter_that_is_not_understood_is_refused_by_name(node, pools, user, named):
    pools("proxies")
    with node().connect() as client:
        answer = get(client, user)
        assert answer.status == 400
        assert re.search(rf'details="user-parameter: .*{named}', answer.fields["proxy-status"])


def test_an_alias_that_does_not_exist_is_refused(node, pools):
    pools("proxies")
    gateway = node()
    for user in ("x-pool-none", "x-country-us", "x-pool-proxies-country-us"):
        with gateway.connect() as client:
            assert get(client, user).status == 403
    assert gateway.requests(3, reason="pool-denied")


def test_the_pools_that_a_split_makes_are_aliases(node, run, pools, store):
    pools("proxies", "proxies.de")
    store.client.hset("{proxies}:pool:rules", "branches:list", "de,fr")
    with node().connect() as client:
        assert get(client, "x-country-de").body == b"proxies.de"


@pytest.mark.parametrize("words", [["--alias", "a"], ["--alias", "a="], ["--alias", "a-b=c"],
                                   ["--alias", "a=b", "--alias", "a=c"], ["--alias", "a={x}"]])
def test_an_alias_that_cannot_be_is_refused_at_the_start(run, words, store):
    assert "--alias" in run("gateway", "--listen", "127.0.0.1:0", *words, check=2).stderr


# --- listeners ------------------------------------------------------------------------------------------------------


@pytest.mark.core
def test_listeners_differ_in_pool_and_authentication(node, accounts, pools):
    pools("proxies", "paid")
    open_port, fixed_port = peers.free_port(), peers.free_port()
    gateway = node("--auth-file", accounts("acme"), "--alias", "paid=paid",
                   "--listen", f"127.0.0.1:{open_port} auth=off pool=paid",
                   "--listen", f"127.0.0.1:{fixed_port} user=acme-pool-paid")
    with gateway.connect() as client:
        assert get(client).status == 407
    for port in (open_port, fixed_port):
        with wire.Client(("127.0.0.1", port)) as client:
            assert get(client).body == b"paid"
    assert [x["user"] for x in gateway.requests(3)] == ["", "", "acme"]


def test_a_name_that_nobody_has_proved_is_not_an_account(node, accounts, pools):
    pools("proxies")
    port = peers.free_port()
    gateway = node("--auth-file", accounts("acme"), "--listen", f"127.0.0.1:{port} auth=off")
    with wire.Client(("127.0.0.1", port)) as client:
        assert get(client, "acme", "wrong").body == b"proxies"
    assert gateway.request()["user"] == "~acme"


@pytest.mark.core
@pytest.mark.parametrize("protocol, raw, answer", [
    ("socks", b"GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n", b"HTTP/1.1 400"),
    ("http", b"\x05\x01\x00", b"HTTP/1.1 400"), ("http", b"\x04\x01\x00\x50\x01\x02\x03\x04\x00", b"HTTP/1.1 400")])
def test_a_listener_can_speak_one_protocol_only(node, protocol, raw, answer):
    port = peers.free_port()
    node("--listen", f"127.0.0.1:{port} protocol={protocol}")
    with wire.Client(("127.0.0.1", port)) as client:
        client.send(raw)
        assert client.read_to_end().startswith(answer)


# --- SOCKS ----------------------------------------------------------------------------------------------------------


def socks5_login(client, user, password):
    client.send(b"\x05\x02\x00\x02")
    assert client.read_exactly(2) == b"\x05\x02"
    client.send(bytes([1, len(user)]) + user.encode() + bytes([len(password)]) + password.encode())
    return client.read_exactly(2)


@pytest.mark.core
def test_a_user_name_means_the_same_in_socks(node, accounts, run, upstream):
    server = upstream(wire.tunnels(wire.returns_all))
    run("pool", "add", "--eligible", "--allow-private", "--pool", "paid", server.url)
    gateway = node("--auth-file", accounts("acme"), "--alias", "paid=paid")
    with gateway.connect() as client:
        assert socks5_login(client, "acme-pool-paid", PASSWORD) == b"\x01\x00"
        client.send(b"\x05\x01\x00\x03\x06a.test\x01\xbb" + b"early")
        assert client.read_exactly(10) == b"\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00"
        assert client.read_exactly(5) == b"early"
    assert gateway.request()["user"] == "acme"
    assert b"CONNECT a.test:443 " in server.connections[0].received


@pytest.mark.core
@pytest.mark.parametrize("user, password", [("acme", "wrong"), ("acme-colour-red", PASSWORD), ("x", "y"),
                                            ("acme-pool-none", PASSWORD)])
def test_socks_with_wrong_credentials_ends_after_the_answer(node, accounts, user, password):
    gateway = node("--auth-file", accounts("acme"))
    with gateway.connect() as client:
        status = socks5_login(client, user, password)
        assert status[0] == 1 and status[1] != 0
        assert client.is_closed()


def test_socks_without_a_password_is_refused_where_one_is_needed(node, accounts):
    gateway = node("--auth-file", accounts("acme"))
    with gateway.connect() as client:
        client.send(b"\x05\x01\x00")
        assert client.read_to_end() == b"\x05\xff"
    with gateway.connect() as client:
        client.send(b"\x04\x01\x01\xbb\x01\x02\x03\x04acme\0")
        assert client.read_to_end()[:2] == b"\x00\x5b"


# --- what is told ---------------------------------------------------------------------------------------------------


def test_a_response_names_its_member_only_on_wish(node, add, upstream):
    server = upstream(wire.serves(b"x"))
    add(server.url)
    with node().connect() as client:
        assert "fairlead-member" not in client.get().fields
    gateway = node("--member-header")
    with gateway.connect() as client:
        assert client.get().fields["fairlead-member"] == f'"{server.url}"; tries=1'
    tunnel = upstream(wire.tunnels(wire.returns_all))
    server.refuse()
    add(tunnel.url)
    with gateway.connect() as client:
        answer = client.tunnel()
        assert f'"{tunnel.url}"; tries=' in answer.fields["fairlead-member"]
