"""bulk.py - how fast much goes through a tunnel, beside HAProxy, and what that costs."""

import contextlib
import re
import subprocess

import peers
from peers import BenchError, LOAD_CORE, median, note, table

POOL = "bulk"
TARGET = "origin.example:443"
GIB = 1 << 30
WAYS = (("up", 1), ("up", 8), ("down", 1), ("down", 8))


def carry(tool, server, way, tunnels, total):
    command = ["taskset", "-c", str(LOAD_CORE), tool, way, str(tunnels), str(total // tunnels), server.address[0],
               str(server.address[1]), TARGET]
    before = server.cpu_us()
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    found = {key: float(value) for key, value in re.findall(r"(\w+)=([\d.]+)", result.stdout)}
    if not found or found["errors"] > 0:
        raise BenchError(f"bulk_peer: {result.stderr.strip() or result.stdout.strip()}")
    found["cpu_s"] = (server.cpu_us() - before) / 1e6 * GIB / total
    return found


def rounds_of(servers, tool, way, tunnels, total, rounds):
    found = {name: [] for name in servers}
    for round_number in range(rounds):
        for name in servers if round_number % 2 == 0 else reversed(servers):
            note(f"bulk: {way}, {tunnels} at once, round {round_number + 1}, {name}")
            found[name].append(carry(tool, servers[name], way, tunnels, total))
    note("")
    return found


def ratio(results, others, key):
    """Median of the ratios within each round."""
    return median([one[key] / other[key] for one, other in zip(results, others)])


def bulk_table(servers, tool, quick):
    """Prints the table; returns the worst ratio of throughput to HAProxy's, or None without it."""
    total, rounds = (GIB // 2, 3) if quick else (GIB, 5)
    print("### Bulk\n")
    print(f"{total / GIB:g} GiB through one tunnel, and through eight at once, from the client to the upstream (up) and back "
          f"(down); {rounds} rounds. HAProxy: `mode tcp`, `option splice-auto`, one thread. / HAProxy: median of the "
          "ratios of throughput within each round.\n")
    rows, ratios = [], []
    for way, tunnels in WAYS:
        found = rounds_of(servers, tool, way, tunnels, total, rounds)
        for name, results in found.items():
            speeds = [result["bytes_per_second"] / 1e6 for result in results]
            beside = ratio(results, found["HAProxy"], "bytes_per_second") if "HAProxy" in found else None
            rows.append([name, way, tunnels, f"{median(speeds):,.0f}", f"{min(speeds):,.0f}", f"{max(speeds):,.0f}",
                         f"{beside:.2f}" if beside else "-",
                         f"{median([result['cpu_s'] for result in results]):.2f}"])
            if beside and name != "HAProxy":
                ratios.append(beside)
    table(["proxy", "way", "tunnels", "MB/s, median", "min", "max", "/ HAProxy", "CPU s a GiB"], rows)
    return min(ratios, default=None)


def measure(folder, redis_url, quick):
    with contextlib.ExitStack() as stack:
        upstream = stack.enter_context(peers.bulk_upstream(folder, "127.0.0.31"))
        peers.fairlead("pool", "add", "--eligible", "--allow-private", "--redis", redis_url, "--pool", POOL,
                       "http://" + upstream.address)
        servers = {"fairlead": stack.enter_context(peers.gateway(folder, redis_url, POOL, False))}
        if peers.find("haproxy"):
            servers["HAProxy"] = stack.enter_context(peers.haproxy(folder, [upstream.address]))
        return bulk_table(servers, peers.compile_tool(folder, "bulk_peer"), quick)
