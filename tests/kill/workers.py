"""Kills among workers: `work fetch` in the middle of requests, `work exec` with curl, keepers that sweep, on one queue and one
pool of leases: two proxies before one origin.

Whatever is killed, every task that was pushed stands somewhere or has a result, and all are done in the end: results are
written first. A task may be carried out twice, which is counted. The origin sees no address but the proxies', and is asked
for everything that a result tells of."""

import collections
import json
import time
import urllib.parse

import leases
import peers
import tasks
from harness import ANY_MOMENT, SERVER, Daemon
from tasks import LEVELS, QUEUE, key

WORK = ("work-claimed", "work-answered", "work-result-written")
# Those of the store in which the loop of a worker waits; the claims and leases of commands have their own runs.
STORE = ("claim-queued", "claim-answered", "acquire-queued", "acquire-answered", "release-queued", "release-answered",
         "settle-queued", "settle-answered", "store-written")
FETCH = (*WORK, *STORE)
EXEC = ("work-claimed", "work-result-written", *STORE)
POINTS = [*FETCH, ANY_MOMENT, SERVER]
FETCHERS = 3
DEPTH, BATCH = 200, 20
CLAIM_MS, LEASE_MS, CAP = 500, 300, 6
PROXIES = ("127.0.0.61", "127.0.0.62")
# One line by one write(2): no kill cuts it.
SCRIPT = """url=$(cat) && curl -sSf --max-time 20 -o /dev/null "$url" &&
printf '{"task": "%s", "attempts": %s, "outcome": "done", "url": "%s"}\\n' \
    "$FAIRLEAD_TASK_ID" "$FAIRLEAD_TASK_ATTEMPT" "$url" >>"$0"
"""


class Workers:
    """The world in which they live."""

    def __init__(self, harness):
        self.harness, self.oracle = harness, harness.oracle
        self.watch, self.watch_of_leases = tasks.Watch(harness), leases.Watch(harness, CAP)
        self.results, self.executed = harness.folder / "results", harness.folder / "executed"
        self.executed.touch()
        self.origin = self._started(peers.Nginx(harness.folder / "origin"))
        self.proxies = [self._started(peers.Tinyproxy(harness.folder / host, host)) for host in PROXIES]
        self.attempt_of = {}  # claim -> (task, which attempt) that a worker left
        self._must("pool", "rules", "allow_private=1", "policy=least-concurrent", f"max_concurrent={CAP}",
                   f"lease_ms={LEASE_MS}", "fall=1000", "cooldown_ms=0")
        self._must("pool", "add", "--eligible", *(proxy.url for proxy in self.proxies))

    def _started(self, peer):
        self.harness.ends.callback(peer.stop)
        return peer.start()

    def _must(self, *words):
        ended = self.harness.command(*words)
        assert ended.status == 0, (words, ended)

    def fetch(self, claim_ms, *more):
        return ["work", "fetch", *self._common(claim_ms), "--allow-private", "--concurrency", "4", "-o", self.results, *more]

    def exec(self, claim_ms, *more):
        return ["work", "exec", *self._common(claim_ms), "--concurrency", "2", *more, "--", "sh", "-c", SCRIPT, self.executed]

    @staticmethod
    def _common(claim_ms):
        """Nothing is given up because those who had it died."""
        return ["--queue", QUEUE, "--lease", f"{claim_ms}ms", "--lost-max", "0", "--quiet"]

    def drivers(self):
        keeper = Daemon(self.harness, ["keeper", "--no-check", "--queue", QUEUE], (), list, life_s=1)
        workers = [(self.fetch, FETCH)] * FETCHERS + [(self.exec, EXEC)]
        lives = {f"worker {i}": Daemon(self.harness, words(CLAIM_MS + i), points, self.left_by(CLAIM_MS + i), life_s=2).live
                 for i, (words, points) in enumerate(workers)}
        return lives | {"watch": self.watch.drive, "watch of leases": self.watch_of_leases.drive, "keeper": keeper.live,
                        "server": self.harness.kill_server_at_times, "producer": self.push}

    def left_by(self, claim_ms):
        """Claims that a worker has left; one knows them by how long they were to live."""
        def look():
            left = {name: claim for name, claim in self.watch.look().items()
                    if claim["lease_ms"] == claim_ms and name not in self.attempt_of}
            for name, claim in left.items():
                self.attempt_of[name] = name.partition(":")[0], int(claim["failures"]) + int(claim["lost"]) + 1
            return left
        return look

    def depth(self):
        return self.harness.ask(lambda client: sum(client.llen(key(level)) for level in LEVELS))

    def push(self, draw):
        if self.depth() > DEPTH:
            time.sleep(0.02)
            return
        operation = self.oracle.intend("push", count=BATCH)
        urls = [f"{self.origin.url}/who/{operation}.{i}" for i in range(BATCH)]
        ended = self.harness.command("queue", "push", "--queue", QUEUE, "--level", draw.choice(LEVELS), *urls)
        self.oracle.conclude(operation, ended.verdict, urls=urls)

    # --- the end ---

    def rest(self):
        """A keeper brings back what the dead had claimed and leased, then one worker does what is left, and the other a
        last batch."""
        client = self.harness.client
        self.harness.keep_until(["keeper", "--no-check", "--queue", QUEUE],
                                lambda: not self.watch.look() and not client.zcard(leases.key("leases")),
                                "claims and leases come back")
        self._must(*self.fetch(60_000, "--drain"))
        self.push(self.harness.draw_for("rest"))
        self._must(*self.exec(60_000, "--drain"))

    def stored(self):
        return tasks.stored(self.harness.client)

    def results_read(self):
        """One dictionary a result; those of commands have no `body`."""
        results = []
        for line in [*self.results.read_text(errors="replace").splitlines(), *self.executed.read_text().splitlines()]:
            try:
                results.append(json.loads(line))
            except ValueError:
                continue  # of a worker that was killed while it wrote
        return results

    def residue(self):
        """What is left of leases and claims, which should be nothing."""
        client = self.harness.client
        left = [*leases.residue(client), client.hgetall(key("queue:claims")), client.zrange(key("queue:leases"), 0, -1)]
        return [part for part in left if part]

    def account(self):
        return Account(self.oracle.read(), self.results_read(), self.stored())

    def requests(self, account):
        """(proxy's address, URL) of each that the origin has seen. It logs when it has answered."""
        def read():
            requests = [(line["addr"], self.origin.url + line["uri"]) for line in self.origin.log()]
            return not account.done - collections.Counter(url for _, url in requests) and requests
        return peers.wait_for(read, "the origin has logged what results tell of")

    def judge_kills(self, lines, results):
        """What had become of the tasks that somebody died over: they had their results, had none, or some of each."""
        written = {(result["task"], result["attempts"]) for result in results if result["outcome"] == "done"}
        for line in (line for line in lines if line.get("left")):
            fates = {"ok" if self.attempt_of[name] in written else "failed" for name in line["left"]}
            line["verdict"] = fates.pop() if len(fates) == 1 else "unknown"

    def figures(self, account, requests):
        """For the document."""
        return {"tasks pushed": len(account.surely), "pushes that ended unknown": len(account.maybe),
                "done": len(account.done), "done more than once": sum(count > 1 for count in account.done.values()),
                "requests": len(requests), "past the proxies": sum(address not in PROXIES for address, _ in requests),
                "lost": len(account.lost())}


class Account:
    """What the oracle, the results and the store know of the tasks at one moment at which nobody works."""

    def __init__(self, lines, results, stored):
        self.surely, self.maybe = set(), set()
        for line in lines:
            if "urls" in line:
                (self.surely if line["verdict"] == "ok" else self.maybe).update(line["urls"])
        self.done = collections.Counter(result["url"] for result in results if result["outcome"] == "done")
        self.places = collections.Counter(url for urls in stored.values() for url in urls)

    def lost(self):
        """Acked without a result, or gone: both would be the end of it."""
        return self.surely - set(self.places) - set(self.done)

    def never_pushed(self):
        return (set(self.places) | set(self.done)) - self.surely - self.maybe

    def in_two_places(self):
        return {url for url, count in self.places.items() if count > 1}

    def not_done(self):
        return (self.surely | set(self.places)) - set(self.done)


def is_by_its_member(result):
    """The origin answers with who asked, and for what."""
    path = urllib.parse.urlsplit(result["url"]).path
    return result["body"] == f"{urllib.parse.urlsplit(result['member']).hostname} {path}\n"
