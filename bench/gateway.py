"""gateway.py - what a tunnel and a request cost the gateway, beside other proxies."""

import contextlib
import os
import re
import subprocess

import peers
from peers import BenchError, LOAD_CORE, median, note, table

POOL = "bench"
UPSTREAMS = 3
PAYLOAD_BYTES = 100
PARALLEL = 32
CONNECT_PARALLEL = (8, 32, 128)
IDLE_TUNNELS = 2_000
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


def connect_table(servers, load, quick, redis_client):
    total, rounds = (3_000, 5) if quick else (8_000, 7)
    rows = [row for parallel in CONNECT_PARALLEL
            for row in connect_rows(servers, load, parallel, total, rounds, redis_client)]
    print("### CONNECT\n")
    print(f"CPU microseconds of the process for one tunnel: set up, {PAYLOAD_BYTES} bytes each way, torn "
          f"down. {total:,} tunnels in each of {rounds} rounds, {UPSTREAMS} upstreams; / HAProxy: median of the ratios "
          "within each round. HAProxy: `mode tcp`, `balance leastconn`, one thread, no log. Latency and rate are those "
          "of the whole chain, whose other parts share one core.\n")
    table(["proxy", "at once", "CPU us, median", "min", "max", "/ HAProxy", "tunnels/s", "p50 us", "p99 us",
           "Redis CPU us"], rows)


def latency_table(servers, upstream_address, load, quick):
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
    table(["through", "p50", "p99", "p50 added", "p99 added"], rows)


def memory_table(starters, load):
    print("### Memory of an idle tunnel\n")
    print(f"Growth of anonymous resident memory by {IDLE_TUNNELS:,} idle tunnels that have "
          "carried bytes.\n")
    rows = []
    for name, start in starters.items():
        note(f"gateway: idle tunnels, {name}")
        with start() as server:
            load.run(server.address, 200, 10, CONNECT_TARGET)
            before = server.resident_bytes()
            with load.holding(server.address, IDLE_TUNNELS):
                growth = server.resident_bytes() - before
        rows.append([name, f"{before / 1024:,.0f}", f"{growth / 1024:,.0f}", f"{growth / IDLE_TUNNELS:,.0f}"])
    note("")
    table(["proxy", "before, KiB", "growth, KiB", "bytes a tunnel"], rows)


def plain_table(servers, origin, load, quick, redis_client):
    total, rounds = (3_000, 5) if quick else (8_000, 7)

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
    table(["proxy", "CPU us, median", "min", "max", "fairlead / it", "requests/s"], rows)


def measure(quick):
    print("## The gateway\n")
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
            connect_table(servers, load, quick, store.client)
            latency_table(servers, upstreams.addresses[0], load, quick)
        starters.pop("fairlead, access log")
        memory_table(starters, load)
        starters = {"fairlead": starters["fairlead"], "squid": lambda: peers.squid(folder),
                    "tinyproxy": lambda: peers.tinyproxy(folder)}
        with contextlib.ExitStack() as inner:
            servers = {name: inner.enter_context(start()) for name, start in starters.items()
                       if name == "fairlead" or peers.find(name)}
            plain_table(servers, upstreams.addresses[0], load, quick, store.client)
