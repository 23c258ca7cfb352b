"""Leases under SIGKILL: see leases.py for who is killed, and docs/reliability.md for what is promised."""

import pytest

import leases
from harness import BUILD, KILLS, SERVER, Harness
from table import Table


@pytest.fixture(scope="module")
def world():
    """After the run: all who were killed are dead, the others have ended well, and what was left has been collected."""
    with Harness("leases") as harness:
        world = leases.Leases(harness)
        harness.run(world.drivers(), leases.POINTS)
        world.granted, world.allocated = world.counted()
        world.rest()
        world.lines = harness.oracle.read()
        Table(world.lines, SERVER).write(BUILD / "kill-leases.json", leases.POINTS, harness.seed, **world.figures())
        yield world


def test_what_is_held_is_always_what_is_counted(world):
    world.harness.assert_faultless()


def test_enough_were_killed_and_somebody_at_each_point(world):
    kills = world.harness.kills
    assert sum(kills.values()) >= KILLS and set(kills) == set(leases.POINTS)


def test_nothing_is_left_of_the_dead(world):
    assert world.residue() == [{}, [], {}, {}]


def test_as_many_leases_were_granted_as_were_returned_and_at_most_the_unknown_besides(world):
    least, most = leases.bounds(world.lines, world.harness.outages, "exec", "acquire", "request")
    assert least <= world.granted <= most


def test_each_lease_is_one_allocation_and_the_others_are_those_returned_and_at_most_the_unknown_besides(world):
    least, most = leases.bounds(world.lines, world.harness.outages, "allocate")
    assert least <= world.allocated - world.granted <= most
