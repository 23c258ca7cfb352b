"""What operators do and see about health: pause, disable, expiry, the story of a member, rules of checks."""

import json
import pathlib
import time

import pytest

A, B, C = (f"http://{name}.example:3128" for name in "abc")
P = "{proxies}:pool:"
REPORT_KEYS = ["proxies", *(P + x for x in ("parked", "admin", "health", "streaks", "rules", "due", "failing",
                                            "fallen", "alarm"))]
PLACE_KEYS = ["proxies", *(P + x for x in ("parked", "offset", "proxies", "admin", "health", "rules", "live", "busy"))]
LUA = pathlib.Path(__file__).resolve().parents[2] / "lua"
T0 = 1_769_860_800_000  # 2026-01-31T12:00:00Z


def test_the_alarm_of_the_guard_stands_in_the_statistics(run, store):
    run("pool", "add", "--eligible", A)
    assert json.loads(run("pool", "stats", "--json").stdout)["parking_held_ms"] is None
    store.client.set(P + "alarm", T0, px=60_000)
    done = run("pool", "stats", "--json")
    assert json.loads(done.stdout)["parking_held_ms"] == T0
    assert "none is parked" in done.stderr


@pytest.fixture
def verdict(store):
    """verdict(member, "fail", at=T0, reason=...): as a checker reports it."""

    def report(member, outcome="pass", at=T0, reason=None, latency="", facts="", source="probe"):
        reason = reason or ("ok" if outcome == "pass" else "proxy-refused")
        words = [member, outcome, source, 0, latency, reason, facts, 500_000]
        store.client.eval((LUA / "report.lua").read_text(), len(REPORT_KEYS), *REPORT_KEYS, at, *words)
        store.client.eval((LUA / "place.lua").read_text(), len(PLACE_KEYS), *PLACE_KEYS, at, member)

    return report


@pytest.fixture
def show(run):
    return lambda member: json.loads(run("pool", "show", "--json", member).stdout)


@pytest.fixture
def states(run):
    """member -> eligible or parked."""

    def read():
        lines = run("pool", "list", "--json").stdout.splitlines()
        return {x["member"]: x["state"] for x in map(json.loads, lines)}

    return read


# The operator's word ------------------------------------------------------------------------------


@pytest.mark.core
def test_a_pause_ends_with_a_resume(run, states):
    run("pool", "add", "--eligible", A, B)
    assert f"{A} paused" in run("pool", "pause", A).stderr
    assert states() == {A: "parked", B: "eligible"}
    assert f"{A} resumed" in run("pool", "resume", A).stderr
    assert states() == {A: "eligible", B: "eligible"}


@pytest.mark.core
@pytest.mark.parametrize("ends, standing", [
    (["resume"], "parked"), (["enable"], "eligible"), (["pause", "resume"], "parked"), (["restore"], "eligible")])
def test_what_is_disabled_is_not_brought_back_by_a_resume(run, states, ends, standing):
    run("pool", "add", "--eligible", A)
    run("pool", "disable", A)
    for end in ends:
        run("pool", end, A)
    assert states() == {A: standing}


def test_enabling_ends_a_pause_too(run, states):
    run("pool", "add", "--eligible", A)
    run("pool", "pause", A)
    run("pool", "enable", A)
    assert states() == {A: "eligible"}


@pytest.mark.parametrize("command", ["pause", "resume", "disable", "enable"])
def test_an_unknown_member_is_told(store, run, command):
    assert f"has no member {A}" in run("pool", command, A, check=1).stderr
    assert not store.client.exists(P + "admin")


@pytest.mark.core
def test_a_resume_does_not_stand_above_health_and_a_restore_does(run, states, verdict):
    run("pool", "add", "--eligible", A)
    run("pool", "rules", "fall=1")
    verdict(A, "fail")
    for command in ("pause", "resume", "enable"):
        run("pool", command, A)
    assert states() == {A: "parked"}
    run("pool", "restore", A)
    assert states() == {A: "eligible"}


def test_after_a_restore_the_row_of_failures_begins_anew(store, run, states, verdict):
    run("pool", "add", "--eligible", A)
    for i in range(3):
        verdict(A, "fail", T0 + i)
    run("pool", "restore", A)
    verdict(A, "fail", T0 + 10)
    assert states() == {A: "eligible"}


def test_no_check_brings_back_what_an_operator_took_out(run, states, verdict):
    run("pool", "add", "--eligible", A, B)
    run("pool", "pause", A)
    run("pool", "disable", B)
    for i in range(5):
        verdict(A, at=T0 + 10_000 * i)
        verdict(B, at=T0 + 10_000 * i)
    assert states() == {A: "parked", B: "parked"}


# Expiry -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("words, ms", [("90m", 5_400_000), ("30d", 2_592_000_000)])
def test_a_proxy_may_expire_in_some_time(store, run, words, ms):
    before = time.time() * 1000
    run("pool", "add", "--expires", words, A, B)
    for member in (A, B):
        packed = store.client.hget(P + "admin", member)
        assert before + ms - 1 <= int(packed.removeprefix("expires_at=")) <= time.time() * 1000 + ms


@pytest.mark.parametrize("at, ms", [("2126-01-01", 4_922_899_200_000), ("2126-01-01T00:00:01Z", 4_922_899_201_000)])
def test_a_proxy_may_expire_at_a_time(store, run, show, at, ms):
    run("pool", "add", "--expires", at, A)
    assert store.client.hget(P + "admin", A) == f"expires_at={ms}"
    assert show(A)["expires"] == f"{at[:10]}T00:00:0{ms // 1000 % 60}.000Z"


@pytest.mark.parametrize("words", ["12", "soon", "2020-01-01", "2126-13-01", "2126-01-01 12:00", "-5m", "9999999d"])
def test_an_expiry_that_is_none_adds_nothing(store, run, words):
    assert "--expires" in run("pool", "add", f"--expires={words}", A, check=2).stderr
    assert store.client.keys() == []


def test_many_proxies_get_their_expiry(store, run):
    run("pool", "add", "--expires", "1h", "-", input="\n".join(f"http://h{i}.example:1" for i in range(300)))
    assert store.client.hlen(P + "admin") == 300


# The story of a member ----------------------------------------------------------------------------


@pytest.mark.core
def test_the_story_tells_what_checks_have_shown(run, show, verdict):
    run("pool", "add", A)
    verdict(A, latency=120, facts="exit=192.0.2.7\tanonymity=elite\tcountry=de")
    verdict(A, "fail", T0 + 60_000, reason="proxy-timeout")
    verdict(A, "inconclusive", T0 + 61_000, reason="target-timeout")
    told = show(A)
    assert {k: told[k] for k in ("state", "why", "since", "streak", "last", "checked", "next_check", "latency_ms",
                                 "exit", "anonymity", "country")} == {
        "state": "eligible", "why": "up", "since": "2026-01-31T12:00:00.000Z", "streak": 0,
        "last": "target-timeout (inconclusive) 2026-01-31T12:01:01.000Z, proxy-timeout 2026-01-31T12:01:00.000Z, "
                "ok 2026-01-31T12:00:00.000Z",
        "checked": "2026-01-31T12:01:01.000Z", "next_check": "2026-01-31T12:02:01.000Z", "latency_ms": 120,
        "exit": "192.0.2.7", "anonymity": "elite", "country": "de"}


@pytest.mark.core
def test_the_story_tells_why_a_member_is_parked(store, run, show, verdict):
    run("pool", "add", A)
    assert show(A)["why"] == "a candidate: no check has passed yet"
    run("pool", "add", "--eligible", A)
    assert show(A)["why"] == "up"
    for i in range(3):
        verdict(A, "auth", T0 + i, reason="auth-failed")
    assert show(A)["why"] == "down: auth-failed"
    assert show(A)["credentials"] == "refused by the proxy"
    run("pool", "pause", A)
    store.client.hset(P + "admin", A, f"state=paused\texpires_at={T0}")
    store.client.hset(P + "proxies", A, "sources=")
    assert show(A)["why"] == ("paused by the operator; expired at 2026-01-31T12:00:00.000Z; "
                              "no source names it any more; down: auth-failed")


def test_a_foreign_member_is_not_judged_yet(store, show):
    store.client.zadd("proxies", {"10.0.0.1:80": 1})
    assert show("10.0.0.1:80")["why"] == "not judged yet"


def test_the_story_tells_the_hosts_that_avoid_a_member(store, run, show):
    run("pool", "add", "--eligible", A, B)
    until = int(time.time() * 1000) + 600_000
    store.client.zadd(P + "cooldown", {f"one.example\t{A}": until, f"two.example\t{A}": until + 1,
                                       f"one.example\t{B}": until, f"past.example\t{A}": T0})
    told = show(A)["cooldowns"].split(", ")
    assert [x.split()[0] for x in told] == ["two.example", "one.example"]
    assert show(C.replace("c.", "b."))["cooldowns"].startswith("one.example until 2")


def test_what_the_counts_mean_is_said(run):
    run("pool", "add", "--eligible", A)
    stderr = run("pool", "show", A).stderr
    assert all(word in stderr for word in ("score: ", "allocations: ", "streak: "))


@pytest.mark.core
def test_the_list_shows_health(run, verdict):
    run("pool", "add", A, B, C)
    verdict(A)
    for i in range(3):
        verdict(B, "fail", T0 + i)
    rows = [json.loads(line) for line in run("pool", "list", "--json").stdout.splitlines()]
    assert {x["member"]: (x["health"], x["reason"]) for x in rows} == {
        A: ("up", "ok"), B: ("down", "proxy-refused"), C: (None, None)}


# Rules of checks ----------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", [
    "check_target=http://judge.example:8891/", "check_target=https://a.example/x b.example:443", "check_target=",
    "check_status=200,204,300-399", "check_text=welcome home"])
def test_a_rule_of_checks_is_taken(store, run, rule):
    run("pool", "rules", rule)
    name, _, value = rule.partition("=")
    assert store.client.hget(P + "rules", name) == value


@pytest.mark.parametrize("rule", ["check_target=ftp://x.example/", "check_target=http://", "check_status=2xx",
                                  "check_status=600"])
def test_a_rule_of_checks_that_cannot_be_read_is_refused(store, run, rule):
    assert rule.partition("=")[0] in run("pool", "rules", rule, check=2).stderr
    assert not store.client.exists(P + "rules")
