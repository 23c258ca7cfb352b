"""`fairlead queue` stats, peek, dead, retry, pause, resume, purge, and what `doctor` says of a queue."""

import concurrent.futures
import json
import os
import pty
import subprocess
import threading

import pytest

import look
import peers
from queues import LISTS, QUEUE, call, objects, payloads

HOUR_MS = 3_600_000


@pytest.fixture
def queue(binary, environment, store):
    return lambda *words, **options: call(binary, environment, store, *words, **options)


@pytest.fixture
def claim(queue):
    return lambda *words, **options: objects(queue("claim", "--json", *words, **options).stdout)


@pytest.fixture
def stats(queue):
    return lambda *words: json.loads(queue("stats", "--json", *words).stdout)


@pytest.fixture
def doctor(run):
    """The findings about the queue, each as (finding, check, detail)."""

    def ask(*words, status=0, **options):
        rows = map(json.loads, run("doctor", "--json", *words, check=status, **options).stdout.splitlines())
        return [(row["finding"], row["check"], row["detail"]) for row in rows if row["check"].startswith("queue")]

    return ask


def now_ms(store):
    seconds, rest = store.client.time()
    return seconds * 1000 + rest // 1000


# --- stats --------------------------------------------------------------------------------------------------------


@pytest.mark.core
def test_the_statistics_count_every_place(queue, claim, stats):
    queue("push", "a", "b", "c", "d", "e")
    queue("push", "--level", "low", "x")
    queue("push", "--delay", "1h", "y")
    done, failed, dead, _ = claim("--tasks", "4")
    queue("ack", done["claim"])
    queue("nack", failed["claim"], "--delay", "0")
    queue("nack", "--dead", dead["claim"])
    claim("--tasks", "1")
    told = stats()
    assert told["order"] == ["high", "normal", "low"] and told["queue"] == "jobs"
    levels = {level["name"]: level for level in told["levels"]}
    assert (levels["normal"]["ready"], levels["normal"]["pushed"], levels["normal"]["claimed"]) == (1, 6, 5)
    assert levels["low"]["ready"] == 1 and levels["high"]["ready"] == 0
    assert (told["later"], told["in_flight"], told["dead"], told["acked"], told["failed"]) == (1, 2, 1, 1, 1)
    assert 0 < told["first_claim_ends_ms"] <= 60_000


@pytest.mark.core
def test_the_statistics_tell_the_order_in_text(queue):
    text = queue("stats", "--levels", "now,then").stdout.decode()
    assert text.splitlines()[0].split() == ["level", "ready", "returned", "paused", "stall_ms", "pushed", "claimed"]
    assert [line.split()[0] for line in text.splitlines()[1:3]] == ["now", "then"]
    assert "now, then (strict)" in text


def test_a_level_that_nobody_claims_from_shows_how_long_it_has_stood(store, queue, stats):
    queue("push", "--level", "low", "x")
    store.client.hset(QUEUE + "stats", "stall:low", now_ms(store) - HOUR_MS)
    assert stats()["levels"][2]["stall_ms"] >= HOUR_MS


# --- peek ---------------------------------------------------------------------------------------------------------


@pytest.mark.core
def test_peek_shows_what_comes_next_and_takes_nothing(store, queue):
    queue("push", "a", "b", "c")
    queue("push", "--level", "high", "H")
    queue("push", "--urgent", "U")
    before = look.dumps(store)
    rows = objects(queue("peek", "--json", "--show", "4").stdout)
    assert [(row["where"], row["level"], row["payload"]) for row in rows] == [
        ("ready", "high", "H"), ("ready", "normal", "U"), ("ready", "normal", "a"), ("ready", "normal", "b")]
    assert look.dumps(store) == before


def test_peek_shows_returned_tasks_before_those_of_their_level(store, queue, claim):
    queue("push", "a", "b", "c")
    for row in claim("--tasks", "2"):
        store.client.zadd(QUEUE + "leases", {row["claim"]: 1})
    again, = claim()  # collects both lost claims, and claims one of them
    first, second = objects(queue("peek", "--json").stdout)
    assert (first["where"], first["lost"], {first["payload"], again["payload"]}) == ("returned", 1, {"a", "b"})
    assert (second["where"], second["payload"]) == ("ready", "c")


@pytest.mark.core
def test_peek_shows_later_and_claimed_tasks_with_their_times(queue, claim):
    queue("push", "--at", "2040-01-01T00:00:00Z", "then")
    queue("push", "now")
    row, = claim()
    later, = objects(queue("peek", "--where", "later", "--json").stdout)
    assert (later["where"], later["payload"], later["at"]) == ("later", "then", "2040-01-01T00:00:00.000Z")
    claimed, = objects(queue("peek", "--where", "claimed", "--json").stdout)
    assert (claimed["where"], claimed["id"], claimed["at"]) == ("claimed", row["id"], row["expires_at"])


@pytest.mark.core
def test_peek_at_nothing_ends_with_3(queue):
    queue("peek", "--json", check=3)
    queue("peek", "--level", "high", "--raw", check=3)
    queue("dead", "list", check=3)


def test_peek_of_one_level_shows_that_level(queue):
    queue("push", "a")
    queue("push", "--level", "low", "b")
    assert queue("peek", "--level", "low", "--raw").stdout == b"b\n"


def test_raw_payloads_are_bytes_with_a_line_feed_behind_each(store, queue):
    with look.raw(store) as client:
        client.lpush(LISTS["normal"], b"\0\xff", b"b\r")
    assert queue("peek", "--raw").stdout == b"\0\xff\nb\r\n"


def test_in_a_table_no_payload_steers_a_terminal_or_fills_it(store, queue):
    store.client.lpush(LISTS["normal"], "\x1b[31m\\\n" + "x" * 5000)
    text = queue("peek").stdout.decode()
    assert r"\x1b[31m\\\n" + "x" * 20 in text and text.endswith("x...\n") and len(text) < 400


# --- dead letters -------------------------------------------------------------------------------------------------


@pytest.fixture
def dead(queue, claim):
    """Makes dead letters of tasks."""

    def make(*tasks, level="normal"):
        queue("push", "--level", level, *tasks)
        for row in claim("--tasks", len(tasks)):
            queue("nack", "--dead", "--reason", "why " + row["payload"], row["claim"])

    return make


@pytest.mark.core
def test_dead_letters_are_listed_with_their_reasons(queue, dead):
    dead("a", "b", level="low")
    rows = objects(queue("dead", "list", "--json").stdout)
    assert {(row["reason"], row["level"], row["payload"], row["where"]) for row in rows} == {
        ("why a", "low", "a", "dead"), ("why b", "low", "b", "dead")}
    assert len(queue("dead", "list", "--show", "1").stdout.splitlines()) == 2


@pytest.mark.core
def test_dead_letters_go_back_to_their_levels_as_raw_tasks(store, queue, dead):
    dead("a", "b")
    dead("h", level="high")
    done = queue("dead", "retry", "--json")
    assert b"3 dead letters were pushed to their levels again" in done.stderr
    assert objects(done.stdout) == [{"queue": "jobs", "tasks": 3}]
    assert payloads(store) == [b"a", b"b"] and payloads(store, "high") == [b"h"]
    queue("dead", "list", check=3)


def test_dead_letters_are_purged_only_with_yes(queue, dead, stats):
    dead("a", "b")
    assert b"all dead letters of queue 'jobs' would be deleted: say --yes" in queue("dead", "purge", check=2).stderr
    assert stats()["dead"] == 2
    assert b"2 dead letters were deleted" in queue("dead", "purge", "--yes").stderr
    assert stats()["dead"] == 0


def test_dead_wants_to_know_what(queue):
    assert b"'revive': expected list, retry or purge" in queue("dead", "revive", check=2).stderr


# --- returned tasks, pauses, purges -------------------------------------------------------------------------------


@pytest.mark.core
def test_returned_tasks_go_to_the_public_list_when_asked(store, queue, claim):
    queue("push", "a", "b", "c")
    for row in claim("--tasks", "2"):
        store.client.zadd(QUEUE + "leases", {row["claim"]: 1})
    claim("--levels", "high,normal,low", "--tasks", "1")  # collects both lost claims, and claims one of them
    before = payloads(store)
    assert b"1 returned tasks were moved to the public lists" in queue("retry", "--public", "--level", "normal").stderr
    assert before == [b"c"] and payloads(store) in ([b"a", b"c"], [b"b", b"c"])


def test_retry_wants_to_know_where_to(queue):
    assert b"--public moves them to the public lists" in queue("retry", check=2).stderr


@pytest.mark.core
def test_nobody_claims_from_a_paused_level(store, queue, claim, stats):
    queue("push", "--level", "high", "h")
    queue("push", "n")
    assert queue("pause", "high").stderr == b"fairlead queue pause: queue 'jobs': level high paused\n"
    assert [row["payload"] for row in claim("--tasks", "5")] == ["n"]
    assert [level["paused"] for level in stats()["levels"]] == [True, False, False]
    queue("resume", "high")
    assert claim()[0]["payload"] == "h"
    assert not store.client.exists(QUEUE + "paused")


def test_without_a_level_all_are_paused_and_resumed(queue, claim, stats):
    queue("push", "n")
    assert b"all levels paused" in queue("pause").stderr
    claim(check=3)
    assert all(level["paused"] for level in stats()["levels"])
    assert b"all levels resumed" in queue("resume").stderr
    claim()


def test_a_wrong_level_among_right_ones_pauses_none(store, queue):
    assert b"has no level 'nowhere'" in queue("pause", "high", "nowhere", check=2).stderr
    assert not store.client.exists(QUEUE + "paused")


def test_a_pause_does_not_stop_a_pop(queue):
    queue("push", "n")
    queue("pause")
    assert queue("pop").stdout == b"n\n"


@pytest.mark.core
def test_a_purge_deletes_one_level_with_what_comes_later(store, queue, claim, stats):
    queue("push", "--level", "low", "a", "b", "c")
    queue("push", "--level", "low", "--delay", "1h", "d")
    queue("push", "keep")
    held, = claim("--levels", "low")
    done = queue("purge", "--level", "low", "--yes")
    assert b"3 tasks were deleted" in done.stderr
    told = stats()
    assert (payloads(store), payloads(store, "low"), told["later"], told["in_flight"]) == ([b"keep"], [], 0, 1)
    queue("ack", "--levels", "low", held["claim"])


def test_a_purge_of_all_deletes_all_levels(queue, stats):
    for level in LISTS:
        queue("push", "--level", level, "x", "y")
    assert b"6 tasks were deleted" in queue("purge", "--all", "--yes").stderr
    assert sum(level["ready"] for level in stats()["levels"]) == 0


@pytest.mark.parametrize("words, text", [
    ([], "say either --level LEVEL or --all"), (["--level", "low", "--all"], "say either --level LEVEL or --all"),
    (["--level", "nowhere", "--yes"], "has no level 'nowhere'"),
    (["--level", "low"], "the tasks of level 'low' of queue 'jobs' would be deleted: say --yes"),
    (["--all"], "the tasks of all levels of queue 'jobs' would be deleted: say --yes")])
def test_a_purge_that_is_not_clear_deletes_nothing(store, queue, words, text):
    queue("push", "--level", "low", "x")
    assert text in queue("purge", *words, check=2).stderr.decode()
    assert payloads(store, "low") == [b"x"]


@pytest.mark.core
@pytest.mark.parametrize("answer, left", [(b"y\n", 0), (b"\n", 1), (b"no\n", 1)], ids=["yes", "nothing", "no"])
def test_on_a_terminal_a_purge_asks(store, queue, binary, environment, answer, left):
    queue("push", "x")
    main, other = pty.openpty()
    process = subprocess.Popen([binary, "queue", "purge", "--all", "--redis", store.url], env=environment, stdin=other,
                               stderr=other, stdout=subprocess.DEVNULL)
    os.close(other)
    seen = b""
    while b"[y/N] " not in seen:
        seen += os.read(main, 1000)
    assert b"Delete the tasks of all levels of queue 'jobs'?" in seen
    os.write(main, answer)
    assert process.wait(peers.WAIT_S) == (1 if left else 0)
    os.close(main)
    assert store.client.llen(LISTS["normal"]) == left


# --- doctor -------------------------------------------------------------------------------------------------------


@pytest.mark.core
def test_a_healthy_queue_has_no_finding(queue, claim, doctor):
    queue("push", "a", "b")
    queue("push", "--delay", "1h", "c")
    claim()
    findings = doctor()
    assert {finding for finding, _, _ in findings} == {"ok"}
    assert {check for _, check, _ in findings} == {"queue-keys", "queue-slots", "queue-levels", "queue-dead", "queue-orphans"}


@pytest.mark.core
def test_orphans_are_told_and_mended(store, queue, claim, doctor):
    queue("push", "a", "b")
    queue("push", "--delay", "1h", "c")
    first, second = claim("--tasks", "2")
    store.client.zrem(QUEUE + "leases", first["claim"])
    store.client.hdel(QUEUE + "claims", second["claim"])
    store.client.delete(QUEUE + "held")
    told = [detail for finding, check, detail in doctor() if check == "queue-orphans" and finding == "warning"]
    assert [text.split(";")[0] for text in told] == [
        "1 claims without a lease: nobody would collect them", "1 leases without a claim", "1 due times without a task"]
    assert all("doctor --fix" in text for text in told)
    mended = [detail for _, check, detail in doctor("--fix") if check == "queue-orphans"]
    assert [text.split("; ")[1] for text in mended] == ["1 were given a lease that has ended", "1 were removed", "1 were removed"]
    assert all("warning" != finding for finding, check, _ in doctor() if check == "queue-orphans")
    assert claim("--block", "10s")[0]["payload"] == "a"


def test_many_orphans_are_all_mended(store, queue, claim, doctor):
    queue("push", "-", input=b"\n".join(b"%d" % i for i in range(700)))
    assert sum(len(claim("--tasks", "256")) for _ in range(3)) == 700
    store.client.delete(QUEUE + "leases")
    assert "700 claims without a lease: nobody would collect them; 700 were" in str(doctor("--fix"))
    assert store.client.zcard(QUEUE + "leases") == 700


@pytest.mark.core
def test_paused_and_stalled_levels_are_told(store, queue, doctor):
    queue("push", "--level", "low", "x")
    queue("push", "--level", "high", "y")
    queue("pause", "high")
    store.client.hset(QUEUE + "stats", "stall:low", now_ms(store) - HOUR_MS)
    told = [detail for finding, check, detail in doctor() if check == "queue-levels" and finding == "warning"]
    assert "level 'high' is paused, with 1 tasks" in told[0] and "fairlead queue resume --queue jobs high" in told[0]
    assert "level 'low' has 1 tasks and has stood still for 360" in told[1]


def test_dropped_dead_letters_are_told(queue, claim, doctor):
    queue("push", "a", "b")
    for row in claim("--tasks", "2"):
        queue("nack", "--dead", "--dead-max", "1", row["claim"])
    assert ("warning", "queue-dead") in [found[:2] for found in doctor()]
    assert "1 dead letters were dropped" in str(doctor())


@pytest.mark.core
@pytest.mark.parametrize("key, belongs", [("{jobs}:high", "list"), (QUEUE + "claims", "hash"), (QUEUE + "retry:low", "list")])
def test_a_key_of_another_type_is_an_error(store, doctor, key, belongs):
    store.client.set(key, "x")
    (finding, check, detail), = doctor(status=1)
    assert (finding, check) == ("error", "queue-keys") and key in detail and belongs in detail and "--queue" in detail


def test_lists_that_a_cluster_would_refuse_are_told(doctor):
    detail, = (detail for _, check, detail in doctor("--lists", "{jobs}:a,elsewhere") if check == "queue-slots")
    assert "elsewhere" in detail and "refused by a Redis Cluster" in detail


def test_rates_are_what_came_between_two_looks(store, queue):
    def pushes():
        while not done.is_set():
            queue("push", "x")

    done = threading.Event()
    with concurrent.futures.ThreadPoolExecutor(1) as threads:
        end = threads.submit(pushes)
        found, = objects(queue("stats", "--json", "--rates", "1s").stdout)
        done.set()
        end.result(60)
    rates = {level["name"]: level["pushed_per_s"] for level in found["levels"]}
    assert rates["normal"] > 0 and rates["high"] == rates["low"] == 0
    assert found["acked_per_s"] == found["failed_per_s"] == 0
    assert "pushed_per_s" not in objects(queue("stats", "--json").stdout)[0]["levels"][0]
