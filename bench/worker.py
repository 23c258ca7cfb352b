"""worker.py - `work fetch`: thousands of slow requests in one process; pages a second beside Scrapy and curl."""

import contextlib
import importlib.metadata
import importlib.util
import os
import re
import resource
import subprocess
import sys
import time
from pathlib import Path

import peers
from peers import BenchError, LOAD_CORE, SERVER_CORE, find, median, note, table

POOL, QUEUE, URL = "bench", "bench", "http://origin.example/page-"
MEMBERS = 3
SLOW, DELAY_MS, SLOW_TASKS, QUICK_SLOW_TASKS = 5_000, 1_000, 40_000, 20_000
SPARE = 100  # descriptors beside those of the requests
FAST = 64
# Of Scrapy a quarter.
PAGES, QUICK_PAGES, SCRAPY_SHARE = 20_000, 8_000, 4
ROUNDS, QUICK_ROUNDS = 3, 1
RATE = 4_000
RUN_S = 300
LOOK_S = 0.02
FOLDER = Path(__file__).resolve().parent
PAGE = FOLDER.parent / "docs/worker.md"
BLOCK = re.compile(r"(?<=<!-- measured: worker -->\n)(?s:.*?)(?=<!-- end -->)")


# --- what takes part ----------------------------------------------------------------------------------------------


@contextlib.contextmanager
def proxies(folder, delay_ms):
    """One process, three addresses, which are three members. With a delay it answers so long after the request."""
    delay = ("-d", str(delay_ms)) if delay_ms else ()
    hosts = [f"127.0.0.{21 + i}" for i in range(MEMBERS)]
    command = [peers.compile_tool(folder, "connect_upstream"), *delay, *hosts]
    with peers.running("connect_upstream", command, folder, LOAD_CORE, stdin=subprocess.PIPE,
                       stdout=subprocess.PIPE) as server:
        server.addresses = [server.process.stdout.readline().decode().strip() for _ in hosts]
        if not all(server.addresses):
            raise BenchError(f"connect_upstream does not listen: {server.last_words()}")
        yield server


class Cost:
    """What a program took until its end."""

    def __init__(self, seconds, cpu_us, output):
        self.seconds, self.cpu_us, self.output = seconds, cpu_us, output
        self.memory = self.descriptors = 0


def run(name, command, folder, look=None):
    """Runs it to its end; `look` is called with its process id now and then."""
    output, log = Path(folder, name + ".out"), Path(folder, name + ".log")
    begin = time.monotonic()
    with output.open("wb") as out, log.open("wb") as err:
        process = subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                                   preexec_fn=lambda: os.sched_setaffinity(0, {SERVER_CORE}))
    try:
        while True:
            ended, status, usage = os.wait4(process.pid, os.WNOHANG)
            if ended:
                process.returncode = os.waitstatus_to_exitcode(status)
                break
            if time.monotonic() - begin > RUN_S:
                raise BenchError(f"{name} does not end")
            if look:
                look(process.pid)
            time.sleep(LOOK_S)
    finally:
        if process.returncode is None:
            process.kill()
            process.wait()
    seconds = time.monotonic() - begin
    if process.returncode:
        raise BenchError(f"{name}: {(log.read_text().strip() or 'failed').splitlines()[-1]}")
    return Cost(seconds, (usage.ru_utime + usage.ru_stime) * 1e6, output.read_text())


class Peak:
    """The most memory and descriptors that were seen."""

    def __init__(self):
        self.memory = self.descriptors = 0

    def __call__(self, pid):
        with contextlib.suppress(OSError, TypeError):  # it may have ended just now
            self.memory = max(self.memory, peers.anonymous_bytes(pid))
            self.descriptors = max(self.descriptors, len(os.listdir(f"/proc/{pid}/fd")))


def fetch(folder, server, upstream, tasks, concurrency, look=None):
    """Tasks that wait in the queue, done by one worker."""
    to_redis = ("--redis", server.unix_url)
    server.client.flushall()
    for address in upstream.addresses:
        peers.fairlead("pool", "add", "--eligible", "--allow-private", "--pool", POOL, *to_redis, "http://" + address)
    urls = "".join(f"{URL}{number}\n" for number in range(tasks))
    peers.fairlead("queue", "push", "--queue", QUEUE, *to_redis, "-", input=urls)
    results = Path(folder, "results.jsonl")
    results.unlink(missing_ok=True)
    cost = run("work", [peers.FAIRLEAD, "work", "fetch", "--queue", QUEUE, "--pool", POOL, *to_redis,
                        "--allow-private", "--drain", "--concurrency", str(concurrency), "-o", str(results)],
               folder, look)
    done = results.read_bytes().count(b'"outcome":"done"')
    if done != tasks:
        raise BenchError(f"work fetch: {done} of {tasks} tasks are done")
    return cost


# --- many slow requests -------------------------------------------------------------------------------------------


def slow_concurrency():
    """As many as the descriptors admit, for the worker and for the upstreams."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return SLOW if hard == resource.RLIM_INFINITY else min(SLOW, hard - SPARE)


def measure_slow(folder, server, tasks):
    concurrency, peak = slow_concurrency(), Peak()
    with proxies(folder, DELAY_MS) as upstream:
        before = peers.redis_cpu_us(server.client), upstream.cpu_us()
        cost = fetch(folder, server, upstream, tasks, concurrency, peak)
        after = peers.redis_cpu_us(server.client), upstream.cpu_us()
    shares = [us / cost.seconds / 1e6 for us in (cost.cpu_us, after[0] - before[0], after[1] - before[1])]
    return {"concurrency": concurrency, "rate": tasks / cost.seconds, "shares": shares,
            "cpu_us": cost.cpu_us / tasks, "memory": peak.memory / concurrency, "descriptors": peak.descriptors}


def tell_slow(found, tasks):
    """Redis's share has the push in it."""
    worker, store, upstream = (f"{share:.0%}" for share in found["shares"])
    return [["requests at a time, each of 1 s", f"{found['concurrency']:,}"],
            ["tasks that waited", f"{tasks:,}"],
            [f"requests/s, from the worker's start to its end (wanted: {RATE:,}; at most {found['concurrency']:,})",
             f"{found['rate']:,.0f}"],
            ["the worker's core is busy", worker],
            ["the other core: Redis (with the push) / upstreams", f"{store} / {upstream}"],
            ["CPU of the worker for a request", f"{found['cpu_us']:,.0f} us"],
            ["the worker's memory for a request in flight, at the peak", f"{found['memory'] / 1024:,.1f} KiB"],
            ["descriptors of the worker at the peak", f"{found['descriptors']:,}"]]


# --- pages beside others ------------------------------------------------------------------------------------------


def by_fairlead(folder, server, upstream, pages):
    peak = Peak()
    cost = fetch(folder, server, upstream, pages, FAST, peak)
    return pages, cost.seconds, cost.cpu_us, peak.memory


def by_scrapy(folder, server, upstream, pages):
    pages, peak = pages // SCRAPY_SHARE, Peak()
    Path(folder, "scrapy.jsonl").unlink(missing_ok=True)
    cost = run("scrapy", [sys.executable, str(FOLDER / "worker_scrapy.py"), str(pages), str(FAST), URL, "scrapy.jsonl",
                          *upstream.addresses], folder, peak)
    seconds, cpu_us, count = (float(word) for word in cost.output.split())
    if count != pages:
        raise BenchError(f"Scrapy: {count:.0f} of {pages} pages came")
    return pages, seconds, cpu_us, peak.memory


def by_curl(folder, server, upstream, pages):
    """Three groups of URLs, one a member, all under way in one pool; bodies are thrown away."""
    pages, peak, command = pages // MEMBERS * MEMBERS, Peak(), [find("curl"), "-q", "-Z", "--parallel-immediate"]
    for i, address in enumerate(upstream.addresses):
        command += [*(["--next"] if i else []), "-sS", "--parallel-max", str(FAST), "-x", "http://" + address,
                    "-o", "/dev/null", "-w", "%{http_code}\n", f"{URL}[1-{pages // MEMBERS}]"]
    cost = run("curl", command, folder, peak)
    if cost.output.count("200\n") != pages:
        raise BenchError(f"curl: {cost.output.count('200')} of {pages} pages came")
    return pages, cost.seconds, cost.cpu_us, peak.memory


def contestants():
    found, said = {"fairlead": by_fairlead}, []
    if importlib.util.find_spec("scrapy"):
        found["Scrapy"] = by_scrapy
        said.append(f"Scrapy {importlib.metadata.version('scrapy')}.")
    else:
        said.append("Scrapy is left out: python3-scrapy is not installed.")
    if find("curl"):
        found["curl --parallel"] = by_curl
        said.append(f"curl {peers.version_of('curl', '--version')}.")
    else:
        said.append("curl is left out: it is not installed.")
    return found, said


def measure_pages(folder, server, found, pages, rounds):
    costs = {name: [] for name in found}
    for number in range(rounds):
        for name, by in found.items():
            note(f"worker: round {number + 1} of {rounds}, {name}")
            with proxies(folder, 0) as upstream:
                costs[name].append(by(folder, server, upstream, pages))
    return costs


def tell_pages(costs):
    rows = []
    for name, runs in costs.items():
        rows.append([name, f"{median([pages / seconds for pages, seconds, _, _ in runs]):,.0f}",
                     f"{median([cpu_us / pages for pages, _, cpu_us, _ in runs]):,.0f} us",
                     f"{median([memory for *_, memory in runs]) / 1e6:,.1f} MB"])
    return rows


# --- all ----------------------------------------------------------------------------------------------------------

SLOW_HEAD = ["many slow requests in one process", ""]
PAGES_HEAD = [f"{FAST} requests at a time", "pages/s", "CPU for a page", "memory at the peak"]


def lines_of(head, rows):
    return "".join("| " + " | ".join(row) + " |\n" for row in [head, ["---", *["---:"] * (len(head) - 1)], *rows])


def write(slow_rows, pages_rows, said):
    text = (f"\n{lines_of(SLOW_HEAD, slow_rows)}\n{lines_of(PAGES_HEAD, pages_rows)}\n"
            f"{peers.describe_machine().splitlines()[0]} {' '.join(said)}\n\n")
    PAGE.write_text(BLOCK.sub(lambda _: text, PAGE.read_text(encoding="utf-8")), encoding="utf-8")


def measure(is_quick, is_written=False):
    tasks, pages, rounds = ((QUICK_SLOW_TASKS, QUICK_PAGES, QUICK_ROUNDS) if is_quick
                            else (SLOW_TASKS, PAGES, ROUNDS))
    found, said = contestants()
    with peers.temporary_folder() as folder, peers.redis_server(folder, LOAD_CORE) as server:
        note("worker: many slow requests")
        slow_rows = tell_slow(measure_slow(folder, server, tasks), tasks)
        pages_rows = tell_pages(measure_pages(folder, server, found, pages, rounds))
    note("")
    print("## A worker that makes requests\n")
    print(f"{MEMBERS} members, which answer with a fixed page of 100 bytes and close. The worker has one core; Redis and "
          "the members share another. fairlead takes each page from a queue in Redis and an allocation with it, and "
          "writes a result; Scrapy makes its URLs itself and writes a line each; curl throws away what it gets. "
          f"{' '.join(said)}\n")
    table(SLOW_HEAD, slow_rows)
    table(PAGES_HEAD, pages_rows)
    if is_written:
        write(slow_rows, pages_rows, said)
