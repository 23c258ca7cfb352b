"""worst.py - the longest runs of the scripts that requests and checks wait for, by the clock of Redis."""

import random

import worst_queue
from peers import ROOT, SERVER_CORE, fill_pool, median, member_name, note, redis_server, table, temporary_folder

SIZE = 100_000
BATCH = 256
RUNS = 20
BUDGET_US = 5_000
HELD = 100_000  # holders of each subject
NOW_US = 1_800_000_000_000_000
LEASE_SIZES = (10, 1_000, 100_000)
LEASE_RUNS = 5


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


def sticky_us(client, sha, is_moved):
    """64 avoided members in front, and 256 sessions to collect among 100,000."""
    now = 1_000_000
    client.copy("template", "bench", replace=True)
    client.copy("sessions", "bench-sessions", replace=True)
    client.delete("bench-pin")
    if is_moved:
        client.set("bench-pin", f"member={member_name(0)}\tcreated={now}")
        client.zadd("bench-sessions", {"s": now + 1_000})
    front = client.zrange("bench", 0, 63)
    client.config_resetstat()
    keys = ["bench", "bench-pin", "bench-sessions"]
    code, _ = client.evalsha(sha, 3, *keys, now, "s", 600_000, 86_400_000, SIZE, 0, *front)
    assert code == (3 if is_moved else 2)
    return client.info("commandstats")["cmdstat_evalsha"]["usec"]


def traffic_us(client, sha):
    """128 new fields."""
    client.delete("bench")
    client.config_resetstat()
    pairs = [word for i in range(64) for way in ("in", "out") for word in (f"{way}:{member_name(i)}", 10**17)]
    assert client.evalsha(sha, 1, "bench", 4_000_000, *pairs) == 128
    return client.info("commandstats")["cmdstat_evalsha"]["usec"]


def row(kind, times):
    return [kind, min(times), f"{median(times):.0f}", max(times)]


def limit_rows(client):
    """limit.lua and limit_renew.lua on subjects with many holders, of which the first 128 ran out."""
    limit = client.script_load((ROOT / "lua" / "limit.lua").read_text())
    renew = client.script_load((ROOT / "lua" / "limit_renew.lua").read_text())
    end_ms = NOW_US // 1000 + 30_000
    names = [f"0123456789abcdef-{i}" for i in range(HELD)]
    for start in range(0, HELD, 1_000):
        client.zadd("held", {name: end_ms for name in names[start:start + 1_000]})
    client.zadd("held", {f"dead-{i}": i for i in range(128)})
    calls = {
        "limit, 128 of 100,128 holders ran out, twice":
            (limit, 4, "client", "client:rate", "host", "host:rate", NOW_US, "new", *[1_000_000] * 4),
        "limit_renew, 128 of 100,128 holders": (renew, 1, "client", NOW_US, *names[:128]),
    }
    rows = []
    for kind, call in calls.items():
        times = []
        for _ in range(RUNS):
            client.copy("held", "client", replace=True)
            client.copy("held", "host", replace=True)
            client.config_resetstat()
            client.evalsha(*call)
            times.append(client.info("commandstats")["cmdstat_evalsha"]["usec"])
        rows.append(row(kind, times))
    return rows


REPORT_KEYS = ["template", "parked", "admin", "health", "streaks", "rules", "due", "failing", "fallen", "alarm"]


def put_health(client, members):
    """Among 100,000 members with a check to come, those that are reported are up, with all that can be known of them; as
    many failed, of whom 128 in each set have aged out."""
    last = ",".join(f"proxy-certificate:{NOW_US // 1000 - i}" for i in range(5))
    client.hset("health", mapping={m: f"state=up\tsince=1\treason=ok\tchecked=1\tlatency=1234\tfailed=1\tlast={last}\t"
                                   "auth=failed\texit=192.0.2.200\tanonymity=anonymous\tcountry=de" for m in members})
    client.hset("admin", mapping={m: f"state=enabled\texpires_at={NOW_US // 1000 + 10**9}" for m in members})
    client.hset("streaks", mapping={m: -2 for m in members})
    client.hset("rules", mapping={"max_parked_percent": 100})
    for key in ("failing", "fallen"):
        client.delete(key)
        client.zadd(key, {f"old-{i}": i for i in range(128)})
        client.zadd(key, {member_name(i): NOW_US // 1000 for i in range(1_000, 6_000)})


def check_rows(client):
    """report.lua, due.lua and due_mend.lua."""
    report, due, mend = (client.script_load((ROOT / "lua" / f"{name}.lua").read_text())
                         for name in ("report", "due", "due_mend"))
    now = NOW_US // 1000
    members = [member_name(i) for i in range(128)]
    facts = "exit=192.0.2.201\tanonymity=transparent\tcountry=us"
    reports = [word for m in members[:64]
               for word in (m, "fail", "probe", 0, "", "proxy-certificate", facts, 500_000)]
    pairs = [word for m in members for word in (m, 1_000)]
    fill_pool(client, "times", [now - 1] * SIZE)
    calls = {
        "report, 64 failures that put down": (report, 10, *REPORT_KEYS, now, *reports),
        "due, 128 are taken": (due, 1, "due", now, 128, 20_000),
        "due_mend, 128 without a time": (mend, 4, "template", "parked", "admin", "due", now, 0, *pairs),
    }
    rows = []
    for kind, call in calls.items():
        times = []
        for _ in range(RUNS):
            client.copy("times", "due", replace=True)
            if call[0] == mend:
                client.zrem("due", *members)
            put_health(client, members)
            client.config_resetstat()
            client.evalsha(*call)
            times.append(client.info("commandstats")["cmdstat_evalsha"]["usec"])
        rows.append(row(kind, times))
    return rows


LEASE_KEYS = ["live", "busy", "leases", "holders"]
ACQUIRE_KEYS = ["pool", *LEASE_KEYS, "rules", "admin", "released"]
LIVE_UNIT = 2**40


def put_leases(client, size):
    """`size` members with a lease each, of which the first 256 have expired; a second copy of all keys is kept."""
    now = NOW_US // 1000
    client.flushall()
    for start in range(0, size, 1_000):
        ids = range(start, min(start + 1_000, size))
        client.zadd("pool", {member_name(i): i for i in ids})
        client.zadd("busy", {member_name(i): LIVE_UNIT + i for i in ids})
        client.hset("live", mapping={member_name(i): 1 for i in ids})
        client.zadd("leases", {f"{i:032x}": now - 256 + i if i < 256 else now + 60_000 for i in ids})
        client.hset("holders", mapping={f"{i:032x}": f"token={i}-0123456789abcdef\tmember={member_name(i)}" for i in ids})
    client.zadd("released", {f"{i}-fedcba9876543210": i for i in range(65_536)})
    for key in ACQUIRE_KEYS:
        if client.exists(key):
            client.copy(key, f"kept-{key}", replace=True)


def make_ordinary(client, size):
    """Nothing has expired, and the first of busy is as busy says."""
    now = NOW_US // 1000
    client.zadd("leases", {f"{i:032x}": now + 60_000 for i in range(min(size, 256))})


def make_worst(client, size):
    """64 leases of members at the end have expired. Of the first of busy four of five are at a cap of their own, and the
    others stand too low by what was taken elsewhere; the heads of the pool are unknown to busy, and full as well."""
    make_ordinary(client, size)
    for i in range(64):
        name = member_name(size - 1 - i % size)
        client.zadd("leases", {f"e{i}": i})
        client.hset("holders", f"e{i}", f"token={i}-0123456789abcdef\tmember={name}")
        client.hincrby("live", name, 1)
        client.zincrby("busy", LIVE_UNIT, name)
    first = range(min(size - 1, 320))
    heads = [f"http://192.0.2.{i}:3128" for i in range(64)]
    own = "state=enabled\tmax_concurrent=1"
    client.hset("admin", mapping={member_name(i): own for i in first if i % 5 != 1} | {m: own for m in heads})
    client.zadd("pool", {member_name(i): 10**6 + i for i in first if i % 5 == 1} | {m: -1 for m in heads})
    client.hset("live", mapping={m: 1 for m in heads})


def lease_calls(client, size):
    """What is called, on which state, with how many milliseconds on the clock."""
    acquire, renew, release, expire, mend = (client.script_load((ROOT / "lua" / f"{name}.lua").read_text())
                                             for name in ("acquire", "renew", "release", "expire", "busy_mend"))
    now = NOW_US // 1000
    take = (acquire, 8, *ACQUIRE_KEYS)
    last = range(max(size - 128, 0), size)
    pairs = [word for i in last for word in (f"{i:032x}", f"{i}-0123456789abcdef")]
    release_call = (release, 6, *LEASE_KEYS, "rules", "released", now, *pairs)
    request = ("f" * 32, "0123456789abcdef", 60_000, "")

    def rest(client, size):
        client.hset("rules", "rest_ms", 1_000)

    def strange(client, size):
        client.delete("busy")

    def full(client, size):
        make_worst(client, size)
        client.hset("rules", "max_concurrent", 1)

    return {
        "acquire, ordinary": (make_ordinary, (*take, now - 1_000, *request)),
        "acquire, 64 expired, stale among full ones": (make_worst, (*take, now, *request)),
        "acquire, the same, all full, 64 to avoid": (full, (*take, now, *request, *[member_name(i) for i in range(64)])),
        "acquire, busy is empty": (strange, (*take, now, *request)),
        "renew, 128": (make_ordinary, (renew, 2, "leases", "holders", now - 1_000, 3_600_000, *pairs)),
        "release, 128": (make_ordinary, release_call),
        "release, 128 that rest": (rest, release_call),
        "expire, 256": (lambda *_: None, (expire, 4, *LEASE_KEYS, now, 256)),
        "busy_mend, 128 join": (strange, (mend, 3, "pool", "live", "busy", *[member_name(i) for i in last])),
    }


def measure_leases(client):
    print("\n## The worst case of the scripts of leases\n")
    print("Members and leases as many as the column says; microseconds, the median and the longest of "
          f"{LEASE_RUNS} calls, each on fresh keys. `acquire` at its worst collects 64 leases, passes over members at a cap of "
          "their own and rewrites stale ones among them; when all are full it reads the heads of the pool as well.\n")
    rows = {}
    for size in LEASE_SIZES:
        note(f"worst: leases, {size}")
        put_leases(client, size)
        for kind, (prepare, call) in lease_calls(client, size).items():
            times = []
            for _ in range(LEASE_RUNS):
                for key in ACQUIRE_KEYS:
                    client.delete(key)
                    client.copy(f"kept-{key}", key)
                prepare(client, size)
                client.config_resetstat()
                client.evalsha(*call)
                times.append(client.info("commandstats")["cmdstat_evalsha"]["usec"])
            rows.setdefault(kind, [kind]).extend([f"{median(times):.0f}", max(times)])
    note("")
    table(["call", *(f"{size:,}{what}" for size in LEASE_SIZES for what in ("", ", max"))], rows.values())


def measure_others(client):
    print("\n## The worst case of the other scripts that requests and checks wait for\n")
    print(f"As above, on a pool of {SIZE:,} members at one score. `sticky` has 64 members to avoid in front and 256 "
          f"expired sessions to collect among {SIZE:,}; `traffic` adds 128 "
          "fields; `report` puts down 64 members of whom everything is known.\n")
    fill_pool(client, "template", [0] * SIZE)
    fill_pool(client, "sessions", [0] * 256 + [10**12] * (SIZE - 512))
    sticky, traffic = (client.script_load((ROOT / "lua" / f"{name}.lua").read_text()) for name in ("sticky", "traffic"))
    rows = [row("sticky, a new session", [sticky_us(client, sticky, False) for _ in range(RUNS)]),
            row("sticky, moved", [sticky_us(client, sticky, True) for _ in range(RUNS)]),
            row("traffic", [traffic_us(client, traffic) for _ in range(RUNS)]), *limit_rows(client),
            *check_rows(client)]
    table(["call", "min", "median", "max"], rows)


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
            rows.append(row(kind, times))
        note("")
        table(["pool", "min", "median", "max"], rows)
        measure_others(server.client)
        worst_queue.measure(server.client, quick)
        measure_leases(server.client)
