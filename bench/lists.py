"""lists.py - how long reading a proxy list takes, and putting it into Redis."""

import os
import random
import time

from peers import FAIRLEAD, LOAD_CORE, SERVER_CORE, BenchError, median, note, redis_server, table, temporary_folder

LINES = 500_000
RUNS = 5


def write_list(path, shuffled):
    """Different addresses, none of them special, one a line. In a child: what it needs would count as peak of what is run."""
    pid = os.fork()
    if pid:
        os.waitpid(pid, 0)
        return
    lines = [f"{20 + i // 65536}.{i // 256 % 256}.{i % 256}.{i * 7 % 250 + 1}:{1024 + i % 60000}\n" for i in range(LINES)]
    if shuffled:
        random.Random(1).shuffle(lines)
    with open(path, "w", encoding="ascii") as file:
        file.writelines(lines)
    os._exit(0)


def run(*words):
    """Wall and CPU seconds and the peak of resident MiB of one import."""
    begin = time.monotonic()
    pid = os.posix_spawn("/usr/bin/taskset", ["taskset", "-c", str(LOAD_CORE), str(FAIRLEAD), "pool", "import", "--quiet",
                                              *words], os.environ)
    _, status, usage = os.wait4(pid, 0)
    if status:
        raise BenchError(f"pool import ended with status {status}")
    return time.monotonic() - begin, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def row(name, budget, measures):
    walls, cpus, peaks = zip(*measures)
    return [name, f"{median(walls):.2f}", f"{max(walls):.2f}", f"{median(cpus):.2f}", f"{max(peaks):.0f}", budget]


def measure(quick):
    print(f"## A list of {LINES:,} lines\n")
    print(f"`fairlead pool import`, {2 if quick else RUNS} runs each; Redis on one core, without persistence, the command on "
          "the other. Sorted and shuffled lists, since the order of the members decides what Redis pays.\n")
    runs = 2 if quick else RUNS
    rows = []
    with temporary_folder() as folder, redis_server(folder, SERVER_CORE) as server:
        for order in ("sorted", "shuffled"):
            path = os.path.join(folder, order)
            write_list(path, order == "shuffled")
            note(f"lists: {order}")
            rows.append(row(f"read only (--dry-run), {order}", "0.5 s, 64 MiB", [run("--dry-run", path) for _ in range(runs)]))
            for option, what in (((), "candidates"), (("--eligible",), "eligible members")):
                measures = []
                for _ in range(runs):
                    server.client.flushall()
                    measures.append(run("--redis", server.unix_url, *option, path))
                rows.append(row(f"into Redis as {what}, {order}", "5 s", measures))
    note("")
    table(["what", "wall s, median", "max", "CPU s of the command", "peak MiB", "budget"], rows)
