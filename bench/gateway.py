"""gateway.py - what a tunnel and a request cost the gateway, beside other proxies."""

import contextlib
import os
import re
import resource
import subprocess
import time

import bulk
import peers
from peers import BenchError, LOAD_CORE, median, note, table

POOL = "bench"
UPSTREAMS = 3
PAYLOAD_BYTES = 100
PARALLEL = 32
CONNECT_PARALLEL = (8, 32, 128)
IDLE_TUNNELS = 2_000
NODE_TUNNELS, NODE_WORKERS = 10_000, 2
REST_SECONDS = 5
CONNECT_TARGET = "origin.example:443"


class Load:
    """The load generator, pinned away from what it loads."""

    def __init__(self, folder):
        self.path = peers.compile_tool(folder, "connect_load")

    def command(self, address, total, parallel, target, *options):
        return ["taskset", "-c", str(LOAD_CORE), self.path, *options, "-c", str(parallel), "-n", str(total),
                "-s", str(PAYLOAD_BYTES), address[0], str(address[1]), target]

    def run(self, *arguments):
        result = subprocess.run(self.command(*arguments), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        found = {key: float(value) for key, value in re.findall(r"(\w+)=([\d.]+)", result.stdout)}
        if not found or found["errors"] > 0:
            raise BenchError(f"connect_load: {result.stderr.strip() or result.stdout.strip()}")
        return found

    @contextlib.contextmanager
    def holding(self, address, total):
        process = subprocess.Popen(self.command(address, total, total, CONNECT_TARGET, "-h"), stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, text=True)
        try:
            lines = [process.stdout.readline(), process.stdout.readline()]
            if lines[1] != f"holding {total}\n":
                raise BenchError(f"connect_load: {''.join(lines).strip()}")
            yield
        finally:
            process.stdin.close()
            process.wait()


def fill(redis_server, upstreams):
    peers.fairlead("pool", "add", "--eligible", "--allow-private", "--redis", redis_server.unix_url, "--pool", POOL,
                   *("http://" + address for address in upstreams.addresses))


def alternate(servers, rounds, load_of, redis_client):
    """Every server once in each round, back and forth. For each: a list of measures of its rounds."""
    found = {name: [] for name in servers}
    for name, server in servers.items():
        load_of(server, 500)
    for round_number in range(rounds):
        names = list(servers) if round_number % 2 == 0 else list(reversed(servers))
        for name in names:
            note(f"gateway: round {round_number + 1}, {name}")
            before, redis_before = servers[name].cpu_us(), peers.redis_cpu_us(redis_client)
            result = load_of(servers[name], None)
            result["cpu_us"] = (servers[name].cpu_us() - before) / result["done"]
            result["redis_us"] = (peers.redis_cpu_us(redis_client) - redis_before) / result["done"]
            found[name].append(result)
    note("")
    return found


def column(results, key):
    return median([result[key] for result in results])


def ratio(results, others):
    """Median of the ratios within each round."""
    return median([one["cpu_us"] / other["cpu_us"] for one, other in zip(results, others)])


def connect_rows(servers, load, parallel, total, rounds, redis_client):
    def load_of(server, count):
        return load.run(server.address, count or total, parallel, CONNECT_TARGET)

    found = alternate(servers, rounds, load_of, redis_client)
    for name, results in found.items():
        costs = [result["cpu_us"] for result in results]
        yield [name, parallel, f"{median(costs):.1f}", f"{min(costs):.1f}", f"{max(costs):.1f}",
               f"{ratio(results, found['HAProxy']):.2f}" if "HAProxy" in found else "-",
               f"{column(results, 'per_second'):,.0f}", f"{column(results, 'p50_us'):,.0f}",
               f"{column(results, 'p99_us'):,.0f}", f"{column(results, 'redis_us'):.1f}"]


def connect_table(servers, load, quick, redis_client, figures):
    total, rounds = (3_000, 3) if quick else (8_000, 7)
    rows = [row for parallel in CONNECT_PARALLEL
            for row in connect_rows(servers, load, parallel, total, rounds, redis_client)]
    figures["a CONNECT tunnel: CPU / HAProxy", "<= 1.3"] = " ".join(
        f"{row[5]} ({row[1]} at once)" for row in rows if row[0] == "fairlead")
    print("### CONNECT\n")
    print(f"CPU microseconds of the process for one tunnel: set up, {PAYLOAD_BYTES} bytes each way, torn "
          f"down. {total:,} tunnels in each of {rounds} rounds, {UPSTREAMS} upstreams; / HAProxy: median of the ratios "
          "within each round. HAProxy: `mode tcp`, `balance leastconn`, one thread, no log. Latency and rate are those "
          "of the whole chain, whose other parts share one core.\n")
    table(["proxy", "at once", "CPU us, median", "min", "max", "/ HAProxy", "tunnels/s", "p50 us", "p99 us",
           "Redis CPU us"], rows)


def latency_table(servers, upstream_address, load, quick, figures):
    host, _, port = upstream_address.partition(":")
    addresses = {"upstream alone": (host, int(port)), **{name: server.address for name, server in servers.items()}}
    found = {name: [] for name in addresses}
    total = 1_000 if quick else 3_000
    for server in servers.values():
        os.sched_setaffinity(server.pid, {LOAD_CORE})
    for round_number in range(3 if quick else 5):
        for name in addresses if round_number % 2 == 0 else reversed(addresses):
            note(f"gateway: latency, round {round_number + 1}, {name}")
            found[name].append(load.run(addresses[name], total, 1, CONNECT_TARGET))
    note("")
    print("### Latency at low load\n")
    print("Microseconds from the client's connect() to the last echoed byte, one tunnel at a time; "
          "added: over the upstream alone. Everything on one core here, since waking another one costs more than all "
          "else and differs between machines.\n")
    alone = {key: column(found["upstream alone"], key) for key in ("p50_us", "p99_us")}
    rows = []
    for name, results in found.items():
        p50, p99 = column(results, "p50_us"), column(results, "p99_us")
        rows.append([name, f"{p50:,.0f}", f"{p99:,.0f}", f"{p50 - alone['p50_us']:,.0f}",
                     f"{p99 - alone['p99_us']:,.0f}"])
        if name == "fairlead":
            figures["added latency, one at a time: p50", "<= 150 us"] = f"{rows[-1][3]} us"
            figures["added latency, one at a time: p99", "<= 1,000 us"] = f"{rows[-1][4]} us"
    table(["through", "p50", "p99", "p50 added", "p99 added"], rows)


def most_tunnels(wanted):
    """Each tunnel is two descriptors in a worker, and one worker may get nearly all of them."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return min(wanted, (hard - 200) // 2)


def rest(name, start, load, count):
    """Holds `count` idle tunnels; returns the row of the table that says what they cost."""
    note(f"gateway: idle tunnels, {name}")
    with start() as server:
        load.run(server.address, 200, 10, CONNECT_TARGET)
        before = server.resident_bytes()
        with load.holding(server.address, count):
            growth = server.resident_bytes() - before
            cpu_us, begun = server.cpu_us(), time.monotonic()
            time.sleep(REST_SECONDS)
            percent = (server.cpu_us() - cpu_us) / (time.monotonic() - begun) / 1e4
    return [name, f"{count:,}", f"{before / 1024:,.0f}", f"{growth / 1024:,.0f}", f"{growth / count:,.0f}", f"{percent:.2f}"]


def memory_table(starters, load, figures):
    print("### Idle tunnels\n")
    count = most_tunnels(NODE_TUNNELS)
    print("Growth of anonymous resident memory by idle tunnels that have carried bytes, and CPU time of all processes "
          f"together over {REST_SECONDS} s at rest. The node: a supervisor, a keeper and {NODE_WORKERS} workers"
          + (f"; the descriptor limit of this machine admits no more than {count:,} tunnels" if count < NODE_TUNNELS else "")
          + ".\n")
    rows = [rest(name, start, load, IDLE_TUNNELS) for name, start in starters.items() if name != "node"]
    rows.append(rest(f"fairlead, a node of {NODE_WORKERS} workers", starters["node"], load, count))
    note("")
    figures["an idle tunnel: resident memory", "<= 2,048 bytes"] = f"{rows[-1][4]} bytes ({rows[-1][1]} tunnels)"
    figures["idle tunnels: CPU at rest", "~ 0"] = f"{rows[-1][5]} % of a core"
    table(["proxy", "tunnels", "before, KiB", "growth, KiB", "bytes a tunnel", "CPU at rest, %"], rows)


def plain_table(servers, origin, load, quick, redis_client, figures):
    total, rounds = (3_000, 3) if quick else (8_000, 7)

    def load_of(server, count):
        return load.run(server.address, count or total, PARALLEL, origin, "-g")

    found = alternate(servers, rounds, load_of, redis_client)
    print("### Plain HTTP\n")
    print(f"CPU microseconds of the process for one GET with a response of 100 bytes, a new connection on "
          f"either side. {PARALLEL} at once, {total:,} in each of {rounds} rounds; squid without cache and log, "
          "tinyproxy without log, both straight to the origin, the gateway through the pool's upstreams, "
          "which answer the same.\n")
    own = found["fairlead"]
    rows = []
    for name, results in found.items():
        costs = [result["cpu_us"] for result in results]
        rows.append([name, f"{median(costs):.1f}", f"{min(costs):.1f}", f"{max(costs):.1f}",
                     f"{ratio(own, results):.2f}", f"{column(results, 'per_second'):,.0f}"])
        if name != "fairlead":
            figures[f"a plain request: CPU / {name}", "<= 0.5"] = rows[-1][4]
    table(["proxy", "CPU us, median", "min", "max", "fairlead / it", "requests/s"], rows)


def summary_table(figures):
    print("### All budgets of the gateway\n")
    table(["what", "must be", "is"], [[what, budget, found] for (what, budget), found in figures.items()])


def measure(quick):
    print("## The gateway\n")
    figures = {}
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(peers.temporary_folder())
        store = stack.enter_context(peers.redis_server(folder, LOAD_CORE))
        upstreams = stack.enter_context(peers.upstreams(folder, UPSTREAMS))
        fill(store, upstreams)
        load = Load(folder)
        starters = {
            "HAProxy": lambda: peers.haproxy(folder, upstreams.addresses),
            "fairlead": lambda: peers.gateway(folder, store.unix_url, POOL, False),
            "fairlead, access log": lambda: peers.gateway(folder, store.unix_url, POOL, True),
        }
        if not peers.find("haproxy"):
            del starters["HAProxy"]
        with contextlib.ExitStack() as inner:
            servers = {name: inner.enter_context(start()) for name, start in starters.items()}
            connect_table(servers, load, quick, store.client, figures)
            latency_table(servers, upstreams.addresses[0], load, quick, figures)
        slowest = bulk.measure(folder, store.unix_url, quick)
        figures["bulk through a tunnel: throughput / HAProxy, the worst of four", ">= 1.0"] = \
            f"{slowest:.2f}" if slowest else "-"
        starters.pop("fairlead, access log")
        starters["node"] = lambda: peers.node(folder, store.unix_url, POOL, NODE_WORKERS)
        memory_table(starters, load, figures)
        starters = {"fairlead": starters["fairlead"], "squid": lambda: peers.squid(folder),
                    "tinyproxy": lambda: peers.tinyproxy(folder)}
        with contextlib.ExitStack() as inner:
            servers = {name: inner.enter_context(start()) for name, start in starters.items()
                       if name == "fairlead" or peers.find(name)}
            plain_table(servers, upstreams.addresses[0], load, quick, store.client, figures)
        summary_table(figures)
