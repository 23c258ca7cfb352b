"""Credentials: each set makes a member of its own, and none is seen where it has no business."""

import hashlib
import hmac
import re
import socket
import subprocess

import pytest

import look
import peers

SECRETS = "{proxies}:pool:secrets"
HOST = "proxy.example:3128"


def model_id(server, scheme, userinfo):
    """DESIGN: the canonical URL without credentials, `#`, 16 hex digits of HMAC-SHA-256 keyed by the pool's salt."""
    salt = bytes.fromhex(server.client.hget("{proxies}:pool:rules", "salt"))
    digest = hmac.new(salt, userinfo.encode("ascii"), hashlib.sha256).hexdigest()[:16]
    return f"{scheme}://{HOST}#{digest}"


@pytest.mark.core
def test_each_set_of_credentials_and_each_scheme_is_a_member(store, run):
    """T9."""
    urls = [f"http://u1:p1@{HOST}", f"http://u2:p2@{HOST}", f"http://{HOST}", f"socks5://{HOST}"]
    run("pool", "add", "--eligible", *urls)
    ids = [model_id(store, "http", "u1:p1"), model_id(store, "http", "u2:p2"), f"http://{HOST}", f"socks5://{HOST}"]
    assert set(store.client.zrange("proxies", 0, -1)) == set(ids)
    assert sorted(run("pool", "allocate", "--count", 8).stdout.split()) == sorted(urls * 2)
    run("pool", "park", urls[0])
    assert sorted(run("pool", "allocate", "--count", 3, "--id").stdout.split()) == sorted(ids[1:])


@pytest.mark.core
@pytest.mark.parametrize("typed, canonical", [
    ("user:a:b", "user:a%3Ab"), ("user:p@ss", "user:p%40ss"), ("user:100%", "user:100%25"),
    ("user:%40x", "user:%40x"), ("user:%zz", "user:%25zz"), ("user:%2f", "user:%2F"), ("user:a-b._~", "user:a-b._~"),
    ("user:пароль", "user:%D0%BF%D0%B0%D1%80%D0%BE%D0%BB%D1%8C"), ("user:" + "x" * 255, "user:" + "x" * 255),
    ("user:", "user:"), ("user", "user:"),
], ids=lambda text: repr(text)[:24])
def test_credentials_are_kept_to_the_byte_in_canonical_form(store, run, typed, canonical):
    """T10."""
    run("pool", "add", "--eligible", "-", input=f"http://{typed}@{HOST}\n")
    assert run("pool", "allocate").stdout == f"http://{canonical}@{HOST}\n"
    assert store.client.hgetall(SECRETS) == {model_id(store, "http", canonical): canonical}


@pytest.mark.parametrize("typed, reason", [
    ("us%3Aer:x", "colon-in-username"), ("user:a%0Ab", "credential-control-char"), (":x", "empty-user")])
def test_credentials_that_nobody_can_send_are_rejected_with_the_reason(store, run, typed, reason):
    assert reason in run("pool", "add", "--eligible", "-", input=f"http://{typed}@{HOST}\n", check=1).stderr
    assert store.client.zcard("proxies") == 0 and not store.client.exists(SECRETS)


def test_credentials_too_long_for_socks5_are_rejected_with_the_reason(store, run):
    """T10; RFC 1929: 1 to 255 bytes each."""
    text = f"socks5://user:{'x' * 256}@{HOST}\nsocks5://user:{'y' * 255}@{HOST}\n"
    stderr = run("pool", "add", "--eligible", "-", input=text).stderr
    assert "standard input:1: credential-too-long" in stderr and "xxx" not in stderr
    assert store.client.zcard("proxies") == 1


@pytest.mark.core
def test_two_pools_name_the_same_credentials_differently(store, run):
    for pool in ("one", "two"):
        run("pool", "add", "--eligible", "--pool", pool, f"http://user:sesame@{HOST}")
    assert store.client.zrange("one", 0, -1) != store.client.zrange("two", 0, -1)


def test_a_pool_that_many_found_at_once_has_one_salt(store, binary, environment):
    words = [binary, "pool", "add", "--eligible", "--quiet", f"http://user:sesame@{HOST}", "--redis", store.url]
    processes = [subprocess.Popen(words, env=environment) for _ in range(8)]
    assert [process.wait(peers.WAIT_S) for process in processes] == [0] * 8
    assert store.client.zrange("proxies", 0, -1) == [model_id(store, "http", "user:sesame")]
    assert store.client.hlen(SECRETS) == 1


@pytest.fixture
def sesame(store, run):
    """A pool whose passwords all say sesame."""
    text = f"http://user:open-sesame@{HOST}\nsocks5h://u:sesame%20me@{HOST}\nhttp://sesame.user:x@a.example:1\n"
    run("pool", "add", "--eligible", "-", input=text)
    run("pool", "allocate", "--count", 7, "--id")
    run("pool", "park", "-v", store.client.zrange("proxies", 0, 0)[0])
    return store


@pytest.mark.core
def test_secrets_stand_in_their_own_key_alone(sesame):
    found = {key for key, text in look.contents(sesame).items() if "sesame" in text or "user:" in text}
    assert found == {SECRETS}


@pytest.mark.core
@pytest.mark.parametrize("words", ["pool list", "pool stats", "pool rules", "pool allocate --id", "doctor"])
@pytest.mark.parametrize("how", [[], ["--json"], ["--verbose"]], ids=["text", "json", "verbose"])
def test_no_output_but_that_of_allocate_tells_a_secret(sesame, run, words, how):
    done = run(*words.split(" "), *how)
    assert done.stdout and "sesame" not in done.stdout + done.stderr


@pytest.mark.parametrize("command", ["show", "park", "restore", "remove"])
@pytest.mark.parametrize("password", ["open-sesame", "wrong-sesame"])
def test_a_member_may_be_named_with_its_secret_and_is_told_without(sesame, run, command, password):
    done = run("pool", command, "--verbose", f"http://user:{password}@{HOST}", check=password[0] == "w")
    assert "sesame" not in done.stdout + done.stderr
    assert f"http://{HOST}#" in done.stdout + done.stderr


@pytest.mark.parametrize("words", [
    "pool add ftp://user:sesame@proxy.example:1", "pool add http://user:sesame@proxy.example",
    "pool show http://user:sesame@proxy.example", "pol add http://user:sesame@proxy.example:1",
    "http://user:sesame@proxy.example:1", "pool list http://user:sesame@proxy.example:1",
    "pool add --http://user:sesame@proxy.example:1"])
def test_an_error_about_a_url_hides_its_secret(store, run, words):
    done = run(*words.split(" "), check=2)
    assert "sesame" not in done.stdout + done.stderr


def test_a_bad_line_of_a_list_is_told_without_its_secret(store, run):
    done = run("pool", "add", "--eligible", "-", input="http://user:sesame@10.0.0.1:80\nuser:sesame@proxy.example:0\n", check=1)
    assert "bogon" in done.stderr and "sesame" not in done.stderr


@pytest.mark.core
@pytest.mark.parametrize("words", [
    ["pool", "add", "--eligible", f"http://user:sesame@{HOST}"], ["pool", "show", f"http://user:sesame@{HOST}"],
    ["pool", "list"], ["keeper"]])
def test_no_secret_stays_on_the_command_line(binary, environment, words):
    """A Redis that never answers holds the command, so that others could look."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = "redis://:sesame@127.0.0.1:%d" % silent.getsockname()[1]
        with subprocess.Popen([binary, *words, "--redis", url, "--store-wait", "30s"], env=environment,
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, encoding="utf-8") as process:
            try:
                peers.wait_for(lambda: re.fullmatch(rb"(?s)(?!.*sesame).*--store-wait.*",
                                                    look.command_line(process.pid)),
                               "the command line is seen without a secret", 5)
                assert process.poll() is None
            finally:
                process.kill()


@pytest.mark.core
def test_no_process_of_a_node_shows_the_password_of_redis(redis_server, node):
    server = redis_server(password="sesame")
    running = node("--workers", 2, role="up", redis=server)
    pids = [running.pid, *running.children()]
    assert len(pids) >= 4
    assert [pid for pid in pids if b"sesame" in look.command_line(pid)] == []
    assert all(re.search(rb"redis.*\*", look.command_line(pid)) for pid in pids)
    assert "sesame" not in running.text


def test_credentials_on_the_command_line_are_warned_about(store, run):
    assert "pool add -" in run("pool", "add", "--eligible", f"http://user:sesame@{HOST}").stderr
    assert run("pool", "add", "--eligible", f"http://{HOST}").stderr.count("\n") == 1


def test_the_log_of_a_gateway_tells_no_secret(store, run, node):
    member = f"http://user:sesame@127.0.0.1:{peers.free_port()}"
    run("pool", "add", "--eligible", "--allow-private", "-", input=member)
    gateway = node("--verbose")
    with gateway.connect() as client:
        client.send(b"GET http://127.0.0.1:9/ HTTP/1.1\r\nHost: 127.0.0.1:9\r\n\r\n")
        assert gateway.request()["reason"] == "proxy-refused"
    assert "sesame" not in gateway.text and "user:" not in gateway.text
