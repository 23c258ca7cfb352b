"""report.lua: verdicts in a row decide who is up and who is down, and when each is checked next."""

import itertools
import os
import pathlib
import random
import re

import pytest
import redis

SEED = os.environ.get("FAIRLEAD_TEST_SEED", "20240302")
KEYS = ["pool", "parked", "admin", "health", "streaks", "rules", "due", "failing", "fallen", "alarm"]
PLACE_KEYS = ["pool", "parked", "offset", "proxies", "admin", "health", "rules", "live", "busy"]
UNKNOWN, ELIGIBLE, PARKED = 0, 1, 3
MUST_PLACE, HELD, COUNTED = 1, 2, 4
NOW_MS = 1_000_000
INTERVAL_MS = 60_000
RULES = {"fall": 3, "rise": 2, "min_state_ms": 5000, "check_interval_ms": INTERVAL_MS,
         "backoff_max_ms": 3_600_000, "max_parked_percent": 50}


def item(member, outcome="pass", source="probe", age=0, latency="", reason=None, facts="", chance=0):
    reason = reason or {"pass": "ok", "auth": "auth-failed"}.get(outcome, "proxy-refused")
    return [member, outcome, source, age, latency, reason, facts, chance]


class Reporter:
    """Calls report.lua, and place.lua for those that it names, as pool/report.c does."""

    def __init__(self, store, script):
        self.store, self.run, self.move = store, script("report"), script("place")
        self.now = NOW_MS

    def only(self, *items):
        """Without the second call: as if the reporter had died in between."""
        words = [word for it in items for word in it]
        flat = self.run(KEYS, self.now, *words)
        return list(zip(flat[::2], flat[1::2]))

    def __call__(self, *items):
        answers = self.only(*items)
        named = [it[0] for it, (_, flags) in zip(items, answers) if flags & MUST_PLACE]
        if named:
            self.move(PLACE_KEYS, self.now, *named)
        return answers

    def fail(self, member, later=10_000, **options):
        self.now += later
        return self(item(member, "fail", **options))[0]

    def succeed(self, member, later=10_000, **options):
        self.now += later
        return self(item(member, "pass", **options))[0]


@pytest.fixture
def report(store, script):
    return Reporter(store, script)


def add(store, *members, state="up", others=10):
    """Members of a pool that has some healthy others: the guard has nothing to say."""
    store.zadd("pool", {m: 5 for m in (*members, *(f"other{i}" for i in range(others)))})
    for member in members:
        store.hset("proxies", member, "sources=operator")
        if state:
            store.hset("health", member, f"state={state}")


def candidate(store, *members):
    store.zadd("parked", {m: 0 for m in members})
    for member in members:
        store.hset("proxies", member, "sources=operator")


def health(store, member):
    packed = (store.hget("health", member) or b"").decode()
    return dict(pair.split("=", 1) for pair in packed.split("\t") if pair)


def streak(store, member):
    return int(store.hget("streaks", member) or 0)


def is_eligible(store, member):
    return store.zscore("pool", member) is not None


# Down and up --------------------------------------------------------------------------------------


def test_fall_failures_in_a_row_park_and_then_nothing_is_picked(store, script, report):
    add(store, "a", others=0)
    assert [report.fail("a")[1] for _ in range(2)] == [COUNTED, COUNTED]
    assert is_eligible(store, "a")
    assert report.fail("a") == (ELIGIBLE, COUNTED | MUST_PLACE)
    assert script("allocate")("pool", 1) == []
    assert (streak(store, "a"), health(store, "a")["state"]) == (-3, "down")


def test_a_pass_between_begins_the_row_anew(store, report):
    add(store, "a")
    for step in (report.fail, report.fail, report.succeed, report.fail, report.fail):
        step("a")
    assert is_eligible(store, "a") and streak(store, "a") == -2
    report.fail("a")
    assert not is_eligible(store, "a")


def test_rise_passes_bring_back_who_was_put_down(store, report):
    add(store, "a")
    for _ in range(3):
        report.fail("a")
    assert report.succeed("a") == (PARKED, COUNTED)
    assert not is_eligible(store, "a")
    assert report.succeed("a") == (PARKED, COUNTED | MUST_PLACE)
    assert is_eligible(store, "a")


def test_a_newcomer_needs_one_pass(store, report):
    candidate(store, "a")
    assert report.succeed("a") == (PARKED, COUNTED | MUST_PLACE)
    assert is_eligible(store, "a") and health(store, "a")["state"] == "up"


def test_a_newcomer_that_failures_put_down_needs_rise_passes(store, report):
    candidate(store, "a")
    assert [report.fail("a")[1] for _ in range(3)] == [COUNTED] * 3
    assert health(store, "a")["state"] == "down"
    report.succeed("a")
    assert not is_eligible(store, "a")
    report.succeed("a")
    assert is_eligible(store, "a")


def test_wrong_credentials_count_as_failures_and_show_until_a_pass(store, report):
    add(store, "a")
    for _ in range(3):
        report.now += 10_000
        report(item("a", "auth"))
    assert (health(store, "a")["state"], health(store, "a")["auth"]) == ("down", "failed")
    assert health(store, "a")["reason"] == "auth-failed"
    report.succeed("a")
    assert "auth" not in health(store, "a")


def test_an_inconclusive_probe_says_nothing_of_the_member(store, report):
    add(store, "a")
    report.fail("a")
    before = health(store, "a")
    assert report(item("a", "inconclusive", reason="target-timeout")) == [(ELIGIBLE, 0)]
    after = health(store, "a")
    # The failure before it may have been the target's as well.
    assert streak(store, "a") == 0 and after["state"] == "up"
    assert {k for k in after if after[k] != before[k]} == {"last"}
    assert after["last"] == f"?target-timeout:{report.now},proxy-refused:{report.now}"


def test_passive_passes_never_bring_back(store, report):
    add(store, "a")
    for _ in range(3):
        report.fail("a")
    before = store.hget("health", "a")
    assert [report.succeed("a", source="passive") for _ in range(4)] == [(PARKED, 0)] * 4
    assert (store.hget("health", "a"), streak(store, "a")) == (before, -3)
    candidate(store, "new")
    report.succeed("new", source="passive")
    assert not is_eligible(store, "new")


def test_passive_failures_and_passes_count_while_it_is_up(store, report):
    add(store, "a")
    report.fail("a", source="passive")
    report.fail("a", source="passive")
    assert report.succeed("a", source="passive") == (ELIGIBLE, COUNTED)
    assert streak(store, "a") == 1 and not store.exists("failing")
    assert not store.exists("due") and "checked" not in health(store, "a")


def test_a_stranger_is_given_nothing_and_no_more_checks(store, report):
    store.zadd("due", {"gone": 5})
    assert report(item("gone", "fail"), item("gone")) == [(UNKNOWN, 0)] * 2
    assert store.keys() == []


def test_a_foreign_member_is_put_down_and_brought_back(store, report):
    store.zadd("pool", {"h:1": 5})
    for _ in range(3):
        report.fail("h:1")
    assert not is_eligible(store, "h:1")
    report.succeed("h:1")
    report.succeed("h:1")
    assert is_eligible(store, "h:1")


def test_an_operators_word_stands_above_health(store, report):
    candidate(store, "a")
    store.hset("admin", "a", "state=disabled")
    assert report.succeed("a") == (PARKED, COUNTED)
    assert health(store, "a")["state"] == "up" and not is_eligible(store, "a")


# What counts --------------------------------------------------------------------------------------


def test_a_burst_that_began_before_the_first_was_counted_counts_once(store, report):
    """200 requests wait on a dying member; they end one after another."""
    add(store, "a")
    codes = []
    for i in range(200):
        report.now = NOW_MS + 10 * i
        codes += report(item("a", "fail", "passive", age=10 * i + 1))
    assert codes == [(ELIGIBLE, COUNTED)] + [(ELIGIBLE, 0)] * 199
    assert streak(store, "a") == -1 and is_eligible(store, "a")


def test_the_burst_counts_once_in_one_call_too(store, report):
    add(store, "a")
    answers = report(*[item("a", "fail", "passive", age=i) for i in range(64)])
    assert [flags for _, flags in answers] == [COUNTED] + [0] * 63
    assert streak(store, "a") == -1


@pytest.mark.parametrize("age, counted", [(9_999, COUNTED), (10_000, 0), (10_001, 0)])
def test_an_attempt_counts_if_it_began_after_the_last_counted_failure(store, report, age, counted):
    add(store, "a")
    report.fail("a")
    assert report.fail("a", age=age)[1] == counted


@pytest.mark.parametrize("order", itertools.permutations(range(3)), ids=str)
def test_three_reporters_agree_in_any_order(store, script, order):
    """One outage, seen by three whose attempts overlap: one failure, whoever reports first."""
    add(store, "a")
    reporters = [Reporter(store, script) for _ in range(3)]
    began = [NOW_MS - 50, NOW_MS - 20, NOW_MS - 3]
    for step, who in enumerate(order):
        reporters[who].now = NOW_MS + step
        reporters[who](item("a", "fail", age=NOW_MS + step - began[who]))
    assert streak(store, "a") == -1


# Flapping -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("fall, rise, min_state_ms", [(1, 1, 5000), (1, 1, 0), (3, 2, 5000), (2, 2, 30_000)])
def test_flapping_moves_are_bounded(store, report, fall, rise, min_state_ms):
    """Up and down each second, checked four times a second, for five minutes."""
    store.hset("rules", mapping={"fall": fall, "rise": rise, "min_state_ms": min_state_ms})
    add(store, "a")
    moves, was = 0, True
    for i in range(1200):
        step = report.succeed if i // 4 % 2 else report.fail
        step("a", later=250)
        moves, was = moves + (was != is_eligible(store, "a")), is_eligible(store, "a")
    # A move needs its row of verdicts, four of which come in a second, and the time in its state.
    assert 0 < moves <= min(300, 300_000 // max(min_state_ms, 1) + 1)


def test_a_move_that_comes_too_early_waits_for_the_next_report(store, report):
    store.hset("rules", mapping={"fall": 1, "rise": 1})
    add(store, "a")
    report.fail("a")
    for later, eligible in ((4_000, False), (999, False), (1, True)):
        report.succeed("a", later=later)
        assert is_eligible(store, "a") == eligible
    assert streak(store, "a") == 3


# The guard ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("fall", [1, 3])
def test_no_more_than_half_of_a_pool_is_parked_within_an_interval(store, report, fall):
    store.hset("rules", mapping={"fall": fall})
    members = [f"m{i}" for i in range(10)]
    add(store, *members, others=0)
    held = 0
    for _ in range(fall):
        for member in members:
            held += report.fail(member, later=1000)[1] & HELD > 0
    assert held == (5 if fall == 1 else 10)
    assert store.zcard("pool") == 10 - (5 if fall == 1 else 0)
    assert int(store.get("alarm")) == report.now
    assert 0 < store.pttl("alarm") <= 2 * INTERVAL_MS


@pytest.mark.parametrize("fall", [1, 3])
def test_four_of_ten_that_die_are_parked(store, report, fall):
    store.hset("rules", mapping={"fall": fall})
    members = [f"m{i}" for i in range(10)]
    add(store, *members, others=0)
    for _ in range(fall):
        for member in members[:4]:
            report.fail(member, later=1000)
    assert store.zcard("pool") == 6 and not store.exists("alarm")


def test_a_pool_that_fails_as_a_whole_keeps_what_it_has(store, report):
    """Every member is probed again and again, for ten intervals."""
    members = [f"m{i}" for i in range(20)]
    add(store, *members, others=0)
    for _ in range(60):
        for member in members:
            report.fail(member, later=INTERVAL_MS // 6 // 20)
    assert store.zcard("pool") == 20 and health(store, "m0")["state"] == "up"


def test_when_the_others_pass_again_the_dead_are_parked(store, report):
    members = [f"m{i}" for i in range(10)]
    add(store, *members, others=0)
    for _ in range(4):
        for member in members:
            report.fail(member, later=1000)
    for member in members[2:]:
        report.succeed(member, later=1000)
    assert [report.fail(m, later=1000)[1] & HELD for m in members[:2]] == [0, 0]
    assert sorted(store.zrange("parked", 0, -1)) == [b"m0", b"m1"]


@pytest.mark.parametrize("percent, left", [(100, 0), (0, 3), (34, 2)])
def test_the_guard_follows_its_rule(store, report, percent, left):
    """Of 4 with fall 1: the first is always parked, for one is no crowd."""
    store.hset("rules", mapping={"fall": 1, "max_parked_percent": percent})
    members = [f"m{i}" for i in range(4)]
    add(store, *members, others=0)
    for member in members:
        report.fail(member, later=1000)
    assert store.zcard("pool") == left + (percent == 34)


def test_candidates_that_fail_are_no_crowd(store, report):
    add(store, "a", others=0)
    newcomers = [f"n{i}" for i in range(30)]
    candidate(store, *newcomers)
    for _ in range(3):
        report.now += 1000
        report(*[item(m, "fail") for m in newcomers])
        report.fail("a", later=1000)
    assert not is_eligible(store, "a") and not store.exists("alarm")
    assert health(store, "n0")["state"] == "down"


# The second call ----------------------------------------------------------------------------------


@pytest.mark.parametrize("outcome", ["fail", "inconclusive"])
def test_who_dies_before_placing_is_healed_by_the_next_report(store, report, outcome):
    add(store, "a")
    report.fail("a")
    report.fail("a")
    report.now += 10_000
    assert report.only(item("a", "fail")) == [(ELIGIBLE, COUNTED | MUST_PLACE)]
    assert is_eligible(store, "a")
    report.now += 10_000
    assert report(item("a", outcome))[0][1] & MUST_PLACE
    assert not is_eligible(store, "a")


def test_placing_after_an_expiry_is_asked_for(store, report):
    add(store, "a")
    store.hset("admin", "a", f"expires_at={NOW_MS}")
    assert report(item("a")) == [(ELIGIBLE, COUNTED | MUST_PLACE)]
    assert not is_eligible(store, "a")
    assert report(item("a")) == [(PARKED, COUNTED)]


# What is kept -------------------------------------------------------------------------------------


def test_the_story_of_a_member_is_kept(store, report):
    candidate(store, "a")
    report(item("a", latency=120, facts="exit=192.0.2.7\tcountry=de"))
    assert health(store, "a") == {
        "exit": "192.0.2.7", "country": "de", "checked": str(NOW_MS), "reason": "ok",
        "last": f"ok:{NOW_MS}", "latency": "120", "state": "up", "since": str(NOW_MS)}
    report.now += 7
    report(item("a", "fail", reason="proxy-timeout", facts="country="))
    assert health(store, "a") == {
        "exit": "192.0.2.7", "checked": str(NOW_MS + 7), "reason": "proxy-timeout",
        "last": f"proxy-timeout:{NOW_MS + 7},ok:{NOW_MS}", "latency": "120", "state": "up",
        "since": str(NOW_MS), "failed": str(NOW_MS + 7)}


def test_the_last_five_verdicts_are_kept(store, report):
    add(store, "a")
    for _ in range(9):
        report.succeed("a", later=1)
    assert health(store, "a")["last"] == ",".join(f"ok:{NOW_MS + i}" for i in (9, 8, 7, 6, 5))


def test_pairs_of_others_stay_where_they_are(store, report):
    add(store, "a")
    store.hset("health", "a", "x=1\tstate=up\ty=2")
    report.succeed("a")
    assert store.hget("health", "a").startswith(b"x=1\tstate=up\ty=2\t")


def test_only_who_failed_lately_is_among_the_failing(store, report):
    add(store, "a", "b")
    report.fail("a")
    assert store.zrange("failing", 0, -1, withscores=True) == [(b"a", report.now)]
    report.fail("b", later=2 * INTERVAL_MS)
    assert store.zrange("failing", 0, -1) == [b"b"]


# The next check -----------------------------------------------------------------------------------


def due(store, member):
    return store.zscore("due", member)


@pytest.mark.parametrize("chance, part", [(0, 0.8), (500_000, 1.0), (999_999, 1.2)])
def test_a_healthy_member_is_checked_each_interval_give_or_take_a_fifth(store, report, chance, part):
    add(store, "a")
    report(item("a", chance=chance))
    assert due(store, "a") == pytest.approx(NOW_MS + part * INTERVAL_MS, abs=1)


@pytest.mark.parametrize("failures", [1, 2])
def test_who_fails_in_use_is_checked_no_earlier(store, report, failures):
    add(store, "a")
    for _ in range(failures):
        report.fail("a", chance=0)
    assert due(store, "a") == report.now + 0.8 * INTERVAL_MS


@pytest.mark.parametrize("failures, most", [(3, 8), (5, 32), (6, 60), (30, 60)])
def test_the_down_are_checked_with_full_jitter_and_ever_later(store, report, failures, most):
    add(store, "a")
    for _ in range(failures):
        report.fail("a", chance=0)
    assert due(store, "a") == report.now + INTERVAL_MS / 10
    report(item("a", "inconclusive", chance=999_999))
    assert due(store, "a") == pytest.approx(report.now + most * INTERVAL_MS, rel=1e-4)


def test_a_backoff_below_the_interval_is_still_no_hammer(store, report):
    store.hset("rules", mapping={"backoff_max_ms": 1000})
    candidate(store, "a")
    report.fail("a", chance=999_999)
    assert due(store, "a") == report.now + INTERVAL_MS / 10


def test_a_member_is_checked_when_it_expires_and_hardly_afterwards(store, report):
    add(store, "a")
    store.hset("admin", "a", f"expires_at={NOW_MS + 100}")
    report(item("a"))
    assert due(store, "a") == NOW_MS + 100
    report.now += 100
    report(item("a"))
    assert due(store, "a") == report.now + RULES["backoff_max_ms"]


# Rules and refusals -------------------------------------------------------------------------------


def test_the_defaults_are_those_of_the_table():
    root = pathlib.Path(__file__).resolve().parents[2]
    table = (root / "tables/rule.def").read_text()
    rows = dict(re.findall(r'RULE\(\w+,\s*"(\w+)",\s*\w+,\s*("[^"]*", -?[\w.]+, -?[\w.]+)', table))
    code = (root / "lua/report.lua").read_text()
    own = re.findall(r"\{ '(\w+)', (\d+), (\d+), (\d+) \}", code)
    assert {name: [int(x) for x in row] for name, *row in own} == {
        name: [int(x.strip(' "')) for x in rows[name].split(",")] for name in RULES}


@pytest.mark.parametrize("value", ["x", "", "1.5", "0", "1001", "nan"])
def test_a_rule_that_is_not_valid_has_its_default(store, report, value):
    store.hset("rules", "fall", value)
    add(store, "a")
    report.fail("a")
    report.fail("a")
    assert is_eligible(store, "a")
    report.fail("a")
    assert not is_eligible(store, "a")


@pytest.mark.parametrize("bad", [
    {"member": ""}, {"outcome": "up"}, {"source": "x"}, {"age": -1}, {"age": "x"}, {"latency": "x"},
    {"latency": -1}, {"reason": "a,b"}, {"reason": "a:b"}, {"facts": "x"}, {"facts": "state=up"},
    {"facts": "a=b\n"}, {"chance": 1_000_000}, {"chance": 0.5}, {"chance": "x"}], ids=str)
def test_a_report_that_cannot_be_read_changes_nothing(store, report, bad):
    add(store, "a")
    before = {key: store.dump(key) for key in store.keys()}
    with pytest.raises(redis.ResponseError, match="^fairlead: report 2 cannot be read"):
        report(item("a"), item(**({"member": "a"} | bad)))
    assert {key: store.dump(key) for key in store.keys()} == before


@pytest.mark.parametrize("words", [[], item("a")[:7], item("a") * 65], ids=len)
def test_too_few_and_too_many_are_refused(report, words):
    with pytest.raises(redis.ResponseError, match="^fairlead: 1 to 64 reports"):
        report.run(KEYS, NOW_MS, *words)


@pytest.mark.parametrize("key", KEYS[:-1])
def test_a_key_of_another_type_changes_nothing(store, report, key):
    add(store, "a")
    store.hset("rules", "fall", 1)
    store.delete(key)
    store.set(key, "text")
    before = {key: store.dump(key) for key in store.keys()}
    with pytest.raises(redis.ResponseError, match="WRONGTYPE"):
        report.only(item("a", "fail"), item("b", "fail"))
    assert {key: store.dump(key) for key in store.keys()} == before


def test_foreign_texts_do_no_harm(store, report):
    add(store, "a")
    store.hset("health", "a", "prose without pairs")
    store.hset("streaks", "a", "x")
    store.hset("admin", "a", "what")
    report.succeed("a")
    assert (streak(store, "a"), health(store, "a")["state"]) == (1, "up")


def test_without_a_time_redis_gives_it(store, report):
    add(store, "a")
    before = store.time()[0] * 1000
    report.now = ""
    report(item("a"))
    assert before <= int(health(store, "a")["checked"]) <= before + 10_000


def test_reports_work_at_maxmemory(store, report, full_store):
    add(store, "a")
    report.fail("a")
    report.fail("a")
    full_store()
    report.fail("a")
    assert not is_eligible(store, "a")


def test_64_failures_take_few_writes(store, report, capsys):
    members = [f"http://192.0.2.{i}:3128" for i in range(64)]
    add(store, *members, others=1000)
    facts = "exit=192.0.2.200\tanonymity=elite\tcountry=de"
    for _ in range(5):
        report.now += 10
        report(*[item(m, latency=1234, facts=facts) for m in members])
    store.config_resetstat()
    report.now += 10
    report.only(*[item(m, "fail", facts=facts) for m in members])
    stats = store.info("commandstats")
    calls = {name: stats[f"cmdstat_{name}"]["calls"] for name in ("hset", "zadd", "zrem")}
    assert calls == {"hset": 2, "zadd": 2, "zrem": 3}
    with capsys.disabled():
        print(f" [report: 64 failures: {stats['cmdstat_evalsha']['usec']} us]", end="")


# Random operations against a model ----------------------------------------------------------------


class Model:
    """Health as the documents tell it, member by member."""

    def __init__(self, rules, members, newcomers):
        self.rules = rules
        self.pool, self.parked = set(members), set(newcomers)
        self.state = dict.fromkeys(members, "up")
        self.since, self.failed, self.streak = {}, {}, {}
        self.failing, self.fallen = {}, {}

    def recent(self, times, now):
        return {m for m, t in times.items() if t > now - 2 * self.rules["check_interval_ms"]}

    def may_move(self, m, now):
        return now - self.since.get(m, -1e18) >= self.rules["min_state_ms"]

    def move(self, m, state, now):
        self.state[m], self.since[m] = state, now

    def guarded(self, m, now):
        if m not in self.pool:
            return False
        fallen = self.recent(self.fallen, now)
        out = (self.recent(self.failing, now) | {m}) & self.pool | fallen
        whole = len(self.pool | fallen)
        return len(out) > 1 and 100 * len(out) > self.rules["max_parked_percent"] * whole

    def report(self, m, outcome, source, age, now):
        if m not in self.pool | self.parked:
            return False
        if outcome == "inconclusive":
            if m in self.streak and self.state.get(m) == "up":
                self.streak[m] = max(self.streak[m], 0)
            return False
        is_down = self.state.get(m) == "down" or m not in self.state and m in self.parked
        if outcome == "pass":
            if source == "passive" and is_down:
                return False
            self.streak[m] = max(self.streak.get(m, 0), 0) + 1
            self.failing.pop(m, None)
            if source == "probe" and self.state.get(m) != "up":
                if m not in self.state or self.streak[m] >= self.rules["rise"] and self.may_move(m, now):
                    self.move(m, "up", now)
                    self.fallen.pop(m, None)
            return False
        if now - age <= self.failed.get(m, -1e18):
            return False
        self.failed[m], self.streak[m] = now, min(self.streak.get(m, 0), 0) - 1
        if self.state.get(m) == "down":
            return False
        if m in self.pool:
            self.failing[m] = now
        if -self.streak[m] < self.rules["fall"] or not self.may_move(m, now):
            return False
        if self.guarded(m, now):
            return True
        self.move(m, "down", now)
        if m in self.pool:
            del self.failing[m]
            self.fallen[m] = now
        return False

    def place(self):
        for m in self.pool | self.parked:
            home = self.pool if self.state.get(m, "up" if m in self.pool else "down") == "up" else self.parked
            self.pool.discard(m)
            self.parked.discard(m)
            home.add(m)


@pytest.mark.parametrize("round_", range(6))
def test_random_reports_agree_with_the_model(store, report, round_):
    print("seed", SEED, round_)
    r = random.Random(f"{SEED} {round_}")
    rules = RULES | {"fall": r.randrange(1, 4), "rise": r.randrange(1, 4), "min_state_ms": r.choice([0, 500]),
                     "check_interval_ms": 2000, "max_parked_percent": r.choice([20, 50, 100])}
    members, newcomers = [f"m{i}" for i in range(6)], [f"n{i}" for i in range(3)]
    store.hset("rules", mapping=rules)
    add(store, *members, others=0)
    candidate(store, *newcomers)
    model = Model(rules, members, newcomers)
    for _ in range(500):
        report.now += r.randrange(1, 400)
        m = r.choice([*members, *newcomers, "stranger"])
        outcome = r.choice(["pass", "fail", "fail", "auth", "inconclusive"])
        source, age = r.choice(["probe", "probe", "passive"]), r.choice([0, 50, 600])
        held = model.report(m, outcome, source, age, report.now)
        model.place()
        assert bool(report(item(m, outcome, source, age))[0][1] & HELD) == held
        assert {x.decode() for x in store.zrange("pool", 0, -1)} == model.pool
        assert {x.decode() for x in store.zrange("parked", 0, -1)} == model.parked
        assert {m.decode(): int(n) for m, n in store.hgetall("streaks").items()} == model.streak
