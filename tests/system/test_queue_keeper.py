"""A keeper keeps a queue in order: what is due goes to its list, claims of the dead come back."""

import peers

QUEUE = "{jobs}:queue:"


def test_a_keeper_brings_due_tasks_and_lost_claims_back(node, store, run):
    run("queue", "push", "--level", "low", "--delay", "1h", "later")
    run("queue", "push", "--level", "high", "lost")
    run("queue", "claim")
    redis = store.client
    for key in ("later", "leases"):
        (member,) = redis.zrange(QUEUE + key, 0, -1)
        redis.zadd(QUEUE + key, {member: 1})
    node(role="up")
    peers.wait_for(lambda: redis.lrange("{jobs}:low", 0, -1) == ["later"])
    peers.wait_for(lambda: redis.llen(QUEUE + "retry:high") == 1)


def test_a_keeper_without_a_queue_writes_nothing_of_one(node, store):
    node(role="up")
    redis = store.client
    seen = redis.info("commandstats").get("cmdstat_exists", {}).get("calls", 0)
    peers.wait_for(lambda: redis.info("commandstats").get("cmdstat_exists", {}).get("calls", 0) > seen)
    assert redis.keys(QUEUE + "*") == []


def test_a_level_that_cannot_be_is_told_at_the_start(run):
    done = run("up", "--levels", "high,high", "--listen", "127.0.0.1:0", check=1)
    assert "'high'" in done.stderr and done.stderr.count("\n") == 1
