"""The queue `q` as the tests of its scripts see it: the scripts with their keys, and what stands where."""

import collections

NOW_MS = 1_000_000_000
# Of a new queue: the time in us, plus one.
FIRST_ID = NOW_MS * 1000 + 1
NONCE = "0123456789abcdef"
LEVELS = ["high", "normal", "low"]
# Scores from here on: due, but set aside until somebody comes who names the level.
ASIDE = 2**52
SIBLINGS = ["later", "held", "claims", "leases", "settled", "settled-before", "dead", "ids", "stats", "paused"]

class Claim(collections.namedtuple("Claim", "id token level failures lost released expires_ms payload")):
    @property
    def name(self):
        return f"{self.id}:{self.token}"


Claimed = collections.namedtuple("Claimed", "now next_due next_end promoted expired claims")
SETTLE_KEYS = ["claims", "leases", "settled", "settled-before", "held", "later", "dead", "stats"]

# Payloads that a script which looked into them would change.
HOSTILE = {
    "empty": b"",
    "one NUL": b"\0",
    "NUL inside": b"a\0b\0",
    "CRLF": b"\r\n$3\r\nfoo\r\n",
    "invalid UTF-8": b"\xff\xfe\xc3(\x80",
    "a number above 2^53": b'{"id":9007199254740993}',
    "an empty array": b"[]",
    "a pair": b"payload=x",
    "pairs": b"\tpayload=x\ttoken=1-a\tlevel=low",
    "every byte": bytes(range(256)),
    "a number": b"1e400",
}


def key(name):
    return f"{{q}}:queue:{name}"


def list_key(level):
    return f"{{q}}:{level}"


def retry_key(level):
    return key(f"retry:{level}")


def pairs_of(packed):
    """A packed value as a dict; the payload is the rest, whatever bytes."""
    head, _, payload = packed.partition(b"\tpayload=")
    pairs = dict(pair.split(b"=", 1) for pair in head.split(b"\t"))
    return {k.decode(): v.decode() for k, v in pairs.items()} | {"payload": payload}


class Queue:
    def __init__(self, store, script):
        self.store = store
        self.now = NOW_MS
        names = ["push", "claim", "settle", "dead_retry", "retry_public", "queue_mend"]
        self.run = {name: script(name) for name in names}

    def push(self, *payloads, level="normal", side="tail", due="", window=60_000, keys=(), now=None):
        keys = list(keys) + [""] * (len(payloads) - len(keys))
        words = [word for pair in zip(keys, payloads) for word in pair]
        names = [list_key(level), key("later"), key("held"), key("ids"), key("stats")]
        now = self.now if now is None else now
        answer = self.run["push"](names, now, side, level, due, window, *words)
        assert answer[0] == now or now == ""
        return answer[1:]

    def claim(self, count=1, levels=LEVELS, now=None, lease=1000, bytes_max=10**9, lost_max=3,
              dead_max=100, limit=256, nonce=NONCE):
        names = [key(n) for n in ("later", "held", "claims", "leases", "dead", "stats", "paused")]
        names += [n for level in levels for n in (list_key(level), retry_key(level))]
        now = self.now if now is None else now
        answer = self.run["claim"](names, now, nonce, lease, count, bytes_max, lost_max, dead_max,
                                   limit, *levels)
        claims = [Claim(*c[0].decode().split(":"), c[1].decode(), *c[2:]) for c in answer[5:]]
        return Claimed(*answer[:5], claims)

    def take(self, count=1, **options):
        return self.claim(count, **options).claims

    def payloads(self, count=256, **options):
        return [claim.payload for claim in self.take(count, **options)]

    def settle(self, *operations, levels=LEVELS, now=None, dead_max=100, failures_max=5):
        """Operations: (verb, claim), (verb, claim, number), (verb, claim, number, reason)."""
        names = [key(n) for n in SETTLE_KEYS]
        names += [retry_key(level) for level in levels]
        words = []
        for verb, claim, *rest in operations:
            words += [verb, *rest, *[""] * (2 - len(rest)), 1, claim.name]
        now = self.now if now is None else now
        return self.run["settle"](names, now, dead_max, failures_max, len(levels), *levels, *words)

    def dead_retry(self, count=128, levels=LEVELS):
        names = [key("dead"), key("stats"), *(list_key(level) for level in levels)]
        return self.run["dead_retry"](names, count, *levels)

    def retry_public(self, level="normal", count=128):
        names = [retry_key(level), key("held"), list_key(level), key("stats")]
        return self.run["retry_public"](names, count)

    def mend(self, kind, *ids):
        names = [key(n) for n in ("claims", "leases", "held", "later", "stats")]
        return self.run["queue_mend"](names, kind, *ids)

    def list(self, level="normal"):
        """In the order in which it is consumed."""
        return self.store.lrange(list_key(level), 0, -1)[::-1]

    def retry(self, level="normal"):
        return [id.decode() for id in self.store.lrange(retry_key(level), 0, -1)[::-1]]

    def zset(self, name):
        return {m.decode(): s for m, s in self.store.zrange(key(name), 0, -1, withscores=True)}

    def packed(self, name):
        return {i.decode(): pairs_of(p) for i, p in self.store.hgetall(key(name)).items()}

    def settled(self, name="settled"):
        return {name.decode() for name in self.store.smembers(key(name))}

    def dead(self):
        """The newest first."""
        return [pairs_of(letter) for letter in self.store.lrange(key("dead"), 0, -1)]

    def stats(self):
        return {k.decode(): int(v) for k, v in self.store.hgetall(key("stats")).items()}

    def everything(self):
        return {name: self.store.dump(name) for name in self.store.keys()}
