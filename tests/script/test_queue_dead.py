"""dead_retry.lua, retry_public.lua, queue_mend.lua: dead letters, work that came back, orphans."""

import pytest
import redis
from queue_scripts import FIRST_ID, HOSTILE, LEVELS, NOW_MS, Queue, key, list_key, retry_key


@pytest.fixture
def queue(store, script):
    return Queue(store, script)


def bury(queue, *payloads, level="normal"):
    for payload in payloads:
        queue.push(payload, level=level)
        queue.settle(("dead", queue.take(levels=[level])[0], "", "why"))


def bring_back(queue, *payloads, level="normal"):
    queue.push(*payloads, level=level)
    claims = queue.take(len(payloads), levels=[level])
    queue.settle(*(("nack", claim, 0) for claim in claims))
    return claims


# dead_retry -------------------------------------------------------------------------------------


def test_the_oldest_letters_go_behind_what_stands_in_their_levels(queue):
    bury(queue, b"a", b"b", b"c", level="low")
    bury(queue, b"h", level="high")
    queue.push(b"stands", level="low")
    assert queue.dead_retry(3) == [3, 1]
    assert queue.list("low") == [b"stands", b"a", b"b", b"c"]
    assert queue.dead_retry(128) == [1, 0]
    assert queue.list("high") == [b"h"]
    assert queue.dead_retry(128) == [0, 0]


def test_a_retried_letter_begins_anew_and_is_counted_as_pushed(queue):
    bury(queue, b"a")
    queue.dead_retry()
    claim = queue.take()[0]
    assert (claim.id, claim.failures, claim.lost) == (str(FIRST_ID + 1), 0, 0)
    assert queue.stats()["pushed:normal"] == 2


@pytest.mark.parametrize("payload", HOSTILE.values(), ids=HOSTILE)
def test_a_letter_goes_back_byte_for_byte(queue, payload):
    bury(queue, payload, level="low")
    queue.dead_retry()
    assert queue.list("low") == [payload]


def test_letters_of_a_level_that_is_not_named_stay(queue):
    bury(queue, b"a", level="low")
    bury(queue, b"b", level="gone")
    bury(queue, b"c", level="high")
    assert queue.dead_retry(2) == [1, 2]
    assert [letter["payload"] for letter in queue.dead()] == [b"b", b"c"]
    assert queue.dead_retry(2) == [1, 1]
    assert queue.dead_retry(2) == [0, 1]
    assert queue.list("high") == [b"c"]


@pytest.mark.parametrize("letter", [b"", b"junk", b"id=1\tlevel=low", b"payload=\tlevel=low",
                                    b"id=1\tpayload=\tlevel=low"])
def test_a_letter_that_cannot_be_read_stays(store, queue, letter):
    store.lpush(key("dead"), letter)
    assert queue.dead_retry() == [0, 1]
    assert store.lrange(key("dead"), 0, -1) == [letter]


def test_four_mebibytes_end_a_call(store, queue):
    bury(queue, *[bytes(2**20)] * 6)
    assert queue.dead_retry() == [4, 2]
    assert queue.dead_retry() == [2, 0]


@pytest.mark.parametrize("name", [key("dead"), key("stats"), list_key("low")])
def test_letters_stay_where_a_key_has_another_type(store, queue, name):
    bury(queue, b"a")
    store.delete(name)
    store.set(name, "text")
    before = queue.everything()
    with pytest.raises(redis.ResponseError, match="WRONGTYPE"):
        queue.dead_retry()
    assert queue.everything() == before


def test_a_counter_that_is_no_number_leaves_letters_alone(store, queue):
    bury(queue, b"a")
    store.hset(key("stats"), "pushed:low", "x")
    before = queue.everything()
    with pytest.raises(redis.ResponseError, match="^fairlead: "):
        queue.dead_retry()
    assert queue.everything() == before


@pytest.mark.parametrize("count", [0, 129, -1, 1.5, "", "x", "nan"])
def test_a_wrong_count_moves_nothing(queue, count):
    bury(queue, b"a")
    bring_back(queue, b"b")
    before = queue.everything()
    for call in (queue.dead_retry, queue.retry_public):
        with pytest.raises(redis.ResponseError, match="^fairlead: "):
            call(count=count)
    assert queue.everything() == before


@pytest.mark.parametrize("levels", [["a"] * 17, ["a", "b", "c", "d"]])
def test_levels_that_do_not_fit_the_keys_move_nothing(queue, levels):
    bury(queue, b"a")
    names = [key("dead"), key("stats"), *(list_key(level) for level in LEVELS)]
    with pytest.raises(redis.ResponseError, match="^fairlead: "):
        queue.run["dead_retry"](names, 1, *levels)
    assert len(queue.dead()) == 1


# retry_public -----------------------------------------------------------------------------------


def test_work_that_came_back_goes_raw_before_what_stands_in_its_order(store, queue):
    bring_back(queue, b"a", b"b", b"c")
    queue.push(b"stands")
    assert queue.retry_public() == 3
    assert queue.list() == [b"a", b"b", b"c", b"stands"]
    assert not store.exists(retry_key("normal"), key("held"))
    assert queue.stats()["published"] == 3


def test_the_order_holds_over_several_calls(queue):
    payloads = [b"%d" % i for i in range(10)]
    bring_back(queue, *payloads)
    queue.push(b"stands")
    assert [queue.retry_public(count=4) for _ in range(4)] == [4, 4, 2, 0]
    assert queue.list() == [*payloads, b"stands"]


@pytest.mark.parametrize("payload", HOSTILE.values(), ids=HOSTILE)
def test_work_goes_public_byte_for_byte(queue, payload):
    bring_back(queue, payload)
    queue.retry_public()
    assert queue.list() == [payload]


def test_ids_that_lead_to_nothing_are_dropped_on_the_way(store, queue):
    bring_back(queue, b"a")
    store.lpush(retry_key("normal"), *range(200))
    assert queue.retry_public() == 1
    assert queue.list() == [b"a"] and queue.retry() == []


def test_work_that_cannot_be_read_stays_in_its_place(store, queue):
    bring_back(queue, b"a", b"b", b"c")
    ids = queue.retry()
    store.hset(key("held"), mapping={id: b"broken" for id in ids[:2]})
    assert queue.retry_public() == 1
    assert queue.list() == [b"c"] and queue.retry() == ids[:2]


def test_four_mebibytes_end_a_call_of_public_work_too(queue):
    bring_back(queue, *[bytes(2**20)] * 5)
    assert [queue.retry_public(), queue.retry_public()] == [4, 1]


@pytest.mark.parametrize("name", [retry_key("normal"), key("held"), list_key("normal"), key("stats")])
def test_work_stays_where_a_key_has_another_type(store, queue, name):
    bring_back(queue, b"a")
    store.delete(name)
    store.set(name, "text")
    before = queue.everything()
    with pytest.raises(redis.ResponseError, match="WRONGTYPE"):
        queue.retry_public()
    assert queue.everything() == before


# queue_mend -------------------------------------------------------------------------------------


def test_a_claim_without_a_lease_is_collected_by_the_next_claim(store, queue):
    queue.push(b"a", b"b")
    orphan, whole = queue.take(2, lease=10_000)
    store.zrem(key("leases"), orphan.name)
    assert queue.mend("claims", orphan.name, whole.name, "unknown") == 1
    assert queue.zset("leases") == {orphan.name: 0, whole.name: NOW_MS + 10_000}
    again = queue.take()[0]
    assert (again.id, again.lost, again.payload) == (orphan.id, 1, b"a")
    assert queue.stats()["mended"] == 1


def test_a_lease_without_a_claim_is_removed(store, queue):
    queue.push(b"a")
    claim = queue.take()[0]
    store.zadd(key("leases"), {"7:1-a": NOW_MS + 5})
    assert queue.mend("leases", "7:1-a", claim.name, "unknown") == 1
    assert queue.zset("leases").keys() == {claim.name}


def test_a_due_time_without_a_task_is_removed(store, queue):
    queue.push(b"a", due="+5")
    store.zadd(key("later"), {"7": NOW_MS + 5})
    assert queue.mend("later", "7", str(FIRST_ID), "unknown") == 1
    assert queue.zset("later").keys() == {str(FIRST_ID)}


@pytest.mark.parametrize("kind", ["claims", "leases", "later"])
def test_what_is_whole_stays_as_it_is(queue, kind):
    queue.push(b"a", b"b")
    claims = queue.take(2)
    queue.settle(("nack", claims[0], 50))
    before = queue.everything()
    assert queue.mend(kind, *(claim.name for claim in claims), claims[0].id, "unknown") == 0
    assert queue.everything() == before


@pytest.mark.parametrize("words", [["claims"], ["held", "1"], ["", "1"], ["later", *["1"] * 129]], ids=len)
def test_wrong_arguments_mend_nothing(store, queue, words):
    store.zadd(key("leases"), {"1": 5})
    with pytest.raises(redis.ResponseError, match="^fairlead: "):
        queue.mend(*words)
    assert queue.zset("leases") == {"1": 5}


@pytest.mark.parametrize("name", ["claims", "leases", "held", "later", "stats"])
def test_a_key_of_another_type_mends_nothing(store, queue, name):
    store.set(key(name), "text")
    for kind in ("claims", "leases", "later"):
        with pytest.raises(redis.ResponseError, match="WRONGTYPE"):
            queue.mend(kind, "1")


# Memory -----------------------------------------------------------------------------------------


def test_at_maxmemory_all_of_them_go_on(store, queue, full_store):
    bury(queue, b"dead")
    bring_back(queue, b"back")
    queue.push(b"x")
    claim = queue.take(levels=["normal"])[0]
    assert claim.payload == b"back"
    queue.settle(("release", claim))
    claim = queue.take(levels=["normal"])[0]
    store.zrem(key("leases"), claim.name)
    full_store()
    assert queue.mend("claims", claim.name) == 1
    assert queue.claim(0).expired == 1
    assert queue.retry_public() == 1
    assert queue.dead_retry() == [1, 0]
    assert queue.payloads() == [b"back", b"x", b"dead"]
