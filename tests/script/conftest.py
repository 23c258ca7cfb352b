"""The script ring: lua/*.lua on a private Redis, spoken to as any client would."""

import pathlib
import re
import shutil
import subprocess
import tempfile
import time

import pytest
import redis
from leases import Leases

LUA_DIR = pathlib.Path(__file__).resolve().parents[2] / "lua"
START_LIMIT_S = 10

# The public contract. Any client may run it beside fairlead.
FIVE_LINES = """\
local chosen = redis.call('ZRANGE', KEYS[1], 0, 0)[1]
if not chosen then
    return nil
end

redis.call('ZINCRBY', KEYS[1], 1, chosen)
return chosen
"""


class Script:
    """One file of lua/, called with the number of keys that it declares ("7+": at least so many)."""

    def __init__(self, store, name):
        text = (LUA_DIR / f"{name}.lua").read_text()
        self.store = store
        count, self.takes_more = re.search(r"^-- KEYS: (\d+)(\+?)$", text, re.M).groups()
        self.key_count = int(count)
        self.sha = store.script_load(text)

    def __call__(self, keys, *args):
        keys = [keys] if isinstance(keys, (str, bytes)) else list(keys)
        assert len(keys) == self.key_count or self.takes_more and len(keys) > self.key_count
        return self.store.evalsha(self.sha, len(keys), *keys, *args)


def wait_until_it_answers(client, process):
    deadline = time.monotonic() + START_LIMIT_S
    while True:
        try:
            return client.ping()
        except redis.ConnectionError:
            assert process.poll() is None, "redis-server ended at its start"
            assert time.monotonic() < deadline, "redis-server does not answer"
            time.sleep(0.01)


@pytest.fixture(scope="session")
def server():
    """A private server on a unix socket; the test session ends it by its process."""
    program = shutil.which("redis-server") or shutil.which("valkey-server")
    assert program, "redis-server or valkey-server must be installed"
    with tempfile.TemporaryDirectory(prefix="fairlead-script-") as folder:
        socket = f"{folder}/redis.sock"
        options = ["--port", "0", "--unixsocket", socket, "--dir", folder]
        options += ["--save", "", "--appendonly", "no"]
        process = subprocess.Popen([program, *options], stdout=subprocess.DEVNULL)
        client = redis.Redis(unix_socket_path=socket)
        try:
            wait_until_it_answers(client, process)
            yield client
        finally:
            client.close()
            process.terminate()
            process.wait(timeout=START_LIMIT_S)


@pytest.fixture
def store(server):
    server.config_set("maxmemory", 0)
    server.flushall()
    return server


@pytest.fixture
def script(store):
    return lambda name: Script(store, name)


@pytest.fixture
def leases(store, script):
    """The scripts of leases; what they must keep together is checked at the end of the test as well."""
    leases = Leases(store, script)
    yield leases
    leases.check()


@pytest.fixture
def five_lines(store):
    """Runs the five-line script n times and returns what it returned."""
    sha = store.script_load(FIVE_LINES)

    def run(key, n=1):
        pipeline = store.pipeline(transaction=False)
        for _ in range(n):
            pipeline.execute_command("EVALSHA", sha, 1, key)
        return pipeline.execute()

    run.sha = sha
    return run


@pytest.fixture
def full_store(store):
    """A call makes the server refuse every write that may take memory."""

    def fill():
        store.config_set("maxmemory-policy", "noeviction")
        store.config_set("maxmemory", 1)
        with pytest.raises(redis.ResponseError, match="OOM|maxmemory"):
            store.set("anything", "x")

    yield fill
    store.config_set("maxmemory", 0)
