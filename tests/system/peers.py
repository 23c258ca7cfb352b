"""Other programs that the tests run beside fairlead: Redis, real proxies, a real origin.

Each listens on a loopback address and a free port, writes into a folder of its own, and is ended by its process id.
The proxies leave from an address of their own, so that an origin's log tells who called."""

import contextlib
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import time
import urllib.parse

import redis

WAIT_S = 20


def wait_for(condition, what="what the test waits for", seconds=WAIT_S, pause_s=0.01):
    """Polls until `condition()` is true, and returns its value; fails when `seconds` have passed."""
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < deadline, f"{what}: still not so after {seconds} s"
        time.sleep(pause_s)


def steady(read, still_s=0.1):
    """Waits until `read()` gives the same value for a while, and returns it."""
    deadline = time.monotonic() + WAIT_S
    value, since = read(), time.monotonic()
    while time.monotonic() - since < still_s:
        assert time.monotonic() < deadline, f"it never stands still: {value}"
        time.sleep(0.005)
        now = read()
        if now != value:
            value, since = now, time.monotonic()
    return value


def free_port(host="127.0.0.1"):
    with socket.socket() as probe:
        probe.bind((host, 0))
        return probe.getsockname()[1]


def has_ipv6():
    """Containers often lack it, loopback included."""
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET6) as probe:
        probe.bind(("::1", 0))
        return True
    return False


def is_serving(host, port):
    with contextlib.suppress(OSError), socket.create_connection((host, port), 1):
        return True
    return False


def find_program(*names):
    """The first of these that is installed, also where root's programs are; or None."""
    path = os.environ.get("PATH", "") + ":/usr/local/sbin:/usr/sbin:/sbin"
    return next(filter(None, (shutil.which(name, path=path) for name in names)), None)


def program(*names):
    found = find_program(*names)
    assert found, f"{' or '.join(names)} must be installed: make deps-test"
    return found


def openssl(*words):
    subprocess.run(["openssl", *words], check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)


NEW_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2")


class Authority:
    """Certificates from a CA made now; `certificate` is the CA's own file."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.certificate, self.key = str(self.folder / "ca.pem"), str(self.folder / "ca.key")
        openssl("req", "-x509", *NEW_KEY, "-keyout", self.key, "-out", self.certificate,
                "-subj", "/CN=test CA", "-addext", "keyUsage=keyCertSign")

    def issue(self, name, *places):
        """Certificate and key, in files, for places such as "IP:127.0.0.1" and "DNS:localhost"."""
        request, certificate, key = (str(self.folder / f"{name}.{end}") for end in ("csr", "pem", "key"))
        extensions = self.folder / f"{name}.ext"
        extensions.write_text(f"subjectAltName={','.join(places)}\n")
        openssl("req", *NEW_KEY, "-keyout", key, "-out", request, "-subj", f"/CN={name}")
        openssl("x509", "-req", "-in", request, "-CA", self.certificate, "-CAkey", self.key, "-days", "2",
                "-set_serial", str(time.time_ns()), "-extfile", str(extensions), "-out", certificate)
        return certificate, key


class Peer:
    """A program that serves until it is told to stop. It leads a process group, for some have helpers."""

    name = "peer"

    def __init__(self, folder, host="127.0.0.1", port=None):
        self.folder = pathlib.Path(folder)
        self.host, self.port = host, port or free_port(host)
        self.process = None

    def command(self):
        raise NotImplementedError

    def is_ready(self):
        return is_serving(self.host, self.port)

    def start(self):
        self.folder.mkdir(parents=True, exist_ok=True)
        self.folder.chmod(0o755)
        with open(self.folder / "output", "ab") as output:
            self.process = subprocess.Popen(
                self.command(), cwd=self.folder, stdin=subprocess.DEVNULL, stdout=output,
                stderr=output, start_new_session=True)
        wait_for(self._is_up, f"{self.name} serves")
        return self

    def _is_up(self):
        assert self.process.poll() is None, f"{self.name} ended at its start:\n{self.output()}"
        return self.is_ready()

    def output(self):
        return (self.folder / "output").read_text(errors="replace")

    def signal(self, number):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, number)

    def kill(self):
        self.signal(signal.SIGKILL)
        self.process.wait(WAIT_S)

    def stop(self):
        if not self.process or self.process.poll() is not None:
            return
        self.process.terminate()
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            pass
        self.kill()

    @property
    def url(self):
        return f"http://{self.host}:{self.port}"


class RedisServer(Peer):
    """redis-server on a unix socket, and on TCP if asked. kill() and start() use the same folder again."""

    name = "redis-server"

    def __init__(self, folder, tcp=False, password=None, **options):
        super().__init__(folder)
        self.tcp, self.password, self.options = tcp, password, options
        self.socket = str(self.folder / "r")
        self.client = redis.Redis(unix_socket_path=self.socket, password=password,
                                  decode_responses=True)

    def command(self):
        words = ["--dir", str(self.folder), "--unixsocket", self.socket, "--unixsocketperm", "700",
                 "--bind", self.host, "--port", str(self.port if self.tcp else 0), "--save", ""]
        words += ["--requirepass", self.password] if self.password else []
        for name, value in self.options.items():
            words += ["--" + name.replace("_", "-"), str(value)]
        return [program("redis-server", "valkey-server"), *words]

    def is_ready(self):
        with contextlib.suppress(redis.ConnectionError, redis.BusyLoadingError):
            return self.client.ping()
        return False

    def stop(self):
        self.client.close()
        super().stop()

    @property
    def unix_url(self):
        return f"unix://{self._userinfo()}{self.socket}"

    @property
    def tcp_url(self):
        return f"redis://{self._userinfo()}{self.host}:{self.port}"

    @property
    def url(self):
        return self.tcp_url if self.tcp else self.unix_url

    def _userinfo(self):
        return f":{self.password}@" if self.password else ""


class Proxy(Peer):
    """A proxy, with or without a password, which the pool names by `scheme`. `member` is that without the password."""

    scheme = "http"

    def __init__(self, folder, host, user=None, password=None, scheme=None):
        super().__init__(folder, host)
        self.user, self.password = user, password
        self.scheme = scheme or self.scheme

    @property
    def member(self):
        return f"{self.scheme}://{self.host}:{self.port}"

    @property
    def url(self):
        return f"{self.scheme}://{self._userinfo()}{self.host}:{self.port}"

    def _userinfo(self):
        if not self.user:
            return ""
        return "%s:%s@" % tuple(urllib.parse.quote(text, safe="") for text in (self.user, self.password))


class Tinyproxy(Proxy):
    name = "tinyproxy"

    def command(self):
        lines = [f"Listen {self.host}", f"Port {self.port}", f"Bind {self.host}", "Timeout 60",
                 "MaxClients 200", f'LogFile "{self.folder}/log"', "LogLevel Connect"]
        lines += [f"BasicAuth {self.user} {self.password}"] if self.user else []
        (self.folder / "conf").write_text("\n".join(lines) + "\n")
        return [program("tinyproxy"), "-d", "-c", str(self.folder / "conf")]


class Squid(Proxy):
    """Keeps nothing, forwards what asks for the right password."""

    name = "squid"

    def command(self):
        lines = [f"http_port {self.host}:{self.port}", f"tcp_outgoing_address {self.host}",
                 "cache deny all", "pid_filename none", "shutdown_lifetime 0 seconds",
                 f"access_log stdio:{self.folder}/log/access", f"cache_log {self.folder}/log/cache",
                 "cache_store_log none", "netdb_filename none", "pinger_enable off",
                 "visible_hostname squid.test", f"coredump_dir {self.folder}",
                 "cache_mem 8 MB", "max_filedescriptors 1024", *self._who_may_use_it()]
        # Started as root, squid becomes another user, who must be able to write here.
        (self.folder / "log").mkdir(exist_ok=True)
        (self.folder / "log").chmod(0o777)
        (self.folder / "conf").write_text("\n".join(lines) + "\n")
        return [program("squid"), "-N", "-f", str(self.folder / "conf")]

    def stop(self):
        """It takes a second and a half for SIGTERM, and has nothing to lose."""
        if self.process and self.process.poll() is None:
            self.kill()

    def _who_may_use_it(self):
        if not self.user:
            return ["http_access allow all"]
        crypt = subprocess.run(["openssl", "passwd", "-apr1", self.password], check=True,
                               stdout=subprocess.PIPE, encoding="ascii")
        (self.folder / "users").write_text(f"{self.user}:{crypt.stdout}")
        helper = "/usr/lib/squid/basic_ncsa_auth"
        return [f"auth_param basic program {helper} {self.folder}/users",
                "auth_param basic children 2 startup=1", "acl known proxy_auth REQUIRED",
                "http_access allow known", "http_access deny all"]


class Microsocks(Proxy):
    name = "microsocks"
    scheme = "socks5"

    def command(self):
        words = ["-i", self.host, "-p", str(self.port), "-b", self.host]
        words += ["-u", self.user, "-P", self.password] if self.user else []
        return [program("microsocks"), *words]


class Danted(Proxy):
    """SOCKS4 (not 4a) and SOCKS5, without passwords: those would be the system's. Debian 13 has no such package."""

    name = "danted"
    scheme = "socks4"

    @staticmethod
    def is_installed():
        return bool(find_program("danted", "sockd"))

    def command(self):
        lines = [f"logoutput: {self.folder}/log", f"internal: {self.host} port = {self.port}",
                 f"external: {self.host}", "clientmethod: none", "socksmethod: none",
                 *(["user.privileged: root", "user.unprivileged: nobody"] if os.geteuid() == 0 else []),
                 "client pass { from: 0.0.0.0/0 to: 0.0.0.0/0 }",
                 "socks pass { from: 0.0.0.0/0 to: 0.0.0.0/0 protocol: tcp }"]
        (self.folder / "conf").write_text("\n".join(lines) + "\n")
        return [program("danted", "sockd"), "-f", str(self.folder / "conf"), "-p", str(self.folder / "pid"),
                "-N", "1"]


class Stunnel(Proxy):
    """TLS in front of another proxy, from whose address it leaves and whose password it wants."""

    name = "stunnel"
    scheme = "https"

    def __init__(self, folder, behind, authority, host=None):
        super().__init__(folder, host or behind.host, behind.user, behind.password)
        self.behind, self.authority = behind, authority

    def command(self):
        certificate, key = self.authority.issue(f"{self.host}-{self.port}", f"IP:{self.host}", "DNS:localhost")
        lines = ["foreground = yes", "pid =", "debug = warning", "[proxy]",
                 f"accept = {self.host}:{self.port}", f"connect = {self.behind.host}:{self.behind.port}",
                 f"cert = {certificate}", f"key = {key}"]
        (self.folder / "conf").write_text("\n".join(lines) + "\n")
        return [program("stunnel4", "stunnel"), str(self.folder / "conf")]


class Nginx(Peer):
    """An origin with HTTP and TLS, on [::1] as well if asked. log() has one dictionary a request: addr, scheme, uri,
    port."""

    name = "nginx"

    def __init__(self, folder, host="127.0.0.1", has_ipv6=False):
        super().__init__(folder, host)
        self.tls_port = free_port(host)
        self.has_ipv6 = has_ipv6
        self.certificate = str(self.folder / "cert.pem")

    def command(self):
        (self.folder / "root").mkdir(exist_ok=True)
        self._make_certificate()
        (self.folder / "conf").write_text(NGINX_CONF.format(
            folder=self.folder, host=self.host, port=self.port, tls_port=self.tls_port,
            ipv6=f"listen [::1]:{self.port}; listen [::1]:{self.tls_port} ssl;" if self.has_ipv6 else "",
            user="user root;" if os.geteuid() == 0 else ""))
        return [program("nginx"), "-p", str(self.folder), "-c", str(self.folder / "conf"),
                "-e", str(self.folder / "errors")]

    def _make_certificate(self):
        openssl("req", "-x509", *NEW_KEY, "-keyout", str(self.folder / "key.pem"), "-out", self.certificate,
                "-subj", "/CN=origin.test", "-addext", f"subjectAltName=IP:{self.host},IP:::1,DNS:localhost")

    def put(self, name, content):
        (self.folder / "root" / name).write_bytes(content)

    def log(self):
        lines = (self.folder / "access").read_text().splitlines()
        return [dict(pair.split("=", 1) for pair in line.split()) for line in lines]

    def clear_log(self):
        os.truncate(self.folder / "access", 0)


NGINX_CONF = """
daemon off; worker_processes 1; pid {folder}/pid; {user}
events {{ worker_connections 1024; }}
http {{
    client_body_temp_path {folder}/t1; proxy_temp_path {folder}/t2; fastcgi_temp_path {folder}/t3;
    uwsgi_temp_path {folder}/t4; scgi_temp_path {folder}/t5;
    log_format plain 'addr=$remote_addr scheme=$scheme port=$server_port uri=$request_uri';
    access_log {folder}/access plain;
    types {{ text/html html; text/css css; text/javascript js; image/png png; application/json json; }}
    server {{
        listen {host}:{port}; listen {host}:{tls_port} ssl; {ipv6}
        ssl_certificate {folder}/cert.pem; ssl_certificate_key {folder}/key.pem;
        root {folder}/root;
        location /who {{ default_type text/plain; return 200 "$remote_addr $request_uri\\n"; }}
    }}
}}
"""
