"""enter.lua: the newcomers of a list, in one call for many."""

import math
import os
import random

import pytest
import redis

SEED = os.environ.get("FAIRLEAD_TEST_SEED", "20240304")
KEYS = ["pool", "parked", "offset", "proxies", "health", "rules", "live", "busy"]
PLACE_KEYS = ["pool", "parked", "offset", "proxies", "admin", "health", "rules", "live", "busy"]
REMOVE_KEYS = ["pool", "parked", "offset", "proxies", "admin", "health", "streaks", "due", "busy"]
KNOWN, JOINED, CANDIDATE = 0, 2, 5
LIVE_UNIT = 2**40


@pytest.fixture
def enter(script):
    """Members by name, or as (member, tags)."""
    run = script("enter")

    def call(admit, *members, source="list"):
        pairs = [m if isinstance(m, tuple) else (m, "") for m in members]
        return run(KEYS, admit, source, *[word for pair in pairs for word in pair])

    return call


@pytest.fixture
def place(script):
    run = script("place")
    return lambda *members: run(PLACE_KEYS, 1, *members)


def scores(store, key):
    return {m.decode(): s for m, s in store.zrange(key, 0, -1, withscores=True)}


def values(store, key):
    return {m.decode(): v.decode() for m, v in store.hgetall(key).items()}


def dump_all(store):
    return {key: store.dump(key) for key in store.keys()}


# What a newcomer gets -----------------------------------------------------------------------------


def test_a_candidate_is_parked_with_a_record_and_without_a_verdict(store, enter):
    assert enter(0, ("a", "country=us\tanonymity=elite"), "b") == [CANDIDATE, CANDIDATE]
    records = {"a": "sources=list\tcountry=us\tanonymity=elite", "b": "sources=list"}
    assert values(store, "proxies") == records
    assert scores(store, "parked") == {"a": 0, "b": 0}
    assert sorted(store.keys()) == [b"parked", b"proxies"]


def test_an_admitted_member_stands_in_the_pool_and_is_up(store, enter):
    assert enter(1, ("a", "country=us"), "b") == [JOINED, JOINED]
    assert values(store, "proxies") == {"a": "sources=list\tcountry=us", "b": "sources=list"}
    assert scores(store, "pool") == scores(store, "busy") == {"a": 0, "b": 0}
    assert values(store, "health") == {"a": "state=up", "b": "state=up"}
    assert not store.exists("parked")


@pytest.mark.parametrize("home", ["pool", "parked", "proxies"])
@pytest.mark.parametrize("admit", [0, 1])
def test_a_known_member_is_left_alone(store, enter, home, admit):
    if home == "proxies":
        store.hset(home, "a", "")
    else:
        store.zadd(home, {"a": 7})
    before = dump_all(store)
    assert enter(admit, ("a", "country=us")) == [KNOWN]
    assert dump_all(store) == before


def test_a_member_named_twice_counts_once_with_its_first_tags(store, enter):
    assert enter(0, ("a", "country=us"), "b", ("a", "country=de")) == [CANDIDATE, CANDIDATE, KNOWN]
    assert values(store, "proxies") == {"a": "sources=list\tcountry=us", "b": "sources=list"}


@pytest.mark.parametrize(
    "join, lowest, score",
    [
        (None, 30, 30),
        ("floor", 3, 7),
        ("floor", None, 7),
        ("floor", 30.5, 30.5),
        ("floor", math.inf, math.inf),
        ("keep", 30, 7),
        ("zero", 30, 0),
    ],
)
def test_newcomers_join_by_the_rule_and_were_given_nothing(store, enter, join, lowest, score):
    store.hset("rules", "start", 7)
    if join:
        store.hset("rules", "join", join)
    if lowest is not None:
        store.zadd("pool", {"x": lowest, "y": math.inf})
    assert enter(1, "a", "b") == [JOINED, JOINED]
    assert [store.zscore("pool", m) for m in "ab"] == [score, score]
    assert [float(store.hget("offset", m) or 0) for m in "ab"] == [score, score]
    assert store.zscore("busy", "a") == min(math.floor(min(score, 1e300)), LIVE_UNIT - 1)


def test_a_candidate_starts_at_the_agreed_count_whatever_the_pool_has(store, enter):
    store.hset("rules", "start", "0.1")
    store.zadd("pool", {"x": 30})
    assert enter(0, "a") == [CANDIDATE]
    assert (store.zscore("parked", "a"), float(store.hget("offset", "a"))) == (0.1, 0.1)


@pytest.mark.parametrize("admit", [0, 1])
@pytest.mark.parametrize("start", [0, 7])
def test_an_offset_that_was_left_behind_does_not_count(store, enter, admit, start):
    store.hset("rules", "start", start)
    store.hset("offset", mapping={"a": 99, "other": 1})
    enter(admit, "a")
    assert float(store.hget("offset", "a") or 0) == start
    assert store.hget("offset", "other") == b"1"


@pytest.mark.parametrize("live, busy", [(None, 3), (2, 2 * LIVE_UNIT + 3), ("x", 3), (-1, 3)])
def test_who_comes_back_is_busy_by_the_leases_that_still_live(store, enter, live, busy):
    store.hset("rules", "start", 3)
    store.hset("live", "other", 9)
    if live is not None:
        store.hset("live", "a", live)
    assert enter(1, "b", "a") == [JOINED, JOINED]
    assert (store.zscore("busy", "a"), store.zscore("busy", "b")) == (busy, 3)


@pytest.mark.parametrize("admit, code", [(0, 3), (1, 1)])
def test_place_agrees_with_where_a_newcomer_stands(store, enter, place, admit, code):
    enter(admit, "a", "b")
    before = dump_all(store)
    assert place("a", "b") == [code, code]
    assert dump_all(store) == before


def test_any_bytes_make_a_member(store, enter):
    member = bytes(range(256))
    assert enter(0, member, b"\x00", "%s%1") == [CANDIDATE] * 3
    assert store.hget("proxies", member) == b"sources=list"
    assert store.zscore("parked", b"\x00") == 0


# Refusals -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "args",
    [
        [],
        ["0"],
        ["0", "list"],
        ["0", "list", "a"],
        ["0", "list", "a", "", "b"],
        ["", "list", "a", ""],
        ["2", "list", "a", ""],
        ["01", "list", "a", ""],
        ["0", "", "a", ""],
        ["0", "a,b", "a", ""],
        ["0", "a\tb", "a", ""],
        ["0", "a\nb", "a", ""],
        ["0", "a=b", "a", ""],
        ["0", "list", "a", "", "", ""],
        ["1", "list", "a", "", "b", "country"],
        ["1", "list", "a", "", "b", "=us"],
        ["1", "list", "a", "", "b", "k=v\n"],
        ["1", "list", "a", "", "b", "k\n=v"],
        ["1", "list", "a", "", "b", "k=v\t"],
        ["1", "list", "a", "", "b", "\tk=v"],
        ["1", "list", "a", "", "b", "k=v\t\tl=w"],
        ["1", "list", "a", "", "b", "sources=x"],
        ["1", "list", "a", "", "b", "k=v\tsources=x"],
        ["1", "list"] + ["a", ""] * 257,
    ],
    ids=repr,
)
def test_bad_arguments_are_refused_before_any_write(store, script, args):
    with pytest.raises(redis.ResponseError, match="^fairlead: "):
        script("enter")(KEYS, *args)
    assert store.dbsize() == 0


def test_a_key_that_only_looks_like_sources_is_a_tag(store, enter):
    tags = "sources2=x\tmysources=y\tk=sources=z\te="
    assert enter(0, ("a", tags)) == [CANDIDATE]
    assert values(store, "proxies") == {"a": f"sources=list\t{tags}"}


@pytest.mark.parametrize("rule", [("start", "x"), ("start", "nan"), ("join", "top"), ("join", "")])
def test_a_rule_that_cannot_be_read_changes_nothing(store, enter, rule):
    store.hset("rules", *rule)
    with pytest.raises(redis.ResponseError, match=f"^fairlead: the rule {rule[0]}"):
        enter(1, "a")
    assert store.keys() == [b"rules"]


@pytest.mark.parametrize("admit", [0, 1])
@pytest.mark.parametrize("key", KEYS)
def test_a_key_of_another_type_changes_nothing(store, enter, key, admit):
    store.set(key, "text")
    with pytest.raises(redis.ResponseError, match="WRONGTYPE"):
        enter(admit, "a")
    assert store.keys() == [key.encode()]


@pytest.mark.parametrize("start", [0, 5])
@pytest.mark.parametrize("admit", [0, 1])
def test_at_maxmemory_it_is_refused_as_a_whole(store, enter, full_store, admit, start):
    store.hset("rules", "start", start)
    store.hset("offset", "a", 9)
    store.zadd("parked", {"x": 1})
    before = dump_all(store)
    full_store()
    with pytest.raises(redis.ResponseError, match="OOM|maxmemory"):
        enter(admit, "a", "x")
    assert dump_all(store) == before
    assert enter(admit, "x") == [KNOWN]


# Cost ---------------------------------------------------------------------------------------------

WRITES = {0: {"hset": 2, "zadd": 1}, 1: {"hset": 3, "zadd": 2}}


def fill(store, key, count):
    pipeline = store.pipeline(transaction=False)
    for at in range(0, count, 5000):
        pipeline.zadd(key, {b"http://10.0.0.1:%d" % i: 9 for i in range(at, at + 5000)})
    pipeline.execute()


@pytest.mark.parametrize("admit", [0, 1])
def test_256_newcomers_take_one_command_a_key(store, enter, capsys, admit):
    fill(store, "pool" if admit else "parked", 100_000)
    store.hset("rules", "start", 9)
    store.hset("live", "m0", 1)
    members = [(f"m{i}", f"country=us\tcity={i}") for i in range(256)]
    store.config_resetstat()
    assert enter(admit, *members) == [JOINED if admit else CANDIDATE] * 256
    stats = store.info("commandstats")
    assert {name: stats[f"cmdstat_{name}"]["calls"] for name in WRITES[admit]} == WRITES[admit]
    with capsys.disabled():
        took = stats["cmdstat_evalsha"]["usec"]
        print(f" [enter: 256 newcomers, admit {admit}: {took} us]", end="")


# Random operations against a model ----------------------------------------------------------------


class Model:
    """The same pool as dictionaries, and what each member has really been given."""

    def __init__(self):
        self.pool, self.parked, self.busy, self.given = {}, {}, {}, {}
        self.record, self.health = {}, {}
        self.start, self.join = 0, "floor"

    def knows(self, m):
        return m in self.pool or m in self.parked or m in self.record

    def join_pool(self, m, own):
        lowest = min(self.pool.values(), default=own)
        self.pool[m] = {"floor": max(own, lowest), "keep": own, "zero": 0}[self.join]
        self.add_busy(m)

    def add_busy(self, m):
        self.busy.setdefault(m, max(math.floor(self.pool[m]), 0))

    def enter(self, admit, source, pairs):
        codes = []
        for m, tags in pairs:
            codes.append(KNOWN if self.knows(m) else JOINED if admit else CANDIDATE)
            if codes[-1] == KNOWN:
                continue
            self.record[m] = {"sources": [source], "tags": tags}
            if admit:
                self.health[m] = "up"
                self.join_pool(m, self.start)
            else:
                self.parked[m] = self.start
        return codes

    def join_source(self, m, source):
        sources = self.record.setdefault(m, {"sources": [], "tags": ""})["sources"]
        if source not in sources:
            sources.append(source)

    def leave_source(self, m, source):
        if m in self.record and source in self.record[m]["sources"]:
            self.record[m]["sources"].remove(source)

    def is_eligible(self, m):
        if m in self.record and not self.record[m]["sources"]:
            return False
        return self.health[m] == "up" if m in self.health else m in self.pool

    def place(self, m):
        if not self.knows(m):
            return
        if self.is_eligible(m) and m in self.pool:
            self.add_busy(m)
        elif self.is_eligible(m):
            self.join_pool(m, self.parked.pop(m, self.start))
        else:
            self.busy.pop(m, None)
            home = self.pool if m in self.pool else self.parked
            self.parked[m] = home.pop(m, self.start)

    def remove(self, m):
        for held in (self.pool, self.parked, self.busy, self.given, self.record, self.health):
            held.pop(m, None)

    def allocate(self, n):
        for _ in range(n if self.pool else 0):
            head = min((s, m) for m, s in self.pool.items())[1]
            self.pool[head] += 1
            self.given[head] = self.given.get(head, 0) + 1

    def records(self):
        """As text; the sources stay where they stood, the tags behind them."""
        texts = {m: ["sources=" + ",".join(r["sources"]), r["tags"]] for m, r in self.record.items()}
        return {m: "\t".join(filter(None, text)) for m, text in texts.items()}


SOURCES = ["operator", "list:a", "list:b"]
TAGS = ["", "country=us", "country=de\tanonymity=elite"]


class Twins:
    """Does each operation to the model and to Redis."""

    def __init__(self, store, script, r):
        self.store, self.r, self.model = store, r, Model()
        self.script = {name: script(name) for name in ("allocate", "enter", "field", "place", "remove")}
        self.members = [f"http://10.0.0.{i}:80" for i in range(12)]

    def some(self):
        return self.r.choices(self.members, k=self.r.randrange(1, 7))

    def do_enter(self):
        admit, source = self.r.choice([0, 1]), self.r.choice(SOURCES)
        pairs = [(m, self.r.choice(TAGS)) for m in self.some()]
        expected = self.model.enter(admit, source, pairs)
        words = [word for pair in pairs for word in pair]
        assert self.script["enter"](KEYS, admit, source, *words) == expected

    def do_source(self):
        source, members = self.r.choice(SOURCES), self.some()
        how = self.r.choice(["join", "leave", "leave"])
        self.script["field"]("proxies", how, "sources", *[w for m in members for w in (m, source)])
        change = self.model.join_source if how == "join" else self.model.leave_source
        for m in members:
            change(m, source)

    def do_health(self):
        m, state = self.r.choice(self.members), self.r.choice(["up", "up", "down"])
        if self.model.knows(m):
            self.script["field"]("health", "set", "state", m, state)
            self.model.health[m] = state

    def do_place(self):
        m = self.r.choice(self.members)
        self.script["place"](PLACE_KEYS, 1, m)
        self.model.place(m)

    def do_remove(self):
        m = self.r.choice(self.members)
        self.script["remove"](REMOVE_KEYS, m)
        self.model.remove(m)

    def do_allocate(self):
        n = self.r.choice([1, 2, 30])
        self.script["allocate"]("pool", n)
        self.model.allocate(n)

    def do_foreign(self):
        """A hand of somebody else adds a member, or takes one away and leaves all else behind."""
        m = self.r.choice(self.members)
        if not self.model.knows(m):
            self.store.zadd("pool", {m: 5})
            self.store.hset("offset", m, 5)
            self.model.pool[m] = 5
        elif m not in self.model.record and m in self.model.pool:
            self.store.zrem("pool", m)
            self.store.zrem("busy", m)
            for held in (self.model.pool, self.model.busy, self.model.given):
                held.pop(m, None)

    def do_rules(self):
        self.model.start = self.r.choice([0, 0, 4, -2.5])
        self.model.join = self.r.choice(["floor", "floor", "keep", "zero"])
        self.store.hset("rules", mapping={"start": self.model.start, "join": self.model.join})

    def check(self):
        model, pool, parked = self.model, scores(self.store, "pool"), scores(self.store, "parked")
        assert (pool, parked) == (model.pool, model.parked)
        assert values(self.store, "proxies") == model.records()
        offsets = values(self.store, "offset")
        given = {m: s - float(offsets.get(m, 0)) for m, s in {**pool, **parked}.items()}
        assert given == {m: model.given.get(m, 0) for m in given}
        health = values(self.store, "health")
        assert health == {m: f"state={state}" for m, state in model.health.items()}
        assert scores(self.store, "busy") == model.busy


OPERATIONS = ["enter", "source", "place"] * 3 + ["allocate"] * 2
OPERATIONS += ["health", "remove", "foreign", "rules"]


@pytest.mark.parametrize("round_", range(8))
def test_random_operations_keep_places_records_and_counts(store, script, round_):
    print("seed", SEED, round_)
    r = random.Random(f"{SEED} {round_}")
    twins = Twins(store, script, r)
    for _ in range(400):
        getattr(twins, f"do_{r.choice(OPERATIONS)}")()
        twins.check()
