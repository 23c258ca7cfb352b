"""allocate.py - allocations per second through one Redis."""

import subprocess
import time

from peers import (FAIRLEAD, FIVE_LINES, LOAD_CORE, ROOT, SERVER_CORE, BenchError, fill_pool, find, median, note,
                   redis_cpu_us, redis_server, table, temporary_folder)

KEY = "bench"
BATCH = 256
PROCESSES = 4
SIZES = (10, 1_000, 100_000, 1_000_000)


def pinned(*command):
    return ["taskset", "-c", str(LOAD_CORE), *map(str, command)]


def redis_benchmark(server, depth, calls, *words):
    """Calls a second, as redis-benchmark counts them."""
    command = pinned(find("redis-benchmark"), "-p", server.port, "-c", 16, "-P", depth, "-n", calls, "--csv", *words)
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=300)
    lines = result.stdout.strip().splitlines()
    if result.returncode != 0 or len(lines) < 2 or "rror" in result.stdout + result.stderr:
        raise BenchError(f"redis-benchmark failed: {(result.stderr + result.stdout).strip()[:200]}")
    return float(lines[-1].strip('"').split('","')[1])


def fairlead_processes(server, count):
    """Allocations a second by several processes of the command line, each `count` of them."""
    command = pinned(FAIRLEAD, "pool", "allocate", "--redis", server.url, "--pool", KEY, "--count", count, "--id")
    started = time.monotonic()
    processes = [subprocess.Popen(command, stdout=subprocess.DEVNULL) for _ in range(PROCESSES)]
    if any([process.wait() for process in processes]):
        raise BenchError("fairlead pool allocate failed")
    return PROCESSES * count / (time.monotonic() - started)


def ways(server, scale):
    """(name, allocations of a run, run() -> allocations a second)"""
    five = server.client.script_load(FIVE_LINES)
    batch = server.client.script_load((ROOT / "lua" / "allocate.lua").read_text())
    deep, single, calls, count = 400_000 // scale, 100_000 // scale, 8_000 // scale, 500_000 // scale
    return [
        ("five lines, -P 16", deep, lambda: redis_benchmark(server, 16, deep, "EVALSHA", five, 1, KEY)),
        ("five lines, -P 1", single, lambda: redis_benchmark(server, 1, single, "EVALSHA", five, 1, KEY)),
        (f"`pool allocate`, {PROCESSES} processes", PROCESSES * count, lambda: fairlead_processes(server, count)),
        ("allocate.lua, n = 256", calls * BATCH,
         lambda: BATCH * redis_benchmark(server, 1, calls, "EVALSHA", batch, 1, KEY, BATCH)),
    ]


def measure_size(server, size, quick):
    """For each way: its name, the median allocations a second, and CPU microseconds of Redis for one."""
    fill_pool(server.client, KEY, [0] * size)
    found = ways(server, 4 if quick else 1)
    rates, costs = {name: [] for name, _, _ in found}, {name: [] for name, _, _ in found}
    for round_number in range(3):
        for name, allocations, run in found if round_number % 2 == 0 else reversed(found):
            note(f"allocate: {size:,} members, round {round_number + 1}, {name}")
            before, recorded = redis_cpu_us(server.client), recorded_sum(server, size)
            rates[name].append(run())
            costs[name].append((redis_cpu_us(server.client) - before) / allocations)
            check_count(recorded_sum(server, size), recorded, allocations, name)
    return [(name, median(rates[name]), median(costs[name])) for name, _, _ in found]


def recorded_sum(server, size):
    """Allocations recorded so far; counted for small pools only, where it costs nothing."""
    if size > 1_000:
        return None
    return sum(score for _, score in server.client.zrange(KEY, 0, -1, withscores=True))


def check_count(after, before, allocations, name):
    # redis-benchmark may send a few calls more than it was told.
    if after is not None and not allocations <= after - before <= allocations * 1.01 + 16 * 16 * BATCH:
        raise BenchError(f"{name} recorded {after - before:.0f} allocations, not {allocations}")


def measure(quick):
    print("## Allocations per second through one Redis\n")
    where = "the other" if SERVER_CORE != LOAD_CORE else "the same"
    print("The five lines and `lua/allocate.lua` (n = 256, `-P 1`) under `redis-benchmark -c 16`; `fairlead pool "
          f"allocate --count N --id` in {PROCESSES} processes, which asks for up to {BATCH} in a call. Redis on one "
          f"core, without persistence, all clients on {where} one, TCP on loopback.\n")
    rates, costs = [], []
    with temporary_folder() as folder, redis_server(folder, SERVER_CORE) as server:
        for size in SIZES[:-1] if quick else SIZES:
            found = measure_size(server, size, quick)
            names = [name for name, _, _ in found]
            deep, single, own, batch = [rate for _, rate, _ in found]
            rates.append([f"{size:,}", *(f"{rate:,.0f}" for _, rate, _ in found), f"{own / deep:.1f}",
                          f"{own / single:.1f}", f"{batch / deep:.1f}", f"{batch / single:.1f}"])
            deep, single, own, batch = [cost for _, _, cost in found]
            costs.append([f"{size:,}", *(f"{cost:.2f}" for _, _, cost in found), f"{deep / own:.1f}",
                          f"{single / own:.1f}"])
    note("")
    table(["members", *names, "`pool allocate` / -P 16", "/ -P 1", "allocate.lua / -P 16", "/ -P 1"], rates)
    print("CPU microseconds of redis-server for one allocation:\n")
    table(["members", *names, "-P 16 / `pool allocate`", "-P 1 / `pool allocate`"], costs)
