"""check.py - 10,000 proxies on loopback judged at once, beside a checker on libcurl's multi interface."""

import collections
import json
import math
import os
import random
import resource
import subprocess
import time

from peers import FAIRLEAD, LOAD_CORE, SERVER_CORE, BenchError, compile_tool, note, running, table, temporary_folder

PROXIES, CONCURRENCY, TIMEOUT_S = 10_000, 2_000, 5
QUICK_PROXIES = 2_000
TARGET, TEXT = "http://farm.example/", "fairlead farm"
SPARE_S, LIMIT_MIB = 3, 64

# In the order of `enum kind` in check_farm.c, and the reason that each must get; the refusing ones are no kind there.
KINDS = [("good", "ok"), ("silent", "proxy-silent"), ("slow drip", "response-timeout"), ("reset", "proxy-reset"),
         ("garbage", "proxy-garbage"), ("407", "auth-failed"), ("redirect loop", "check-status"),
         ("endless headers", "response-head-size"), ("refused", "proxy-refused")]


def make_list(count, port, refusing_port):
    """host:port -> (kind, reason): one tenth good, six in a hundred that drip, the rest in equal parts."""
    shares = {"good": count // 10, "slow drip": count * 6 // 100}
    others = [kind for kind, _ in KINDS if kind not in shares]
    left = count - sum(shares.values())
    shares |= {kind: left // len(others) + (i < left % len(others)) for i, kind in enumerate(others)}
    proxies = {}
    for number, (kind, reason) in enumerate(KINDS, 1):
        for i in range(shares[kind]):
            host = f"127.{number}.{i // 250}.{i % 250 + 1}"
            proxies[f"{host}:{refusing_port if kind == 'refused' else port}"] = (kind, reason)
    return proxies


def spawn(words, list_path, out_path):
    """Wall seconds, CPU seconds and peak MiB of a checker that reads the list from standard input."""
    begin = time.monotonic()
    with open(list_path, "rb") as listed, open(out_path, "wb") as out:
        process = subprocess.Popen(words, stdin=listed, stdout=out, stderr=subprocess.DEVNULL, preexec_fn=prepare)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise BenchError(f"{words[0]} ended with status {process.returncode}")
    return time.monotonic() - begin, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def prepare():
    os.sched_setaffinity(0, {SERVER_CORE})
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def judge(proxies, out_path):
    """kind -> [right, wrong] of fairlead's verdicts."""
    rows = collections.defaultdict(lambda: [0, 0])
    with open(out_path, encoding="utf-8") as out:
        found = {f"{row['host']}:{row['port']}": row for row in map(json.loads, out)}
    for proxy, (kind, reason) in proxies.items():
        row = found.get(proxy)
        is_right = row is not None and row["reason"] == reason and row["ok"] == (reason == "ok")
        rows[kind][0 if is_right else 1] += 1
    return rows


def good_of(proxies):
    return {f"http://{proxy}" for proxy, (kind, _) in proxies.items() if kind == "good"}


def measure(quick):
    count = QUICK_PROXIES if quick else PROXIES
    with temporary_folder() as folder:
        command = [compile_tool(folder, "check_farm")]
        with running("check_farm", command, folder, LOAD_CORE, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as farm:
            ports = farm.process.stdout.readline().split()
            if len(ports) != 2:
                raise BenchError(f"check_farm does not listen: {farm.last_words()}")
            measure_farm(folder, make_list(count, *map(int, ports)), count)


def measure_farm(folder, proxies, count):
    listed, out = os.path.join(folder, "list"), os.path.join(folder, "out")
    order = list(proxies)
    random.Random(1).shuffle(order)
    with open(listed, "w", encoding="ascii") as file:
        file.writelines(f"http://{proxy}\n" for proxy in order)
    print(f"## {count:,} proxies judged, {CONCURRENCY:,} at once, {TIMEOUT_S} s each\n")
    note("check: fairlead")
    mine = spawn([FAIRLEAD, "check", "--quiet", "--json", "--allow-private", "--check-target", TARGET, "--check-status", "200",
                  "--check-text", TEXT, "--check-timeout", f"{TIMEOUT_S}s", "--check-concurrency", str(CONCURRENCY), "-"],
                 listed, out)
    verdicts = judge(proxies, out)
    note("check: libcurl")
    theirs = spawn([compile_tool(folder, "check_curl", "-lcurl"), TARGET, TEXT, str(CONCURRENCY), str(TIMEOUT_S * 1000)],
                   listed, out)
    with open(out, encoding="utf-8") as file:
        found = set(file.read().split())
    note("")
    held = sum(kind in ("silent", "slow drip") for kind, _ in proxies.values())
    bound = math.ceil(held / CONCURRENCY) * TIMEOUT_S + SPARE_S
    print(f"{held:,} of them keep a check until its deadline: `ceil({held:,} / {CONCURRENCY:,}) x {TIMEOUT_S} s + "
          f"{SPARE_S} s` = {bound} s is the bound, {LIMIT_MIB} MiB that of the memory.\n")
    table(["", "s", "CPU s", "peak MiB", "good found"],
          [row("fairlead check", mine, verdicts["good"][0]),
           row("libcurl, multi interface", theirs, len(found & good_of(proxies)))])
    table(["proxies", "reason", "right", "wrong"],
          [[kind, f"`{reason}`", *verdicts[kind]] for kind, reason in KINDS])


def row(name, measures, good):
    return [name, *(f"{number:.1f}" for number in measures), good]
