"""The system ring: the real binary among real peers. What several test files use; the peers are in peers.py, clients
and scripted upstreams in wire.py.

run(...)         one command of fairlead, to its end
node(...)        a running `fairlead up` or `fairlead gateway`, ended by SIGTERM, which must end it with status 0
store            the Redis that both use unless told otherwise, empty at the start of each test
redis_server(..) another Redis, to be killed and started again
worker(...)      a running `fairlead work fetch` on the shared Redis
state            a HOME and state directory of the test's own, in which private servers live"""

import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile

import pytest

import peers
import wire
from queues import LISTS, QUEUE

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY = os.path.abspath(os.environ.get("FAIRLEAD_BINARY") or ROOT / "build/fairlead")
COMMAND_LIMIT_S = 60
SANITIZER = re.compile(r"ERROR: \w+Sanitizer|WARNING: \w+Sanitizer|runtime error:")
DEFAULT = object()


def assert_no_sanitizer_report(text):
    assert not SANITIZER.search(text), text


@contextlib.contextmanager
def short_folder():
    """A folder with a short name: the paths of unix sockets have at most 107 bytes."""
    folder = tempfile.mkdtemp(prefix="fl-", dir="/tmp")
    try:
        yield pathlib.Path(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def binary():
    assert os.access(BINARY, os.X_OK), f"{BINARY}: run 'make build'"
    return BINARY


@pytest.fixture(scope="session")
def session_folder():
    with short_folder() as folder:
        folder.chmod(0o755)
        yield folder


@pytest.fixture
def folder():
    with short_folder() as folder:
        folder.chmod(0o755)
        yield folder


@pytest.fixture
def state(folder):
    """The test's own home; `state / "fairlead"` is the state directory."""
    for name in ("home", "state", "run"):
        (folder / name).mkdir(mode=0o700)
    return folder / "state"


@pytest.fixture
def environment(state):
    """What fairlead is started with: nothing of the caller's settings, proxies or home."""
    mine = {k: v for k, v in os.environ.items()
            if not k.startswith("FAIRLEAD_") and not k.lower().endswith("_proxy")}
    return mine | {"HOME": str(state.parent / "home"), "XDG_STATE_HOME": str(state),
                   "XDG_RUNTIME_DIR": str(state.parent / "run"), "NO_COLOR": "1"}


# --- Redis --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def shared_redis(session_folder):
    server = peers.RedisServer(session_folder / "redis").start()
    yield server
    server.stop()


@pytest.fixture
def store(shared_redis):
    shared_redis.client.flushall()
    shared_redis.client.script_flush()
    return shared_redis


@pytest.fixture
def redis_server(folder):
    """redis_server(tcp=False, password=None, appendonly="yes", appendfsync="always", ...) starts one of your own."""
    servers = []

    def start(**options):
        servers.append(peers.RedisServer(folder / f"redis{len(servers)}", **options))
        return servers[-1].start()

    yield start
    for server in servers:
        server.stop()


def redis_words(redis, shared):
    """The words that name a Redis: DEFAULT is the shared one, None none at all (the private server)."""
    if redis is None:
        return []
    if redis is DEFAULT:
        redis = shared()
    return ["--redis", redis if isinstance(redis, str) else redis.url]


# --- fairlead -----------------------------------------------------------------------------------------------------


@pytest.fixture
def run(binary, environment, request):
    """run("pool", "list") -> CompletedProcess, text. redis=: a server, a URL, or None for a private server; input=,
    env= (added to the environment); check=False or the status that is expected."""

    def command(*words, redis=DEFAULT, input="", env=None, check=0, timeout=COMMAND_LIMIT_S):
        words = [str(word) for word in words]
        words += redis_words(redis, lambda: request.getfixturevalue("store"))
        done = subprocess.run([binary, *words], input=input, env=environment | (env or {}),
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8",
                              errors="surrogateescape", timeout=timeout)
        assert_no_sanitizer_report(done.stderr)
        if check is not False:
            assert done.returncode == int(check), (words, done.returncode, done.stderr)
        return done

    return command


class Node:
    """A running fairlead. Its standard error is read back from a file."""

    def __init__(self, words, path, env):
        self.path = path
        self.port = None
        self.is_told = False
        with open(path, "wb") as stderr:
            self.process = subprocess.Popen(words, env=env, stdin=subprocess.DEVNULL,
                                            stdout=subprocess.DEVNULL, stderr=stderr)

    @property
    def pid(self):
        return self.process.pid

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    @property
    def text(self):
        """Standard error so far."""
        return self.path.read_text(errors="replace")

    def log(self, **wanted):
        """The log lines so far that have these fields, as dictionaries."""
        lines = [json.loads(x) for x in self.text.split("\n")[:-1] if x.startswith("{")]
        return [x for x in lines if all(x.get(k) == v for k, v in wanted.items())]

    def requests(self, count=0, **wanted):
        """The access log; waits until it has `count` such lines."""
        peers.wait_for(lambda: len(self.log(message="request", **wanted)) >= count,
                       f"{count} requests with {wanted} in the log of\n{self.text[-2000:]}")
        return self.log(message="request", **wanted)

    def request(self, **wanted):
        """The one line of the access log."""
        lines = self.requests(1, **wanted)
        assert len(lines) == 1
        return lines[0]

    def connect(self, **options):
        return wire.Client(("127.0.0.1", self.port), **options)

    def children(self):
        """Process ids of the children, in the order of their start."""
        listed = pathlib.Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text()
        return [int(pid) for pid in listed.split()]

    def serving_pid(self):
        """The process that serves clients: a lone gateway itself, under `up` the child that was started last."""
        children = self.children()
        return children[-1] if children else self.pid

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.serving_pid()}/fd"))

    def terminate(self):
        """SIGTERM, once."""
        if self.process.poll() is None and not self.is_told:
            self.process.send_signal(signal.SIGTERM)
        self.is_told = True

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(peers.WAIT_S)

    def wait(self, seconds=45):
        return self.process.wait(seconds)

    def stop(self):
        """SIGTERM must end it with status 0 and without a finding of a sanitizer."""
        self.terminate()
        try:
            status = self.wait()
        finally:
            self.kill()
        assert_no_sanitizer_report(self.text)
        assert status == 0, f"ended with status {status}:\n{self.text[-4000:]}"

    def _greeted_port(self):
        assert self.process.poll() is None, f"it ended at its start:\n{self.text}"
        found = re.search(r"^  gateway 127\.0\.0\.1:(\d+)\n(?s:.*)^  stop ", self.text, re.M)
        return found and int(found[1])

    def _serves(self):
        assert self.process.poll() is None, f"it ended at its start:\n{self.text}"
        return peers.is_serving("127.0.0.1", self.port)


@pytest.fixture
def node(binary, environment, folder, request):
    """node("--workers", 2, role="up", redis=...) starts one and waits until it serves. JSON logs, loopback allowed
    (private=False: not), members not checked (checks=True: they are). What still runs at the end of the test is stopped, and must end well."""
    nodes = []

    def start(*words, role="gateway", redis=DEFAULT, private=True, checks=False, env=None, wait=True):
        port = 0 if role == "up" else peers.free_port()
        words = [role, "--log-format", "json", "--listen", f"127.0.0.1:{port}",
                 *([] if "--allow-port" in words else ["--allow-port", "1-65535"]),
                 *(["--allow-private"] if private else []),
                 *(["--no-check"] if role == "up" and not checks else []), *(str(word) for word in words)]
        words += redis_words(redis, lambda: request.getfixturevalue("store"))
        it = Node([binary, *words], folder / f"stderr{len(nodes)}", environment | (env or {}))
        nodes.append(it)
        it.port = port
        if wait and port:
            peers.wait_for(it._serves, "the gateway serves")
        elif wait:
            it.port = peers.wait_for(it._greeted_port, "the node greets")
        return it

    yield start
    for it in nodes:
        it.terminate()
    for it in nodes:
        # A test that killed it, or saw its end, has judged it already.
        if it.process.returncode is None:
            it.stop()
        assert_no_sanitizer_report(it.text)


@pytest.fixture
def add(run):
    """add(url, ...) admits proxies on loopback."""
    return lambda *urls, **options: run("pool", "add", "--eligible", "--allow-private", *urls,
                                        **options)


# --- workers --------------------------------------------------------------------------------------------------------


class Worker(Node):
    """A running worker; its results are read back from a file."""

    def __init__(self, words, path, env, output=None):
        self.output = path.with_suffix(".results")
        super().__init__([*words, "-o", str(output or self.output)], path, env)

    def results(self, count=0):
        """All result lines; waits until there are `count`."""
        peers.wait_for(lambda: len(self._lines()) >= count, f"{count} results of\n{self.text[-2000:]}")
        return [json.loads(line) for line in self._lines()]

    def _lines(self):
        return self.output.read_text().split("\n")[:-1] if self.output.exists() else []

    def says(self, text):
        peers.wait_for(lambda: text in self.text, f"'{text}' in\n{self.text[-2000:]}")

    def ends(self):
        """It ends by itself, and well."""
        assert self.wait() == 0, self.text[-2000:]
        assert_no_sanitizer_report(self.text)


@pytest.fixture
def worker(binary, environment, folder, store):
    """worker("--drain", ...) starts one on the shared Redis; what still runs at the end of the test must end well."""
    workers = []

    def start(*words, output=None):
        words = [binary, "work", "fetch", "--allow-private", "--redis", store.url, *map(str, words)]
        workers.append(Worker(words, folder / f"worker{len(workers)}", environment, output))
        return workers[-1]

    yield start
    for one in workers:
        if one.process.returncode is None:
            one.process.send_signal(signal.SIGCONT)
            one.stop()


@pytest.fixture
def push(store):
    """push(url, ...) as anybody does it."""
    return lambda *payloads, level="normal": store.client.lpush(LISTS[level], *payloads)


@pytest.fixture
def count(store):
    """count("acked"): one of the queue's counters."""
    return lambda name: int(store.client.hget(QUEUE + "stats", name) or 0)


# --- peers --------------------------------------------------------------------------------------------------------


@pytest.fixture
def peer(folder):
    """peer(peers.Tinyproxy, "127.0.0.2", user=..., password=...) starts a real program for this test."""
    started = []

    def start(kind, *words, **options):
        started.append(kind(folder / f"peer{len(started)}", *words, **options))
        return started[-1].start()

    yield start
    for one in reversed(started):
        one.stop()


@pytest.fixture
def upstream():
    """upstream(script, ...) starts a scripted server, see wire.Server."""
    servers = []

    def start(*scripts, **options):
        servers.append(wire.Server(*scripts, **options))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


@pytest.fixture
def gateway_to(node, add, upstream):
    """gateway_to(script, ..., words=(...)) -> a gateway whose pool has one scripted upstream, and that upstream."""

    def start(*scripts, words=(), **options):
        server = upstream(*scripts, **options)
        add(server.url)
        return node(*words), server

    return start


@pytest.fixture
def gateway_to_two(node, add, upstream):
    """gateway_to_two(first, second, words=(...)) -> a gateway and two scripted upstreams, of which the first is asked
    first: equal counts resolve by the order of the members' bytes."""

    def start(first, second, words=()):
        servers = [upstream(first, host="127.0.0.1"), upstream(second, host="127.0.0.2")]
        add(*(server.url for server in servers))
        return node(*words), *servers

    return start
