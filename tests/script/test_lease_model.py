"""Random operations on leases, each done to Redis and to a small model, with foreign hands and a clock that steps."""

import os
import random

import pytest
from leases import EMPTY, ENDED, FULL, GRANTED, LIVE_UNIT, NOW_MS, Leases

SEED = os.environ.get("FAIRLEAD_TEST_SEED", "20240601")
COLLECTED_MAX = 64


class Held:
    """A lease as the model knows it."""

    def __init__(self, lease, expires_ms):
        self.member, self.token, self.expires_ms, self.is_resting = lease.member, lease.token, expires_ms, False


class Model:
    """Who holds what, and which tokens were released. The members themselves are read from Redis, who alone orders them."""

    def __init__(self):
        self.leases, self.released = {}, set()
        self.caps, self.cap, self.rest_ms = {}, 0, 0

    def live(self, member):
        return sum(lease.member == member for lease in self.leases.values())

    def is_full(self, member):
        cap = self.caps.get(member, self.cap)
        return 0 < cap <= self.live(member)

    def collect(self, now, most, id=None):
        """The first by expiry, then by the bytes of the id; `id` in any case. Returns how many of the former."""
        expired = sorted((lease.expires_ms, i) for i, lease in self.leases.items() if lease.expires_ms <= now)
        own = [(0, i) for i in [id] if i in self.leases and self.leases[i].expires_ms <= now]
        for _, i in expired[:most] + own:
            self.leases.pop(i, None)
        return len(expired[:most])

    def renew(self, id, token, now, ttl):
        lease = self.leases.get(id)
        if not lease or lease.token != token or lease.expires_ms <= now or lease.is_resting:
            return 1
        lease.expires_ms = max(lease.expires_ms, now + ttl)
        return 0

    def release(self, id, token, now):
        lease = self.leases.get(id)
        if not lease or lease.expires_ms <= now:
            self.leases.pop(id, None)
        elif lease.token == token and not lease.is_resting:
            self.released.add(token)
            lease.is_resting, lease.expires_ms = True, now + self.rest_ms
            if self.rest_ms == 0:
                del self.leases[id]
        return 0 if token in self.released else 1


class Crowd:
    """Does each operation to the model and to Redis, and compares what they say."""

    def __init__(self, store, script, five_lines, r):
        self.store, self.five_lines, self.r = store, five_lines, r
        self.leases, self.model = Leases(store, script), Model()
        self.told = []  # every lease that was ever granted
        self.members = [f"http://10.0.0.{i}:80".encode() for i in range(5)] + [b"foreign\tmember=x\n\xff\x00", b"f2"]
        for member in self.members[:5]:
            self.add_record(member)
        self.leases.place(*self.members[:5])

    def add_record(self, member):
        self.store.hset("proxies", member, "sources=operator")
        self.store.hset("health", member, "state=up")

    def offered(self, avoid):
        """Who may be taken, as {member: (live, count, member)}, of busy, or if that has nobody of the pool."""
        pool, model = self.leases.counts(), self.model
        allowed = {m: (model.live(m), pool[m], m) for m in pool if m not in avoid and not model.is_full(m)}
        return {m: rank for m, rank in allowed.items() if self.store.zscore("busy", m) is not None} or allowed

    def is_overrated(self):
        """Has a foreign hand lowered a count that busy knows?"""
        counts = self.leases.counts()
        return any(score % LIVE_UNIT > counts.get(m, score) for m, score in self.leases.busy().items())

    def judge(self, lease, only, avoid):
        pool = self.before
        wanted = [only] if only else list(pool)
        if lease.code == GRANTED:
            assert only in (b"", lease.member)
            if not only and not self.was_overrated:
                assert lease.member == min(self.could.values())[2]
            assert self.model.live(lease.member) == min(rank[0] for rank in self.could.values())
            return
        assert not self.could
        is_full = any(self.model.is_full(m) for m in wanted if m in pool and m not in avoid)
        assert lease.code == (FULL if is_full else EMPTY)

    def do_acquire(self):
        now, model = self.leases.now, self.model
        avoid = self.r.sample(self.members, self.r.choice([0, 0, 1, 2]))
        only = self.r.choice([b""] * 3 + [self.r.choice(self.members)])
        again = self.r.choice(self.told).id if self.told and self.r.random() < 0.3 else None
        model.collect(now, COLLECTED_MAX, again)
        self.before, self.was_overrated, self.could = self.leases.counts(), self.is_overrated(), self.offered(avoid)
        if only:
            pool = self.before
            is_free = only in pool and only not in avoid and not model.is_full(only)
            self.could = {only: (model.live(only), 0, only)} if is_free else {}
        ttl = self.r.choice([50, 200, 1000])
        lease = self.leases.acquire(again, ttl=ttl, only=only, avoid=avoid, nonce=f"{self.r.getrandbits(64):016x}")
        known = model.leases.get(again)
        if known:
            expected = (ENDED, b"", b"", -1)
            if not known.is_resting:
                expected = (GRANTED, known.member, known.token, known.expires_ms)
            assert (lease.code, lease.member, lease.token, lease.expires_ms) == expected
            return
        self.judge(lease, only, avoid)
        if lease.code == GRANTED:
            assert lease.expires_ms == now + ttl
            assert self.leases.counts()[lease.member] == self.before[lease.member] + (not only)
            assert lease.token not in {told.token for told in self.told}
            model.leases[lease.id] = Held(lease, now + ttl)
            self.told.append(lease)

    def some_told(self):
        recent = self.told[-12:] if self.r.random() < 0.8 else self.told
        return [self.r.choice(recent) for _ in range(self.r.randrange(1, 5))] if recent else []

    def do_renew(self):
        told, ttl = self.some_told(), self.r.choice([10, 100, 2000])
        if told:
            expected = [self.model.renew(x.id, x.token, self.leases.now, ttl) for x in told]
            assert self.leases.renew(*told, ttl=ttl) == expected

    def do_release(self):
        told = self.some_told()
        if told:
            expected = [self.model.release(x.id, x.token, self.leases.now) for x in told]
            assert self.leases.release(*told) == expected

    def do_expire(self):
        most, now = self.r.choice([1, 2, 256]), self.leases.now
        count = self.model.collect(now, most)
        earliest = min((x.expires_ms for x in self.model.leases.values()), default=-1)
        assert self.leases.expire(most) == [count, earliest, now]

    def do_time(self):
        self.leases.now += self.r.choice([1, 10, 60, 60, 300, -300, 3_600_000, -3_600_000])
        self.leases.now = max(self.leases.now, 0)

    def do_park_or_restore(self):
        member = self.r.choice(self.members[:5])
        self.store.hset("health", member, self.r.choice(["state=up", "state=down"]))
        self.leases.place(member)

    def do_remove(self):
        self.leases.remove(self.r.choice(self.members))

    def do_add_again(self):
        member = self.r.choice(self.members[:5])
        if self.r.random() < 0.5:
            self.leases.script["enter"](
                ["pool", "parked", "offset", "proxies", "health", "rules", "live", "busy"], 1, "list", member, "")
        else:
            self.add_record(member)
            self.leases.place(member)

    def do_five_lines(self):
        self.five_lines("pool", self.r.randrange(1, 4))

    def do_foreign_add(self):
        self.store.zadd("pool", {self.r.choice(self.members): self.r.randrange(9)}, nx=self.r.random() < 0.8)

    def do_foreign_remove(self):
        self.store.zrem("pool", self.r.choice(self.members))

    def do_mend(self):
        members = self.r.sample(self.members, 3)
        pool, busy = self.leases.counts(), self.leases.busy()
        expected = [3 if m in busy and m not in pool else 1 if m in pool and m not in busy else 0 for m in members]
        assert self.leases.mend(*members) == expected

    def do_rules(self):
        self.model.cap, self.model.rest_ms = self.r.choice([0, 1, 2, 3]), self.r.choice([0, 0, 80])
        self.store.hset("rules", mapping={"max_concurrent": self.model.cap, "rest_ms": self.model.rest_ms})

    def do_own_cap(self):
        member, cap = self.r.choice(self.members), self.r.choice([None, 0, 1, 2])
        self.model.caps.pop(member, None)
        self.store.hdel("admin", member)
        if cap is not None:
            self.model.caps[member] = cap
            self.store.hset("admin", member, f"state=enabled\tmax_concurrent={cap}")

    def check(self):
        self.leases.check()
        assert self.leases.held() == {id.encode(): x.member for id, x in self.model.leases.items()}
        expiries = {i.decode(): s for i, s in self.store.zrange("leases", 0, -1, withscores=True)}
        assert expiries == {id: x.expires_ms for id, x in self.model.leases.items()}


OPERATIONS = ["park_or_restore", "remove", "add_again", "add_again", "five_lines", "foreign_add", "foreign_remove", "mend"]
OPERATIONS += ["rules", "own_cap", "time", "time", "time", "expire"] + ["acquire", "acquire", "renew", "release"] * 4


def forget_admin(crowd):
    """`remove` forgets a member's own cap."""
    for member in list(crowd.model.caps):
        if not crowd.store.hexists("admin", member):
            del crowd.model.caps[member]


@pytest.mark.parametrize("round_", range(6))
def test_random_operations_keep_leases_and_members_together(store, script, five_lines, round_):
    print("seed", SEED, round_)
    r = random.Random(f"{SEED} {round_}")
    crowd = Crowd(store, script, five_lines, r)
    for _ in range(400):
        getattr(crowd, f"do_{r.choice(OPERATIONS)}")()
        forget_admin(crowd)
        crowd.check()
    assert len(crowd.told) > 20
    crowd.leases.now = NOW_MS * 1000
    crowd.leases.expire()
    assert (crowd.leases.live(), crowd.leases.held(), store.zcard("leases")) == ({}, {}, 0)
