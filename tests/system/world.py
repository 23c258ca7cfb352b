"""Worlds that a whole module shares: what takes long to start is started once.

Fairlead  commands and gateways on a Redis of their own
Arena     one pool whose members each test sets
World     a real proxy of each kind in a pool of its own, one origin, one gateway for all pools"""

import contextlib
import itertools
import os
import pathlib
import subprocess

import conftest
import peers
import scripted

UPSTREAMS = ("http", "https", "socks4", "socks4a", "socks5", "socks5h", "direct")

tags = (f"t{i}" for i in itertools.count())


def clean_environment(folder):
    """Nothing of the caller's settings, proxies or home."""
    mine = {k: v for k, v in os.environ.items()
            if not k.startswith("FAIRLEAD_") and not k.lower().endswith("_proxy")}
    return mine | {"HOME": str(folder), "XDG_STATE_HOME": str(folder), "XDG_RUNTIME_DIR": str(folder)}


class Fairlead:
    """Commands and gateways on a Redis of their own; stop() ends all."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.environment = clean_environment(self.folder)
        self.ends = contextlib.ExitStack()
        self.store = self.start(peers.RedisServer(self.folder / "redis"))
        self.count = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def start(self, peer):
        """Starts a peer that stop() stops."""
        self.ends.callback(peer.stop)
        return peer.start()

    def run(self, *words, input=""):
        """A command that must do well; its standard output. `auth` alone has no use for Redis."""
        redis = [] if words[0] == "auth" else ["--redis", self.store.url]
        done = subprocess.run([conftest.BINARY, *map(str, words), *redis], check=False, input=input,
                              env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              encoding="utf-8", timeout=conftest.COMMAND_LIMIT_S)
        conftest.assert_no_sanitizer_report(done.stderr)
        assert done.returncode == 0, (words, done.stderr)
        return done.stdout

    def add(self, pool, *urls):
        self.run("pool", "add", "--eligible", "--allow-private", "--pool", pool, *urls)

    def gateway(self, *words, before=()):
        """A gateway that lets clients reach loopback and any port. `before`: what starts it."""
        port = peers.free_port()
        words = [*before, conftest.BINARY, "gateway", "--log-format", "json", "--listen", f"127.0.0.1:{port}",
                 "--allow-private", "--allow-port", "1-65535", *map(str, words), "--redis", self.store.url]
        node = conftest.Node(words, self.folder / f"stderr{self.count}", self.environment)
        self.count += 1
        node.port = port
        self.ends.callback(self._end, node)
        peers.wait_for(node._serves, "the gateway serves")
        return node

    @staticmethod
    def _end(node):
        if node.process.returncode is None:
            node.stop()

    def stop(self):
        self.ends.close()


class Arena(Fairlead):
    """A pool whose members each test sets; start gateways with gateway()."""

    def __init__(self, folder):
        super().__init__(folder)
        # Members fail here as often as a test likes: that has no consequences for the next one.
        self.run("pool", "rules", "allow_private=1", "fall=1000", "cooldown_ms=0")

    def set_members(self, *servers):
        """The pool is these and no other; the first is asked first as long as it was asked under 1000 times."""
        self.store.client.delete("proxies")
        if servers:
            self.store.client.zadd("proxies", {server.url: 1000 * i for i, server in enumerate(servers)})


class World(Fairlead):
    """Real proxies, each in a pool of its own whose alias is its name here; they leave from addresses of their own.

    sources    pool -> the address that an origin sees
    listeners  pool -> the port of a listener of its own, for each of UPSTREAMS
    twins      the addresses of two proxies in one pool, that of clients who choose none
    origin     peers.Nginx, on [::1] as well where there is IPv6"""

    def __init__(self, folder):
        super().__init__(folder)
        try:
            self._start_all()
        except BaseException:
            self.stop()
            raise

    def _start_all(self):
        self.sources, self.urls = {}, {}
        self.authority = peers.Authority(self.folder / "ca")
        self.origin = self.start(peers.Nginx(self.folder / "nginx", has_ipv6=peers.has_ipv6()))
        self._start_proxies()
        for pool, url in self.urls.items():
            self.add(pool, url)
        self.listeners = {pool: peers.free_port() for pool in UPSTREAMS}
        words = ["--upstream-ca", self.authority.certificate, "--pool", "twins"]
        words += [word for pool in self.urls for word in ("--alias", f"{pool}={pool}")]
        words += [word for pool, port in self.listeners.items()
                  for word in ("--listen", f"127.0.0.1:{port} pool={pool}")]
        self.node = self.gateway(*words)

    def _start_proxies(self):
        tinyproxy = self._proxy("http", peers.Tinyproxy, "127.0.0.21")
        squid = self._proxy("http_squid", peers.Squid, "127.0.0.22", user="keeper", password="pa:ss%w/rd@")
        basic = self._proxy("http_basic", peers.Tinyproxy, "127.0.0.23", user="user", password="s3cret")
        self._stunnel("https", tinyproxy)
        self._stunnel("https_squid", squid)
        self._stunnel("https_basic", basic)
        self._proxy("socks5", peers.Microsocks, "127.0.0.24")
        self._proxy("socks5h", peers.Microsocks, "127.0.0.25", user="u:s@r", password="100%", scheme="socks5h")
        self._scripted("socks4", "127.0.0.26")
        self._scripted("socks4a", "127.0.0.27")
        if peers.Danted.is_installed():
            danted = self._proxy("socks4_danted", peers.Danted, "127.0.0.28")
            for scheme in ("socks4a", "socks5", "socks5h"):
                pool = f"{scheme}_danted"
                self.urls[pool] = danted.url.replace("socks4", scheme)
                self.sources[pool] = danted.host
        twins = [self.start(peers.Tinyproxy(self.folder / f"twin{i}", f"127.0.0.3{i}")) for i in (1, 2)]
        self.add("twins", *(twin.url for twin in twins))
        self.twins = [twin.host for twin in twins]
        self.urls["direct"], self.sources["direct"] = "direct://127.0.0.29", "127.0.0.29"

    def _proxy(self, pool, kind, host, **options):
        """One that wants a password has two more pools, in which it is named with another one and with none."""
        proxy = self.start(kind(self.folder / pool, host, **options))
        self.urls[pool], self.sources[pool] = proxy.url, host
        if proxy.user:
            self.urls[f"{pool}_wrong"] = proxy.member.replace("://", "://someone:else@")
            self.urls[f"{pool}_none"] = proxy.member
        return proxy

    def _stunnel(self, pool, behind):
        front = self.start(peers.Stunnel(self.folder / pool, behind, self.authority))
        self.urls[pool], self.sources[pool] = front.url, behind.host

    def _scripted(self, pool, host):
        """No package speaks SOCKS4a, with names."""
        server = scripted.Raw(pool, scripted.relays_socks4(host), host=host)
        self.ends.callback(server.close)
        self.urls[pool], self.sources[pool] = server.url, host

    def place(self, scheme, host="127.0.0.1"):
        return f"{scheme}://{host}:{self.origin.tls_port if scheme == 'https' else self.origin.port}"

    def assert_reached(self, pool, fetch, url):
        """`fetch(url)` gets what the origin has, through the upstream of that pool and no other."""
        source, path = self.sources[pool], f"/who?{next(tags)}"
        assert fetch(url + path) == f"{source} {path}\n".encode()
        assert self.seen(path, 1) == [(source, url.partition(":")[0])]

    def seen(self, path, count=0):
        """(address, scheme) of each request for that path; waits for `count`: nginx logs when it has answered."""

        def lines():
            return [(line["addr"], line["scheme"]) for line in self.origin.log() if line["uri"] == path]

        peers.wait_for(lambda: len(lines()) >= count, f"{count} requests for {path} at the origin")
        return lines()
