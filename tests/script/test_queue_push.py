"""push.lua: tasks go in raw, in order, once if they have a key, all of a call or none."""

import pytest
import redis
from queue_scripts import FIRST_ID, HOSTILE, NOW_MS, Queue, key, list_key


@pytest.fixture
def queue(store, script):
    return Queue(store, script)


def test_a_task_stands_in_the_list_as_lpush_would_leave_it(store, queue):
    assert queue.push(b"a", b"b") == [1, 1]
    assert store.lrange(list_key("normal"), 0, -1) == [b"b", b"a"]
    assert sorted(store.keys()) == sorted([list_key("normal").encode(), key("stats").encode()])


def test_urgent_goes_to_the_head_where_rpop_takes_it_first(store, queue):
    queue.push(b"a", b"b", b"c")
    queue.push(b"U", side="head")
    assert [store.rpop(list_key("normal")) for _ in range(4)] == [b"U", b"a", b"b", b"c"]


@pytest.mark.parametrize("payload", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize("due", ["", "+1"])
def test_a_payload_goes_in_byte_for_byte(queue, payload, due):
    queue.push(payload, due=due)
    queue.claim(0, now=NOW_MS + 1)
    assert queue.list() == [payload]


def test_a_megabyte_goes_in(queue):
    payload = bytes(range(256)) * 4096
    queue.push(payload)
    queue.push(payload, due="+5")
    assert queue.list() == [payload]
    assert queue.packed("held")[str(FIRST_ID)]["payload"] == payload


@pytest.mark.parametrize("due", ["+70", f"@{NOW_MS + 70}"])
def test_a_delayed_task_waits_in_held_until_it_is_due(queue, due):
    assert queue.push(b"x", level="low", due=due) == [1]
    assert queue.zset("later") == {str(FIRST_ID): NOW_MS + 70}
    counts = {"failures": "0", "lost": "0", "released": "0"}
    expected = {"kind": "delayed", "level": "low", "payload": b"x"} | counts
    assert queue.packed("held") == {str(FIRST_ID): expected}
    assert queue.list("low") == []


@pytest.mark.parametrize("due", ["+0", f"@{NOW_MS}", "@1", f"@{NOW_MS - 1}"])
def test_a_due_time_that_has_passed_is_at_once(store, queue, due):
    queue.push(b"x", due=due)
    assert queue.list() == [b"x"]
    assert not store.exists(key("later"))


def test_the_same_payload_at_one_time_comes_out_as_often_as_it_went_in(queue):
    queue.push(*[b"same"] * 100, due=f"@{NOW_MS + 1}")
    assert queue.payloads(256) == []
    assert queue.payloads(256, now=NOW_MS + 1) == [b"same"] * 100


def test_ids_count_on_over_calls(queue):
    queue.push(b"a", b"b", due="+9")
    queue.push(b"c", due="+9")
    payloads = {int(i) - FIRST_ID: p["payload"] for i, p in queue.packed("held").items()}
    assert payloads == {0: b"a", 1: b"b", 2: b"c"}


def test_a_key_lets_one_in_within_its_window(queue):
    assert queue.push(b"a", keys=["k"], window=100) == [1]
    assert queue.push(b"b", keys=["k"], now=NOW_MS + 99) == [0]
    assert queue.push(b"c", keys=["k"], now=NOW_MS + 100) == [1]
    assert queue.list() == [b"a", b"c"]


def test_a_key_counts_within_one_call_and_over_levels(queue):
    assert queue.push(b"a", b"b", b"c", b"d", keys=["k", "", "k", "l"]) == [1, 1, 0, 1]
    assert queue.push(b"e", keys=["k"], level="high", due="+5") == [0]
    assert queue.list() == [b"a", b"b", b"d"]


def test_a_key_that_is_pushed_again_keeps_its_end(queue):
    queue.push(b"a", keys=["k"], window=100)
    queue.push(b"b", keys=["k"], window=10_000, now=NOW_MS + 50)
    assert queue.zset("ids") == {"k": NOW_MS + 100}


def test_nothing_is_written_when_all_were_there(queue):
    queue.push(b"a", keys=["k"])
    before = queue.everything()
    assert queue.push(b"b", keys=["k"]) == [0]
    assert queue.everything() == before


def test_keys_that_ended_leave_with_the_next_that_come(store, queue):
    store.zadd(key("ids"), {f"old{i}": i for i in range(300)} | {"live": NOW_MS + 1})
    queue.push(b"a", keys=["new"])
    assert store.zcard(key("ids")) == 300 + 2 - 256
    queue.push(b"b", keys=["newer"])
    assert set(queue.zset("ids")) == {"live", "new", "newer"}


def test_of_more_than_100000_keys_the_first_to_end_go(store, queue):
    store.zadd(key("ids"), {f"k{i}": NOW_MS + 1 + i for i in range(100_000)})
    queue.push(b"a", b"b", keys=["x", "y"], window=10**9)
    assert store.zcard(key("ids")) == 100_000
    assert store.zmscore(key("ids"), ["k0", "k1"]) == [None, None]
    assert store.zscore(key("ids"), "k2") == NOW_MS + 3


def test_what_is_pushed_is_counted(queue):
    queue.push(b"a", b"b", keys=["k", "k"])
    queue.push(b"c", due="+1")
    queue.push(b"d", level="high", side="head")
    assert queue.stats() == {"pushed:normal": 2, "pushed:high": 1, "next_id": FIRST_ID}


def test_an_id_counter_that_was_deleted_brings_no_id_back(store, queue):
    queue.push(b"a", due="+9")
    store.delete(key("stats"))
    queue.push(b"b", due="+9", now=NOW_MS + 1)
    assert sorted(p["payload"] for p in queue.packed("held").values()) == [b"a", b"b"]


def test_the_time_of_redis_is_used(store, queue):
    now = store.time()[0] * 1000
    queue.push(b"a", due="+60000", now="")
    queue.push(b"b", due=f"@{now - 1000}", now="")
    assert now <= list(queue.zset("later").values())[0] - 60_000 <= now + 60_000
    assert queue.list() == [b"b"]


def test_128_delayed_tasks_with_keys_go_in_and_keep_their_order(queue):
    payloads = [b"%d" % i for i in range(128)]
    assert queue.push(*payloads, due="+1", keys=[f"k{i}" for i in range(128)]) == [1] * 128
    assert queue.payloads(256, now=NOW_MS + 1) == payloads


WRONG = {
    "side": dict(side="middle"),
    "no level": dict(level=""),
    "a tab in the level": dict(level="a\tb"),
    "a newline in the level": dict(level="a\nb"),
    "a NUL in the level": dict(level="a\0b"),
    "no time": dict(due="tomorrow"),
    "a time below 0": dict(due="@-5"),
    "a broken time": dict(due="+1.5"),
    "a time out of range": dict(due="@99999999999999"),
    "a window below 0": dict(window=-1),
    "a window that is none": dict(window="x"),
    "now": dict(now="nan"),
    "now broken": dict(now=0.5),
}


@pytest.mark.parametrize("options", WRONG.values(), ids=WRONG)
def test_wrong_arguments_push_nothing(store, queue, options):
    with pytest.raises(redis.ResponseError, match="^fairlead: "):
        queue.push(b"x", **options)
    assert store.dbsize() == 0


@pytest.mark.parametrize("words", [[], ["k"], ["", "x", ""], ["", "x"] * 129], ids=len)
def test_a_wrong_number_of_pairs_pushes_nothing(store, queue, words):
    names = [list_key("low"), key("later"), key("held"), key("ids"), key("stats")]
    with pytest.raises(redis.ResponseError, match="^fairlead: "):
        queue.run["push"](names, NOW_MS, "tail", "low", "", 1, *words)
    assert store.dbsize() == 0


@pytest.mark.parametrize("due", ["", "+5"])
@pytest.mark.parametrize("name", [list_key("normal"), *map(key, ("later", "held", "ids", "stats"))])
def test_a_key_of_another_type_pushes_nothing(store, queue, name, due):
    store.set(name, "text")
    with pytest.raises(redis.ResponseError, match="WRONGTYPE"):
        queue.push(b"x", due=due, keys=["k"])
    assert store.keys() == [name.encode()]


@pytest.mark.parametrize("field", ["next_id", "pushed:normal"])
def test_a_counter_that_is_no_number_pushes_nothing(store, queue, field):
    store.hset(key("stats"), field, "many")
    before = queue.everything()
    with pytest.raises(redis.ResponseError, match="^fairlead: "):
        queue.push(b"x")
    assert queue.everything() == before


@pytest.mark.parametrize("side", ["tail", "head"])
@pytest.mark.parametrize("due", ["", "+5"])
def test_at_maxmemory_a_push_fails_whole(store, queue, full_store, side, due):
    queue.push(b"before", keys=["old"], window=1)
    before = queue.everything()
    full_store()
    with pytest.raises(redis.ResponseError, match="OOM|maxmemory"):
        queue.push(b"x", b"y", side=side, due=due, keys=["k", ""], now=NOW_MS + 10)
    assert queue.everything() == before


