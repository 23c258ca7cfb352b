"""Kills among leases: commands that acquire, renew and release, gateways that do so for their clients, keepers that collect,
and commands that allocate, all on one pool.

Whatever is killed, at every moment: each member has as many live leases as there are holders of it, `busy` says the same,
and never more than the cap. At the end nothing is left but the counter of tokens, and as many allocations are counted as were
returned, or at most as many more as ended unknown."""

import json
import socket
import time

import farm
import peers

from harness import ANY_MOMENT, SERVER, Daemon, Deck

POOL = "proxies"
MEMBERS, CAP = 4, 3
LEASE_MS = 250
LIVE_UNIT = 2**40
ACQUIRE = ("acquire-queued", "acquire-answered")
RENEW = ("renew-queued", "renew-answered")
RELEASE = ("release-queued", "release-answered")
# Renews and releases of commands, which name the lease.
NAMED = ("named-queued", "named-answered")
ALLOCATE = ("allocate-queued", "allocate-answered")
# Sent, and not answered: nobody knows.
SENT = ("store-written",)
KEEPER = ("sweep-queued",)
POINTS = [*ACQUIRE, *RENEW, *RELEASE, *NAMED, *ALLOCATE, *SENT, *KEEPER, ANY_MOMENT, SERVER]


class Watch:
    """Looks at the pool's leases, all of them at one moment, judges what it sees, and notes which are gone."""

    def __init__(self, harness, cap):
        self.harness, self.cap = harness, cap
        self.held = {}

    def look(self):
        """lease id -> (member, token), of all that are held."""
        with self.harness.lock_of_looks:
            live, busy, leases, holders = self.harness.ask(self._read)
            holders.pop("next", None)
            held = {lease: self._holder(packed) for lease, packed in holders.items()}
            self._judge({member: int(count) for member, count in live.items()}, dict(busy), set(leases), held)
            for lease in set(self.held) - set(held):
                self.harness.oracle.write(gone=lease)
            self.held = held
            return dict(held)

    @staticmethod
    def _read(client):
        pipe = client.pipeline(transaction=True)
        pipe.hgetall(key("live"))
        pipe.zrange(key("busy"), 0, -1, withscores=True)
        pipe.zrange(key("leases"), 0, -1)
        pipe.hgetall(key("holders"))
        return pipe.execute()

    @staticmethod
    def _holder(packed):
        head, _, member = packed.partition("member=")
        return member, dict(pair.split("=", 1) for pair in head.split("\t") if pair)["token"]

    def _judge(self, live, busy, leases, held):
        counted = {}
        for member, _ in held.values():
            counted[member] = counted.get(member, 0) + 1
        wrong = [
            live != counted and f"live {live}, but held are {counted}",
            leases != set(held) and f"leases without holder or the reverse: {leases ^ set(held)}",
            any(score // LIVE_UNIT != counted.get(member, 0) for member, score in busy.items())
            and f"busy {busy}, but held are {counted}",
            any(count > self.cap for count in counted.values()) and f"more than {self.cap} of a member: {counted}",
        ]
        for text in filter(None, wrong):
            self.harness.fault(text)

    def drive(self, _):
        self.look()
        time.sleep(0.01)


def key(name):
    return f"{{{POOL}}}:pool:{name}"


def residue(client):
    """What is left of leases in the store, which should be nothing."""
    holders = client.hgetall(key("holders"))
    holders.pop("next", None)
    busy = {member: score for member, score in client.zrange(key("busy"), 0, -1, withscores=True) if score >= LIVE_UNIT}
    return [client.hgetall(key("live")), client.zrange(key("leases"), 0, -1), holders, busy]


class Leases:
    """The world in which they live."""

    def __init__(self, harness):
        self.harness, self.oracle = harness, harness.oracle
        self.farm = farm.Farm(*["good"] * MEMBERS)
        harness.ends.callback(self.farm.close)
        self.watch = Watch(harness, CAP)
        self.port = peers.free_port()
        self.must("pool", "rules", "allow_private=1", "policy=least-concurrent", f"max_concurrent={CAP}",
                  f"lease_ms={LEASE_MS}", "fall=1000", "cooldown_ms=0")
        self.must("pool", "add", "--eligible", *(url for url, _ in self.farm.urls))
        self.decks = {}

    def must(self, *words):
        ended = self.harness.command(*words)
        assert ended.status == 0, (words, ended)
        return ended.output

    def drivers(self):
        gateway = Daemon(self.harness, ["gateway", "--listen", f"127.0.0.1:{self.port}", "--allow-private", "--tries", "1",
                                        "--no-access-log", "--lease-wait", "50ms"],
                         [*ACQUIRE, *RENEW, *RELEASE, *SENT], self.of_gateways, passes_max=4)
        keeper = Daemon(self.harness, ["keeper", "--no-check"], KEEPER, list, passes_max=2)
        return {
            "watch": self.watch.drive, "server": self.harness.kill_server_at_times,
            "gateway": gateway.live, **{f"client {i}": self.request for i in range(6)},
            "keeper": keeper.live, "allocate": self.allocate,
            "exec 1": self.run_a_command, "exec 2": self.run_a_command, "hand 1": self.by_hand, "hand 2": self.by_hand,
        }

    def draw_point(self, draw, *points):
        """NAME:N, or ANY_MOMENT, or, one time in three, nothing. Of what stands in every operation any pass may be the one."""
        deck = self.decks.setdefault((draw, points), Deck([*points, ANY_MOMENT], draw))
        if not draw.randrange(3):
            return None
        name = deck.next()
        return f"{name}:{draw.randint(1, 8)}" if name in SENT else name

    def command(self, *words, **options):
        return self.harness.command("pool", *words, **options)

    def note(self, ended, operation, verdict=None):
        """Who was killed leaves its lease, if there is one. `verdict(is_held)`: what had become of what it was doing."""
        is_held = operation in self.watch.look()
        self.harness.note_kill(ended.point, ended.at, [operation] if is_held else [],
                               verdict(is_held) if verdict else "unknown", operation=operation)

    # --- commands ---

    def run_a_command(self, draw):
        """Under a lease that lives while the command does. The command itself tells the oracle that it runs."""
        point = self.draw_point(draw, *ACQUIRE, *RENEW, *NAMED, *SENT)
        ttl_ms, hold_s = draw.randint(100, 300), 0.4 if point in RENEW else draw.choice([0, 0.1, 0.4])
        operation = self.oracle.intend("exec", point=point, ttl_ms=ttl_ms)
        line = json.dumps({"granted": operation})
        script = f"echo '{line}' >>{self.oracle.path}; sleep {hold_s}"
        ended = self.command("acquire", "--operation", operation, "--ttl", f"{ttl_ms}ms", "--exec", "sh", "-c", script,
                             point=point, after_s=draw.uniform(0, hold_s + 0.03))
        self.oracle.conclude(operation, ended.verdict)
        if not ended.point:
            return
        if f'"granted": "{operation}"' in self.oracle.about(operation):
            self.note(ended, operation, lambda is_held: "failed" if is_held else "ok")
        else:
            self.note(ended, operation, lambda is_held: "ok" if is_held else "failed")

    def by_hand(self, draw):
        """A command for each step. Whoever was killed is asked again, with the same words."""
        began, ttl_ms = time.monotonic(), draw.randint(100, 300)
        operation, token = self.acquire(draw, ttl_ms)
        if not token:
            return
        if draw.random() < 0.3:
            self.settle(draw, "renew", operation, token)
        if draw.random() < 0.2:
            self.refuse_a_stranger(operation, draw)
        if draw.random() < 0.1:
            self.come_too_late(draw, operation, token, time.monotonic() + max(ttl_ms, LEASE_MS) / 1000)
            return
        released = self.settle(draw, "release", operation, token)
        again = self.command("release", f"{operation}:{token}")
        if (released.status == 0 or released.point) and self.is_within(began, ttl_ms) and again.status != 0:
            self.harness.fault(f"{operation}: the owner's repeated release was refused: {again}")

    def acquire(self, draw, ttl_ms):
        """The operation and the token; asked again if that was killed. The same operation has the same lease."""
        words = ("acquire", "--json", "--ttl", f"{ttl_ms}ms")
        point, began = self.draw_point(draw, *ACQUIRE, *SENT), time.monotonic()
        operation = self.oracle.intend("acquire", point=point, ttl_ms=ttl_ms)
        words += ("--operation", operation)
        ended = self.command(*words, point=point, after_s=draw.uniform(0, 0.03))
        if ended.point:
            self.note(ended, operation, lambda is_held: "ok" if is_held else "failed")
            before = self.watch.look().get(operation)
            ended = self.command(*words)
            if before and ended.status == 0 and self.is_within(began, ttl_ms) and token_of(ended) != before[1]:
                self.harness.fault(f"{operation} got two leases: {before} and {ended.output}")
        self.oracle.conclude(operation, ended.verdict)
        return operation, token_of(ended) if ended.status == 0 else None

    def settle(self, draw, verb, operation, token):
        """Renews or releases a lease that is ours."""
        point = self.draw_point(draw, *NAMED, *SENT)
        step = self.oracle.intend(verb, lease=operation, point=point)
        ended = self.command(verb, f"{operation}:{token}", point=point, after_s=draw.uniform(0, 0.02))
        self.oracle.conclude(step, ended.verdict)
        if ended.point:
            self.note(ended, operation, verb == "release" and (lambda is_held: "failed" if is_held else "ok"))
        return ended

    def come_too_late(self, draw, operation, token, runs_out_at):
        """Whoever renews or releases a lease that has run out changes nothing, and is told so, also while nobody has
        collected it yet."""
        if not self.harness.wait_until(lambda: time.monotonic() > runs_out_at, 0.001):
            return
        ended = self.command(draw.choice(["renew", "release"]), f"{operation}:{token}")
        if ended.status == 0:
            self.harness.fault(f"a lease that had run out is heeded: {operation} {token}")

    def refuse_a_stranger(self, operation, draw):
        """A token that is not the lease's changes nothing, and is told so."""
        ended = self.command(draw.choice(["renew", "release"]), f"{operation}:1-{draw.getrandbits(64):016x}")
        if ended.status == 0:
            self.harness.fault(f"{operation}: a wrong token was heeded")

    def is_within(self, began, ttl_ms):
        """The lease cannot have run out since, whatever happened."""
        return time.monotonic() - began < ttl_ms / 1000

    def allocate(self, draw):
        """Counts on the same members, without a lease."""
        point, count = self.draw_point(draw, *ALLOCATE, *SENT), draw.randint(1, 4)
        operation = self.oracle.intend("allocate", point=point, count=count)
        ended = self.command("allocate", "--count", count, point=point, after_s=draw.uniform(0, 0.03))
        self.oracle.conclude(operation, ended.verdict, count=count)
        if ended.point:
            self.note(ended, operation)

    # --- what runs for long ---

    def request(self, draw):
        """A tunnel through the gateway, which may be between two lives."""
        operation = self.oracle.intend("request")
        try:
            with socket.create_connection(("127.0.0.1", self.port), peers.WAIT_S) as client:
                client.sendall(b"CONNECT target.example:443 HTTP/1.1\r\nHost: target.example:443\r\n\r\n")
                answer = client.recv(4096)
                if answer.startswith(b"HTTP/1.1 200 "):
                    time.sleep(draw.choice([0, 0.05, 0.4]))
        except ConnectionRefusedError:
            self.oracle.conclude(operation, "failed")
            time.sleep(0.01)
            return
        except OSError:
            answer = b""
        is_full = b"connection_limit_reached" in answer
        self.oracle.conclude(operation, "ok" if answer.startswith(b"HTTP/1.1 200 ") else "failed" if is_full else "unknown")

    def of_gateways(self):
        """Their leases have ids of their own making, without a dash."""
        return [lease for lease in self.watch.look() if "-" not in lease]

    # --- the end ---

    def rest(self):
        """A keeper alone collects what is left. Something is left for certain."""
        for operation in ("a-1", "a-2", "a-3"):
            self.command("acquire", "--operation", operation, point="acquire-answered")
        self.harness.keep_until(["keeper", "--no-check"], lambda: not self.watch.look(), "the last lease is collected")

    def residue(self):
        return residue(self.harness.client)

    def figures(self):
        """For the document."""
        return {"leases granted": self.granted, "allocations counted": round(self.allocated),
                "left at the end": sum(len(part) for part in self.residue())}

    def counted(self):
        """(leases, allocations) that were ever granted, and counted."""
        client = self.harness.client
        offsets, counts = client.hgetall(key("offset")), client.zrange(POOL, 0, -1, withscores=True)
        leases = int(client.hget(key("holders"), "next"))
        return leases, sum(score - float(offsets.get(member, 0)) for member, score in counts)


def token_of(ended):
    return json.loads(ended.output)["lease"].partition(":")[2]


def bounds(lines, outages, *kinds):
    """(least, most): what was returned to operations of these kinds, and with it what ended unknown. Whoever was under
    way when the server died may have been counted twice: the first answer was lost."""
    begun = {line["intent"]: line for line in lines if line.get("does") in kinds}
    granted = {line["granted"] for line in lines if "granted" in line}
    least = most = 0
    for end in (line for line in lines if line.get("outcome") in begun):
        operation, count = end["outcome"], end.get("count", 1)
        is_returned = end["verdict"] == "ok" or operation in granted
        is_twice = any(begun[operation]["t"] < until and end["t"] > since for since, until in outages)
        least += count * is_returned
        most += count * (end["verdict"] != "failed" or operation in granted) * (1 + is_twice)
    return least, most
