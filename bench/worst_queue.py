"""worst_queue.py - the longest runs of the queue's scripts, on queues of up to a million tasks."""

from peers import ROOT, median, note, table

SIZES = [10, 1_000, 100_000, 1_000_000]
RUNS = 10
BATCH = 128  # tasks of one push, operations of one settle
HALF = 256  # tasks due, claims that ended, tasks claimed
LEVELS = ["high", *(f"level{i}" for i in range(2, 16)), "low"]
PAYLOAD = "x" * 200
NOW = 1_800_000_000_000
NONCE = "0123456789abcdef"
COUNTS = "level=low\tfailures=0\tlost=0\treleased=0"

# As many of each as the caller says, in the ways of the scripts; in portions, so that the server answers meanwhile.
FILL = """
local list, later, held, claims, leases, dead = unpack(KEYS)
for i = tonumber(ARGV[1]), tonumber(ARGV[2]) do
    local id = string.format('%.0f', 1e15 + i)
    redis.call('LPUSH', list, ARGV[3])
    redis.call('HSET', held, id, 'kind=delayed\\t' .. ARGV[4] .. '\\tpayload=' .. ARGV[3])
    redis.call('ZADD', later, ARGV[5], id)
    redis.call('HSET', claims, id .. ':1-a', ARGV[4] .. '\\tlost_max=3\\tat=1\\tpayload=' .. ARGV[3])
    redis.call('ZADD', leases, ARGV[5], id .. ':1-a')
    redis.call('LPUSH', dead, 'id=1\\treason=x\\t' .. ARGV[4] .. '\\tat=1\\tpayload=' .. ARGV[3])
end
"""


def key(name):
    return "{bench}:queue:" + name


def keys(*names):
    return [key(name) for name in names]


def list_of(level):
    return "{bench}:" + level


def retry_of(level):
    return key("retry:" + level)


class Bench:
    def __init__(self, client):
        self.client = client
        names = ["push", "claim", "settle", "dead_retry", "retry_public", "queue_mend"]
        self.sha = {name: client.script_load((ROOT / "lua" / f"{name}.lua").read_text()) for name in names}

    def call(self, name, names, *arguments):
        """The answer, and microseconds on the server."""
        self.client.config_resetstat()
        answer = self.client.evalsha(self.sha[name], len(names), *names, *arguments)
        return answer, self.client.info("commandstats")["cmdstat_evalsha"]["usec"]

    def fill(self, size):
        self.client.flushdb()
        fill = self.client.register_script(FILL)
        names = [list_of("low"), *keys("later", "held", "claims", "leases", "dead")]
        for start in range(1, size + 1, 2_000):
            end = min(start + 1_999, size)
            fill(names, [start, end, PAYLOAD, COUNTS, NOW + 10**9])
        for name in ("settled", "settled-before"):
            for start in range(0, 32_768, 4_096):
                self.client.sadd(key(name), *(f"{i}:1-{name}" for i in range(start, start + 4_096)))
        for start in range(0, 100_000, 10_000):
            self.client.zadd(key("ids"), {f"old-{i}": NOW + i for i in range(start, start + 10_000)})

    def push(self, due, level="low", count=BATCH, now=NOW, dedupe=None):
        words = [word for i in range(count) for word in (f"{dedupe}-{i}" if dedupe else "", PAYLOAD)]
        names = [list_of(level), *keys("later", "held", "ids", "stats")]
        return self.call("push", names, now, "tail", level, due, 10**9, *words)[1]

    def claim(self, count, levels=LEVELS, now=NOW, lease=10**9, limit=HALF):
        names = keys("later", "held", "claims", "leases", "dead", "stats", "paused")
        names += [name for level in levels for name in (list_of(level), retry_of(level))]
        return self.call("claim", names, now, NONCE, lease, count, 10**9, 9, 10**7, limit, *levels)

    def settle(self, verb, claims, number="", levels=LEVELS, now=NOW):
        names = keys("claims", "leases", "settled", "settled-before", "held", "later", "dead", "stats")
        words = [verb, number, "", len(claims), *(claim[0] for claim in claims)]
        names += [retry_of(level) for level in levels]
        return self.call("settle", names, now, 10**7, 0, len(levels), *levels, *words)[1]

    def return_tasks(self, count):
        """`count` tasks in retry lists, spread over the levels."""
        for level in LEVELS:
            self.push("", level, count // len(LEVELS))
            answer, _ = self.claim(count // len(LEVELS), [level], limit=0)
            self.settle("nack", answer[5:], 0)

    def drain(self):
        """What the calls left, except for what the queue was filled with."""
        self.client.delete(*(retry_of(level) for level in LEVELS), *(list_of(level) for level in LEVELS[:-1]))

    def worst_claim(self, due, ended, count):
        for level in LEVELS:
            if due:
                self.push("+1", level, due // len(LEVELS), now=NOW - 10)
            if ended:
                self.push("", level, ended // len(LEVELS))
                self.claim(ended // len(LEVELS), [level], now=NOW - 10, lease=1, limit=0)
        if count:
            self.return_tasks(count)
        answer, time_us = self.claim(count)
        assert answer[3:5] == [due, ended] and len(answer) == 5 + count
        self.drain()
        return time_us

    def claim_raw(self):
        answer, time_us = self.claim(min(HALF, self.size))
        self.client.lpush(list_of("low"), *[PAYLOAD] * (len(answer) - 5))
        return time_us

    def settle_of(self, verb, number=""):
        self.push("", "high")
        answer, _ = self.claim(BATCH, limit=0)
        time_us = self.settle(verb, answer[5:], number)
        self.drain()
        return time_us

    def dead_retry(self):
        count = min(BATCH, self.size)
        answer, time_us = self.call("dead_retry", [*keys("dead", "stats"), *map(list_of, LEVELS)], BATCH, *LEVELS)
        assert answer[0] == count
        self.client.ltrim(list_of("low"), count, -1)
        self.client.lpush(key("dead"), *[f"id=1\treason=x\t{COUNTS}\tat=1\tpayload={PAYLOAD}"] * count)
        return time_us

    def retry_public(self):
        self.push("", "high")
        answer, _ = self.claim(BATCH, limit=0)
        self.settle("nack", answer[5:], 0)
        names = [retry_of("high"), key("held"), list_of("high"), key("stats")]
        answer, time_us = self.call("retry_public", names, BATCH)
        assert answer == BATCH
        self.drain()
        return time_us

    def mend(self):
        ids = [f"orphan-{i}" for i in range(BATCH)]
        self.client.hset(key("claims"), mapping={id: f"{COUNTS}\tpayload={PAYLOAD}" for id in ids})
        answer, time_us = self.call("queue_mend", keys("claims", "leases", "held", "later", "stats"), "claims", *ids)
        assert answer == BATCH
        self.client.hdel(key("claims"), *ids)
        self.client.zrem(key("leases"), *ids)
        return time_us

    def push_with_keys(self):
        self.pushes = getattr(self, "pushes", 0) + 1
        return self.push("+1000000000", dedupe=f"new-{self.pushes}")

    def rows(self):
        return {
            f"push, {BATCH} delayed with keys": self.push_with_keys,
            f"claim, {HALF} from the list": self.claim_raw,
            f"claim, {HALF} from 16 retry lists": lambda: self.worst_claim(0, 0, HALF),
            f"claim, {HALF} due": lambda: self.worst_claim(HALF, 0, 0),
            f"claim, {HALF} ended": lambda: self.worst_claim(0, HALF, 0),
            f"claim, {HALF} of all three": lambda: self.worst_claim(HALF, HALF, HALF),
            "claim, 64 of all three": lambda: self.worst_claim(64, 64, 64),
            f"settle, {BATCH} ack": lambda: self.settle_of("ack"),
            f"settle, {BATCH} nack": lambda: self.settle_of("nack", 10**9),
            f"dead_retry, {BATCH}": self.dead_retry,
            f"retry_public, {BATCH}": self.retry_public,
            f"queue_mend, {BATCH}": self.mend,
        }


def measure(client, quick):
    sizes = SIZES[:2] if quick else SIZES
    print("\n## The worst case of the queue's scripts\n")
    print(f"Time of a call on the server in microseconds, median and longest of {RUNS}, by the number of tasks in each "
          "of: the list of the last of 16 levels, later, claims, dead letters. Payloads of 200 bytes; 65,536 settled "
          "claims and 100,000 de-duplication keys.\n")
    bench, times = Bench(client), {}
    for size in sizes:
        note(f"worst: a queue of {size:,}")
        bench.size = size
        bench.fill(size)
        for name, run in bench.rows().items():
            runs = [run() for _ in range(RUNS)]
            times.setdefault(name, []).append(f"{median(runs):.0f} / {max(runs)}")
    note("")
    client.flushdb()
    table(["call", *(f"{size:,}" for size in sizes)], [[name, *cells] for name, cells in times.items()])
