"""A queue on a Redis Cluster of two nodes. Which lists are refused is in test_cli_queue.py."""

import pytest

import peers
from queue_world import NOWHERE, Queue, result
from queues import QUEUE, objects

SLOTS = 16384


class Node(peers.RedisServer):
    def __init__(self, folder):
        super().__init__(folder, tcp=True, cluster_enabled="yes", cluster_port=peers.free_port())

    def ask(self, *words):
        return self.client.execute_command("CLUSTER", *words)

    @property
    def address(self):
        return f"{self.host}:{self.port}"


@pytest.fixture(scope="module")
def cluster(session_folder):
    """Two nodes with half of the slots each; the first has that of the queue."""
    nodes = [Node(session_folder / f"cluster{i}").start() for i in range(2)]
    try:
        slot = nodes[0].ask("KEYSLOT", QUEUE)
        first = 0 if slot < SLOTS // 2 else 1
        nodes[first].ask("ADDSLOTSRANGE", 0, SLOTS // 2 - 1)
        nodes[1 - first].ask("ADDSLOTSRANGE", SLOTS // 2, SLOTS - 1)
        nodes[0].ask("MEET", nodes[1].host, nodes[1].port, nodes[1].options["cluster_port"])
        for node in nodes:
            peers.wait_for(lambda: "cluster_state:ok" in str(node.ask("INFO")), "the cluster is up")
        yield nodes
    finally:
        for node in nodes:
            node.stop()


@pytest.fixture
def queue(binary, environment, cluster):
    cluster[0].client.flushall()
    with Queue(binary, environment, cluster[0]) as it:
        yield it


@pytest.mark.core
def test_every_command_stays_within_the_slot_of_the_queue(queue):
    """An undeclared key, or one of another slot, is an error here: CROSSSLOT, or a script that tries a non-local key."""
    queue("push", "a", "b", "c", "d", "e", "f", "g")
    queue("push", "--id", "key", "--delay", "1ms", "later")
    rows = queue.claim("--tasks", "6", "--lease", "100ms", "--block", "10s")
    queue("extend", "--lease", "60s", rows[0]["claim"])
    queue("ack", rows[0]["claim"])
    queue("nack", "--delay", "0", rows[1]["claim"])
    queue("nack", "--delay", "1h", rows[2]["claim"])
    queue("nack", "--dead", rows[3]["claim"])
    queue("dead", "retry")
    queue("retry", "--public")
    lost = queue.claim("--tasks", "9", "--block", "10s", "--lost-max", "1", "--lease", "100ms")
    peers.wait_for(lambda: queue.sweep() and queue.places()["dead"] >= len(lost), "lost claims are dead letters")
    for words in ("pop", "pause low", "resume low", "peek", "peek --where later", "peek --where claimed", "stats", "dead list",
                  "purge --all --yes", "dead purge --yes"):
        done = queue(*words.split(), check=None)
        assert done.returncode in (0, 3), (words, done.stderr)
    waiter = queue.wait()
    queue.push("woken")
    assert result(waiter)[0]["payload"] == "woken"


def test_lists_with_the_tag_of_the_queue_are_claimed_in_their_order(queue):
    queue.redis.lpush("{jobs}slow", "s")
    queue.redis.lpush("fast{jobs}", "f")
    rows = objects(queue("claim", "--json", "--lists", "fast{jobs},{jobs}slow", "--tasks", "2").stdout)
    assert [row["payload"] for row in rows] == ["f", "s"]


def test_a_node_without_the_slot_names_the_one_that_has_it(binary, environment, cluster, queue):
    other = Queue(binary, environment, cluster[1])
    for words in ["push", "x"], ["claim"], ["claim", "--block", "10s"], ["pop"]:
        text = other(*words, check=1).stderr.decode()
        assert "MOVED" in text and cluster[0].address in text
    assert queue.places() == NOWHERE


@pytest.mark.nightly
def test_who_waits_while_its_slot_moves_is_told_where(binary, environment, cluster, queue):
    """Redis tells of no change then, since no list is there. The sign of life does, at most 7.5 s later. fairlead does not
    follow yet: the waiter ends, and one on the other node goes on."""
    slot, ids = cluster[0].ask("KEYSLOT", QUEUE), [node.ask("MYID") for node in cluster]
    waiter = queue.wait()
    cluster[1].ask("SETSLOT", slot, "IMPORTING", ids[0])
    cluster[0].ask("SETSLOT", slot, "MIGRATING", ids[1])
    try:
        # Empty but for the statistics.
        keys = cluster[0].ask("GETKEYSINSLOT", slot, 10)
        cluster[0].client.execute_command("MIGRATE", cluster[1].host, cluster[1].port, "", 0, 5000, "KEYS", *keys)
        for node in reversed(cluster):
            node.ask("SETSLOT", slot, "NODE", ids[1])
        _, errors = waiter.communicate(timeout=peers.WAIT_S)
        assert waiter.returncode == 1 and f"MOVED {slot} {cluster[1].address}".encode() in errors
        with Queue(binary, environment, cluster[1]) as other:
            waiter = other.wait()
            other.push("x")
            assert result(waiter)[0]["payload"] == "x"
    finally:
        cluster[1].client.flushall()
        for node in cluster:
            node.ask("SETSLOT", slot, "NODE", ids[0])
