"""wake.py - how long a worker that waits takes to get a task that a foreign client brings, and what waiting costs."""

import contextlib
import os
import select
import statistics
import time
from pathlib import Path

from peers import (FAIRLEAD, LOAD_CORE, ROOT, SERVER_CORE, BenchError, compile_tool, note, redis_server, running, table,
                   temporary_folder)

LEVEL, ASIDE = "{jobs}:normal", "{jobs}:aside"
SHAPES = [("1", 1, 1), ("10 processes", 10, 1), ("4 processes x 50", 4, 50), ("200 processes", 200, 1)]
IDLE_S, QUICK_IDLE_S = 30, 15
TASKS, QUICK_TASKS, CROWD_TASKS = 200, 50, 50
PATIENCE_S = 30
CROWD = 10  # more processes take a while to come to rest
P50_MS, P99_MS, IDLE_COMMANDS = 1, 5, 0.5


def push_in_transaction(client, payload):
    with client.pipeline(transaction=True) as pipeline:
        pipeline.lpush(LEVEL, payload)
        pipeline.execute()


def push_by_script(client, payload):
    client.eval("return redis.call('LPUSH', KEYS[1], ARGV[1])", 1, LEVEL, payload)


# name: what is prepared, untimed; what brings the task
PRODUCERS = {
    "LPUSH": (None, lambda client, payload: client.lpush(LEVEL, payload)),
    "RPUSH": (None, lambda client, payload: client.rpush(LEVEL, payload)),
    "MULTI": (None, push_in_transaction),
    "EVAL": (None, push_by_script),
    "LMOVE": (lambda client, payload: client.lpush(ASIDE, payload),
              lambda client, payload: client.lmove(ASIDE, LEVEL, "RIGHT", "LEFT")),
    "RENAME": (lambda client, payload: client.lpush(ASIDE, payload),
               lambda client, payload: client.rename(ASIDE, LEVEL)),
}


def build_tool(folder):
    """Linked with the libraries beside the program that is measured."""
    build = Path(FAIRLEAD).parent
    archives = [str(build / f"src/{name}/lib{name}.a") for name in ("queue", "store", "base")]
    return compile_tool(folder, "wake_load", "-D_GNU_SOURCE", f"-I{ROOT}/src", f"-I{ROOT}", f"-I{build}/src/store",
                        "-Wl,--start-group", *archives, "-Wl,--end-group", "-lhiredis", "-levent_core", "-levent_extra",
                        "-lssl", "-lcrypto", "-linih", "-ljansson")


class Lines:
    """What all the processes say, through one pipe."""

    def __init__(self, fd):
        self.fd, self.rest = fd, b""

    def next(self):
        while b"\n" not in self.rest:
            if not select.select([self.fd], [], [], PATIENCE_S)[0]:
                raise BenchError("a waiting process says nothing")
            self.rest += os.read(self.fd, 65536)
        line, _, self.rest = self.rest.partition(b"\n")
        return line.decode().split()


@contextlib.contextmanager
def waiting(folder, tool, server, processes, waiters):
    read_end, write_end = os.pipe()
    with contextlib.ExitStack() as stack:
        stack.callback(os.close, read_end)
        stack.callback(os.close, write_end)
        for _ in range(processes):
            stack.enter_context(running("wake_load", [tool, server.unix_url, "jobs", str(waiters)], folder, LOAD_CORE,
                                        is_quiet=True, stdout=write_end))
        lines = Lines(read_end)
        for _ in range(processes):
            lines.next()
        yield lines


def commands(client):
    return client.info("stats")["total_commands_processed"]


def until_quiet(client, processes):
    """All sleep: nothing is asked but signs of life and this."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        before = commands(client)
        time.sleep(0.05)
        if commands(client) - before <= 1 + processes // 8:
            return
    raise BenchError("the waiting processes do not come to rest")


def wake_ms(client, lines, producer, count, processes):
    prepare, bring = PRODUCERS[producer]
    taken = []
    for number in range(count):
        payload = f"{producer}-{number}"
        if prepare:
            prepare(client, payload)
        if number == 0 or processes > CROWD:
            until_quiet(client, processes)
        else:
            time.sleep(0.01)
        begin = time.monotonic_ns()
        bring(client, payload)
        said, end = lines.next()
        if said != payload:
            raise BenchError(f"{payload} was awaited, {said} came")
        taken.append((int(end) - begin) / 1e6)
    return taken


def idle_commands(client, processes, seconds):
    until_quiet(client, processes)
    before, begin = commands(client), time.monotonic()
    time.sleep(seconds)
    return (commands(client) - before - 1) / (time.monotonic() - begin) / processes


def measure(quick):
    count, seconds = (QUICK_TASKS, QUICK_IDLE_S) if quick else (TASKS, IDLE_S)
    found, idle = {}, {}
    with temporary_folder() as folder, redis_server(folder, SERVER_CORE) as server:
        tool = build_tool(folder)
        for shape, processes, waiters in SHAPES:
            with waiting(folder, tool, server, processes, waiters) as lines:
                for producer in PRODUCERS:
                    note(f"wake: {shape}, {producer}")
                    found[producer, shape] = wake_ms(server.client, lines, producer,
                                                         min(count, CROWD_TASKS) if processes > CROWD else count, processes)
                note(f"wake: {shape}, idle")
                idle[shape] = idle_commands(server.client, processes, seconds)
    note("")
    report(found, idle, count)


def report(found, idle, count):
    shapes = [shape for shape, _, _ in SHAPES]
    print(f"## A waiting worker gets a task: ms, median / 99th percentile of {count} tasks (of a crowd {min(count, CROWD_TASKS)})\n")
    print(f"From before the foreign client sends its command until a waiter has the task; the waiting processes share a "
          f"core with that client. Bounds: {P50_MS} / {P99_MS} ms.\n")
    table(["brought by", *shapes],
          [[producer, *(spread(found[producer, shape]) for shape in shapes)] for producer in PRODUCERS])
    table(["commands a second of an idle process", *shapes],
          [[f"at most {IDLE_COMMANDS}", *(f"{idle[shape]:.2f}" for shape in shapes)]])


def spread(values):
    return f"{statistics.median(values):.2f} / {sorted(values)[-(-len(values) * 99 // 100) - 1]:.2f}"
