"""Producers and consumers that know nothing of fairlead, beside fairlead's own, on the same lists."""

import re
import subprocess
import threading

import pytest
import redis

import peers
from queue_world import NOWHERE, Queue, Worker
from queues import LISTS, QUEUE

WORKERS, FOREIGN = 4, 2
PAYLOAD = re.compile(r"\\tpayload=([a-z]+-[0-9]+)\"")
CLAIMED = f'"HSET" "{QUEUE}claims"'
POPPED = re.compile(r"^\S+ \[0 \S+:([0-9]+)\] \"BRPOP\"")


class Monitor:
    """What a server carries out, in its order."""

    def __init__(self, server, path):
        self.server, self.path = server, path
        with open(path, "wb") as output:
            words = [peers.program("redis-cli", "valkey-cli"), "-p", str(server.port), "monitor"]
            self.process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=output)
        peers.wait_for(lambda: "OK" in path.read_text(), "it looks on")

    def lines(self):
        """All until now."""
        self.server.client.echo("the end")
        try:
            peers.wait_for(lambda: b'"ECHO" "the end"' in self._tail(), "all has come", 60)
        finally:
            self.process.kill()
            self.process.wait()
        with open(self.path, encoding="ascii") as file:
            yield from file

    def _tail(self):
        with open(self.path, "rb") as file:
            file.seek(max(0, self.path.stat().st_size - 100))
            return file.read()


class Popper(threading.Thread):
    """A foreign consumer: BRPOP over all levels until it has had its share, or is told that all is done. `answers` has one
    for each BRPOP, None when nothing came."""

    def __init__(self, server, share, barrier):
        super().__init__(daemon=True)
        self.share, self.barrier, self.answers = share, barrier, []
        self.is_stopping = False
        self.client = redis.Redis(port=server.port, single_connection_client=True)
        self.port = self.client.connection._sock.getsockname()[1]

    def run(self):
        self.barrier.wait()
        while not self.is_stopping and self.share:
            self.answers.append(self.client.brpop(list(LISTS.values()), 0.2))
            self.share -= self.answers[-1] is not None

    @property
    def seen(self):
        return [answer[1].decode() for answer in self.answers if answer]

    def stop(self):
        self.is_stopping = True
        self.join(peers.WAIT_S)
        assert not self.is_alive()


class Ready(Worker):
    """A worker that begins with the others."""

    def __init__(self, queue, barrier, tasks):
        super().__init__(queue, tasks=tasks)
        self.barrier = barrier

    def run(self):
        self.barrier.wait()
        super().run()


def seen_in_order(monitor, poppers):
    """Every task in the order in which the server handed it out. A claim names its tasks itself; what a BRPOP got is the
    next that its consumer had."""
    answers = {popper.port: iter(popper.answers) for popper in poppers}
    for line in monitor.lines():
        if CLAIMED in line:
            yield from PAYLOAD.findall(line)
        elif popped := POPPED.match(line):
            answer = next(answers[int(popped[1])])
            if answer:
                yield answer[1].decode()


@pytest.mark.parametrize("count, batch", [
    (3000, 40), pytest.param(100_000, 100, marks=pytest.mark.nightly)])
def test_beside_foreign_consumers_each_task_is_seen_once_and_in_order(redis_server, binary, environment, folder, count, batch):
    """The pushes are over when the consumers begin, so that the one right order is known."""
    server = redis_server(tcp=True)
    tasks = {level: [f"{level}-{i}" for i in range(count // len(LISTS))] for level in LISTS}
    for start in range(0, count // len(LISTS), 500):
        for level in ("low", "high", "normal"):
            server.client.lpush(LISTS[level], *tasks[level][start:start + 500])
    barrier = threading.Barrier(WORKERS + FOREIGN)
    poppers = [Popper(server, count // 5, barrier) for _ in range(FOREIGN)]
    with Queue(binary, environment, server) as queue:
        monitor = Monitor(server, folder / "monitor")
        workers = [Ready(queue, barrier, batch) for _ in range(WORKERS)]
        for consumer in poppers + workers:
            consumer.start()
        peers.wait_for(lambda: queue.places() == NOWHERE, "all is done", 300, 0.1)
        for consumer in poppers + workers:
            consumer.stop()
        order = list(seen_in_order(monitor, poppers))
        assert order == tasks["high"] + tasks["normal"] + tasks["low"]
        everything = sum((consumer.seen for consumer in poppers + workers), [])
        assert sorted(everything) == sorted(order) and queue.counter("lost") == 0
        assert all(consumer.seen for consumer in poppers + workers)
