"""Tasks under SIGKILL: see tasks.py for who is killed, and docs/reliability.md for what is promised."""

import pytest

import tasks
from harness import BUILD, KILLS, SERVER, Harness
from table import Table


@pytest.fixture(scope="module")
def world():
    """After the run: all who were killed are dead, the others have ended well, and what the dead had claimed is back."""
    with Harness("queue") as harness:
        world = tasks.Tasks(harness)
        harness.run(world.drivers(), tasks.POINTS)
        world.leave_a_claim()
        world.stored_at_the_end = world.stored()
        world.rest()
        world.stored_at_rest = world.stored()
        lines = harness.oracle.read()
        world.account = tasks.Account(lines, world.settled())
        tasks.judge_pushes(lines, world.account.everywhere(world.stored_at_rest))
        Table(lines, SERVER).write(BUILD / "kill-queue.json", tasks.POINTS, harness.seed, **world.figures())
        yield world


def test_claims_and_what_came_back_are_always_whole(world):
    world.harness.assert_faultless()


def test_enough_were_killed_and_somebody_at_each_point(world):
    kills = world.harness.kills
    assert sum(kills.values()) >= KILLS and set(kills) == set(tasks.POINTS)


@pytest.mark.parametrize("when", ["stored_at_the_end", "stored_at_rest"])
def test_every_task_is_in_one_place_and_none_is_lost(world, when):
    assert tasks.faults(world.account, getattr(world, when)) == []


def test_what_is_left_can_be_claimed_and_done(world):
    ready = world.stored_at_rest["ready"] + world.stored_at_rest["returned and later"]
    assert sorted(world.drain()) == sorted(ready)
