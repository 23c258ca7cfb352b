"""worst.py - the longest runs of lua/allocate.lua, by the clock of Redis."""

import random

from peers import ROOT, SERVER_CORE, fill_pool, median, note, redis_server, table, temporary_folder

SIZE = 100_000
BATCH = 256
RUNS = 20
BUDGET_US = 5_000


def kinds():
    r = random.Random(1)
    return {
        "level": [7] * SIZE,
        "one newcomer at zero": [0 if i == SIZE // 2 else 10_000 for i in range(SIZE)],
        "fractional scores, 0 to 1": [r.random() for _ in range(SIZE)],
        "fractional scores, 0 to 1,000": [r.random() * 1_000 for _ in range(SIZE)],
        "staircase, steps of 1": list(range(SIZE)),
        "staircase, steps of 1/2": [i * 0.5 for i in range(SIZE)],
    }


def call_us(client, sha):
    """Microseconds of one call on a fresh copy of the template."""
    client.copy("template", "bench", replace=True)
    client.config_resetstat()
    chosen = client.evalsha(sha, 1, "bench", BATCH)
    assert len(chosen) == BATCH
    return client.info("commandstats")["cmdstat_evalsha"]["usec"]


def measure(quick):
    print(f"## The worst case of one call: {BATCH} allocations on {SIZE:,} members\n")
    print(f"Time of the call on the server (INFO commandstats) in microseconds, {RUNS} calls, each on a fresh copy of "
          f"the pool; the budget is {BUDGET_US:,}.\n")
    rows = []
    with temporary_folder() as folder, redis_server(folder, SERVER_CORE) as server:
        sha = server.client.script_load((ROOT / "lua" / "allocate.lua").read_text())
        for kind, scores in kinds().items():
            note(f"worst: {kind}")
            fill_pool(server.client, "template", scores)
            times = [call_us(server.client, sha) for _ in range(RUNS)]
            rows.append([kind, min(times), f"{median(times):.0f}", max(times)])
    note("")
    table(["pool", "min", "median", "max"], rows)
