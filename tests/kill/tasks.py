"""Kills among tasks: commands that push, claim and settle, and keepers that sweep, all on one queue.

Whatever is killed, every task that was pushed is in exactly one place, and none is lost: as sets of payloads, pushed =
acked + ready + returned + later + claimed + dead. A task may be handed out twice, which is counted, but is acked once."""

import collections
import json
import time

from harness import ANY_MOMENT, SERVER, Daemon, Deck

QUEUE = "jobs"
LEVELS = ("high", "normal", "low")
PUSH = ("push-queued", "push-answered")
CLAIM = ("claim-queued", "claim-answered")
SETTLE = ("settle-queued", "settle-answered")
KEEPER = ("queue-sweep-queued",)
SENT = ("store-written",)
POINTS = [*PUSH, *CLAIM, *SETTLE, *KEEPER, *SENT, ANY_MOMENT, SERVER]
# Producers rest while so many tasks wait.
DEPTH = 400
LEASE_MS = 400
# Pushed and claimed when the run is over.
LAST = "the last"


def key(name):
    return f"{{{QUEUE}}}:{name}"


def unpack(packed):
    """The pairs of a packed value; its payload is the last and takes the rest."""
    head, _, payload = packed.partition("payload=")
    return dict(pair.split("=", 1) for pair in head.split("\t") if pair) | {"payload": payload}


class Watch:
    """Looks at what is private in the queue, all of it at one moment, judges it, and notes which claims are gone."""

    def __init__(self, harness):
        self.harness = harness
        self.held = {}

    def look(self):
        """Its name -> the claim, with `lease_ms`: how long it was to live when it was made."""
        with self.harness.lock_of_looks:
            claims, leases, held, later, *returned = self.harness.ask(self._read)
            self._judge(set(claims), dict(leases), set(held), [name for name, _ in later] + sum(returned, []))
            now = {}
            for name, packed in claims.items():
                claim = unpack(packed)
                now[name] = claim | {"lease_ms": dict(leases).get(name, 0) - int(claim["at"])}
            for name in set(self.held) - set(now):
                self.harness.oracle.write(gone=name)
            self.held = now
            return dict(now)

    @staticmethod
    def _read(client):
        pipe = client.pipeline(transaction=True)
        pipe.hgetall(key("queue:claims"))
        pipe.zrange(key("queue:leases"), 0, -1, withscores=True)
        pipe.hgetall(key("queue:held"))
        pipe.zrange(key("queue:later"), 0, -1, withscores=True)
        for level in LEVELS:
            pipe.lrange(key(f"queue:retry:{level}"), 0, -1)
        return pipe.execute()

    def _judge(self, claims, leases, held, elsewhere):
        if claims != set(leases):
            self.harness.fault(f"claims without lease or the reverse: {claims ^ set(leases)}")
        if held != set(elsewhere) or len(held) != len(elsewhere):
            self.harness.fault(f"held {sorted(held)}, but later and returned are {sorted(elsewhere)}")

    def drive(self, _):
        self.look()
        time.sleep(0.02)


def stored(client):
    """place -> the payloads that stand there."""
    held = {name: unpack(packed)["payload"] for name, packed in client.hgetall(key("queue:held")).items()}
    return {
        "ready": [task for level in LEVELS for task in client.lrange(key(level), 0, -1)],
        "returned and later": list(held.values()),
        "claimed": [unpack(packed)["payload"] for packed in client.hgetall(key("queue:claims")).values()],
        "dead": [unpack(packed)["payload"] for packed in client.lrange(key("queue:dead"), 0, -1)],
    }


class Tasks:
    """The world in which they live."""

    def __init__(self, harness):
        self.harness, self.oracle = harness, harness.oracle
        self.watch = Watch(harness)
        self.decks = {}
        self.is_full = False

    def drivers(self):
        keepers = [Daemon(self.harness, ["keeper", "--no-check", "--queue", QUEUE], KEEPER, list, passes_max=3, life_s=1)
                   for _ in range(2)]
        workers = {f"worker {i}": Worker(self, LEASE_MS + i).work for i in range(5)}
        return workers | {
            "watch": self.watch.drive, "depth": self.look_at_depth, "server": self.harness.kill_server_at_times,
            "keeper 1": keepers[0].live, "keeper 2": keepers[1].live, "producer 1": self.push, "producer 2": self.push,
        }

    def command(self, *words, **options):
        return self.harness.command("queue", *words, "--queue", QUEUE, **options)

    def draw_point(self, draw, *points):
        """NAME:N, or ANY_MOMENT, or, one time in three, nothing."""
        deck = self.decks.setdefault((draw, points), Deck([*points, ANY_MOMENT], draw))
        if not draw.randrange(3):
            return None
        name = deck.next()
        return f"{name}:{draw.randint(1, 6)}" if name in SENT else name

    def look_at_depth(self, _):
        self.is_full = self.harness.ask(lambda client: sum(client.llen(key(level)) for level in LEVELS)) > DEPTH
        time.sleep(0.05)

    # --- producers ---

    def push(self, draw):
        if self.is_full:
            time.sleep(0.02)
            return
        draw.choice([self.push_one, self.push_one_once, self.push_many])(draw)

    def push_one(self, draw):
        words = ["--level", draw.choice(LEVELS)]
        words += draw.choice([[], ["--urgent"], ["--delay", f"{draw.randint(1, 300)}ms"]])
        ended, operation, tasks = self.push_with(draw, 1, lambda tasks: [*words, *tasks])
        self.end_push(ended, operation, tasks)

    def push_many(self, draw):
        """More than one call takes: whoever is killed may have pushed the first of them."""
        ended, operation, tasks = self.push_with(draw, draw.choice([2, 5, 10, 10, 20, 150]), lambda _: ["-"],
                                                 lambda tasks: "".join(task + "\n" for task in tasks))
        self.end_push(ended, operation, tasks)

    def push_one_once(self, draw):
        """With a key of its own: who does not know whether it went in asks again, which tells, and it is there once."""
        words = ["--id", f"key {draw.getrandbits(64):x}", "--level", draw.choice(LEVELS)]
        ended, operation, tasks = self.push_with(draw, 1, lambda tasks: [*words, *tasks])
        if ended.status == 0:
            self.end_push(ended, operation, tasks)
            return
        again = self.command("push", *words, *tasks)
        verdict = "unknown" if again.status else "ok" if "1 left out" in again.error else "failed"
        self.end_push(again._replace(point=ended.point, at=ended.at), operation, tasks, verdict)

    def push_with(self, draw, count, words, input=lambda tasks: ""):
        point = self.draw_point(draw, *PUSH, *SENT)
        operation = self.oracle.intend("push", point=point, count=count)
        tasks = [f"task {operation}.{i}" for i in range(count)]
        ended = self.command("push", *words(tasks), input=input(tasks), point=point, after_s=draw.uniform(0, 0.03))
        return ended, operation, tasks

    def end_push(self, ended, operation, tasks, verdict=None):
        """Without a `verdict` on one who was killed it is found at the end, when it is known which tasks were seen."""
        self.oracle.conclude(operation, ended.verdict)
        if ended.point:
            self.harness.note_kill(ended.point, ended.at, (), verdict, operation=operation, tasks=tasks)

    # --- the end ---

    def leave_a_claim(self):
        """So that something is left for certain."""
        self.command("push", "--level", "high", LAST)
        self.command("claim", "--lease", f"{LEASE_MS}ms", point="claim-answered")

    def rest(self):
        """A keeper alone brings back what the dead had claimed, and what was delayed."""
        later = key("queue:later")
        self.harness.keep_until(["keeper", "--no-check", "--queue", QUEUE],
                                lambda: not self.watch.look() and not self.harness.client.zcard(later),
                                "claims and delayed tasks come back")

    def drain(self):
        """Claims and acks until nothing is left but dead letters. The tasks, in their order."""
        done = []
        while True:
            ended = self.command("claim", "--tasks", "100", "--lease", "60s", "--json")
            if ended.status:
                return done
            claims = [json.loads(line) for line in ended.output.splitlines()]
            assert self.command("ack", *(claim["claim"] for claim in claims)).status == 0
            done += [claim["payload"] for claim in claims]

    def stored(self):
        return stored(self.harness.client)

    def figures(self):
        """For the document."""
        account, stored = self.account, self.stored_at_rest
        return {"tasks pushed": len(account.surely), "pushes that ended unknown": len(account.maybe),
                "acked": sum(account.acked.values()), "dead letters": len(stored["dead"]),
                "handed out again": account.handed_out_again(),
                "lost": len(account.surely - set(account.places(stored)))}

    def settled(self):
        return self.harness.ask(lambda client: client.sunion(key("queue:settled"), key("queue:settled-before")))


class Worker:
    """Claims and settles, a command for each step, and knows its claims in the store by how long they were to live."""

    def __init__(self, world, lease_ms):
        self.world, self.harness, self.oracle, self.lease_ms = world, world.harness, world.oracle, lease_ms
        self.names = set()

    def work(self, draw):
        claims = self.claim(draw)
        while claims:
            count = draw.randint(1, 10)
            self.settle(draw, claims[:count])
            claims = claims[count:]

    def claim(self, draw):
        point = self.world.draw_point(draw, *CLAIM, *SENT)
        operation = self.oracle.intend("claim", point=point)
        words = ["claim", "--tasks", draw.choice([1, 3, 10, 20]), "--lease", f"{self.lease_ms}ms", "--json"]
        words += draw.choice([[], ["--block", "50ms"]])
        ended = self.world.command(*words, point=point, after_s=draw.uniform(0, 0.03))
        claims = [] if ended.point else [json.loads(line) for line in ended.output.splitlines()]
        self.oracle.conclude(operation, ended.verdict, claims=[[claim["claim"], claim["payload"]] for claim in claims])
        if ended.point:
            left = [name for name, claim in self.world.watch.look().items()
                    if claim["lease_ms"] == self.lease_ms and name not in self.names]
            self.names.update(left)
            self.harness.note_kill(ended.point, ended.at, left, "ok" if left else "failed", operation=operation)
        self.names.update(claim["claim"] for claim in claims)
        return claims

    def settle(self, draw, claims):
        """Most are done, some fail, some are kept a little longer, and some take too long: their claims end."""
        verb = draw.choice(["ack"] * 12 + ["nack", "nack", "extend", "extend", "too late"])
        if verb == "too late":
            self.come_too_late(draw, claims[0])
            return
        words = {"ack": [], "nack": ["--backoff", "50ms"], "extend": ["--lease", f"{self.lease_ms}ms"]}[verb]
        point = self.world.draw_point(draw, *SETTLE, *SENT)
        names = [claim["claim"] for claim in claims]
        operation = self.oracle.intend(verb, point=point, names=names)
        words = [verb, *words, *names]
        ended = self.world.command(*words, point=point, after_s=draw.uniform(0, 0.02))
        if ended.point:
            held, settled = self.world.watch.look(), self.world.settled()
            fates = {"ok" if name in settled else "failed" if name in held else "unknown" for name in names}
            self.harness.note_kill(ended.point, ended.at, [name for name in names if name in held],
                                   fates.pop() if len(fates) == 1 and verb != "extend" else "unknown", operation=operation)
        if ended.status and verb != "extend" and draw.random() < 0.5:
            ended = self.world.command(*words)  # one's own repeat is told that it is fine
        self.oracle.conclude(operation, ended.verdict)

    def come_too_late(self, draw, claim):
        """Whoever settles a claim that was collected changes nothing, and is told so."""
        if not self.harness.wait_until(lambda: claim["claim"] not in self.world.watch.look()):
            return
        ended = self.world.command(draw.choice(["ack", "nack", "extend"]), claim["claim"])
        if ended.status == 0:
            self.harness.fault(f"a claim that was collected is settled: {claim}")


class Account:
    """What the oracle knows of the tasks."""

    def __init__(self, lines, settled):
        begun = {line["intent"]: line for line in lines if "intent" in line}
        self.task_of, self.surely, self.maybe = {}, {LAST}, set()
        self.acked = collections.Counter()
        self.is_acked = {}  # claim -> whether an ack of it was told that it is done
        for end in (line for line in lines if "outcome" in line):
            begin = begun[end["outcome"]]
            self.task_of.update(end.get("claims", []))
            if begin["does"] == "push":
                tasks = {f"task {begin['intent']}.{i}" for i in range(begin["count"])}
                (self.surely if end["verdict"] == "ok" else self.maybe).update(tasks)
            elif begin["does"] == "ack":
                for name in begin["names"]:
                    self.is_acked[name] = end["verdict"] == "ok"
        for name in self.is_acked:
            if name in settled:
                self.acked[self.task_of[name]] += 1
        self.forgotten = [name for name, is_told in self.is_acked.items() if is_told and name not in settled]

    def places(self, stored):
        """task -> in how many places it is: acked, or where it is stored."""
        return self.acked + collections.Counter(task for tasks in stored.values() for task in tasks)

    def everywhere(self, stored):
        """All tasks that were seen: handed out to somebody, or still there."""
        return set(self.task_of.values()) | {task for tasks in stored.values() for task in tasks}

    def handed_out_again(self):
        """How many claims were of a task that had been claimed before."""
        return len(self.task_of) - len(set(self.task_of.values()))


def faults(account, stored):
    """What does not fit, in words."""
    there = account.places(stored)
    wrong = {
        "lost": account.surely - set(there),
        "never pushed": set(there) - account.surely - account.maybe,
        "in two places": {task for task, count in there.items() if count > 1},
        "acked and not settled": account.forgotten,
    }
    return [f"{what}: {sorted(tasks)[:20]}" for what, tasks in wrong.items() if tasks]


def judge_pushes(lines, everywhere):
    """What had become of pushes that were cut off: none went in, all did, or some."""
    for line in lines:
        if line.get("killed") and line["verdict"] is None:
            there = len(everywhere & set(line["tasks"]))
            line["verdict"] = "ok" if there == len(line["tasks"]) else "unknown" if there else "failed"
