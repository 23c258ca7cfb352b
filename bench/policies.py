"""policies.py - who waits how long under each policy, when members differ in speed."""

import contextlib
import re
import subprocess
from pathlib import Path

import peers
from peers import BenchError, LOAD_CORE, note, table

POOL = "bench"
HEAD = ["policy", "p50", "p99", "requests/s", "served by the 10 / 100 / 1,000 ms member", "in flight there, mean"]
DELAYS_MS = (10, 100, 1000)
CLIENTS = 200
# name: rules; the members' own caps; requests, so many that the slowest member answers some rounds
SETUPS = {
    "least-allocated": (("policy=least-allocated",), None, 6_000),
    "least-concurrent": (("policy=least-concurrent",), None, 20_000),
    "least-concurrent, cap 40": (("policy=least-concurrent", "max_concurrent=40"), None, 12_000),
    "least-concurrent, caps 200 / 40 / 5": (("policy=least-concurrent",), (200, 40, 5), 20_000),
}
ROOT = Path(__file__).resolve().parent.parent
PAGE, PLOT = ROOT / "docs/policies.md", ROOT / "docs/policies.svg"
BLOCK = re.compile(r"(?<=<!-- measured: policies -->\n)(?s:.*?)(?=<!-- end -->)")


@contextlib.contextmanager
def slow_upstream(folder, address, delay_ms):
    """An HTTP proxy that answers each request after so long. stop() tells what it has served."""
    command = [peers.compile_tool(folder, "connect_upstream"), "-d", str(delay_ms), address]
    with peers.running("connect_upstream", command, folder, LOAD_CORE, stdin=subprocess.PIPE,
                       stdout=subprocess.PIPE) as server:
        server.address = server.process.stdout.readline().decode().strip()
        if not server.address:
            raise BenchError(f"connect_upstream does not listen: {server.last_words()}")
        server.stop = lambda: read_numbers(server.process.communicate(timeout=10)[0].decode())
        yield server


def read_numbers(text):
    return {key: float(value) for key, value in re.findall(r"(\w+)=([\d.]+)", text)}


def run_load(folder, gateway, count):
    command = ["taskset", "-c", str(LOAD_CORE), peers.compile_tool(folder, "connect_load"), "-g", "-c", str(CLIENTS),
               "-n", str(count), gateway[0], str(gateway[1]), "origin.example"]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    found = read_numbers(done.stdout)
    if not found or found["errors"]:
        raise BenchError(f"connect_load: {done.stderr.strip() or done.stdout.strip()}")
    return found


def measure_policy(folder, redis_server, rules, caps, count):
    to_pool = ("--redis", redis_server.unix_url, "--pool", POOL)
    redis_server.client.flushall()
    with contextlib.ExitStack() as stack:
        members = [stack.enter_context(slow_upstream(folder, f"127.0.0.{21 + i}", delay))
                   for i, delay in enumerate(DELAYS_MS)]
        for member, cap in zip(members, caps or len(members) * ["default"]):
            peers.fairlead("pool", "add", "--eligible", "--allow-private", "--max-concurrent", str(cap), *to_pool,
                           "http://" + member.address)
        peers.fairlead("pool", "rules", *to_pool, *rules)
        gateway = stack.enter_context(peers.gateway(folder, redis_server.unix_url, POOL, False, "--lease-wait", "30s"))
        found = run_load(folder, gateway.address, count)
        found["members"] = [member.stop() for member in members]
    return found


def cells(name, found):
    share = ["{served:,.0f}".format(**member) for member in found["members"]]
    waiting = ["{waited_mean:.0f} (at most {waited_most:.0f})".format(**member) for member in found["members"]]
    return [name, f"{found['p50_us'] / 1000:,.0f} ms", f"{found['p99_us'] / 1000:,.0f} ms",
            f"{found['per_second']:,.0f}", " / ".join(share), " / ".join(waiting)]


# --- the plot -----------------------------------------------------------------------------------------------------

WIDTH, BAR, GAP, LEFT, RIGHT = 760, 14, 4, 230, 70
COLOURS = ("#3b82c4", "#e0892f", "#5a9e5a")


def bar(x, y, width, colour, label):
    return (f'<rect x="{x:.0f}" y="{y:.0f}" width="{max(width, 1):.0f}" height="{BAR}" fill="{colour}"/>'
            f'<text x="{x + width + 6:.0f}" y="{y + BAR - 3:.0f}">{label}</text>\n')


def panel(title, top, rows, most, unit):
    """rows: (name, values); three bars a row, all to one scale."""
    scale = (WIDTH - LEFT - RIGHT) / most
    text = f'<text x="0" y="{top}" font-weight="bold">{title}</text>\n'
    y = top + BAR
    for name, values in rows:
        text += f'<text x="0" y="{y + BAR - 3}">{name}</text>\n'
        for value, colour in zip(values, COLOURS):
            text += bar(LEFT, y, value * scale, colour, f"{value:,.0f}{unit}")
            y += BAR + GAP
        y += BAR
    return text, y


def legend(top, words):
    return "".join(f'<rect x="{LEFT + i * 130}" y="{top}" width="{BAR}" height="{BAR}" fill="{COLOURS[i]}"/>'
                   f'<text x="{LEFT + i * 130 + BAR + 5}" y="{top + BAR - 3}">{word}</text>\n'
                   for i, word in enumerate(words))


def plot(results):
    times = [(name, (found["p50_us"] / 1000, found["p99_us"] / 1000)) for name, found in results.items()]
    flight = [(name, [member["waited_mean"] for member in found["members"]]) for name, found in results.items()]
    first, bottom = panel("Time of a request, ms", 20, times, max(max(v) for _, v in times), " ms")
    second, end = panel("Requests in flight at each member, mean", bottom + 50, flight,
                        max(max(v) for _, v in flight), "")
    height = end + 36
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
            f'role="img" font-family="sans-serif" font-size="12" fill="#808080">\n'
            f'<title>Time of a request and requests in flight under each policy</title>\n'
            f'{first}{legend(bottom, ("p50", "p99"))}{second}{legend(end, [f"{delay:,} ms member" for delay in DELAYS_MS])}</svg>\n')


# --- all ----------------------------------------------------------------------------------------------------------


def write(rows, results):
    lines = ["| " + " | ".join(row) + " |\n" for row in [HEAD, ["---", *["---:"] * 5], *rows]]
    machine = peers.describe_machine().splitlines()[0]
    PAGE.write_text(BLOCK.sub(lambda _: f"\n{''.join(lines)}\n{machine}\n\n", PAGE.read_text(encoding="utf-8")),
                    encoding="utf-8")
    PLOT.write_text(plot(results), encoding="utf-8")


def measure(is_quick, is_written=False):
    results = {}
    with peers.temporary_folder() as folder, peers.redis_server(folder, LOAD_CORE) as redis_server:
        for name, (rules, caps, count) in SETUPS.items():
            note(f"policies: {name}")
            results[name] = measure_policy(folder, redis_server, rules, caps, count // 4 if is_quick else count)
        note("")
    rows = [cells(name, found) for name, found in results.items()]
    print(f"Three members that answer after {', '.join(f'{ms:,}' for ms in DELAYS_MS)} ms, {CLIENTS} clients at a time "
          "through one gateway.\n")
    table(HEAD, rows)
    if is_written:
        write(rows, results)
