"""The consumer in ten lines of docs/wire.md works, beside foreign clients."""

import pathlib
import re
import secrets

import pytest
from queue_scripts import Queue, key, list_key

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture
def work_once(store):
    page = (ROOT / "docs" / "wire.md").read_text()
    block = re.search(r"```python\n(def work_once.*?)```", page, re.DOTALL)[1]
    names = {"secrets": secrets}
    for name in ("claim", "settle"):
        names[name.upper()] = store.register_script((ROOT / "lua" / f"{name}.lua").read_text())
    exec(block, names)
    return names["work_once"]


def test_it_carries_out_tasks_in_their_order(store, work_once):
    store.lpush(list_key("low"), b"1", b"2")
    store.lpush(list_key("high"), b"3")
    store.rpush(list_key("low"), b"urgent")
    done = []
    while work_once("q", done.append):
        pass
    assert done == [b"3", b"urgent", b"1", b"2"]
    assert store.hget(key("stats"), "acked") == b"4"
    assert not store.exists(key("claims"), key("leases"))


def test_a_task_that_raises_comes_back_later(store, script, work_once):
    store.lpush(list_key("normal"), b"x")
    assert work_once("q", lambda payload: 1 / 0)
    assert not work_once("q", print)
    held = Queue(store, script).packed("held")
    assert [(task["failures"], task["payload"]) for task in held.values()] == [("1", b"x")]


def test_a_task_may_be_given_back(store, work_once):
    store.lpush(list_key("normal"), b"x", b"y")
    seen = []
    assert work_once("q", lambda payload: seen.append(payload) or "release")
    while work_once("q", seen.append):
        pass
    assert seen == [b"x", b"x", b"y"]
