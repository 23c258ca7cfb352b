"""Many processes at once on one pool, fairlead and others."""

import collections
import multiprocessing
import subprocess

import pytest
import redis

FIVE_LINES = """\
local chosen = redis.call('ZRANGE', KEYS[1], 0, 0)[1]
if not chosen then
    return nil
end

redis.call('ZINCRBY', KEYS[1], 1, chosen)
return chosen
"""
TEN = [f"http://m{i}.example:3128" for i in range(10)]


@pytest.fixture
def at_once(binary, environment, store):
    """at_once(count, words...) runs so many commands together; all that they printed."""

    def run_all(count, *words):
        processes = [subprocess.Popen([binary, *words, "--redis", store.url], env=environment,
                                      stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, encoding="utf-8")
                     for _ in range(count)]
        printed = [process.communicate(timeout=60)[0] for process in processes]
        assert [process.returncode for process in processes] == [0] * count
        return "".join(printed).split()

    return run_all


def foreign_worker(socket, answers):
    client = redis.Redis(unix_socket_path=socket, decode_responses=True)
    answers.put([client.eval(FIVE_LINES, 1, "proxies") for _ in range(500)])


@pytest.mark.core
def test_other_clients_and_fairlead_share_one_pool_evenly(store, run, at_once):
    """Must show 2: 8 processes of the five lines and 8 of `pool allocate`, at once, on a pool of ten."""
    run("pool", "add", *TEN)
    context = multiprocessing.get_context("spawn")
    answers = context.Queue()
    workers = [context.Process(target=foreign_worker, args=(store.socket, answers)) for _ in range(8)]
    for worker in workers:
        worker.start()
    counts = collections.Counter(at_once(8, "pool", "allocate", "--count", "500", "--id"))
    for _ in workers:
        counts.update(answers.get(timeout=60))
    for worker in workers:
        worker.join(60)
    assert counts == dict.fromkeys(TEN, 800)
    assert store.client.zrange("proxies", 0, -1, withscores=True) == [(member, 800) for member in TEN]


def test_fifty_allocations_at_once_are_fifty_members(store, run, at_once):
    """T2."""
    run("pool", "add", *(f"http://m{i}.example:3128" for i in range(50)))
    assert len(set(at_once(50, "pool", "allocate"))) == 50


def test_a_pool_that_many_found_at_once_has_one_salt(store, at_once):
    at_once(8, "pool", "add", "http://user:sesame@proxy.example:3128")
    assert store.client.zcard("proxies") == 1 and store.client.hlen("{proxies}:pool:secrets") == 1
