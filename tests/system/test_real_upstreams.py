"""Real proxies, a real origin, a real client: two tinyproxy, one squid that wants a password, nginx, curl."""

import collections
import subprocess

import pytest

import peers


@pytest.fixture(scope="module")
def world(session_folder):
    """The proxies, which leave from 127.0.0.2 to .4, and the origin."""
    folder = session_folder
    proxies = [peers.Tinyproxy(folder / "tiny1", "127.0.0.2"),
               peers.Tinyproxy(folder / "tiny2", "127.0.0.3", user="user", password="s3cret"),
               peers.Squid(folder / "squid", "127.0.0.4", user="keeper", password="pa:ss%w/rd@")]
    origin = peers.Nginx(folder / "nginx")
    started = []
    try:
        for peer in (*proxies, origin):
            started.append(peer)
            peer.start()
        yield proxies, origin
    finally:
        for peer in started:
            peer.stop()


@pytest.fixture
def admitted(world, add):
    """All three in the pool; squid's password percent-encoded as a URL wants it."""
    proxies, origin = world
    origin.clear_log()
    add(*(proxy.url.replace("pa:ss%w/rd@@", "pa%3Ass%25w%2Frd%40@") for proxy in proxies))
    return proxies, origin


def curl(folder, name, gateway, origin, urls, headers=()):
    """Starts one curl for all the URLs; it prints a status a line."""
    lines = ["silent", f'proxy = "{gateway.url}"', 'noproxy = ""', f'cacert = "{origin.certificate}"',
             r'write-out = "%{http_code}\n"', "max-time = 60"]
    lines += [f'header = "{header}"' for header in headers]
    for url in urls:
        lines += [f'url = "{url}"', 'output = "/dev/null"']
    path = folder / name
    path.write_text("\n".join(lines) + "\n")
    return subprocess.Popen(["curl", "-q", "-K", str(path)], stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8")


def three_hundred(folder, gateway, origin):
    """150 by http on kept connections, 150 by https, each in a tunnel of its own."""
    plain, tls = f"{origin.host}:{origin.port}", f"{origin.host}:{origin.tls_port}"
    curls = []
    for i in range(3):
        curls.append(curl(folder, f"http{i}", gateway, origin,
                          [f"http://{plain}/who?h{i}.{n}" for n in range(50)]))
        curls.append(curl(folder, f"https{i}", gateway, origin,
                          [f"https://{tls}/who?s{i}.{n}" for n in range(50)],
                          headers=["Connection: close"]))
    return curls


@pytest.mark.core
@pytest.mark.parametrize("role", ["gateway", "up"])
def test_300_requests_share_three_real_proxies_evenly(admitted, node, store, folder, role):
    proxies, origin = admitted
    gateway = node(*(["--workers", 2] if role == "up" else []), role=role)
    curls = three_hundred(folder, gateway, origin)
    statuses = sum((process.communicate(timeout=90)[0].split() for process in curls), [])
    assert collections.Counter(statuses) == {"200": 300}
    log = origin.log()
    assert collections.Counter(entry["addr"] for entry in log) == {p.host: 100 for p in proxies}
    assert collections.Counter(entry["scheme"] for entry in log) == {"http": 150, "https": 150}
    assert len({entry["uri"] for entry in log}) == 300
    assert set(store.client.zrange("proxies", 0, -1, withscores=True, score_cast_func=int)) == {
        (member, 100) for member in store.client.zrange("proxies", 0, -1)}
    lines = gateway.requests(300)
    # A proxy may close a tunnel before curl's TLS has said goodbye; nobody misses that.
    assert {(x["reason"], x["tries"]) for x in lines if x["method"] == "GET"} == {("ok", 1)}
    assert {(x["reason"], x["tries"]) for x in lines} <= {("ok", 1), ("relay-reset", 1)}
    assert collections.Counter(x["method"] for x in lines) == {"GET": 150, "CONNECT": 150}
    assert not [word for word in ("s3cret", "ss%", "rd@") if word in gateway.text]


def test_a_large_file_arrives_whole_through_each_proxy(admitted, node, folder):
    proxies, origin = admitted
    content = bytes(range(251)) * 40_000
    origin.put("big", content)
    gateway = node()
    for scheme, port in (("http", origin.port), ("https", origin.tls_port)):
        for _ in proxies:
            got = subprocess.run(
                ["curl", "-q", "-sS", "--proxy", gateway.url, "--noproxy", "", "--cacert",
                 origin.certificate, f"{scheme}://{origin.host}:{port}/big"],
                stdout=subprocess.PIPE, check=True, timeout=60).stdout
            assert got == content
    assert {x["member"].split("#")[0] for x in gateway.requests(6)} == {p.member for p in proxies}


def test_the_wrong_password_is_the_members_fault_and_never_the_clients(world, node, add):
    proxies, origin = world
    add(f"http://keeper:wrong@{proxies[2].host}:{proxies[2].port}")
    gateway = node()
    for target in ("http://%s:%d/who" % (origin.host, origin.port),
                   "https://%s:%d/who" % (origin.host, origin.tls_port)):
        done = subprocess.run(
            ["curl", "-q", "-s", "-i", "--proxy", gateway.url, "--noproxy", "", target],
            stdout=subprocess.PIPE, encoding="utf-8", timeout=60)
        assert done.stdout.startswith("HTTP/1.1 502 ")
        assert "proxy-authenticate" not in done.stdout.lower()
    assert {line["reason"] for line in gateway.requests(2)} == {"auth-failed"}
    assert "wrong" not in gateway.text


def test_a_target_that_refuses_behind_a_real_proxy_is_never_the_proxies_fault(admitted, node, run):
    """tinyproxy says 500, which another member may do better; squid says 503."""
    proxies, origin = admitted
    gateway = node()
    port = peers.free_port()
    for _ in proxies:
        with gateway.connect() as client:
            assert client.tunnel(f"127.0.0.1:{port}").status in (502, 503, 504)
        with gateway.connect() as client:
            assert client.get(f"http://127.0.0.1:{port}/").status // 100 == 5
    assert {line["fault"] for line in gateway.requests(6)} <= {"target", "nobody"}
    assert len(run("pool", "list").stdout.splitlines()) == 4
