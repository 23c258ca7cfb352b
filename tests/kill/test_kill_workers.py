"""Workers under SIGKILL: see workers.py for who is killed, and docs/reliability.md for what is promised."""

import pytest

import workers
from harness import BUILD, KILLS, SERVER, Harness
from table import Table


@pytest.fixture(scope="module")
def world():
    """After the run: all who were killed are dead, the others have ended well, and what was left has been done."""
    with Harness("workers") as harness:
        world = workers.Workers(harness)
        harness.run(world.drivers(), workers.POINTS)
        world.at_the_end = world.account()
        world.rest()
        world.at_rest, world.results_at_rest = world.account(), world.results_read()
        world.requests_seen = world.requests(world.at_rest)
        lines = harness.oracle.read()
        world.judge_kills(lines, world.results_at_rest)
        Table(lines, SERVER).write(BUILD / "kill-workers.json", workers.POINTS, harness.seed,
                                   **world.figures(world.at_rest, world.requests_seen))
        yield world


def test_claims_and_leases_are_always_whole(world):
    world.harness.assert_faultless()


def test_enough_workers_were_killed_and_somebody_at_each_point(world):
    kills = world.harness.kills
    assert sum(kills.values()) >= KILLS and set(kills) == set(workers.POINTS)


@pytest.mark.parametrize("when", ["at_the_end", "at_rest"])
def test_every_task_is_in_one_place_or_has_its_result(world, when):
    account = getattr(world, when)
    assert [account.lost(), account.never_pushed(), account.in_two_places()] == [set(), set(), set()]


def test_every_task_is_done_in_the_end(world):
    assert world.at_rest.not_done() == set()


def test_every_result_is_of_its_own_task_and_came_by_its_member(world):
    fetched = [result for result in world.results_at_rest if result["outcome"] == "done" and "body" in result]
    assert fetched and [result for result in fetched if not workers.is_by_its_member(result)] == []


def test_commands_have_done_some_of_them(world):
    assert [result for result in world.results_at_rest if "body" not in result]


def test_the_origin_saw_the_proxies_alone(world):
    assert {address for address, _ in world.requests_seen} == set(workers.PROXIES)


def test_nothing_is_left_of_tasks_claims_and_leases(world):
    assert world.residue() == [] and not any(world.stored().values())
