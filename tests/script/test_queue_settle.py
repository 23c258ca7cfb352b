"""settle.lua: a claim ends once, by its name alone; one's own repeat is told that all is done."""

import pytest
import redis
from queue_scripts import ASIDE, HOSTILE, LEVELS, NONCE, NOW_MS, SETTLE_KEYS, Claim, Queue, key

DONE, STALE, DIED = 0, 1, 2
VERBS = {"ack": "", "nack": 5, "dead": "", "release": "", "extend": 5000}
ENDING = ["ack", "nack", "dead", "release"]


@pytest.fixture
def queue(store, script):
    return Queue(store, script)


@pytest.fixture
def claim(queue):
    queue.push(b"x")
    return queue.take()[0]


def test_an_ack_leaves_nothing_but_counts_and_its_name(store, queue, claim):
    assert queue.settle(("ack", claim)) == [DONE]
    assert queue.settled() == {claim.name}
    assert {k.decode() for k in store.keys()} == {key("settled"), key("stats")}
    assert queue.stats()["acked"] == 1


def test_a_nack_comes_back_after_its_delay_with_one_failure_more(queue, claim):
    assert queue.settle(("nack", claim, 70)) == [DONE]
    assert queue.zset("later") == {claim.id: NOW_MS + 70}
    assert queue.take(now=NOW_MS + 69) == []
    again = queue.take(now=NOW_MS + 70)[0]
    assert (again.id, again.failures, again.lost, again.released) == (claim.id, 1, 0, 0)
    assert queue.stats()["failed"] == 1


def test_a_nack_without_delay_comes_back_at_once_behind_others_that_came_back(store, queue):
    queue.push(b"a", b"b")
    first, second = queue.take(2)
    queue.settle(("nack", first, 0), ("nack", second, 0))
    assert queue.retry() == [first.id, second.id]
    assert not store.exists(key("later"))


def test_as_many_failures_as_there_may_be_make_a_dead_letter(queue, claim):
    assert queue.settle(("nack", claim, 0, "one"), failures_max=2) == [DONE]
    claim = queue.take()[0]
    assert queue.settle(("nack", claim, 0, "two"), failures_max=2) == [DIED]
    assert queue.dead() == [{"id": claim.id, "reason": "two", "level": "normal", "failures": "2",
                             "lost": "0", "at": str(NOW_MS), "payload": b"x"}]
    assert queue.packed("held") == queue.packed("claims") == queue.zset("leases") == {}


def test_without_a_limit_failures_go_on(queue, claim):
    for failures in range(20):
        assert claim.failures == failures
        assert queue.settle(("nack", claim, 0), failures_max=0) == [DONE]
        claim = queue.take()[0]


def test_dead_is_at_once_and_no_failure(queue, claim):
    assert queue.settle(("dead", claim, "", "not for us"), levels=[]) == [DIED]
    letter = queue.dead()[0]
    assert (letter["reason"], letter["failures"]) == ("not for us", "0")
    assert queue.stats()["dead"] == 1 and "failed" not in queue.stats()


def test_a_reason_is_one_word_of_a_packed_value(queue, claim):
    queue.settle(("dead", claim, "", "a\tlevel=b\nc\0d"))
    assert queue.dead()[0] | {"reason": "a level=b c d", "level": "normal"} == queue.dead()[0]


def test_without_a_reason_it_is_failed(queue, claim):
    queue.settle(("dead", claim))
    assert queue.dead()[0]["reason"] == "failed"


@pytest.mark.parametrize("payload", HOSTILE.values(), ids=HOSTILE)
def test_a_dead_letter_has_the_payload_byte_for_byte(queue, payload):
    queue.push(payload)
    queue.settle(("dead", queue.take()[0]))
    assert queue.dead()[0]["payload"] == payload


def test_a_release_is_first_in_its_level_and_no_failure(queue):
    queue.push(b"a", b"b", b"c")
    first, second = queue.take(2)
    queue.settle(("nack", second, 0))
    assert queue.settle(("release", first)) == [DONE]
    again, other = queue.take(2)
    assert (again.payload, again.failures, again.released) == (b"a", 0, 1)
    assert other.payload == b"b"


def test_releases_of_one_call_come_again_in_their_order(queue):
    queue.push(b"a", b"b", b"c", b"d")
    claims = queue.take(3)
    queue.settle(*(("release", claim) for claim in claims))
    assert queue.payloads() == [b"a", b"b", b"c", b"d"]


# Extend -----------------------------------------------------------------------------------------


def test_an_extended_claim_lives_longer_and_is_never_shortened(queue, claim):
    assert queue.settle(("extend", claim, 5000)) == [DONE]
    assert queue.zset("leases") == {claim.name: NOW_MS + 5000}
    assert queue.settle(("extend", claim, 10)) == [DONE]
    assert queue.zset("leases") == {claim.name: NOW_MS + 5000}
    assert queue.take(now=NOW_MS + 4999) == []
    assert queue.settle(("ack", claim), now=NOW_MS + 4999) == [DONE]


def test_a_claim_that_has_ended_is_still_its_holders_until_it_is_collected(queue, claim):
    late = claim.expires_ms + 60_000
    assert queue.settle(("extend", claim, 1000), now=late) == [DONE]
    assert queue.take(now=late + 999) == []
    assert queue.settle(("ack", claim), now=late + 5000) == [DONE]
    assert queue.take(now=late + 9000) == []


def test_a_claim_that_was_set_aside_can_be_extended(queue, claim):
    queue.claim(1, levels=["high"], now=claim.expires_ms)
    assert queue.zset("leases")[claim.name] >= ASIDE
    assert queue.settle(("extend", claim, 10), now=claim.expires_ms) == [DONE]
    assert queue.zset("leases") == {claim.name: claim.expires_ms + 10}


def test_the_greatest_of_several_extensions_holds(queue, claim):
    assert queue.settle(("extend", claim, 3000), ("extend", claim, 9000),
                        ("extend", claim, 1)) == [DONE] * 3
    assert queue.zset("leases") == {claim.name: NOW_MS + 9000}


# Tokens -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("verb", VERBS)
def test_a_zombie_changes_nothing(queue, claim, verb):
    again = queue.take(now=claim.expires_ms)[0]
    before = queue.everything()
    assert queue.settle((verb, claim, VERBS[verb]), now=claim.expires_ms) == [STALE]
    assert queue.everything() == before
    assert queue.settle(("ack", again), now=claim.expires_ms) == [DONE]


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("token", ["", "1", f"1-{NONCE[:-1]}", f"1-{NONCE}0", f"2-{NONCE}", "\0"])
def test_another_token_changes_nothing(queue, claim, verb, token):
    before = queue.everything()
    assert queue.settle((verb, claim._replace(token=token), VERBS[verb])) == [STALE]
    assert queue.settle((verb, claim._replace(id="8"), VERBS[verb])) == [STALE]
    assert queue.everything() == before


@pytest.mark.parametrize("verb", VERBS)
def test_a_claim_without_a_lease_is_still_its_holders(store, queue, verb):
    queue.push(b"a", b"b")
    claims = queue.take(2)
    store.delete(key("leases"))
    stale = claims[0]._replace(token="x")
    operations = [(verb, claim, VERBS[verb]) for claim in (claims[0], stale, claims[1])]
    code = DIED if verb == "dead" else DONE
    assert queue.settle(*operations) == [code, STALE, code]
    assert queue.packed("claims").keys() == ({c.name for c in claims} if verb == "extend" else set())


@pytest.mark.parametrize("verb", ["nack", "dead", "release", "extend"])
def test_a_lease_without_a_claim_is_none(store, queue, claim, verb):
    store.hdel(key("claims"), claim.name)
    before = queue.everything()
    assert queue.settle((verb, claim, VERBS[verb])) == [STALE]
    assert queue.everything() == before


@pytest.mark.parametrize("verb", ENDING)
def test_ones_own_repeat_is_told_done_and_changes_nothing(queue, claim, verb):
    first = queue.settle((verb, claim, VERBS[verb]))
    before = queue.everything()
    assert first == [DIED if verb == "dead" else DONE]
    for other in VERBS:
        assert queue.settle((other, claim, VERBS[other])) == [DONE]
    assert queue.everything() == before


def test_a_repeat_after_the_next_claim_leaves_that_alone(queue, claim):
    queue.settle(("nack", claim, 0))
    again = queue.take()[0]
    assert queue.settle(("ack", claim)) == [DONE]
    assert queue.packed("claims").keys() == {again.name}


def test_one_call_may_name_a_claim_twice(queue, claim):
    assert queue.settle(("nack", claim, 7), ("ack", claim), ("extend", claim, 1)) == [DONE] * 3
    assert queue.zset("later") == {claim.id: NOW_MS + 7} and queue.zset("leases") == {}
    assert queue.stats()["failed"] == 1 and "acked" not in queue.stats()


def test_the_last_32768_are_remembered(store, queue, claim):
    queue.push(b"y")
    other = queue.take()[0]
    older, old = (Claim("9", token, "", 0, 0, 0, 0, b"") for token in ("0-a", "1-a"))
    store.sadd(key("settled-before"), older.name)
    store.sadd(key("settled"), old.name, *range(32_766))
    assert queue.settle(("ack", claim), ("ack", older), ("ack", old)) == [DONE] * 3
    assert store.scard(key("settled")) == 32_768
    assert queue.settle(("ack", other)) == [DONE]
    assert queue.settle(*(("ack", c) for c in (older, old, claim, other))) == [STALE, DONE, DONE, DONE]
    assert queue.settled() == {other.name} and store.scard(key("settled-before")) == 32_768


def test_operations_of_one_call_are_answered_in_their_order(queue):
    queue.push(b"a", b"b", b"c", b"d", b"e")
    a, b, c, d, e = queue.take(5)
    stale = a._replace(token="x")
    assert queue.settle(("ack", a), ("dead", b), ("ack", stale), ("nack", c, 5), ("release", d),
                        ("extend", e, 1)) == [DONE, DIED, STALE, DONE, DONE, DONE]
    assert queue.zset("leases").keys() == {e.name}
    assert queue.packed("held").keys() == {c.id, d.id}


# Dead letters -----------------------------------------------------------------------------------


def test_a_nack_never_fails_because_dead_letters_are_full(queue):
    payloads = [b"%d" % i for i in range(10)]
    queue.push(*payloads)
    claims = queue.take(10)
    for claim in claims[:4]:
        assert queue.settle(("nack", claim, 0), failures_max=1, dead_max=3) == [DIED]
    assert queue.settle(*(("dead", claim) for claim in claims[4:]), dead_max=3) == [DIED] * 6
    assert [letter["payload"] for letter in queue.dead()] == [b"9", b"8", b"7"]
    assert (queue.stats()["dead"], queue.stats()["dropped"]) == (10, 7)


def test_a_smaller_limit_takes_effect_in_portions(store, queue, claim):
    store.lpush(key("dead"), *[b"id=1\tpayload=%d" % i for i in range(600)])
    queue.settle(("dead", claim), dead_max=10)
    assert store.llen(key("dead")) == 601 - 256
    assert queue.dead()[0]["payload"] == b"x"


# Refusals ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("verb", ["nack", "release"])
def test_what_needs_a_level_that_is_not_named_refuses_the_whole_call(queue, verb):
    queue.push(b"a", level="high")
    queue.push(b"b", level="low")
    high, low = queue.take(2)
    before = queue.everything()
    with pytest.raises(redis.ResponseError, match="^fairlead: "):
        queue.settle(("ack", high), (verb, low, VERBS[verb]), levels=["high", "normal"])
    assert queue.everything() == before
    assert queue.settle(("ack", high), ("dead", low), levels=[]) == [DONE, DIED]


WORDS = ["ack", "", "", "1", "1:t"]
WRONG = {
    "no operation": ["0"],
    "a word too few": ["0", *WORDS[:-1]],
    "a word too many": ["0", *WORDS, "x"],
    "a group of none": ["0", *WORDS[:3], "0"],
    "a count that is none": ["0", *WORDS[:3], "x", "1:t"],
    "129 groups": ["0", *WORDS * 129],
    "129 claims": ["0", *WORDS[:3], "129", *["1:t"] * 129],
    "an unknown verb": ["0", "eat", *WORDS[1:]],
    "levels that are not there": ["1", "high", *WORDS],
    "a number of levels that is none": ["x", *WORDS],
    "17 levels": ["17", *LEVELS, *WORDS],
    "a nack without delay": ["0", "nack", "", "", "1", "1:t"],
    "a delay below 0": ["0", "nack", "-1", "", "1", "1:t"],
    "a broken delay": ["0", "nack", "0.5", "", "1", "1:t"],
    "an extension that is no number": ["0", "extend", "inf", "", "1", "1:t"],
    "an ack with half a number": ["0", "ack", "x", "", "1", "1:t"],
}


@pytest.mark.parametrize("words", WRONG.values(), ids=WRONG)
def test_wrong_arguments_change_nothing(queue, claim, words):
    before = queue.everything()
    names = [key(n) for n in SETTLE_KEYS]
    with pytest.raises(redis.ResponseError, match="^fairlead: "):
        queue.run["settle"](names, NOW_MS, 100, 5, *words)
    assert queue.everything() == before


@pytest.mark.parametrize("options", [dict(now="x"), dict(now=-1), dict(dead_max=0),
                                     dict(failures_max=-1), dict(failures_max="")], ids=str)
def test_wrong_settings_change_nothing(queue, claim, options):
    before = queue.everything()
    with pytest.raises(redis.ResponseError, match="^fairlead: "):
        queue.settle(("ack", claim), **options)
    assert queue.everything() == before


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("name", [*SETTLE_KEYS, "retry:low"])
def test_a_key_of_another_type_changes_nothing(store, queue, claim, verb, name):
    store.delete(key(name))
    store.set(key(name), "text")
    before = queue.everything()
    with pytest.raises(redis.ResponseError, match="WRONGTYPE"):
        queue.settle((verb, claim, VERBS[verb]))
    assert queue.everything() == before


@pytest.mark.parametrize("field", ["acked", "failed", "released", "dead", "dropped"])
def test_a_counter_that_is_no_number_changes_nothing(store, queue, claim, field):
    store.hset(key("stats"), field, "-1")
    before = queue.everything()
    with pytest.raises(redis.ResponseError, match="^fairlead: "):
        queue.settle(("ack", claim))
    assert queue.everything() == before


def test_the_time_of_redis_is_used(store, queue, claim):
    now = store.time()[0] * 1000
    assert queue.settle(("nack", claim, 1000), now="") == [DONE]
    assert now + 1000 <= queue.zset("later")[claim.id] <= now + 61_000


def test_at_maxmemory_every_verb_goes_on(queue, full_store):
    queue.push(b"a", b"b", b"c", b"d", b"e")
    claims = queue.take(5)
    full_store()
    operations = [(verb, claim, VERBS[verb]) for verb, claim in zip(VERBS, claims)]
    assert queue.settle(*operations) == [DONE, DONE, DIED, DONE, DONE]
    assert queue.settle(("ack", claims[4])) == [DONE]
    assert [c.payload for c in queue.take(9, now=NOW_MS + 5)] == [b"d", b"b"]


def test_a_group_is_settled_as_if_one_by_one(queue):
    queue.push(b"a", b"b", b"c", b"d")
    a, b, c, d = queue.take(4)
    names = [key(n) for n in SETTLE_KEYS]
    words = ["ack", "", "", 3, a.name, "7:x", b.name, "dead", "", "why", 2, c.name, d.name]
    assert queue.run["settle"](names, NOW_MS, 100, 5, 0, *words) == [DONE, STALE, DONE, DIED, DIED]
    assert [(letter["payload"], letter["reason"]) for letter in queue.dead()] == [(b"d", "why"), (b"c", "why")]
    assert queue.packed("claims") == queue.zset("leases") == {}
    assert queue.stats()["acked"] == 2


def test_128_operations_are_one_call(queue):
    queue.push(*[b"x"] * 128)
    claims = queue.take(128)
    assert queue.settle(*(("nack", claim, 10) for claim in claims)) == [DONE] * 128
    assert [c.id for c in queue.take(256, now=NOW_MS + 10)] == [c.id for c in claims]
