"""Kills among workers: `work fetch` in the middle of requests, keepers that sweep, on one queue and one pool of leases.

Whatever is killed, every task that was pushed is done in the end, and each that was acked has a result: results are
written first. A task may be carried out twice, which is counted. No request reaches the origin but by a member."""

import collections
import json
import time

import wire
from harness import ANY_MOMENT, NOTHING_THERE, SERVER, Daemon
from tasks import LEVELS, QUEUE, Watch, key

WORK = ("work-claimed", "work-answered", "work-result-written")
POINTS = [*WORK, "settle-queued", "settle-answered", "store-written", ANY_MOMENT, SERVER]
DEPTH = 200
LEASE_MS = 500
POOL = "{proxies}:pool"


class Workers:
    """The world in which they live."""

    def __init__(self, harness):
        self.harness, self.oracle = harness, harness.oracle
        self.watch = Watch(harness)
        self.results = harness.folder / "results"
        self.members = [wire.Server(wire.serves(b"done"), host=f"127.0.0.{n + 1}") for n in range(2)]
        self.seen = collections.defaultdict(set)
        assert harness.command("pool", "add", "--eligible", "--allow-private",
                               *(member.url for member in self.members)).status == 0
        assert harness.command("pool", "rules", "policy=least-concurrent", "lease_ms=300").status == 0

    def close(self):
        for member in self.members:
            member.close()

    def words(self, lease_ms):
        return ["work", "fetch", "--allow-private", "--queue", QUEUE, "--lease", f"{lease_ms}ms", "--concurrency", "4",
                "--lost-max", "0", "-o", str(self.results), "--quiet"]

    def drivers(self):
        keeper = Daemon(self.harness, ["keeper", "--no-check", "--queue", QUEUE], (), list, life_s=1)
        workers = {f"worker {i}": Daemon(self.harness, self.words(LEASE_MS + i), POINTS[:-2], self.left_by(LEASE_MS + i),
                                         life_s=2).live for i in range(3)}
        return workers | {"watch": self.watch.drive, "server": self.harness.kill_server_at_times, "keeper": keeper.live,
                          "producer": self.push}

    def left_by(self, lease_ms):
        """Claims that a worker has left; one knows them by how long they were to live."""
        def look():
            left = {name for name, claim in self.watch.look().items() if claim["lease_ms"] == lease_ms}
            new = left - self.seen[lease_ms]
            self.seen[lease_ms] |= left
            return new
        return look

    def depth(self):
        return self.harness.ask(lambda client: sum(client.llen(key(level)) for level in LEVELS))

    def push(self, draw):
        if self.depth() > DEPTH:
            time.sleep(0.02)
            return
        operation = self.oracle.intend("push", count=20)
        urls = [f"http://origin.test/{operation}.{i}" for i in range(20)]
        ended = self.harness.command("queue", "push", "--queue", QUEUE, "--level", draw.choice(LEVELS), *urls)
        self.oracle.conclude(operation, ended.verdict, urls=urls)

    # --- the end ---

    def rest(self):
        """A keeper brings back what the dead had claimed and leased, then one worker does what is left."""
        self.harness.keep_until(["keeper", "--no-check", "--queue", QUEUE],
                                lambda: not self.watch.look() and not self.harness.client.zcard(f"{POOL}:leases"),
                                "claims and leases come back")
        ended = self.harness.command(*self.words(60_000), "--drain")
        assert ended.status in (0, NOTHING_THERE), ended.error[-2000:]

    def account(self):
        """(surely pushed, perhaps pushed, url -> how many results say that it is done)."""
        surely, maybe, done = set(), set(), collections.Counter()
        for line in self.oracle.read():
            if "urls" in line:
                (surely if line["verdict"] == "ok" else maybe).update(line["urls"])
        for line in self.results.read_text(errors="replace").splitlines():
            try:
                result = json.loads(line)
            except ValueError:
                continue  # of a worker that was killed while it wrote
            if result["outcome"] == "done":
                done[result["url"]] += 1
        return surely, maybe, done

    def figures(self):
        surely, maybe, done = self.account()
        return {"tasks pushed": len(surely), "pushes that ended unknown": len(maybe), "done": len(done),
                "done more than once": sum(count > 1 for count in done.values()), "lost": len(surely - set(done))}

    def stored(self):
        """What is left of tasks and leases."""
        client = self.harness.client
        counts = {name: client.llen(key(name)) for name in LEVELS} | {"dead": client.llen(key("queue:dead"))}
        counts |= {name: client.hlen(key(f"queue:{name}")) for name in ("claims", "held")}
        counts |= {name: client.zcard(f"{POOL}:{name}") for name in ("leases",)} | {"live": client.hlen(f"{POOL}:live")}
        return {name: count for name, count in counts.items() if count}
