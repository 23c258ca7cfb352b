"""sticky.lua: one member for all requests of a session, against the rules one by one and against a model."""

import os
import random

import pytest
import redis

SEED = os.environ.get("FAIRLEAD_TEST_SEED", "20240601")
KEPT, CREATED, MOVED, LOST, LIMIT = 1, 2, 3, 4, 5
NOW_MS = 1_000_000
# Long beside the time that a test runs, since Redis counts expiries by its own clock.
LIFETIME_MS = 1_000_000
MAX_MS = 5_000_000


class Sticky:
    """The script, for sessions of one client."""

    def __init__(self, store, run):
        self.store = store
        self.run = run
        self.now = NOW_MS

    def __call__(self, session="s", avoid=(), **options):
        arguments = {"lifetime": LIFETIME_MS, "max": MAX_MS, "limit": 100, "strict": 0} | options
        keys = ["pool", f"sticky:{session}", "sessions"]
        answer = self.run(keys, arguments.pop("now", self.now), session, *arguments.values(), *avoid)
        return tuple(answer) if answer else None

    def pin(self, session="s"):
        packed = self.store.get(f"sticky:{session}")
        return packed and dict(pair.split(b"=", 1) for pair in packed.split(b"\t"))


@pytest.fixture
def sticky(store, script):
    return Sticky(store, script("sticky"))


def counts(store):
    return dict(store.zrange("pool", 0, -1, withscores=True))


def contents(store):
    return {key: store.dump(key) for key in store.keys()}


# A session's life ---------------------------------------------------------------------------------


def test_a_new_session_takes_the_lowest_member_and_keeps_it(store, sticky):
    store.zadd("pool", {"a": 5, "b": 2, "c": 9})
    assert sticky() == (CREATED, b"b")
    assert [sticky() for _ in range(9)] == [(KEPT, b"b")] * 9
    assert counts(store) == {b"a": 5, b"b": 12, b"c": 9}
    assert sticky.pin() == {b"member": b"b", b"created": b"1000000"}


def test_each_session_has_a_member_of_its_own_turn(store, sticky):
    store.zadd("pool", {"a": 0, "b": 0, "c": 0})
    members = [sticky(f"s{i}")[1] for i in range(6)]
    assert members == [b"a", b"b", b"c"] * 2


def test_an_empty_pool_gives_nil_and_creates_nothing(store, sticky):
    assert sticky() is None
    assert store.keys() == []


def test_the_lifetime_counts_from_the_last_request(store, sticky):
    store.zadd("pool", {"a": 0, "b": 0})
    sticky()
    for _ in range(3):
        sticky.now += LIFETIME_MS - 1
        assert sticky() == (KEPT, b"a")
    sticky.now += LIFETIME_MS
    assert sticky() == (CREATED, b"b")
    assert sticky.pin()[b"created"] == b"%d" % sticky.now


def test_the_cap_counts_from_the_creation(store, sticky):
    store.zadd("pool", {"a": 0, "b": 8})
    sticky(max=LIFETIME_MS + 10)
    sticky.now += LIFETIME_MS - 1
    assert sticky(max=LIFETIME_MS + 10) == (KEPT, b"a")
    assert store.zscore("sessions", "s") == NOW_MS + LIFETIME_MS + 10
    sticky.now += 11
    assert sticky(max=LIFETIME_MS + 10) == (CREATED, b"a")


def test_a_cap_that_was_lowered_ends_older_sessions(store, sticky):
    store.zadd("pool", {"a": 0, "b": 0})
    sticky()
    sticky.now += 500
    assert sticky(max=500) == (CREATED, b"b")


def test_the_keys_expire_with_the_session(store, sticky):
    store.zadd("pool", {"a": 0})
    sticky("long", now="")
    sticky("short", now="", lifetime=1000)
    for key, most in (("sticky:long", LIFETIME_MS), ("sticky:short", 1000), ("sessions", LIFETIME_MS)):
        assert most - 1000 < store.pttl(key) <= most


def test_the_time_is_that_of_redis(store, sticky):
    store.zadd("pool", {"a": 0})
    sticky(now="")
    seconds, micros = store.time()
    assert 0 <= seconds * 1000 + micros // 1000 - int(sticky.pin()[b"created"]) < 5000


def test_a_pin_that_is_gone_is_made_anew(store, sticky):
    store.zadd("pool", {"a": 0, "b": 0})
    sticky()
    store.delete("sticky:s")
    assert sticky(limit=1) == (CREATED, b"b")


@pytest.mark.parametrize("packed", ["", "x", "member=a", "created=1000000", "member=a\tcreated=x"])
def test_a_pin_that_cannot_be_read_is_made_anew(store, sticky, packed):
    store.zadd("pool", {"a": 0, "b": 0})
    sticky()
    store.set("sticky:s", packed)
    assert sticky() == (CREATED, b"b")


# Members that leave -------------------------------------------------------------------------------


def test_a_member_that_left_the_pool_is_replaced_and_stays_so(store, sticky):
    store.zadd("pool", {"a": 0, "b": 5, "c": 4})
    sticky()
    store.zrem("pool", "a")
    sticky.now += 7
    assert sticky() == (MOVED, b"c")
    assert sticky.pin() == {b"member": b"c", b"created": b"1000000"}
    store.zadd("pool", {"a": 0})
    assert sticky() == (KEPT, b"c")


def test_a_parked_member_is_replaced_and_one_restored_in_time_is_kept(store, sticky, script):
    place_keys = ["pool", "parked", "offset", "proxies", "admin", "health", "rules", "live", "busy"]
    place = script("place")
    store.zadd("pool", {"a": 0, "b": 3})
    sticky("moved"), sticky("kept")
    store.hset("admin", "a", "state=paused")
    place(place_keys, "", "a")
    assert sticky("moved") == (MOVED, b"b")
    store.hdel("admin", "a")
    store.hset("health", "a", "state=up")
    place(place_keys, "", "a")
    assert (sticky("moved"), sticky("kept")) == ((KEPT, b"b"), (KEPT, b"a"))


def test_strict_is_lost_when_the_member_left_and_writes_nothing(store, sticky):
    store.zadd("pool", {"a": 0, "b": 5})
    sticky()
    store.zrem("pool", "a")
    before = contents(store)
    assert sticky(strict=1) == (LOST,)
    assert contents(store) == before
    store.zadd("pool", {"a": 9})
    assert sticky(strict=1) == (KEPT, b"a")


def test_strict_does_not_mind_a_new_session_nor_an_eligible_member(store, sticky):
    store.zadd("pool", {"a": 0, "b": 0})
    assert sticky(strict=1, avoid=["a"]) == (CREATED, b"b")
    assert sticky(strict=1, avoid=["a"]) == (KEPT, b"b")
    assert sticky(strict=1, avoid=["b"]) == (LOST,)


def test_a_member_to_avoid_is_replaced_by_the_lowest_that_is_not(store, sticky):
    store.zadd("pool", {"a": 0, "b": 5, "c": 6})
    sticky()
    assert sticky(avoid=["a", "b"]) == (MOVED, b"c")
    assert counts(store) == {b"a": 1, b"b": 5, b"c": 7}


def test_twenty_whose_member_died_all_end_on_the_same(store, sticky):
    store.zadd("pool", {"a": 0, "b": 1, "c": 1})
    sticky()
    answers = [sticky(avoid=["a"]) for _ in range(20)]
    assert answers == [(MOVED, b"b")] + [(KEPT, b"b")] * 19
    assert counts(store) == {b"a": 1, b"b": 21, b"c": 1}


def test_when_all_are_avoided_the_session_stays_as_it_was(store, sticky):
    store.zadd("pool", {"a": 0, "b": 5})
    sticky()
    before = contents(store)
    assert sticky(avoid=["a", "b"]) is None
    assert contents(store) == before


def test_moving_keeps_pairs_of_other_keys(store, sticky):
    store.zadd("pool", {"a": 0, "b": 5})
    sticky()
    store.set("sticky:s", "xmember=1\tmember=a\tcreated=1000000\tnew=x=y")
    assert sticky(avoid=["a"]) == (MOVED, b"b")
    assert store.get("sticky:s") == b"xmember=1\tmember=b\tcreated=1000000\tnew=x=y"


def test_a_member_that_cannot_be_packed_is_counted_and_not_pinned(store, sticky):
    store.zadd("pool", {"a\tcreated=0": 0, "b": 5})
    assert sticky() == (CREATED, b"a\tcreated=0")
    assert (store.exists("sticky:s", "sessions"), store.zscore("pool", "a\tcreated=0")) == (0, 1)
    assert sticky(strict=1, avoid=["a\tcreated=0"]) == (CREATED, b"b")


# The limit ----------------------------------------------------------------------------------------


def test_no_more_live_sessions_than_the_limit(store, sticky):
    store.zadd("pool", {"a": 0})
    assert [sticky(f"s{i}", limit=3)[0] for i in range(5)] == [CREATED] * 3 + [LIMIT] * 2
    assert (counts(store), store.zcard("sessions")) == ({b"a": 3}, 3)
    assert sticky("s1", limit=3) == (KEPT, b"a")
    sticky.now += LIFETIME_MS
    assert sticky("s4", limit=3) == (CREATED, b"a")


def test_sessions_that_ended_are_collected_256_at_a_time(store, sticky):
    store.zadd("pool", {"a": 0})
    store.zadd("sessions", {f"old{i}": i for i in range(600)})
    for left in (345, 90, 3):
        assert sticky(f"new{left}", limit=3)[0] == CREATED
        assert store.zcard("sessions") == left
    assert sticky("more", limit=3) == (LIMIT,)


def test_a_session_that_is_over_makes_room_for_itself(store, sticky):
    store.zadd("pool", {"a": 0})
    sticky(limit=1)
    sticky.now += 10
    assert sticky(max=5, limit=1) == (CREATED, b"a")
    assert store.zcard("sessions") == 1


# Refusals -----------------------------------------------------------------------------------------

BAD = [("now", "x"), ("now", "1.5"), ("now", "nan"), ("session", "")]
BAD += [(name, value) for name in ("lifetime", "max", "limit") for value in ("0", "-1", "1.5", "inf", "")]
BAD += [("strict", "2"), ("strict", ""), ("avoid", ["m"] * 65)]


@pytest.mark.parametrize("name, value", BAD)
def test_a_bad_argument_is_refused_and_changes_nothing(store, sticky, name, value):
    store.zadd("pool", {"a": 0})
    with pytest.raises(redis.ResponseError, match="^fairlead: "):
        sticky(**{name: value})
    assert counts(store) == {b"a": 0} and store.keys() == [b"pool"]


@pytest.mark.parametrize("key", ["pool", "sticky:s", "sessions"])
def test_a_key_of_another_type_is_refused_and_changes_nothing(store, sticky, key):
    store.zadd("pool", {"a": 0})
    store.delete(key)
    store.lpush(key, "x")
    before = contents(store)
    with pytest.raises(redis.ResponseError, match="WRONGTYPE"):
        sticky()
    assert contents(store) == before


def test_sessions_work_at_maxmemory(store, sticky, full_store):
    store.zadd("pool", {"a": 0, "b": 5})
    sticky("old")
    full_store()
    assert sticky("old") == (KEPT, b"a")
    assert sticky("old", avoid=["a"]) == (MOVED, b"b")
    assert sticky("new") == (CREATED, b"a")


def test_it_avoids_64(store, sticky):
    store.zadd("pool", {f"m{i:02}": 0 for i in range(70)})
    assert sticky(avoid=[f"m{i:02}" for i in range(64)]) == (CREATED, b"m64")


# Against a model ----------------------------------------------------------------------------------


class Model:
    """What the contract says, in Python. Sessions that are over are forgotten when they are asked for."""

    def __init__(self):
        self.pool, self.sessions = {}, {}

    def lowest(self, avoid):
        allowed = [m for m in self.pool if m not in avoid]
        return min(allowed, key=lambda m: (self.pool[m], m.encode()), default=None)

    def decide(self, session, avoid, options, now):
        if not session:
            return CREATED, self.lowest(avoid)
        if session["member"] in self.pool and session["member"] not in avoid:
            return KEPT, session["member"]
        return (LOST, None) if options["strict"] else (MOVED, self.lowest(avoid))

    def ask(self, name, avoid, options, now):
        found = self.sessions.get(name)
        is_listed = found and found["expiry"] > now
        session = found if is_listed and found["created"] + options["max"] > now else None
        live = sum(s["expiry"] > now for s in self.sessions.values()) - bool(is_listed)
        if not session and live >= options["limit"]:
            return (LIMIT,)
        code, member = self.decide(session, avoid, options, now)
        if not member:
            return (LOST,) if code == LOST else None
        self.pool[member] += 1
        created = session["created"] if session else now
        expiry = min(now + options["lifetime"], created + options["max"])
        self.sessions[name] = {"member": member, "created": created, "expiry": expiry}
        return code, member.encode()


def change_pool(r, store, model, members):
    member = r.choice(members)
    if member in model.pool:
        del model.pool[member]
        store.zrem("pool", member)
    else:
        model.pool[member] = r.randrange(5)
        store.zadd("pool", {member: model.pool[member]})


@pytest.mark.parametrize("round_number", range(5))
def test_any_sequence_is_as_the_model_says(store, sticky, round_number):
    print("seed", SEED)
    r = random.Random(f"{SEED} {round_number}")
    model = Model()
    members = [f"http://192.0.2.{i}:80" for i in range(8)]
    for step in range(1500):
        sticky.now += r.choice([0, 1, 1000, LIFETIME_MS // 3, LIFETIME_MS])
        if r.random() < 0.3:
            change_pool(r, store, model, members)
            continue
        options = {
            "lifetime": r.choice([LIFETIME_MS, LIFETIME_MS // 2]),
            "max": r.choice([MAX_MS, LIFETIME_MS * 2]),
            "limit": r.choice([3, 100]),
            "strict": r.randrange(2),
        }
        name, avoid = f"s{r.randrange(6)}", r.sample(members, r.choice([0, 0, 0, 1, 2, 8]))
        expected = model.ask(name, avoid, options, sticky.now)
        assert sticky(name, avoid, **options) == expected, f"step {step}"
    assert counts(store) == {member.encode(): score for member, score in model.pool.items()}
