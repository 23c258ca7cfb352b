"""Leases when time is not what their holders think: a holder that is stopped past its lease, and a Redis whose clock steps."""

import os
import pathlib
import re
import signal
import subprocess

import pytest

import look
import peers
from stepping import SteppingRedis, build_clock

MEMBER = "http://a.example:3128"
PREFIX = "{proxies}:pool:"
ROW = re.compile(r"(\S+)\t(\S+)\t\S+\n")
LOST = "is lost"
HOUR_S = 3600
LONG_TTL_S = 1800


@pytest.fixture
def acquire(run):
    """The lease word of one acquisition."""
    return lambda *words, **options: ROW.fullmatch(run("pool", "acquire", *words, **options).stdout)[2]


class Holder:
    """`fairlead pool acquire --exec`: renews its lease for as long as its command runs."""

    def __init__(self, words, stderr, env):
        self.stderr = stderr
        with open(stderr, "wb") as file:
            self.process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=file,
                                            env=env, start_new_session=True)

    def said(self):
        return self.stderr.read_text()

    def signal(self, number):
        """To fairlead alone, not to its command."""
        os.kill(self.process.pid, number)

    def wait(self):
        self.process.wait(peers.WAIT_S)

    def kill(self):
        self.process.poll()
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.wait()


@pytest.fixture
def hold(binary, environment, folder):
    """hold(redis, "--ttl", "1s") -> (holder, lease word), renewed at least once."""
    holders = []

    def start(redis, *words):
        holders.append(Holder([binary, "pool", "acquire", *words, "--exec", "sleep", "600"],
                              folder / f"said{len(holders)}", environment | {"FAIRLEAD_REDIS": redis.url}))
        first = peers.wait_for(lambda: redis.client.zrange(PREFIX + "leases", 0, -1, withscores=True), "a lease is held")
        peers.wait_for(lambda: redis.client.zscore(PREFIX + "leases", first[0][0]) > first[0][1], "the lease is renewed")
        return holders[-1], lease_word(redis, first[0][0])

    yield start
    for holder in holders:
        holder.kill()


def lease_word(redis, id):
    token = re.match("token=([^\t]+)\t", redis.client.hget(PREFIX + "holders", id))[1]
    return f"{id}:{token}"


def make_pool(run, redis):
    """One member, for one holder."""
    run("pool", "add", "--eligible", MEMBER, redis=redis)
    run("pool", "rules", "policy=least-concurrent", "max_concurrent=1", redis=redis)


# --- a holder that is stopped -------------------------------------------------------------------------------------


@pytest.mark.core
@pytest.mark.parametrize("ends", ["later", "meanwhile"])
def test_a_holder_stopped_past_its_lease_leaves_the_next_alone(store, run, acquire, hold, ends):
    make_pool(run, store)
    holder, old = hold(store, "--ttl", "2s")
    holder.signal(signal.SIGSTOP)
    new = acquire("--wait", "60s", "--ttl", "30m")
    before = look.dumps(store)
    for command in ("renew", "release"):
        run("pool", command, old, check=1)
    if ends == "meanwhile":
        command = pathlib.Path(f"/proc/{holder.process.pid}/task/{holder.process.pid}/children").read_text().split()
        os.kill(int(command[-1]), signal.SIGKILL)
    holder.signal(signal.SIGCONT)
    if ends == "later":
        peers.wait_for(lambda: LOST in holder.said(), "the holder knows that its lease is lost")
        assert look.dumps(store) == before
        holder.signal(signal.SIGTERM)
    holder.wait()
    assert look.dumps(store) == before
    run("pool", "renew", new)
    run("pool", "release", new)
    assert store.client.hgetall(PREFIX + "live") == {}


# --- a clock that steps -------------------------------------------------------------------------------------------


@pytest.fixture
def stepping(folder, session_folder):
    server = SteppingRedis(folder / "stepping", build_clock(session_folder)).start()
    yield server
    server.stop()


@pytest.fixture
def valid(run):
    """Which of these leases may be renewed; a renewal by so short a time changes nothing."""
    return lambda redis, *words: [x for x in words if run("pool", "renew", "--ttl", "100ms", x, redis=redis, check=False).returncode == 0]


def test_the_clock_of_the_server_steps(stepping):
    true_s = int(stepping.client.time()[0])
    for ahead_s in (HOUR_S, -HOUR_S, 0):
        stepping.step(ahead_s)
        assert abs(int(stepping.client.time()[0]) - true_s - ahead_s) < HOUR_S / 2


@pytest.mark.core
def test_a_step_ahead_ends_a_lease_early_and_once(stepping, run, acquire, hold, valid):
    make_pool(run, stepping)
    holder, old = hold(stepping, "--ttl", "2s")
    stepping.step(HOUR_S)
    new = acquire("--wait", "60s", "--ttl", f"{LONG_TTL_S}s", redis=stepping)
    assert valid(stepping, old, new) == [new]
    peers.wait_for(lambda: LOST in holder.said(), "the holder knows that its lease is lost")
    stepping.step(0)
    assert valid(stepping, old, new) == [new]
    holder.signal(signal.SIGTERM)
    holder.wait()
    assert valid(stepping, old, new) == [new]


@pytest.mark.core
def test_a_step_back_ends_a_lease_late_and_never_twice(stepping, run, acquire, hold, valid):
    make_pool(run, stepping)
    holder, old = hold(stepping, "--ttl", "2s")
    stepping.step(-HOUR_S)
    holder.kill()
    run("pool", "acquire", "--wait", "500ms", redis=stepping, check=3)
    assert valid(stepping, old) == [old]
    stepping.step(0)
    new = acquire("--wait", "60s", redis=stepping)
    assert valid(stepping, old, new) == [new]
    stepping.step(-HOUR_S)
    assert valid(stepping, old, new) == [new]


def test_a_holder_goes_on_over_a_step_back(stepping, run, acquire, hold, valid):
    """Its renewals do not shorten what it has."""
    make_pool(run, stepping)
    holder, old = hold(stepping, "--ttl", "2s")
    stepping.step(-HOUR_S)
    # What begins behind some renewals of the holder finds all as it was.
    run("pool", "acquire", "--wait", "2s", redis=stepping, check=3)
    assert valid(stepping, old) == [old] and LOST not in holder.said()
    holder.signal(signal.SIGTERM)
    holder.wait()
    assert stepping.client.hgetall(PREFIX + "live") == {}
    acquire(redis=stepping)


# --- the keeper ---------------------------------------------------------------------------------------------------


@pytest.mark.core
def test_the_keeper_collects_leases_and_finds_foreign_members(store, run, node, acquire):
    make_pool(run, store)
    id = acquire().split(":")[0]
    store.client.zadd(PREFIX + "leases", {id: 1})
    store.client.zadd("proxies", {"foreign.example:8080": 7})
    node(role="up")
    peers.wait_for(lambda: not store.client.exists(PREFIX + "leases", PREFIX + "live"), "the lease is collected")
    peers.wait_for(lambda: store.client.zscore(PREFIX + "busy", "foreign.example:8080") == 7, "the member is found")
    assert store.client.zscore(PREFIX + "busy", MEMBER) == 1
