"""peers.py - starts what is measured and what it is measured against, and reads what they cost.

Every server is a direct child on a free loopback port, in a temporary directory, pinned to a core, and ended by its
process id when its `with` block ends."""

import contextlib
import os
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import redis

ROOT = Path(__file__).resolve().parent.parent
FAIRLEAD = os.environ.get("FAIRLEAD_BINARY") or str(ROOT / "build" / "fairlead")
if not os.path.isabs(FAIRLEAD):
    FAIRLEAD = os.path.abspath(FAIRLEAD)

CORES = sorted(os.sched_getaffinity(0))
SERVER_CORE, LOAD_CORE = CORES[0], CORES[-1]
# Before anything is measured: what is measured is a load itself.
LOAD_AT_START = os.getloadavg()[0]
START_SECONDS = 15
TICK_US = 1_000_000 / os.sysconf("SC_CLK_TCK")

FIVE_LINES = """local chosen = redis.call('ZRANGE', KEYS[1], 0, 0)[1]
if not chosen then
    return nil
end

redis.call('ZINCRBY', KEYS[1], 1, chosen)
return chosen
"""


class BenchError(Exception):
    """What ends the run, in one line."""


def find(program):
    return shutil.which(program, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")


def version_of(program, *arguments):
    """What the program says of itself: the first thing in its output that looks like a version."""
    path = find(program) or program
    result = subprocess.run([path, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    match = re.search(r"\d+\.\d+[\w.+-]*", result.stdout)
    return match[0] if match else "?"


def describe_machine():
    model = re.search(r"model name\s*:\s*(.*)", Path("/proc/cpuinfo").read_text())
    versions = [("fairlead", version_of(FAIRLEAD, "version")), ("Redis", version_of("redis-server", "--version"))]
    for name in ("HAProxy", "squid", "tinyproxy"):
        versions.append((name, version_of(name.lower(), "-v") if find(name.lower()) else "not installed"))
    return "\n".join([
        f"Machine: {len(CORES)} cores, {model[1].strip() if model else os.uname().machine}; "
        f"Linux {os.uname().release}. Load at the start: {LOAD_AT_START:.1f}.",
        "Versions: " + ", ".join(f"{name} {version}" for name, version in versions) + "."])


def table(head, rows):
    """Prints a Markdown table; the first column is text, the others are numbers."""
    print("| " + " | ".join(head) + " |")
    print("|---" + "|---:" * (len(head) - 1) + "|")
    for row in rows:
        print("| " + " | ".join(str(cell) for cell in row) + " |")
    print(flush=True)


def median(values):
    return statistics.median(values)


def free_port(host="127.0.0.1"):
    with socket.socket() as probe:
        probe.bind((host, 0))
        return probe.getsockname()[1]


def anonymous_bytes(pid):
    status = Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"RssAnon:\s*(\d+) kB", status)[1]) * 1024


class Server:
    """A running program. `has_threads` chooses the clock: nanoseconds of one thread, or ticks of all."""

    def __init__(self, process, name, log, has_threads=False):
        self.process, self.name, self.log, self.has_threads = process, name, log, has_threads
        self.pid = process.pid
        self.address = None

    def cpu_us(self):
        """CPU time so far, user and system."""
        if not self.has_threads:
            with contextlib.suppress(OSError):
                return int(Path(f"/proc/{self.pid}/schedstat").read_text().split()[0]) / 1000
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) * TICK_US

    def resident_bytes(self):
        """Anonymous resident memory: without the program's text, with its heap and stack."""
        return anonymous_bytes(self.pid)

    def last_words(self):
        lines = Path(self.log).read_text(errors="replace").strip().splitlines() if self.log else []
        return lines[-1] if lines else "it said nothing"


@contextlib.contextmanager
def running(name, command, folder, core, has_threads=False, is_quiet=False, **options):
    log = None if is_quiet else os.path.join(folder, name + ".log")
    with open(log or os.devnull, "wb") as output:
        options.setdefault("stdin", subprocess.DEVNULL)
        options.setdefault("stdout", output)
        process = subprocess.Popen(
            command, cwd=folder, stderr=output, preexec_fn=lambda: os.sched_setaffinity(0, {core}), **options)
    try:
        yield Server(process, name, log, has_threads)
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def await_listener(server, host, port):
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if server.process.poll() is not None:
            break
        with contextlib.suppress(OSError), socket.create_connection((host, port), 1):
            server.address = (host, port)
            return server
        time.sleep(0.02)
    raise BenchError(f"{server.name} does not listen: {server.last_words()}")


@contextlib.contextmanager
def temporary_folder():
    with tempfile.TemporaryDirectory(prefix="fairlead-bench-") as folder:
        os.chmod(folder, 0o755)  # squid gives up root
        yield folder


@contextlib.contextmanager
def redis_server(folder, core):
    port = free_port()
    command = [find("redis-server"), "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no",
               "--unixsocket", os.path.join(folder, "redis.sock"), "--dir", folder]
    with running("redis-server", command, folder, core, has_threads=True) as server:
        await_listener(server, "127.0.0.1", port)
        server.client = redis.Redis(port=port)
        server.unix_url = "unix://" + os.path.join(folder, "redis.sock")
        server.url = f"redis://127.0.0.1:{port}"
        server.port = port
        yield server


def redis_cpu_us(client):
    info = client.info("cpu")
    return (info["used_cpu_user"] + info["used_cpu_sys"]) * 1e6


def fill_pool(client, key, scores):
    """A pool of plausible members, written as any client may write it: (name, score), 10,000 a call."""
    client.delete(key)
    for start in range(0, len(scores), 10_000):
        client.zadd(key, {member_name(i): scores[i] for i in range(start, min(start + 10_000, len(scores)))})


def member_name(i):
    return f"http://10.{i >> 16 & 255}.{i >> 8 & 255}.{i & 255}:8080"


def fairlead(*words, **options):
    result = subprocess.run([FAIRLEAD, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)
    if result.returncode != 0:
        raise BenchError(f"fairlead {words[0]} ended with {result.returncode}: {result.stderr.strip()}")
    return result.stdout


@contextlib.contextmanager
def gateway(folder, redis_url, pool, has_access_log, *options):
    port = free_port()
    command = [FAIRLEAD, "gateway", "--redis", redis_url, "--pool", pool, "--allow-private",
               "--allow-port", "1-65535", "--listen", f"127.0.0.1:{port}",
               "--access-log" if has_access_log else "--no-access-log", *options]
    with running("gateway", command, folder, SERVER_CORE, is_quiet=has_access_log) as server:
        yield await_listener(server, "127.0.0.1", port)


class Node(Server):
    """A supervisor and its children: all of them count."""

    def __init__(self, server):
        super().__init__(server.process, server.name, server.log)

    def pids(self):
        children = Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text()
        return [self.pid, *(int(pid) for pid in children.split())]

    def cpu_us(self):
        return sum(int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1000 for pid in self.pids())

    def resident_bytes(self):
        return sum(anonymous_bytes(pid) for pid in self.pids())


@contextlib.contextmanager
def node(folder, redis_url, pool, workers):
    port = free_port()
    command = [FAIRLEAD, "up", "--workers", str(workers), "--redis", redis_url, "--pool", pool, "--allow-private",
               "--allow-port", "1-65535", "--listen", f"127.0.0.1:{port}", "--no-access-log"]
    with running("node", command, folder, SERVER_CORE) as server:
        yield await_listener(Node(server), "127.0.0.1", port)


@contextlib.contextmanager
def haproxy(folder, upstreams):
    port = free_port()
    path = Path(folder, "haproxy.cfg")
    servers = "".join(f"    server s{i} {address}\n" for i, address in enumerate(upstreams))
    path.write_text(f"""global
    nbthread 1
    maxconn 6000
defaults
    mode tcp
    balance leastconn
    option splice-auto
    timeout connect 5s
    timeout client 5m
    timeout server 5m
listen bench
    bind 127.0.0.1:{port}
{servers}""")
    with running("haproxy", [find("haproxy"), "-db", "-q", "-f", str(path)], folder, SERVER_CORE) as server:
        yield await_listener(server, "127.0.0.1", port)


@contextlib.contextmanager
def tinyproxy(folder):
    port = free_port()
    path = Path(folder, "tinyproxy.conf")
    path.write_text(f"Listen 127.0.0.1\nPort {port}\nMaxClients 500\nTimeout 60\nLogLevel Critical\n"
                    f"LogFile \"{folder}/tinyproxy-own.log\"\n")
    command = [find("tinyproxy"), "-d", "-c", str(path)]
    with running("tinyproxy", command, folder, SERVER_CORE, has_threads=True) as server:
        yield await_listener(server, "127.0.0.1", port)


@contextlib.contextmanager
def squid(folder):
    port = free_port()
    path = Path(folder, "squid.conf")
    path.write_text(f"""http_port 127.0.0.1:{port}
http_access allow all
cache deny all
cache_mem 0 MB
access_log none
cache_log /dev/null
pid_filename none
netdb_filename none
pinger_enable off
coredump_dir /
client_persistent_connections off
server_persistent_connections off
shutdown_lifetime 0 seconds
visible_hostname bench
""")
    command = [find("squid"), "-N", "-f", str(path)]
    with running("squid", command, folder, SERVER_CORE, has_threads=True) as server:
        yield await_listener(server, "127.0.0.1", port)


def compile_tool(folder, name, *libraries):
    path = os.path.join(folder, name)
    source = str(Path(__file__).resolve().parent / (name + ".c"))
    if subprocess.run(["cc", "-std=gnu17", "-O2", "-o", path, source, *libraries]).returncode != 0:
        raise BenchError(f"{name}.c cannot be compiled: run 'make deps'")
    return path


@contextlib.contextmanager
def bulk_upstream(folder, address):
    """A CONNECT proxy that takes, or gives, as much as it can."""
    command = [compile_tool(folder, "bulk_peer"), "upstream", address]
    with running("bulk_peer", command, folder, LOAD_CORE, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        server.address = server.process.stdout.readline().decode().strip()
        if not server.address:
            raise BenchError(f"bulk_peer does not listen: {server.last_words()}")
        yield server


@contextlib.contextmanager
def upstreams(folder, count):
    """A CONNECT proxy that only answers, on `count` addresses; it is an origin as well."""
    addresses = [f"127.0.0.{21 + i}" for i in range(count)]
    command = [compile_tool(folder, "connect_upstream"), *addresses]
    with running("connect_upstream", command, folder, LOAD_CORE, stdin=subprocess.PIPE,
                 stdout=subprocess.PIPE) as server:
        server.addresses = [server.process.stdout.readline().decode().strip() for _ in addresses]
        if not all(server.addresses):
            raise BenchError(f"connect_upstream does not listen: {server.last_words()}")
        yield server


def note(text):
    """Progress, for whoever waits."""
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)
