"""Workers under SIGKILL: see workers.py for who is killed, and docs/reliability.md for what is promised."""

import contextlib

import pytest

import workers
from harness import BUILD, KILLS, SERVER, Harness
from table import Table


@pytest.fixture(scope="module")
def world():
    """After the run: all who were killed are dead, the others have ended well, and what was left has been done."""
    with Harness("workers") as harness, contextlib.closing(workers.Workers(harness)) as world:
        harness.run(world.drivers(), workers.POINTS)
        world.rest()
        Table(harness.oracle.read(), SERVER).write(BUILD / "kill-workers.json", workers.POINTS, harness.seed,
                                                   **world.figures())
        yield world


def test_enough_workers_were_killed_and_somebody_at_each_point(world):
    world.harness.assert_faultless()
    kills = world.harness.kills
    assert sum(kills.values()) >= KILLS and set(kills) == set(workers.POINTS)


def test_every_task_has_a_result_and_none_that_nobody_pushed(world):
    surely, maybe, done = world.account()
    assert surely - set(done) == set()
    assert set(done) - surely - maybe == set()


def test_nothing_is_left_of_tasks_claims_and_leases(world):
    assert world.stored() == {}
