"""A high level that is fed as fast as it is emptied, and one task in the lowest. Bounds are counted in claims, not in time.

Shown elsewhere: that exactly every K-th claim of one process comes from the bottom in unit/test_queue_claim.c; that
`doctor` tells of a level that stands still in test_cli_queue_look.py."""

import pytest

from queue_world import Queue

ROUNDS = 60
AGING = 3
# A claim of a process of its own comes from the bottom with a chance of 1 in AGING: that it does not in so many is less
# likely than 1 in 10^17.
CLAIMS_MAX = 100


@pytest.fixture
def queue(binary, environment, store):
    with Queue(binary, environment, store) as it:
        it.push("starving", level="low")
        it.push("first", "second", level="high")
        yield it


def claim_and_feed(queue, *words):
    """One task comes for each that goes: the level is never empty, nor does it grow."""
    row, = queue.claim(*words)
    queue("ack", row["claim"])
    queue.push("next", level=row["level"])
    return row


def stalls(queue):
    """How long each level has stood still, in ms, and what stands in it."""
    return {level["name"]: (level["stall_ms"], level["ready"]) for level in queue.stats()["levels"]}


def test_strict_order_starves_the_lowest_level_and_the_statistics_show_it(queue):
    seen, looks = [], []
    for _ in range(2):
        seen += [claim_and_feed(queue)["level"] for _ in range(ROUNDS // 2)]
        looks.append(stalls(queue))
    assert seen == ["high"] * ROUNDS
    first, last = looks
    assert 0 < first["low"][0] < last["low"][0] and last["low"][1] == 1
    # It has stood for as long as all those claims took; the high one since the last of them at most.
    assert last["high"][0] < last["low"][0] and last["normal"] == (0, 0)


@pytest.mark.core
def test_with_aging_the_lowest_level_has_its_turn(queue):
    seen = []
    while "starving" not in seen:
        assert len(seen) < CLAIMS_MAX
        row = claim_and_feed(queue, "--aging", AGING)
        assert row["level"] == ("low" if row["payload"] == "starving" else "high")
        seen.append(row["payload"])


def test_with_an_aging_of_one_the_order_is_turned_round(queue):
    assert [claim_and_feed(queue, "--aging", "1")["level"] for _ in range(5)] == ["low"] * 5


@pytest.mark.parametrize("block", [[], ["--block", "10s"]], ids=["at once", "waiting"])
def test_aging_gives_the_lowest_level_its_share_and_no_more(queue, block):
    """1 in AGING: of 60 claims 20 are expected, with a standard deviation of 3.7."""
    levels = [claim_and_feed(queue, "--aging", AGING, *block)["level"] for _ in range(60)]
    assert 1 <= levels.count("low") <= 42 and "normal" not in levels
