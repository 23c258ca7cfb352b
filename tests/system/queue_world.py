"""What the tests of a queue's cases share: one queue with its processes, workers that claim and acknowledge, and a way to
Redis that breaks."""

import contextlib
import hashlib
import json
import os
import select
import signal
import socket
import struct
import subprocess
import threading

import conftest
import peers
from queues import LISTS, QUEUE, call, objects

SCRIPTS = conftest.ROOT / "lua"


def script_id(name):
    """What EVALSHA calls a script."""
    return hashlib.sha1((SCRIPTS / f"{name}.lua").read_bytes()).hexdigest()


class Queue:
    """The queue `jobs` in one Redis, as fairlead and as any other client sees it."""

    def __init__(self, binary, environment, server):
        self.binary, self.environment, self.server = binary, environment, server
        self.redis = server.client
        self.processes = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.processes:
            end(process)

    def __call__(self, *words, **options):
        """One command of `fairlead queue`, to its end."""
        return call(self.binary, self.environment, self.server, *words, **options)

    def through(self, url):
        """The same queue by another way to its Redis."""
        return Queue(self.binary, self.environment, type("Way", (), {"url": url, "client": self.redis}))

    def with_environment(self, changes):
        """The same queue, as processes with these variables see it."""
        return Queue(self.binary, self.environment | changes, self.server)

    def claim(self, *words, **options):
        return objects(self("claim", "--json", *words, **options).stdout)

    def stats(self, *words):
        return json.loads(self("stats", "--json", *words).stdout)

    def counter(self, name):
        return int(self.redis.hget(QUEUE + "stats", name) or 0)

    def push(self, *tasks, level="normal"):
        """As a foreign producer does."""
        self.redis.lpush(LISTS[level], *tasks)

    def start(self, *words, url=None, **options):
        """A command of `fairlead queue` that goes on. It is killed at the end."""
        return self.spawn([self.binary, "--redis", url or self.server.url, "queue", *map(str, words)], **options)

    def spawn(self, words, **options):
        self.processes.append(subprocess.Popen(words, env=self.environment, stdin=subprocess.DEVNULL,
                                               stderr=subprocess.PIPE, **{"stdout": subprocess.PIPE} | options))
        return self.processes[-1]

    def wait(self, *words, block="60s", **options):
        """A claim that waits. It is armed: every key of its levels is watched by it, and it has seen that nothing is there."""
        watched = self.watched()
        process = self.start("claim", "--block", block, *(words or ["--json"]), **options)
        peers.wait_for(lambda: self.watched() >= watched + 2 + 2 * len(LISTS), "it is armed")
        return process

    def watched(self):
        """How many keys are watched, each as often as it has watchers; also by those who are gone, until it changes."""
        return self.redis.info("stats")["tracking_total_items"]

    def keeper(self):
        """Whoever sweeps."""
        return self.spawn([self.binary, "--redis", self.server.url, "keeper", "--no-check", "--queue", "jobs"])

    def places(self):
        """How many tasks stand where."""
        redis = self.redis
        return {"ready": sum(redis.llen(name) for name in LISTS.values()),
                "returned": sum(redis.llen(f"{QUEUE}retry:{level}") for level in LISTS),
                "later": redis.zcard(QUEUE + "later"), "claimed": redis.hlen(QUEUE + "claims"),
                "dead": redis.llen(QUEUE + "dead")}

    def sweep(self, limit=256):
        """The script `claim` without a claim: due tasks and lost claims, as any client may call it."""
        keys = [QUEUE + name for name in ("later", "held", "claims", "leases", "dead", "stats", "paused")]
        keys += [key for level, name in LISTS.items() for key in (name, f"{QUEUE}retry:{level}")]
        words = ["", "0123456789abcdef", 60000, 0, 2**23, 3, 10000, limit, *LISTS]
        return self.redis.eval((SCRIPTS / "claim.lua").read_text(), len(keys), *keys, *words)


def end(process):
    if process.poll() is None:
        process.kill()
    process.communicate()


def result(process, check=0):
    """Waits for its end: what it printed, as objects."""
    output, errors = process.communicate(timeout=peers.WAIT_S)
    conftest.assert_no_sanitizer_report(errors.decode(errors="replace"))
    assert check in (None, process.returncode), (process.args, process.returncode, errors)
    return objects(output)


NOWHERE = {"ready": 0, "returned": 0, "later": 0, "claimed": 0, "dead": 0}


class Worker(threading.Thread):
    """Claims, notes and acknowledges in a loop, a command for each, until stop(). `error` is what it died of."""

    def __init__(self, queue, *words, tasks=10):
        super().__init__(daemon=True)
        self.queue, self.words, self.tasks = queue, words, tasks
        self.seen, self.error = [], None
        self.is_stopping = False

    def run(self):
        try:
            while not self.is_stopping:
                self.work()
        except BaseException as error:  # noqa: B902: told by stop()
            self.error = error

    def work(self):
        done = self.queue("claim", "--json", "--tasks", self.tasks, "--block", "300ms", *self.words, check=None)
        assert done.returncode in (0, 3) and not done.stderr, (done.returncode, done.stderr)
        rows = objects(done.stdout)
        self.seen += [row["payload"] for row in rows]
        if rows:
            self.queue("ack", *(row["claim"] for row in rows))

    def stop(self):
        self.is_stopping = True
        self.join(60)
        assert not self.is_alive() and self.error is None, self.error
        return self.seen


@contextlib.contextmanager
def repeating(function):
    """Calls it again and again, meanwhile."""
    is_over = threading.Event()
    errors = []

    def repeat():
        try:
            while not is_over.is_set():
                function()
        except BaseException as error:  # noqa: B902: raised below
            errors.append(error)

    thread = threading.Thread(target=repeat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join(peers.WAIT_S)
    assert not errors, errors


class Way:
    """A TCP forwarder to a Redis, which can break in several manners.

    cut(script)   the next call of that script is carried out, its answer is lost, and the connection is reset
    hold(script)  it is carried out, and its answer does not come
    silence()     what is connected now hears nothing any more, and is not heard; new connections work"""

    def __init__(self, server):
        self.server = server
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = "redis://127.0.0.1:%d" % self.listener.getsockname()[1]
        self.lock = threading.Lock()
        self.links, self.fault = [], None
        self.struck = threading.Event()
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.close()
        for link in self.links:
            with contextlib.suppress(OSError):
                link.server.shutdown(socket.SHUT_RDWR)

    def cut(self, script):
        self._arrange("cut", script)

    def hold(self, script):
        self._arrange("hold", script)

    def _arrange(self, kind, script):
        # Its text must be known there: the call that a server answers with NOSCRIPT does nothing.
        self.server.client.script_load((SCRIPTS / f"{script}.lua").read_text())
        self.struck.clear()
        self.fault = (kind, script_id(script).encode())

    def take_fault(self, tail):
        """The fault, if these bytes call its script. It strikes once."""
        with self.lock:
            fault = self.fault
            if not fault or fault[1] not in tail:
                return None
            self.fault = None
            return fault[0]

    def silence(self):
        for link in self.links:
            link.is_silent = True

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self.listener.accept()
                self.links.append(Link(self, client))
                self.links[-1].start()


class Link(threading.Thread):
    """One connection through a Way."""

    def __init__(self, way, client):
        super().__init__(daemon=True)
        self.way, self.client, self.is_silent = way, client, False
        self.server = socket.socket(socket.AF_UNIX)
        self.server.connect(way.server.socket)
        self.tail, self.fault = b"", None

    def run(self):
        with self.client, self.server, contextlib.suppress(OSError):
            while self._pass_on():
                pass

    def _pass_on(self):
        """What is there, in both directions. False at the end."""
        for source in select.select([self.client, self.server], [], [])[0]:
            chunk = source.recv(65536)
            if not chunk:
                return False
            if source is self.client:
                self._look_at(chunk)
            elif self.fault:
                return self._strike()
            if not self.is_silent:
                (self.server if source is self.client else self.client).sendall(chunk)
        return True

    def _look_at(self, question):
        self.tail = self.tail[-100:] + question
        self.fault = self.fault or self.way.take_fault(self.tail)

    def _strike(self):
        if self.fault == "cut":
            # Without lingering a close is a reset.
            self.client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.client.close()
        self.way.struck.set()
        return self.fault == "hold"


def stop_process(process):
    """SIGSTOP, and waits until it stands."""
    os.kill(process.pid, signal.SIGSTOP)
    wait_until_stopped(process)


def wait_until_stopped(process):
    def state():
        with open(f"/proc/{process.pid}/stat", encoding="utf-8") as file:
            return file.read().rpartition(")")[2].split()[0]

    peers.wait_for(lambda: state() == "T", "it is stopped")
