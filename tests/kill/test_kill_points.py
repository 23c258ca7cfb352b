"""The kill points themselves: each stands in one place, somebody dies there, and nobody elsewhere."""

import collections
import re
import signal

import pytest

import leases
import tasks
import workers
from harness import ANY_MOMENT, ROOT, SERVER, Harness, Points

DRAWN = {*leases.POINTS, *tasks.POINTS, *workers.POINTS} - {ANY_MOMENT, SERVER}


def test_each_name_stands_in_one_place():
    counts = collections.Counter(Points.names())
    assert [name for name, count in counts.items() if count > 1] == []


def test_each_name_says_where_and_what():
    assert [name for name in Points.names() if not re.fullmatch(r"[a-z]+(-[a-z]+)+", name)] == []


def test_the_runs_kill_at_all_of_them():
    """A run ends well only when it has killed somebody at each of its points."""
    assert DRAWN == set(Points.names())


def test_the_page_has_a_row_for_each():
    page = (ROOT / "docs/reliability.md").read_text()
    assert [name for name in Points.names() if f"| `{name}` |" not in page] == []


@pytest.fixture(scope="module")
def harness():
    with Harness("points") as harness:
        yield harness


@pytest.mark.parametrize("point", ["store-written", "store-written:1", "store-written:2"])
def test_who_comes_by_as_often_as_was_said_dies(harness, point):
    ended = harness.command("pool", "stats", point=point)
    assert (ended.status, ended.point) == (-signal.SIGKILL, "store-written")


@pytest.mark.parametrize("point", ["store-writte", "store-written-not", "store", "store-written:1000", "elsewhere"])
def test_nobody_else_dies(harness, point):
    assert harness.command("pool", "stats", point=point).status == 0
