"""place.lua: who stands in the pool, who is parked, and what becomes of the counts."""

import math
import os
import random

import pytest
import redis

SEED = os.environ.get("FAIRLEAD_TEST_SEED", "20240302")
KEYS = ["pool", "parked", "offset", "proxies", "admin", "health", "rules", "live", "busy"]
UNKNOWN, ELIGIBLE, JOINED, PARKED, PARKED_NOW, CANDIDATE = range(6)
NOW_MS = 1_000_000
LIVE_UNIT = 2**40


@pytest.fixture
def place(script):
    run = script("place")
    return lambda *members, now=NOW_MS: run(KEYS, now, *members)


def add_record(store, member, health="up", sources="cli", **admin):
    """What source, check and command line have written about a member."""
    store.hset("proxies", member, f"sources={sources}\ttags=x" if sources else "tags=x")
    if health:
        store.hset("health", member, f"since=1\tstate={health}")
    if admin:
        store.hset("admin", member, "\t".join(f"{k}={v}" for k, v in admin.items()))


def score(store, key, member):
    return store.zscore(key, member)


def offset(store, member):
    return float(store.hget("offset", member))


# Who is eligible ----------------------------------------------------------------------------------


def test_a_stranger_changes_nothing(store, place):
    store.hset("health", "a", "state=up")
    store.hset("offset", "a", "3")
    assert place("a") == [UNKNOWN]
    assert sorted(store.keys()) == [b"health", b"offset"]


def test_a_member_that_is_up_joins_at_zero(store, place):
    add_record(store, "a")
    assert place("a") == [JOINED]
    assert (score(store, "pool", "a"), score(store, "busy", "a"), offset(store, "a")) == (0, 0, 0)
    assert place("a") == [ELIGIBLE]


@pytest.mark.parametrize("health", [None, "candidate", "down", "auth-failed"])
def test_a_candidate_is_parked_until_it_is_up(store, place, health):
    add_record(store, "a", health=health)
    assert place("a") == [CANDIDATE]
    assert place("a") == [PARKED]
    assert (score(store, "parked", "a"), offset(store, "a")) == (0, 0)
    add_record(store, "a", health="up")
    assert place("a") == [JOINED]
    assert not store.exists("parked")


@pytest.mark.parametrize(
    "record",
    [
        {"health": "down"},
        {"sources": ""},
        {"state": "paused"},
        {"state": "disabled"},
        {"expires_at": NOW_MS},
        {"expires_at": "soon"},
        {"state": "enabled", "expires_at": NOW_MS - 1},
    ],
    ids=str,
)
def test_a_member_is_parked_with_its_count_by(store, place, record):
    store.zadd("pool", {"a": 41, "b": 40})
    store.zadd("busy", {"a": 41})
    add_record(store, "a", **record)
    assert place("a") == [PARKED_NOW]
    assert (score(store, "pool", "a"), score(store, "busy", "a")) == (None, None)
    assert (score(store, "parked", "a"), score(store, "pool", "b")) == (41, 40)
    assert not store.exists("offset")


@pytest.mark.parametrize(
    "record", [{}, {"state": "enabled"}, {"expires_at": NOW_MS + 1}, {"health": None}], ids=str
)
def test_a_member_stays_eligible_with(store, place, record):
    store.zadd("pool", {"a": 41})
    add_record(store, "a", **record)
    assert place("a") == [ELIGIBLE]
    assert score(store, "pool", "a") == 41


@pytest.mark.parametrize(
    "home, health, code",
    [
        ("pool", None, ELIGIBLE),
        ("pool", "up", ELIGIBLE),
        ("pool", "down", PARKED_NOW),
        ("parked", None, PARKED),
        ("parked", "candidate", PARKED),
        ("parked", "up", JOINED),
    ],
)
def test_a_foreign_member_is_judged_by_its_health_alone(store, place, home, health, code):
    store.zadd(home, {"h:1": 5})
    if health:
        store.hset("health", "h:1", f"state={health}")
    assert place("h:1") == [code]


@pytest.mark.parametrize("record", ["", "sources=", "tags=x", "tags=x\tsources="])
@pytest.mark.parametrize("home, code", [("pool", PARKED_NOW), ("parked", PARKED), (None, CANDIDATE)])
def test_a_record_without_sources_is_no_foreign_member(store, place, record, home, code):
    store.hset("proxies", "a", record)
    store.hset("health", "a", "state=up")
    if home:
        store.zadd(home, {"a": 5})
    assert place("a") == [code]


def test_without_its_last_source_a_member_is_parked_until_another_names_it(store, script, place):
    field = script("field")
    add_record(store, "a", sources="x,y")
    store.zadd("pool", {"a": 7, "b": 6})
    field("proxies", "leave", "sources", "a", "x")
    assert place("a") == [ELIGIBLE]
    field("proxies", "leave", "sources", "a", "y")
    assert place("a") == [PARKED_NOW]
    assert (score(store, "parked", "a"), score(store, "pool", "a")) == (7, None)
    assert place("a") == [PARKED]
    field("proxies", "join", "sources", "a", "z")
    assert place("a") == [JOINED]
    assert (score(store, "parked", "a"), score(store, "pool", "a")) == (None, 7)


@pytest.mark.parametrize(
    "health", ["laststate=down\tstate=up", "state=up\tlaststate=down", "x\tstate=up\tstate2=down"]
)
def test_only_the_key_itself_counts(store, place, health):
    add_record(store, "a")
    store.hset("health", "a", health)
    assert place("a") == [JOINED]


def test_without_a_time_redis_gives_it(store, place):
    seconds = store.time()[0]
    add_record(store, "past", expires_at=(seconds - 60) * 1000)
    add_record(store, "future", expires_at=(seconds + 60) * 1000)
    assert place("past", "future", now="") == [CANDIDATE, JOINED]


# At which count -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "join, own, joined",
    [
        (None, 10, 500),
        ("floor", 10, 500),
        ("floor", 900, 900),
        ("keep", 10, 10),
        ("keep", 900, 900),
        ("zero", 10, 0),
        ("zero", 900, 0),
    ],
)
def test_a_restored_member_joins_by_the_rule(store, place, join, own, joined):
    store.zadd("pool", {"x": 500, "y": 501})
    store.zadd("parked", {"a": own})
    store.hset("offset", "a", 4)
    if join:
        store.hset("rules", "join", join)
    add_record(store, "a")
    assert place("a") == [JOINED]
    assert score(store, "pool", "a") == joined
    assert score(store, "pool", "a") - offset(store, "a") == own - 4


@pytest.mark.parametrize("join, joined", [("floor", 30), ("keep", 7), ("zero", 0)])
def test_a_newcomer_has_no_allocations_whatever_it_starts_at(store, place, join, joined):
    store.zadd("pool", {"x": 30})
    store.hset("rules", mapping={"start": 7, "join": join})
    add_record(store, "a")
    assert place("a") == [JOINED]
    assert (score(store, "pool", "a"), offset(store, "a")) == (joined, joined)


def test_a_candidate_starts_at_the_agreed_count(store, place):
    store.hset("rules", "start", 7)
    add_record(store, "a", health="candidate")
    assert place("a") == [CANDIDATE]
    assert (score(store, "parked", "a"), offset(store, "a")) == (7, 7)


@pytest.mark.parametrize("order", [["low", "a", "b"], ["a", "b", "low"]], ids=str)
def test_who_leaves_has_no_part_in_the_floor(store, place, order):
    store.zadd("pool", {"low": 5, "high": 50})
    store.zadd("parked", {"a": 20, "b": 60})
    add_record(store, "low", state="paused")
    add_record(store, "a")
    add_record(store, "b")
    assert sorted(place(*order)) == [JOINED, JOINED, PARKED_NOW]
    assert (score(store, "pool", "a"), score(store, "pool", "b")) == (50, 60)


@pytest.mark.parametrize("join, taken", [("floor", 100), ("keep", 600), ("zero", 600)])
def test_the_next_600_allocations_by_rule(store, script, place, join, taken):
    """Five stand at 10,000, a sixth left at 10: only the floor does not concentrate on it."""
    store.zadd("pool", {f"m{i}": 10_000 for i in range(5)})
    store.zadd("parked", {"sixth": 10})
    store.hset("rules", "join", join)
    add_record(store, "sixth")
    assert place("sixth") == [JOINED]
    chosen = [m for n in (256, 256, 88) for m in script("allocate")("pool", n)]
    assert (len(chosen), chosen.count(b"sixth")) == (600, taken)


def test_the_floor_of_an_empty_pool_is_the_own_count(store, place):
    store.zadd("parked", {"a": 20})
    add_record(store, "a")
    add_record(store, "b")
    assert place("a", "b") == [JOINED, JOINED]
    assert (score(store, "pool", "a"), score(store, "pool", "b")) == (20, 20)


def test_a_member_named_twice_moves_once(store, place):
    add_record(store, "a")
    add_record(store, "b", health="down")
    assert place("a", "a", "b", "b") == [JOINED, ELIGIBLE, CANDIDATE, PARKED]


@pytest.mark.parametrize("count", [math.inf, -math.inf, 2.0**53, 0.1 + 0.2, -7.5])
def test_any_count_survives_parking_and_return(store, place, count):
    store.hset("rules", "join", "keep")
    store.zadd("pool", {"a": count})
    add_record(store, "a", state="paused")
    assert place("a") == [PARKED_NOW]
    assert score(store, "parked", "a") == count
    add_record(store, "a", state="enabled")
    assert place("a") == [JOINED]
    assert score(store, "pool", "a") == count
    assert not math.isnan(offset(store, "a"))


# Busy ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "live, count, busy",
    [
        (None, 3.7, 3),
        (2, 3, 2 * LIVE_UNIT + 3),
        ("x", 3, 3),
        (-1, 3, 3),
        (1, -5, LIVE_UNIT),
        (1, 2.0**41, 2 * LIVE_UNIT - 1),
    ],
)
def test_who_joins_is_busy_by_live_leases_and_count(store, place, live, count, busy):
    store.zadd("parked", {"a": count})
    add_record(store, "a")
    if live is not None:
        store.hset("live", "a", live)
    assert place("a") == [JOINED]
    assert score(store, "busy", "a") == busy


def test_what_a_foreign_hand_left_behind_is_mended(store, place):
    """Added straight to the pool while it was parked: one place, and one among the busy."""
    store.zadd("pool", {"a": 9})
    store.zadd("parked", {"a": 2})
    add_record(store, "a")
    assert place("a") == [ELIGIBLE]
    assert (score(store, "parked", "a"), score(store, "pool", "a")) == (None, 9)
    assert score(store, "busy", "a") == 9


# Refusals -----------------------------------------------------------------------------------------


def dump_all(store):
    return {key: store.dump(key) for key in store.keys()}


@pytest.mark.parametrize("key", KEYS)
def test_a_key_of_another_type_changes_nothing(store, place, key):
    store.zadd("pool", {"a": 1})
    store.zadd("parked", {"b": 1})
    add_record(store, "a", state="paused")
    add_record(store, "b")
    store.delete(key)
    store.set(key, "text")
    before = dump_all(store)
    with pytest.raises(redis.ResponseError, match="WRONGTYPE"):
        place("a", "b")
    assert dump_all(store) == before


@pytest.mark.parametrize("rule", [("start", "x"), ("start", "nan"), ("join", "top"), ("join", "")])
def test_a_rule_that_cannot_be_read_changes_nothing(store, place, rule):
    store.hset("rules", *rule)
    add_record(store, "a")
    with pytest.raises(redis.ResponseError, match=f"^fairlead: the rule {rule[0]}"):
        place("a")
    assert not store.exists("pool")


@pytest.mark.parametrize("members", [[], ["a"] * 257], ids=len)
def test_too_few_and_too_many_are_refused(store, place, members):
    with pytest.raises(redis.ResponseError, match="^fairlead: 1 to 256 members"):
        place(*members)


def test_a_time_that_is_none_is_refused(store, place):
    with pytest.raises(redis.ResponseError, match="^fairlead: now_ms"):
        place("a", now="noon")


@pytest.mark.parametrize(
    "member, code",
    [("leaves", PARKED_NOW), ("returns", JOINED), ("new", JOINED), ("candidate", CANDIDATE)],
)
def test_placing_works_at_maxmemory(store, place, full_store, member, code):
    store.zadd("pool", {"leaves": 1})
    store.zadd("parked", {"returns": 1})
    add_record(store, "leaves", state="paused")
    add_record(store, "returns")
    add_record(store, "new")
    add_record(store, "candidate", health="candidate")
    full_store()
    assert place(member) == [code]


def test_256_joins_take_four_writes(store, place, capsys):
    pipeline = store.pipeline(transaction=False)
    for start in range(0, 100_000, 5000):
        pipeline.zadd("pool", {b"http://10.0.0.1:%d" % i: 9 for i in range(start, start + 5000)})
    pipeline.execute()
    for i in range(256):
        add_record(store, f"m{i}", state="enabled", expires_at=NOW_MS + 1)
    store.config_resetstat()
    assert place(*[f"m{i}" for i in range(256)]) == [JOINED] * 256
    stats = store.info("commandstats")
    calls = {name: stats[f"cmdstat_{name}"]["calls"] for name in ("zrem", "zadd", "hset", "zrange")}
    assert calls == {"zrem": 1, "zadd": 2, "hset": 1, "zrange": 1}
    with capsys.disabled():
        print(f" [place: 256 joins: {stats['cmdstat_evalsha']['usec']} us]", end="")


# Random operations against a model ----------------------------------------------------------------


class Model:
    """The same pool as dictionaries, and what each member has really been given."""

    def __init__(self):
        self.pool, self.parked, self.offset, self.busy = {}, {}, {}, {}
        self.sources, self.state, self.expires_at, self.health = {}, {}, {}, {}
        self.rules = {"start": 0, "join": "floor"}
        self.given = {}

    def is_eligible(self, m, now):
        if self.state.get(m, "enabled") != "enabled" or self.expires_at.get(m, now + 1) <= now:
            return False
        if m in self.sources and not self.sources[m]:
            return False
        return self.health[m] == "up" if m in self.health else m in self.pool

    def join(self, m):
        own = self.parked.pop(m, self.rules["start"])
        floor = max(own, min(self.pool.values(), default=own))
        self.pool[m] = {"floor": floor, "keep": own, "zero": 0}[self.rules["join"]]
        self.busy[m] = self.pool[m]

    def place(self, members, now):
        """Leaving comes before joining: those that leave are placed first."""
        order = sorted(range(len(members)), key=lambda i: self.is_eligible(members[i], now))
        codes = {i: self.place_one(members[i], now) for i in order}
        return [codes[i] for i in range(len(members))]

    def place_one(self, m, now):
        if not (m in self.pool or m in self.parked or m in self.sources):
            return UNKNOWN
        eligible = self.is_eligible(m, now)
        if m in self.pool:
            if eligible:
                return ELIGIBLE
            self.parked[m] = self.pool.pop(m)
            del self.busy[m]
            return PARKED_NOW
        if eligible:
            self.join(m)
            return JOINED
        is_new = m not in self.parked
        self.parked.setdefault(m, self.rules["start"])
        return CANDIDATE if is_new else PARKED

    def allocate(self, n, avoided=()):
        chosen = []
        while len(chosen) < n and set(self.pool) - set(avoided):
            head = min((s, m) for m, s in self.pool.items() if m not in avoided)[1]
            self.pool[head] += 1
            self.given[head] = self.given.get(head, 0) + 1
            chosen.append(head)
        return chosen

    def remove(self, m):
        known = m in self.pool or m in self.parked or m in self.sources
        for held in vars(self).values():
            if held is not self.rules:
                held.pop(m, None)
        return int(known)


REMOVE_KEYS = ["pool", "parked", "offset", "proxies", "admin", "health", "streaks", "due", "busy"]


class Twins:
    """Does each operation to the model and to Redis, and compares what they say."""

    def __init__(self, store, script, r):
        self.store, self.r, self.model = store, r, Model()
        names = ["allocate", "allocate_except", "field", "place", "remove"]
        self.script = {name: script(name) for name in names}
        self.members = [f"http://10.0.0.{i}:80" for i in range(9)] + ["foreign:1"]

    def some(self, limit=4):
        return [self.r.choice(self.members) for _ in range(self.r.randrange(1, limit + 1))]

    def field(self, key, name, column, values):
        for m in self.some():
            value = self.r.choice(values)
            self.script["field"](key, "set", name, m, "" if value is None else value)
            column.pop(m, None)
            if value is not None:
                column[m] = value

    def do_health(self):
        self.field("health", "state", self.model.health, ["up", "up", "down", "candidate", None])

    def do_state(self):
        self.field("admin", "state", self.model.state, ["enabled", "paused", None])

    def do_expiry(self):
        self.field("admin", "expires_at", self.model.expires_at, [50, 100, 150, None])

    def do_sources(self):
        m = self.r.choice(self.members[:-1])
        sources = self.r.choice(["cli", "list", ""])
        self.script["field"]("proxies", "set", "tags", m, "t")
        self.script["field"]("proxies", "set", "sources", m, sources)
        self.model.sources[m] = sources

    def do_rules(self):
        self.model.rules = {"start": self.r.randrange(9), "join": self.r.choice(JOINS)}
        self.store.hset("rules", mapping=self.model.rules)

    def do_place(self):
        members, now = self.some(6), self.r.choice([40, 100, 120])
        expected = self.model.place(members, now)
        assert self.script["place"](KEYS, now, *members) == expected

    def do_allocate(self):
        n = self.r.choice([1, 2, 30])
        chosen = self.script["allocate"]("pool", n)
        assert [m.decode() for m in chosen] == self.model.allocate(n)

    def do_allocate_except(self):
        avoided = self.some()
        chosen = self.script["allocate_except"]("pool", *avoided)
        assert ([chosen.decode()] if chosen else []) == self.model.allocate(1, avoided)

    def do_remove(self):
        m = self.r.choice(self.members)
        assert self.script["remove"](REMOVE_KEYS, m) == [self.model.remove(m)]

    def do_add_foreign(self):
        """A foreign client adds its member; one that stands in the pool or is parked is left."""
        if "foreign:1" not in self.model.parked and "foreign:1" not in self.model.pool:
            self.store.zadd("pool", {"foreign:1": 0})
            self.model.pool["foreign:1"] = self.model.busy["foreign:1"] = 0
            self.do_place_foreign()

    def do_place_foreign(self):
        expected = self.model.place(["foreign:1"], 1)
        assert self.script["place"](KEYS, 1, "foreign:1") == expected

    def scores(self, key):
        return {m.decode(): s for m, s in self.store.zrange(key, 0, -1, withscores=True)}

    def check(self):
        pool, parked = self.scores("pool"), self.scores("parked")
        assert (pool, parked) == (self.model.pool, self.model.parked)
        assert self.scores("busy") == self.model.busy
        offsets = {m.decode(): float(o) for m, o in self.store.hgetall("offset").items()}
        given = {m: s - offsets.get(m, 0) for m, s in {**pool, **parked}.items()}
        assert given == {m: self.model.given.get(m, 0) for m in given}


JOINS = ["floor", "keep", "zero"]
OPERATIONS = ["health", "state", "expiry", "sources", "sources", "rules", "add_foreign", "remove"]
OPERATIONS += ["place", "allocate", "allocate_except"] * 3


@pytest.mark.parametrize("round_", range(8))
def test_random_operations_keep_places_and_counts(store, script, round_):
    print("seed", SEED, round_)
    r = random.Random(f"{SEED} {round_}")
    twins = Twins(store, script, r)
    for _ in range(400):
        getattr(twins, f"do_{r.choice(OPERATIONS)}")()
        twins.check()
