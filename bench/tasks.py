"""tasks.py - tasks pushed, claimed and acknowledged a second, beside BullMQ, beanstalkd and RQ."""

import contextlib
import importlib.util
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

from peers import (FAIRLEAD, LOAD_CORE, ROOT, SERVER_CORE, BenchError, await_listener, compile_tool, find, free_port,
                   median, note, redis_cpu_us, redis_server, running, table, temporary_folder, version_of)

BYTES = 100
BATCHES = [1, 10, 100, 256]
ROUNDS, QUICK_ROUNDS = 3, 1
# Of the fast ones, BullMQ and RQ; a batch of 1 gets a fifth.
TASKS, BULLMQ_TASKS, RQ_TASKS = 100_000, 10_000, 500
RUN_S = 120
TASKS_S, OVER_BULLMQ = 100_000, 5
FOLDER = Path(__file__).resolve().parent
RQ_PUSH = """import sys, redis, rq
queue = rq.Queue("jobs", connection=redis.Redis(port=int(sys.argv[1])))
tasks, batch, payload = int(sys.argv[2]), int(sys.argv[3]), "x" * int(sys.argv[4])
for begun in range(0, tasks, batch):
    count = min(batch, tasks - begun)
    queue.enqueue_many([rq.Queue.prepare_data("os.path.basename", (payload,), result_ttl=0) for _ in range(count)])
"""


def run(command, folder):
    """What it prints: one number, mostly."""
    result = subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                            timeout=RUN_S, preexec_fn=lambda: os.sched_setaffinity(0, {LOAD_CORE}))
    if result.returncode:
        raise BenchError(f"{Path(command[0]).name}: {(result.stderr.strip() or 'failed').splitlines()[-1]}")
    return result.stdout


class Fairlead:
    name, tasks, batches = "fairlead", TASKS, BATCHES

    def __init__(self, folder):
        build = Path(FAIRLEAD).parent
        archives = [str(build / f"src/{name}/lib{name}.a") for name in ("queue", "store", "base")]
        self.folder = folder
        self.tool = compile_tool(folder, "tasks_load", "-D_GNU_SOURCE", f"-I{ROOT}/src", f"-I{ROOT}",
                                 f"-I{build}/src/store", "-Wl,--start-group", *archives, "-Wl,--end-group", "-lhiredis",
                                 "-levent_core", "-levent_extra", "-lssl", "-lcrypto", "-linih", "-ljansson")

    @contextlib.contextmanager
    def server(self):
        with redis_server(self.folder, SERVER_CORE) as server:
            self.redis = server
            yield lambda: redis_cpu_us(server.client)

    def seconds(self, what, tasks, batch):
        return float(run([self.tool, what, self.redis.url, str(tasks), str(batch), str(BYTES)], self.folder))


class Beanstalkd:
    name, tasks, batches = "beanstalkd", TASKS, BATCHES

    def __init__(self, folder):
        self.folder, self.tool = folder, compile_tool(folder, "tasks_beanstalk", "-D_GNU_SOURCE")

    @contextlib.contextmanager
    def server(self):
        port = free_port()
        command = [find("beanstalkd"), "-l", "127.0.0.1", "-p", str(port)]
        with running("beanstalkd", command, self.folder, SERVER_CORE) as server:
            self.port = await_listener(server, "127.0.0.1", port).address[1]
            yield server.cpu_us

    def seconds(self, what, tasks, batch):
        return float(run([self.tool, what, str(self.port), str(tasks), str(batch), str(BYTES)], self.folder))


class BullMQ(Fairlead):
    name, tasks, batches = "BullMQ", BULLMQ_TASKS, BATCHES

    def __init__(self, folder):
        self.folder = folder
        self.script = shutil.copy(FOLDER / "tasks_bullmq.mjs", folder)

    def seconds(self, what, tasks, batch):
        port = str(self.redis.port)
        return float(run([find("node"), self.script, what, port, str(tasks), str(batch), str(BYTES)], self.folder))


class RQ(Fairlead):
    """One task at a time is all that its worker does; SimpleWorker forks no process for it."""

    name, tasks, batches = "RQ", RQ_TASKS, [1]

    def __init__(self, folder):
        self.folder = folder

    def seconds(self, what, tasks, batch):
        begin = time.monotonic()
        if what == "push":
            run([sys.executable, "-c", RQ_PUSH, str(self.redis.port), str(tasks), str(batch), str(BYTES)], self.folder)
        else:
            run([sys.executable, "-m", "rq.cli", "worker", "--burst", "--quiet", "--url", self.redis.url,
                 "--worker-class", "rq.worker.SimpleWorker", "jobs"], self.folder)
        return time.monotonic() - begin


def install_bullmq(folder):
    """Its version, or why it is not there."""
    if not find("node") or not find("npm"):
        return None, "BullMQ is left out: node and npm are needed."
    note("queue: npm install bullmq")
    try:
        run([find("npm"), "install", "--no-audit", "--no-fund", "--prefix", folder, "bullmq", "ioredis"], folder)
    except (BenchError, subprocess.TimeoutExpired):
        return None, "BullMQ is left out: npm cannot install it."
    return version_of("npm", "ls", "--prefix", folder, "bullmq", "--json"), None


def contestants(folder):
    """Those that are there, with what to say of versions and of those that are missing."""
    found, said = [Fairlead(folder)], []
    version, trouble = install_bullmq(folder)
    said.append(trouble or f"BullMQ {version}, node {version_of('node', '--version')}.")
    if version:
        found.append(BullMQ(folder))
    if find("beanstalkd"):
        found.append(Beanstalkd(folder))
        said.append(f"beanstalkd {version_of('beanstalkd', '-v')}.")
    else:
        said.append("beanstalkd is left out: it is not installed.")
    if importlib.util.find_spec("rq"):
        found.append(RQ(folder))
        said.append(f"RQ {importlib.import_module('rq').__version__}, with SimpleWorker.")
    else:
        said.append("RQ is left out: python3-rq is not installed.")
    return found, said


def measure(quick):
    rounds = QUICK_ROUNDS if quick else ROUNDS
    rates, costs = {}, {}
    with temporary_folder() as folder:
        found, said = contestants(folder)
        for number in range(rounds):
            for batch in BATCHES:
                for queue in found:
                    if batch not in queue.batches:
                        continue
                    note(f"queue: round {number + 1} of {rounds}, batch {batch}, {queue.name}")
                    tasks = queue.tasks // (5 if quick else 1) // (5 if batch == 1 and queue.name != "RQ" else 1)
                    with queue.server() as cpu_us:
                        for what in ("push", "work"):
                            cpu = cpu_us()
                            seconds = queue.seconds(what, tasks, batch)
                            rates.setdefault((queue.name, what, batch), []).append(tasks / seconds)
                            costs.setdefault((queue.name, what, batch), []).append((cpu_us() - cpu) / tasks)
    note("")
    report(found, said, rates, costs)


def report(found, said, rates, costs):
    print(f"## Tasks through a queue, {BYTES} bytes each\n")
    print("One producer, then one worker that does nothing with a task; batches of that many tasks a call, two calls "
          "under way (BullMQ: a concurrency of twice the batch; beanstalkd: twice the batch pipelined). The server has "
          f"one core, producer and worker another. {' '.join(said)}\n")
    for what, title in (("push", "push"), ("work", "claim + ack")):
        table([f"{title}, tasks/s (us of the server's CPU for a task)", *(f"batch {batch}" for batch in BATCHES)],
              [[queue.name, *(cell(rates, costs, (queue.name, what, batch)) for batch in BATCHES)] for queue in found])
    verdicts(found, rates)


def cell(rates, costs, key):
    return f"{median(rates[key]):,.0f} ({median(costs[key]):.1f})" if key in rates else "-"


def verdicts(found, rates):
    """What must be reached, at a batch of 100."""
    reached = median(rates["fairlead", "work", 100])
    rows = [["tasks/s", f"{TASKS_S:,}", f"{reached:,.0f}"]]
    for queue in found[1:]:
        bound = f"{OVER_BULLMQ} x" if queue.name == "BullMQ" else "1 x"
        other = median(rates[queue.name, "work", 100 if 100 in queue.batches else 1])
        rows.append([f"beside {queue.name}", bound, f"{reached / other:.1f} x"])
    table(["claim + ack at batch 100", "at least", "reached"], rows)
