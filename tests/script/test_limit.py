"""limit.lua, limit_renew.lua: requests at a time and a second, of a client and to a host."""

import math
import random

import pytest
import redis

KEYS = ["client", "client:rate", "host", "host:rate"]
NOW = 1_800_000_000_000_000
HOLD_MS = 30_000
GRANTED, CLIENT_LIMIT, CLIENT_RATE, HOST_LIMIT, HOST_RATE = ([code] for code in range(5))


@pytest.fixture
def take(store, script):
    """Asks for one request; `limits`: client at a time, a second, host at a time, a second.

    Rates are kept from running out by the real clock, which goes its own way.
    """
    sha = script("limit").sha

    def ask(holder, *limits, now=NOW, keys=KEYS):
        steps = store.pipeline(transaction=True).evalsha(sha, 4, *keys, now, holder, *limits)
        return steps.persist(keys[1]).persist(keys[3]).execute()[0]

    return ask


@pytest.fixture
def renew(script):
    limit_renew = script("limit_renew")
    return lambda *holders, now=NOW, key="client": limit_renew(key, now, *holders)


def holders(store, key):
    return dict(store.zrange(key, 0, -1, withscores=True))


class Model:
    """What the contract says, on dicts. Times in microseconds, held until in milliseconds."""

    def __init__(self):
        self.held = {}
        self.due = {}

    def judge(self, subject, concurrent, rate, now):
        live = [end for end in self.held.get(subject, {}).values() if end > now // 1000]
        if concurrent and len(live) >= concurrent:
            return 1, 0
        if rate:
            interval = math.ceil(1_000_000 / rate)
            wait = max(self.due.get(subject, 0), now) + interval - now - rate * interval
            if wait > 0:
                return 2, math.ceil(wait / 1000)
        return 0, 0

    def take(self, subjects, holder, limits, now):
        pairs = [(subjects[0], *limits[:2]), (subjects[1], *limits[2:])]
        for i, (subject, concurrent, rate) in enumerate(pairs):
            code, wait = self.judge(subject, concurrent, rate, now)
            if code:
                return [code + 2 * i, wait]
        for subject, concurrent, rate in pairs:
            if concurrent:
                self.held.setdefault(subject, {})[holder] = now // 1000 + HOLD_MS
            if rate:
                interval = math.ceil(1_000_000 / rate)
                self.due[subject] = max(self.due.get(subject, 0), now) + interval
        return [0, 0]

    def renew(self, subject, names, now):
        held = self.held.get(subject, {})
        live = [name for name in set(names) if held.get(name, 0) > now // 1000]
        held.update(dict.fromkeys(live, now // 1000 + HOLD_MS))
        return len(live)

    def give_back(self, subject, name):
        self.held.get(subject, {}).pop(name, None)


def keys_of(subjects):
    return [key for subject in subjects for key in (subject, subject + ":rate")]


# They stay while a model runs; what a change does has tests of its own.
LIMITS = [(2, 0, 3, 0), (0, 3, 0, 7), (2, 5, 4, 3), (0, 0, 3, 900), (1, 1, 1, 1)]


@pytest.mark.parametrize("seed, limits", enumerate(LIMITS), ids=map(str, LIMITS))
def test_random_operations_end_as_in_the_model(store, take, renew, seed, limits):
    """Two processes, two clients, two hosts; a process that forgets what it holds has died."""
    r = random.Random(seed)
    model, now, held = Model(), NOW, {"a": [], "b": []}
    for i in range(1500):
        now += r.choice([0, 1, 999, 50_000, 400_000, 7_000_000])
        process = r.choice("ab")
        subjects = (r.choice(["client:x", "client:y"]), r.choice(["host:x", "host:y"]))
        step = r.random()
        if step < 0.55:
            got = take(f"{process}-{i}", *limits, now=now, keys=keys_of(subjects))
            assert got == model.take(subjects, f"{process}-{i}", limits, now)
            if got[0] == 0:
                held[process].append((subjects, f"{process}-{i}"))
        elif step < 0.8 and held[process]:
            given, name = held[process].pop(r.randrange(len(held[process])))
            for subject in given:
                store.zrem(subject, name)
                model.give_back(subject, name)
        elif step < 0.98:
            mine = [name for given, name in held[process] if subjects[0] in given][:128]
            if mine:
                assert renew(*mine, now=now, key=subjects[0]) == model.renew(subjects[0], mine, now)
        else:
            held[process].clear()


def test_as_many_as_allowed_are_in_at_a_time(store, take):
    assert [take(f"h{i}", 2, 0, 0, 0)[:1] for i in range(3)] == [GRANTED, GRANTED, CLIENT_LIMIT]
    store.zrem("client", "h0")
    assert take("h3", 2, 0, 0, 0) == [0, 0]
    assert holders(store, "client") == dict.fromkeys([b"h1", b"h3"], NOW // 1000 + HOLD_MS)


def test_as_many_as_allowed_come_at_once_then_evenly(take):
    """GCRA by hand: 4 a second are 250 ms apart, and 4 may come ahead."""
    codes = [take(f"h{i}", 0, 4, 0, 0) for i in range(5)]
    assert codes == [[0, 0]] * 4 + [[2, 250]]
    assert take("early", 0, 4, 0, 0, now=NOW + 249_999) == [2, 1]
    assert take("right", 0, 4, 0, 0, now=NOW + 250_000) == [0, 0]
    assert take("next", 0, 4, 0, 0, now=NOW + 250_000) == [2, 250]


@pytest.mark.parametrize("rate", [1, 3, 7, 1000, 1999])
def test_a_burst_is_the_rate_exactly_and_the_wait_too(take, rate):
    codes = [take(f"h{i}", 0, rate, 0, 0) for i in range(rate + 1)]
    assert codes[:-1] == [[0, 0]] * rate
    wait_ms = codes[-1][1]
    assert codes[-1] == [2, math.ceil(math.ceil(1_000_000 / rate) / 1000)]
    assert take("early", 0, rate, 0, 0, now=NOW + (wait_ms - 1) * 1000)[0] == 2
    assert take("right", 0, rate, 0, 0, now=NOW + wait_ms * 1000)[0] == 0


@pytest.mark.parametrize("rate, us", [(1, 1_000_000), (3, 333_334), (600_000, 2), (1_000_000, 1)])
def test_a_fraction_of_a_microsecond_is_rounded_up(store, take, rate, us):
    """So that there are never more than the rate admits."""
    assert take("h", 0, rate, 0, 0) == [0, 0]
    assert store.get("client:rate") == b"%d" % (NOW + us)


@pytest.mark.parametrize(
    "filled, limits, code",
    [
        ((1, 0, 0, 0), (1, 0, 1, 1), CLIENT_LIMIT),
        ((0, 1, 0, 0), (0, 1, 1, 1), CLIENT_RATE),
        ((0, 0, 1, 0), (1, 1, 1, 0), HOST_LIMIT),
        ((0, 0, 0, 1), (1, 1, 0, 1), HOST_RATE),
    ],
)
def test_both_are_counted_or_neither(store, take, filled, limits, code):
    take("first", *filled)
    before = {key: store.dump(key) for key in KEYS}
    assert take("second", *limits)[:1] == code
    assert {key: store.dump(key) for key in KEYS} == before


def test_without_limits_nothing_is_kept(store, take):
    assert take("h", 0, 0, 0, 0) == [0, 0]
    assert store.dbsize() == 0


def test_holders_of_a_dead_process_run_out(store, take):
    assert take("dead-1", 1, 0, 0, 0) == [0, 0]
    last = NOW + HOLD_MS * 1000 - 1
    assert take("alive-1", 1, 0, 0, 0, now=last)[:1] == CLIENT_LIMIT
    assert take("alive-1", 1, 0, 0, 0, now=last + 1) == [0, 0]
    assert list(holders(store, "client")) == [b"alive-1"]


def test_what_is_renewed_stays(take, renew):
    take("a", 1, 0, 0, 0)
    for second in range(10, 101, 10):
        assert renew("a", now=NOW + second * 1_000_000) == 1
    assert take("b", 1, 0, 0, 0, now=NOW + 129_000_000)[:1] == CLIENT_LIMIT
    assert take("b", 1, 0, 0, 0, now=NOW + 130_000_000) == [0, 0]


def test_what_was_given_back_or_ran_out_is_not_renewed(store, take, renew):
    take("returned", 9, 0, 0, 0)
    take("expired", 9, 0, 0, 0)
    take("held", 9, 0, 0, 0, now=NOW + 1_000_000)
    store.zrem("client", "returned")
    now = NOW + HOLD_MS * 1000
    assert renew("returned", "expired", "held", "unknown", now=now) == 1
    ends_ms = NOW // 1000 + HOLD_MS
    assert holders(store, "client") == {b"expired": ends_ms, b"held": ends_ms + HOLD_MS}
    store.zrem("client", "held", "held", "expired")
    assert renew("held", now=now) == 0
    assert store.dbsize() == 0


def test_what_ran_out_leaves_with_the_next_that_come(store, take):
    store.zadd("client", {f"dead{i}": 1 + i for i in range(200)} | {"live": NOW // 1000 + 1})
    assert take("a", 2, 0, 0, 0) == [0, 0]
    assert store.zcard("client") == 200 + 2 - 128
    assert take("b", 2, 0, 0, 0)[:1] == CLIENT_LIMIT
    assert take("c", 3, 0, 0, 0) == [0, 0]
    assert set(holders(store, "client")) == {b"live", b"a", b"c"}


def test_every_key_ends_by_itself(store, script, renew):
    assert script("limit")(KEYS, NOW, "h", 1, 4, 1, 2) == [0, 0]
    # ms left: a holder's life; the time by which the next request may come ahead
    assert all(HOLD_MS - 5000 < store.pttl(key) <= HOLD_MS for key in ("client", "host"))
    # -2: has just ended
    assert store.pttl("client:rate") in {-2, *range(251)}
    assert store.pttl("host:rate") in {-2, *range(501)}
    store.pexpire("client", 10_000)
    assert renew("h") == 1
    assert store.pttl("client") > HOLD_MS - 5000


def test_the_time_of_redis_is_used(store, script):
    seconds = store.time()[0]
    assert script("limit")(KEYS, "", "h", 1, 1, 1, 1) == [0, 0]
    assert seconds <= (holders(store, "client")[b"h"] - HOLD_MS) / 1000 <= seconds + 5
    assert script("limit_renew")("host", "", "h") == 1


def test_a_lower_limit_holds_for_those_who_come(take):
    for i in range(4):
        take(f"h{i}", 4, 4, 0, 0)
    assert take("h4", 3, 0, 0, 0)[:1] == CLIENT_LIMIT
    # One a second, and the next of the four a second is due in a second: one full burst to wait.
    assert take("h5", 0, 1, 0, 0) == [2, 1000]


@pytest.mark.parametrize("left", ["text", "", "nan", "-inf", "0"])
def test_a_rate_that_cannot_be_read_is_as_none(store, take, left):
    store.set("client:rate", left)
    assert take("h", 0, 1, 0, 0) == [0, 0]
    assert store.get("client:rate") == b"%d" % (NOW + 1_000_000)


@pytest.mark.parametrize("left", ["inf", "9e300", NOW + 3_600_000_000])
def test_when_the_clock_goes_back_nobody_waits_longer_than_for_a_burst(store, take, left):
    store.set("client:rate", left)
    assert take("h", 0, 2, 0, 0) == [2, 500]


@pytest.mark.parametrize("key", KEYS)
def test_a_key_of_another_type_counts_nothing(store, take, key):
    store.hset(key, "a", "b")
    with pytest.raises(redis.ResponseError, match="WRONGTYPE"):
        take("h", 1, 1, 1, 1)
    assert store.keys() == [key.encode()]


GOOD = [NOW, "h", 1, 1, 1, 1]


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        GOOD[:-1],
        [*GOOD, 1],
        [NOW, "", 1, 1, 1, 1],
        *([*GOOD[:i], bad, *GOOD[i + 1 :]] for i in range(2, 6) for bad in ("", "x", -1, 1.5)),
        [NOW, "h", 1, 1_000_001, 1, 1],
        *([bad, *GOOD[1:]] for bad in ("x", -1, 0.5, "nan", "inf", 10**16)),
    ],
    ids=str,
)
def test_wrong_arguments_are_refused(store, script, arguments):
    with pytest.raises(redis.ResponseError, match="^fairlead: "):
        script("limit")(KEYS, *arguments)
    assert store.dbsize() == 0


@pytest.mark.parametrize(
    "arguments", [[NOW], ["x", "h"], [0.5, "h"], ["nan", "h"], [NOW] + ["h"] * 129]
)
def test_wrong_arguments_renew_nothing(store, take, script, arguments):
    take("h", 1, 0, 0, 0, now=NOW - 1_000_000)
    before = holders(store, "client")
    with pytest.raises(redis.ResponseError, match="^fairlead: "):
        script("limit_renew")("client", *arguments)
    assert holders(store, "client") == before


def test_128_are_renewed_in_one_call(store, take, renew):
    names = [f"h{i}" for i in range(128)]
    for name in names:
        take(name, 128, 0, 0, 0)
    assert renew(*names, now=NOW + 1_000_000) == 128
    assert set(holders(store, "client").values()) == {NOW // 1000 + 1000 + HOLD_MS}


def test_at_maxmemory_all_goes_on(store, script, take, renew, full_store):
    take("a", 2, 5, 2, 5)
    limit = script("limit")
    full_store()
    assert limit(KEYS, NOW, "b", 2, 5, 2, 5) == [0, 0]
    assert limit(KEYS, NOW, "c", 2, 5, 2, 5)[:1] == CLIENT_LIMIT
    assert renew("a", "b", now=NOW + 1_000_000) == 2
    assert store.zrem("client", "a") == 1
    assert limit(KEYS, NOW + 1_000_000, "d", 2, 5, 0, 0) == [0, 0]
