"""What the tests of leases share: the scripts with their keys, and the invariant that holds after each of them."""

import re

GRANTED, EMPTY, FULL, ENDED = 0, 1, 2, 3
FINE, STALE = 0, 1
LIVE_UNIT = 2**40
NOW_MS = 1_000_000
TTL_MS = 60_000
NONCE = "c0ffee0123456789"

ACQUIRE_KEYS = ["pool", "live", "busy", "leases", "holders", "rules", "admin", "released"]
RENEW_KEYS = ["leases", "holders"]
RELEASE_KEYS = ["live", "busy", "leases", "holders", "rules", "released"]
EXPIRE_KEYS = ["live", "busy", "leases", "holders"]
MEND_KEYS = ["pool", "live", "busy"]
PLACE_KEYS = ["pool", "parked", "offset", "proxies", "admin", "health", "rules", "live", "busy"]
ENTER_KEYS = ["pool", "parked", "offset", "proxies", "health", "rules", "live", "busy"]
REMOVE_KEYS = ["pool", "parked", "offset", "proxies", "admin", "health", "streaks", "due", "busy"]

HOLDER = re.compile(rb"token=([0-9]+-[0-9a-f]+)\t(rest=1\t)?member=(.*)", re.S)


class Lease:
    def __init__(self, id, answer):
        self.id = id
        self.code, self.member, self.token, self.expires_ms, self.now_ms = answer

    def __eq__(self, other):
        return vars(self) == vars(other)

    def __repr__(self):
        return f"Lease({vars(self)})"


class Leases:
    """The scripts on one pool, at the time `now`."""

    def __init__(self, store, script):
        self.store, self.now = store, NOW_MS
        names = ["acquire", "renew", "release", "expire", "busy_mend", "place", "enter", "remove"]
        self.script = {name: script(name) for name in names}
        self.count = 0

    def acquire(self, id=None, ttl=TTL_MS, only="", avoid=(), nonce=NONCE):
        self.count += 1
        id = id or f"{self.count:032x}"
        words = [self.now, id, nonce, ttl, only, *avoid]
        return Lease(id, self.script["acquire"](ACQUIRE_KEYS, *words))

    def pairs(self, leases):
        return [word for lease in leases for word in (lease.id, lease.token)]

    def renew(self, *leases, ttl=TTL_MS):
        return self.script["renew"](RENEW_KEYS, self.now, ttl, *self.pairs(leases))

    def release(self, *leases):
        return self.script["release"](RELEASE_KEYS, self.now, *self.pairs(leases))

    def expire(self, most=256):
        return self.script["expire"](EXPIRE_KEYS, self.now, most)

    def mend(self, *members):
        return self.script["busy_mend"](MEND_KEYS, *members)

    def place(self, *members):
        return self.script["place"](PLACE_KEYS, self.now, *members)

    def remove(self, *members):
        return self.script["remove"](REMOVE_KEYS, *members)

    def live(self):
        return {m: int(n) for m, n in self.store.hgetall("live").items()}

    def busy(self):
        return dict(self.store.zrange("busy", 0, -1, withscores=True))

    def counts(self):
        return dict(self.store.zrange("pool", 0, -1, withscores=True))

    def held(self):
        """Lease id -> member, of all that count, resting ones too."""
        held = {}
        for id, packed in self.store.hgetall("holders").items():
            if id != b"next":
                held[id] = HOLDER.fullmatch(packed).group(3)
        return held

    def check(self):
        """live = holders of each member; the live part of busy = live; a holder for each lease."""
        held = self.held()
        assert set(self.store.zrange("leases", 0, -1)) == set(held)
        count_of = {}
        for member in held.values():
            count_of[member] = count_of.get(member, 0) + 1
        assert self.live() == count_of
        for member, score in self.busy().items():
            assert score // LIVE_UNIT == count_of.get(member, 0)


def contents(store):
    return {key: store.dump(key) for key in store.keys()}
