"""claim.lua: strict order over levels, FIFO in a level, each claim with a lease; what is due comes back."""

import pytest
import redis
from queue_scripts import (ASIDE, FIRST_ID, HOSTILE, LEVELS, NONCE, NOW_MS, Queue, key, list_key,
                           retry_key)


@pytest.fixture
def queue(store, script):
    return Queue(store, script)


def lose(queue, *payloads, level="normal", at=NOW_MS - 1000, **options):
    """Tasks whose claims ended at NOW_MS."""
    queue.push(*payloads, level=level)
    return queue.take(len(payloads), levels=[level], now=at, lease=1000, **options)


# Order ------------------------------------------------------------------------------------------


def test_an_empty_queue_gives_nothing(queue):
    assert queue.claim(5) == (NOW_MS, -1, -1, 0, 0, [])


def test_levels_are_strict_and_each_is_first_in_first_out(queue):
    for i in range(3):
        for level in reversed(LEVELS):
            queue.push(b"%s%d" % (level.encode(), i), level=level)
    expected = [b"%s%d" % (level.encode(), i) for level in LEVELS for i in range(3)]
    assert queue.payloads(4) + queue.payloads(1) + queue.payloads(9) == expected


def test_urgent_comes_first_in_its_level(queue):
    queue.push(b"a", b"b", b"c")
    queue.push(b"U", side="head")
    queue.push(b"h", level="high")
    assert queue.payloads() == [b"h", b"U", b"a", b"b", b"c"]


def test_the_caller_may_try_the_levels_in_another_order(queue):
    for level in LEVELS:
        queue.push(level.encode(), level=level)
    assert queue.payloads(1, levels=LEVELS[::-1]) == [b"low"]
    assert queue.payloads(levels=["normal", "high"]) == [b"normal", b"high"]


def test_what_came_back_is_tried_before_its_level_but_not_before_a_higher_one(queue):
    queue.push(b"back", b"next")
    queue.settle(("nack", queue.take()[0], 0))
    queue.push(b"high", level="high")
    assert queue.payloads() == [b"high", b"back", b"next"]


def test_a_paused_level_is_passed_over_with_its_retry_list(store, queue):
    queue.push(b"back", b"a", level="high")
    queue.settle(("release", queue.take()[0]))
    queue.push(b"b", level="low")
    store.sadd(key("paused"), "high")
    assert queue.payloads() == [b"b"]
    store.srem(key("paused"), "high")
    assert queue.payloads() == [b"back", b"a"]


def test_foreign_clients_push_and_pop_beside(store, queue):
    store.lpush(list_key("low"), b"a", b"b", b"c")
    store.rpush(list_key("low"), b"urgent")
    assert store.brpop([list_key("high"), list_key("low")]) == (list_key("low").encode(), b"urgent")
    assert queue.payloads(1) == [b"a"]
    assert store.rpop(list_key("low")) == b"b"
    assert queue.payloads(9) == [b"c"]


def test_lists_may_have_any_names(store, script):
    queue = Queue(store, script)
    names = [key(n) for n in ("later", "held", "claims", "leases", "dead", "stats", "paused")]
    store.lpush("mail", b"x")
    answer = queue.run["claim"]([*names, "mail", retry_key("mail")], NOW_MS, NONCE, 1000, 1, 1, 0, 1,
                                0, "mail")
    assert answer[5][1] == b"mail" and answer[5][6] == b"x"


# What a claim is --------------------------------------------------------------------------------


def test_a_claim_has_id_token_lease_and_its_record(queue):
    queue.push(b"a", b"b", level="low")
    result = queue.claim(2, lease=250)
    first, second = result.claims
    assert first == (str(FIRST_ID), f"1-{NONCE}", "low", 0, 0, 0, NOW_MS + 250, b"a")
    assert (second.id, second.token) == (str(FIRST_ID + 1), f"1-{NONCE}")
    assert result[:5] == (NOW_MS, -1, NOW_MS + 250, 0, 0)
    assert queue.zset("leases") == {first.name: NOW_MS + 250, second.name: NOW_MS + 250}
    assert queue.packed("claims")[first.name] == {
        "level": "low", "failures": "0", "lost": "0", "released": "0", "lost_max": "3",
        "at": str(NOW_MS), "payload": b"a"}


def test_a_task_keeps_its_id_but_gets_a_new_token(queue):
    queue.push(b"a")
    first = queue.take()[0]
    queue.settle(("nack", first, 0))
    second = queue.take(nonce="f" * 32)[0]
    assert second.id == first.id and second.token == "2-" + "f" * 32
    assert (second.failures, second.lost, second.released) == (1, 0, 0)


@pytest.mark.parametrize("payload", HOSTILE.values(), ids=HOSTILE)
def test_a_payload_comes_back_byte_for_byte_by_every_road(queue, payload):
    queue.push(payload)
    for verb in ("nack", "release"):
        claim = queue.take()[0]
        assert claim.payload == payload
        assert queue.settle((verb, claim, 0 if verb == "nack" else "")) == [0]
    lost = queue.take()[0]
    assert queue.payloads(now=lost.expires_ms) == [payload]


def test_a_megabyte_comes_back_byte_for_byte(queue):
    payload = b"\tpayload=\0\r\n\xff" * 87_000
    queue.push(payload)
    claim = queue.take()[0]
    queue.settle(("nack", claim, 5))
    lost = queue.take(now=NOW_MS + 5)[0]
    assert queue.payloads(now=lost.expires_ms) == [payload]


def test_bytes_end_a_claim_but_one_task_comes(queue):
    queue.push(b"x" * 10, b"y" * 10, b"z" * 10, b"", b"w" * 10)
    assert queue.payloads(bytes_max=5) == [b"x" * 10]
    assert queue.payloads(bytes_max=11) == [b"y" * 10, b"z" * 10]
    assert queue.payloads(bytes_max=0) == [b"", b"w" * 10]


def test_what_is_too_much_stays_in_its_place(queue):
    """Payloads are popped in portions, and how large they are is seen then."""
    small, large = [b"%d" % i for i in range(8)], [b"%03d" % i * 100 for i in range(8, 30)]
    queue.push(*small, *large)
    assert queue.payloads(bytes_max=310) == small + large[:2]
    assert queue.list() == large[2:]
    assert queue.stats()["len:normal"] == 20 and queue.stats()["claimed:normal"] == 10
    assert queue.payloads() == large[2:]


def test_a_script_cache_that_was_flushed_loses_nothing(store, script):
    queue = Queue(store, script)
    queue.push(b"a")
    store.script_flush()
    with pytest.raises(redis.exceptions.NoScriptError):
        queue.claim()
    assert Queue(store, script).payloads() == [b"a"]


# What is due ------------------------------------------------------------------------------------


def test_a_delayed_task_that_is_due_goes_raw_to_its_list(store, queue):
    queue.push(b"x", level="low", due="+10")
    assert queue.claim(0, now=NOW_MS + 9)[1:4] == (NOW_MS + 10, -1, 0)
    assert queue.list("low") == []
    assert queue.claim(0, now=NOW_MS + 10)[1:4] == (-1, -1, 1)
    assert queue.list("low") == [b"x"]
    assert not store.exists(key("later"), key("held"))


def test_due_tasks_come_in_the_order_of_their_times_behind_what_stands(queue):
    queue.push(b"second", due="+20")
    queue.push(b"first", due="+10")
    queue.push(b"stands")
    assert queue.payloads(now=NOW_MS + 20) == [b"stands", b"first", b"second"]


def test_a_task_that_failed_is_due_in_its_retry_list(queue):
    queue.push(b"x")
    claim = queue.take()[0]
    queue.settle(("nack", claim, 10))
    assert queue.claim(0, now=NOW_MS + 10).promoted == 1
    assert queue.retry() == [claim.id] and queue.list() == []
    assert queue.packed("held")[claim.id]["kind"] == "returned"


def test_housekeeping_stops_at_its_limit_and_says_that_more_is_due(queue):
    queue.push(b"a", b"b", b"c", due="+10")
    result = queue.claim(0, now=NOW_MS + 50, limit=2)
    assert (result.promoted, result.next_due) == (2, NOW_MS + 10)
    assert queue.claim(9, now=NOW_MS + 50, limit=0).promoted == 0
    assert queue.claim(9, now=NOW_MS + 50, limit=2)[1:4] == (-1, NOW_MS + 1050, 1)


def test_bytes_end_housekeeping_too(queue):
    queue.push(b"x" * 100, b"y" * 100, due="+1")
    lose(queue, b"x" * 100, b"y" * 100, level="low")
    assert queue.claim(0, now=NOW_MS + 1, bytes_max=50)[3:5] == (1, 1)
    assert queue.claim(0, now=NOW_MS + 1, bytes_max=50)[3:5] == (1, 1)


def test_a_due_time_without_a_task_goes(store, queue):
    store.zadd(key("later"), {"7": 5})
    assert queue.claim(1)[1:4] == (-1, -1, 0)
    assert not store.exists(key("later"))


# Claims that are lost ---------------------------------------------------------------------------


def test_a_claim_is_not_collected_before_its_lease_has_ended(queue):
    queue.push(b"x")
    claim = queue.take(lease=100)[0]
    assert queue.take(now=NOW_MS + 99) == []
    again = queue.take(now=NOW_MS + 100)[0]
    assert (again.id, again.lost, again.failures, again.payload) == (claim.id, 1, 0, b"x")
    assert queue.stats()["lost"] == 1


def test_a_lost_task_comes_back_to_its_own_level(queue):
    lose(queue, b"x", level="low")
    assert queue.claim(0).expired == 1
    assert len(queue.retry("low")) == 1
    assert queue.packed("held") == {str((NOW_MS - 1000) * 1000 + 1): {
        "kind": "returned", "level": "low", "failures": "0", "lost": "1", "released": "0",
        "payload": b"x"}}


def test_lost_claims_of_one_time_come_back_in_their_order(queue):
    payloads = [b"%d" % i for i in range(200)]
    queue.push(*payloads[:100])
    queue.push(*payloads[100:])
    queue.take(200, lease=10)
    assert queue.payloads(now=NOW_MS + 10) == payloads


def test_a_task_that_kills_its_workers_becomes_a_dead_letter_and_others_flow(queue):
    queue.push(b"poison", b"fine")
    for lost in range(3):
        claim, *others = queue.take(2, now=NOW_MS + lost * 10, lease=10, lost_max=3)
        assert (claim.payload, claim.lost) == (b"poison", lost)
        queue.settle(*(("ack", other) for other in others)) if others else None
    assert queue.claim(9, now=NOW_MS + 30)[1:] == (-1, -1, 0, 1, [])
    assert queue.dead() == [{"id": claim.id, "reason": "claims-lost", "level": "normal",
                             "failures": "0", "lost": "3", "at": str(NOW_MS + 30),
                             "payload": b"poison"}]
    assert queue.packed("claims") == {} and queue.packed("held") == {}


def test_how_often_a_task_may_be_lost_is_what_its_claimant_said(queue):
    lose(queue, b"x", lost_max=0)
    assert queue.take(now=NOW_MS, lease=10, lost_max=1)[0].lost == 1
    assert queue.take(now=NOW_MS + 10, lost_max=0) == []
    assert queue.dead()[0]["lost"] == "2"


def test_when_dead_letters_are_full_the_oldest_goes_and_is_counted(queue):
    for i in range(4):
        lose(queue, b"%d" % i, lost_max=1, dead_max=2)
        queue.claim(0, dead_max=2)
    assert [letter["payload"] for letter in queue.dead()] == [b"3", b"2"]
    assert (queue.stats()["dead"], queue.stats()["dropped"]) == (4, 2)


def test_mass_expiry_is_bounded(queue):
    for _ in range(3):
        lose(queue, *[b"x"] * 128)
    assert queue.claim(0).expired == 256
    assert queue.claim(0).expired == 128


def test_a_lease_without_a_claim_goes(store, queue):
    store.zadd(key("leases"), {"7": 5})
    assert queue.claim(1)[2:5] == (-1, 0, 0)
    assert not store.exists(key("leases"))


def test_when_the_clock_goes_back_leases_only_last_longer(queue):
    queue.push(b"x")
    claim = queue.take(lease=1000)[0]
    assert queue.claim(9, now=NOW_MS - 3_600_000)[1:] == (-1, NOW_MS + 1000, 0, 0, [])
    assert queue.settle(("ack", claim), now=NOW_MS - 3_600_000) == [0]


# Levels that the caller does not name -----------------------------------------------------------


def test_a_due_task_of_another_level_is_set_aside_until_its_own_come(queue):
    queue.push(b"x", level="low", due="+1")
    first = queue.claim(1, levels=["high"], now=NOW_MS + 1)
    assert first == (NOW_MS + 1, -1, -1, 0, 0, [])
    assert list(queue.zset("later").values())[0] >= ASIDE
    for _ in range(5):
        assert queue.claim(1, levels=["high"], now=NOW_MS + 1).claims == []
    assert queue.payloads(1, levels=["normal", "low"], now=NOW_MS + 1) == [b"x"]


def test_what_is_set_aside_is_found_again_when_the_statistics_were_deleted(store, queue):
    queue.push(b"x", level="low", due="+1")
    queue.claim(1, levels=["high"], now=NOW_MS + 1)
    store.delete(key("stats"))
    assert queue.payloads(1, now=NOW_MS + 1) == [b"x"]


def test_a_lost_claim_of_another_level_is_set_aside_until_its_own_come(queue):
    claim = lose(queue, b"x", level="low")[0]
    assert queue.claim(1, levels=["high"])[2:] == (-1, 0, 0, [])
    again = queue.take(1, levels=["low"])[0]
    assert (again.id, again.lost, again.payload) == (claim.id, 1, b"x")


def test_tasks_of_other_levels_do_not_stand_in_the_way(queue):
    queue.push(*[b"x"] * 100, level="low", due="+1")
    queue.push(b"mine", level="high", due="+2")
    for _ in range(25):
        assert queue.payloads(1, levels=["high"], now=NOW_MS + 2, limit=4) == []
    assert queue.payloads(1, levels=["high"], now=NOW_MS + 2, limit=4) == [b"mine"]
    assert queue.payloads(256, levels=["low"], now=NOW_MS + 2) == [b"x"] * 100


def test_what_is_set_aside_stands_where_the_contract_says(queue):
    """2^52 + the hash h = (h * 31 + byte) mod 2^31 over the level's name."""
    name = "\u00fcrgent level"
    queue.push(b"x", level=name, due="+1")
    queue.claim(0, levels=["high"], now=NOW_MS + 1)
    expected = 0
    for byte in name.encode():
        expected = (expected * 31 + byte) % 2**31
    assert list(queue.zset("later").values()) == [2**52 + expected]


@pytest.mark.parametrize("packed", [b"", b"no pairs", b"level=low\tkind=delayed", b"payload=x",
                                    b"kind=delayed\tpayload=\tlevel=low"])
def test_what_cannot_be_read_is_set_aside_and_kept(store, queue, packed):
    for hash_name, zset in (("held", "later"), ("claims", "leases")):
        store.hset(key(hash_name), "7", packed)
        store.zadd(key(zset), {"7": 5})
    assert queue.claim(9) == (NOW_MS, -1, -1, 0, 0, [])
    assert store.hget(key("held"), "7") == store.hget(key("claims"), "7") == packed
    assert queue.zset("later") == queue.zset("leases") == {"7": ASIDE}


# What a newer version, or a foreign hand, left --------------------------------------------------


def test_pairs_of_a_newer_version_survive_the_round_trip(store, queue):
    store.hset(key("held"), "7", b"kind=returned\ttrace=a=b\tlevel=low\tfailures=2\tlost=0\t"
                                 b"released=1\tcolour=\tpayload=x")
    store.lpush(retry_key("low"), "7")
    claim = queue.take(lost_max=9)[0]
    assert (claim.failures, claim.lost, claim.released) == (2, 0, 1)
    again = queue.take(now=claim.expires_ms, lost_max=9)[0]
    assert queue.packed("claims")[f"7:2-{NONCE}"].items() >= {"trace": "a=b", "colour": "", "lost": "1"}.items()
    queue.settle(("nack", again, 5))
    assert queue.packed("held")["7"] == {"kind": "returned", "level": "low", "failures": "3",
                                         "lost": "1", "released": "1", "trace": "a=b", "colour": "",
                                         "payload": b"x"}


def test_ids_in_a_retry_list_that_lead_to_nothing_are_passed_over(store, queue):
    queue.push(b"x", b"next")
    claim = queue.take()[0]
    queue.settle(("release", claim))
    store.rpush(retry_key("normal"), claim.id, "junk", "", claim.id)
    assert queue.payloads() == [b"x", b"next"]
    assert queue.retry() == []


def test_a_retry_list_full_of_junk_costs_a_call_no_more_than_256_looks(store, queue):
    store.rpush(retry_key("normal"), *range(600))
    queue.push(b"x", level="low")
    assert queue.payloads() == [b"x"]
    assert len(queue.retry()) == 600 - 256


def test_a_task_that_cannot_be_read_does_not_vanish_from_a_retry_list(store, queue):
    store.hset(key("held"), "7", b"broken")
    store.rpush(retry_key("low"), "7")
    assert queue.payloads() == []
    assert store.hget(key("held"), "7") == b"broken" and queue.zset("later") == {"7": ASIDE}


def test_counts_that_cannot_be_read_are_none(store, queue):
    store.hset(key("held"), "7", b"kind=returned\tlevel=low\tfailures=-1\tlost=x\tpayload=x")
    store.rpush(retry_key("low"), "7")
    assert queue.take()[0][3:6] == (0, 0, 0)


# Statistics -------------------------------------------------------------------------------------


def stall_ms(queue, level, now):
    return now - queue.stats()[f"stall:{level}"]


def test_a_level_that_is_never_claimed_from_stands_still(store, queue):
    queue.claim(0)
    queue.push(b"x", level="low")
    for second in range(1, 61):
        queue.push(b"y", level="high")
        queue.claim(1, now=NOW_MS + second * 1000)
    assert stall_ms(queue, "low", NOW_MS + 60_000) == 60_000
    assert stall_ms(queue, "high", NOW_MS + 60_000) == 0
    assert stall_ms(queue, "normal", NOW_MS + 60_000) == 0
    queue.claim(1, levels=LEVELS[::-1], now=NOW_MS + 61_000)
    assert stall_ms(queue, "low", NOW_MS + 61_000) == 0


def test_a_level_that_a_foreign_consumer_takes_from_does_not_stand_still(store, queue):
    queue.push(b"a", b"b", b"c", level="low")
    queue.claim(0)
    store.rpop(list_key("low"))
    queue.claim(0, now=NOW_MS + 5000)
    assert stall_ms(queue, "low", NOW_MS + 5000) == 0
    queue.claim(0, now=NOW_MS + 9000)
    assert stall_ms(queue, "low", NOW_MS + 9000) == 4000


def test_a_paused_level_stands_still_and_so_does_what_came_back(store, queue):
    store.sadd(key("paused"), "low")
    queue.push(b"a", level="low")
    claim = queue.take(levels=["normal", "low"])
    assert claim == []
    queue.claim(9, now=NOW_MS + 7000)
    assert stall_ms(queue, "low", NOW_MS + 7000) == 7000


def test_claims_and_lengths_are_counted(queue):
    queue.push(b"a", b"b", b"c")
    queue.push(b"d", level="high")
    queue.claim(2)
    assert queue.stats() == {
        "pushed:normal": 3, "pushed:high": 1, "next_id": FIRST_ID + 1, "next_token": 1,
        "claimed:high": 1, "claimed:normal": 1, "len:normal": 2, "aside": 0,
        **{f"stall:{level}": NOW_MS for level in LEVELS}}


# Arguments, types, memory -----------------------------------------------------------------------


def test_the_time_of_redis_is_used(store, queue):
    now = store.time()[0] * 1000
    queue.push(b"a")
    result = queue.claim(1, now="", lease=1000)
    assert now <= result.now <= now + 60_000
    assert result.claims[0].expires_ms == result.now + 1000


WRONG = {
    "now": dict(now="x"),
    "now below 0": dict(now=-1),
    "now broken": dict(now=1.5),
    "no lease": dict(lease=0),
    "a lease that is none": dict(lease="nan"),
    "count": dict(count=257),
    "count below 0": dict(count=-1),
    "no bytes": dict(bytes_max=""),
    "lost_max": dict(lost_max=-1),
    "dead_max": dict(dead_max=0),
    "limit": dict(limit=257),
    "a short nonce": dict(nonce="abcdef0"),
    "a long nonce": dict(nonce="a" * 33),
    "a nonce that is not hex": dict(nonce="0123456g"),
    "no level": dict(levels=[]),
    "17 levels": dict(levels=[f"l{i}" for i in range(17)]),
    "a level twice": dict(levels=["a", "b", "a"]),
    "an empty level": dict(levels=["a", ""]),
    "a tab in a level": dict(levels=["a\tb"]),
    "a DEL in a level": dict(levels=["a\x7f"]),
}


@pytest.mark.parametrize("options", WRONG.values(), ids=WRONG)
def test_wrong_arguments_change_nothing(queue, options):
    queue.push(b"x")
    before = queue.everything()
    with pytest.raises(redis.ResponseError, match="^fairlead: "):
        queue.claim(**options)
    assert queue.everything() == before


TYPED = [*map(key, ("later", "held", "claims", "leases", "dead", "stats", "paused")),
         list_key("low"), retry_key("low")]


@pytest.mark.parametrize("name", TYPED)
def test_a_key_of_another_type_changes_nothing(store, queue, name):
    lose(queue, b"lost")
    queue.push(b"due", due="@1", now=0)
    queue.push(b"x")
    store.delete(name)
    store.set(name, "text")
    before = queue.everything()
    with pytest.raises(redis.ResponseError, match="WRONGTYPE"):
        queue.claim(9)
    assert queue.everything() == before


@pytest.mark.parametrize("name", TYPED)
def test_a_key_of_another_type_changes_nothing_when_nothing_is_due(store, queue, name):
    queue.push(b"back", b"x")
    queue.settle(("release", queue.take()[0]))
    store.delete(name)
    store.set(name, "text")
    before = queue.everything()
    with pytest.raises(redis.ResponseError, match="WRONGTYPE"):
        queue.claim(9)
    assert queue.everything() == before


@pytest.mark.parametrize("field", ["next_id", "next_token", "lost", "dead", "dropped", "claimed:low"])
def test_a_counter_that_is_no_number_changes_nothing(store, queue, field):
    queue.push(b"x")
    store.hset(key("stats"), field, "many")
    before = queue.everything()
    with pytest.raises(redis.ResponseError, match="^fairlead: "):
        queue.claim(9)
    assert queue.everything() == before


def test_at_maxmemory_claim_and_sweep_go_on_and_the_queue_drains(queue, full_store):
    lose(queue, b"lost", b"poison", level="low", lost_max=3)
    queue.push(b"due", due="@1", now=0)
    queue.push(b"a", b"b", level="high")
    full_store()
    assert sorted(queue.payloads(lease=10)) == [b"a", b"b", b"due", b"lost", b"poison"]
    assert queue.claim(0, now=NOW_MS + 10).expired == 5
    claims = queue.take(9, now=NOW_MS + 10)
    assert queue.settle(*(("ack", claim) for claim in claims)) == [0] * 5
    assert queue.packed("claims") == {} and queue.packed("held") == {}


def test_256_of_each_kind_are_one_call(queue):
    levels = [f"l{i}" for i in range(16)]
    for level in levels:
        lose(queue, *[b"lost"] * 16, level=level)
        queue.push(*[b"due"] * 16, level=level, due="@1", now=0)
        queue.push(*[b"x"] * 16, level=level)
    result = queue.claim(256, levels=levels)
    assert result[3:5] == (256, 256) and len(result.claims) == 256
