"""SIGHUP: the configuration is read again, and what changed in it changes while all goes on."""

import os
import re
import signal

import pytest

import peers
from conftest import Node
from demonstration import nodes_of
from supplies import LOADED, Supplied, eligible, members, text_of

UNUSABLE = "the configuration cannot be used; all stays as it is"
FIXED = "settings differ that need a handover (SIGUSR2) or a restart"
AGAIN = "lists are read again"


class Configured(Supplied):
    """A node with a configuration file. `sources` maps names to paths."""

    def __init__(self, node, store, folder, private, **sources):
        self.folder, self.path = folder, folder / "conf"
        self.write(**sources)
        super().__init__(node("--config", self.path, role="up", private=private), store)

    def write(self, before="", settings="", **sources):
        sections = "".join(f"[source {name}]\nplace = {place}\n{settings}" for name, place in sources.items())
        self.path.write_text(f"[fairlead]\n{before}{sections}")

    def list(self, name, *numbers):
        path = self.folder / name
        path.write_text(text_of(*numbers))
        return path

    def reload(self, before="", settings="", **sources):
        self.write(before, settings, **sources)
        return self.after(self.hang_up, message=AGAIN)

    def has(self, *numbers):
        self._wait(lambda: eligible(self.store).keys() == members(*numbers), f"the pool has {numbers}")


@pytest.fixture
def configured(node, store, folder):
    def start(private=True, **lists):
        for name, numbers in lists.items():
            (folder / name).write_text(text_of(*numbers))
        return Configured(node, store, folder, private, **{name: folder / name for name in lists})

    return start


@pytest.mark.core
def test_a_new_source_is_supplied_and_one_that_stays_is_read_again(configured, folder):
    it = configured(a=[1])
    it.list("a", 1, 2)
    it.reload(a=folder / "a", b=it.list("b", 3))
    it.has(1, 2, 3)


def test_a_new_list_of_the_settings_is_supplied(configured, folder):
    it = configured(a=[1])
    it.reload(f"list = {it.list('b', 2)}\n", a=folder / "a")
    it.has(1, 2)


@pytest.mark.core
def test_a_source_that_vanished_is_watched_no_more_and_its_members_stay(configured, folder):
    it = configured(a=[1], b=[2])
    it.reload(a=folder / "a")
    it._wait(lambda: it.count(message="a source has ended", source="b") == 1, "it has ended")
    it.list("b", 2, 3)
    loaded = it.count(message=LOADED, source="a")
    it.hang_up()
    it._wait(lambda: it.count(message=LOADED, source="a") > loaded, "the other is read")
    assert eligible(it.store).keys() == members(1, 2)
    assert [x["source"] for x in it.node.log(message=LOADED)].count("b") == 1


@pytest.mark.core
def test_a_source_whose_place_changed_is_made_anew(configured, folder):
    it = configured(a=[1, 2])
    it.reload(settings="grace = 0\n", a=it.list("other", 2, 3))
    it.has(2, 3)
    assert it.node.log(message=LOADED, source="a")[-1]["left"] == 1


def test_a_source_that_comes_back_is_read(configured, folder):
    it = configured(a=[1], b=[2])
    it.reload(a=folder / "a")
    it.reload(a=folder / "a", b=it.list("b", 3))
    it.has(1, 2, 3)


BAD = {"a value": ("tries = many\n", ":2: tries = many: must be"), "a name": ("nonsense = 1\n", ":2: unknown setting"),
       "a source": ("[source operator]\nplace = /x\n", "is taken"),
       "a list": ("[source x]\nplace = /nonexistent\n", "/nonexistent")}


@pytest.mark.core
@pytest.mark.parametrize("what", BAD)
def test_a_bad_file_changes_nothing_and_is_told_once(configured, folder, what):
    it = configured(a=[1])
    content, told = BAD[what]
    it.list("a", 1, 2)
    it.write(content, a=folder / "a")
    line = it.after(it.hang_up, message=UNUSABLE)
    assert told in line["error"] and line["context"] == "up" and line["level"] == "error"
    it.path.unlink()
    assert "No such file" in it.after(it.hang_up, message=UNUSABLE)["error"]
    assert it.count(message=UNUSABLE) == 2 and it.count(message=AGAIN) == 0
    it.reload(a=folder / "a")
    it.has(1, 2)


@pytest.mark.parametrize("role", ["gateway", "keeper"])
def test_a_role_that_runs_alone_reads_it_too(binary, environment, folder, store, role):
    path = folder / "conf"
    path.write_text(f"redis = {store.url}\nlisten = 127.0.0.1:{peers.free_port()}\n")
    it = Node([binary, role, "--log-format", "json", "--config", str(path)], folder / "alone", environment)
    try:
        peers.wait_for(lambda: [x["role"] for x in nodes_of(store).values()] == [role], "it runs")
        path.write_text("pool = nonsense\ntries = 0\n")
        os.kill(it.pid, signal.SIGHUP)
        (line,) = peers.wait_for(lambda: it.log(message=UNUSABLE), "it is told")
        assert f"{path}:2: tries = 0" in line["error"]
        path.write_text(f"redis = {store.url}\npool = other\n")
        os.kill(it.pid, signal.SIGHUP)
        peers.wait_for(lambda: it.log(message=FIXED), "it is told")
    finally:
        it.stop()


@pytest.mark.core
def test_what_cannot_change_is_named_in_one_line_each_time(configured, folder):
    it = configured(a=[1])
    for _ in range(2):
        it.write("workers = 3\npool = other\nstore_wait = 1s\ntries = 9\n", a=folder / "a")
        line = it.after(it.hang_up, message=FIXED)
        assert (line["settings"], line["context"]) == ("workers, pool, store_wait", "up")
    it._wait(lambda: it.count(message=AGAIN) == 2, "both are done")
    assert it.count(message=FIXED) == 2 and len(it.node.children()) == 2
    it.reload(a=folder / "a")
    assert it.count(message=FIXED) == 2


def test_a_child_that_is_started_again_has_the_settings_of_its_sisters(configured, folder):
    it = configured(a=[1])
    it.reload("pool = other\n", a=folder / "a", b=it.list("b", 2))
    it.has(1, 2)
    os.kill(it.node.children()[0], signal.SIGKILL)
    it._wait(lambda: it.count(message=LOADED, source="b") >= 2, "the new keeper reads what was added")
    assert it.store.client.exists("other") == 0 and eligible(it.store).keys() == members(1, 2)


def test_a_rule_that_a_setting_gives_is_given(configured, folder):
    it = configured(private=False, a=[1])
    assert it.store.client.hget("{proxies}:pool:rules", "allow_private") != "1"
    it.reload("allow_private = true\n", a=folder / "a")
    it._wait(lambda: it.store.client.hget("{proxies}:pool:rules", "allow_private") == "1", "the rule is set")


def resident_kib(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        return int(re.search(r"RssAnon:\s+(\d+)", status.read())[1])


def test_a_hundred_times_leaves_descriptors_and_memory_as_they_were(configured, folder):
    it = configured(a=[1, 2, 3], b=[4])
    pids = [it.node.pid, *it.node.children()]

    def measure():
        return [(len(os.listdir(f"/proc/{pid}/fd")), resident_kib(pid)) for pid in pids]

    def reload(times):
        for i in range(times):
            # One comes and goes, one changes, one stays.
            extra = {"c": it.list("c", 5)} if i % 2 else {}
            it.reload(settings=f"grace = {i + 1}h\n", a=folder / "a", b=folder / "b", **extra)

    def settle():
        peers.steady(lambda: it.count(message="settings are in force"), 0.3)
        return measure()

    reload(20)
    before = settle()
    reload(100)
    after = settle()
    assert [x[0] for x in after] == [x[0] for x in before]
    # AddressSanitizer keeps what was freed.
    assert "ASAN_OPTIONS" in os.environ or all(late[1] - early[1] < 400 for early, late in zip(before, after)), (before, after)
    assert [it.node.pid, *it.node.children()] == pids


def test_many_at_once_end_in_what_the_file_says_last(configured, folder):
    it = configured(a=[1])
    for i in range(2, 30):
        it.write(**{f"s{i}": it.list(f"s{i}", i)})
        it.hang_up()
    it._wait(lambda: member_is_in(it, 29), "the last is supplied")
    ended = {x["source"] for x in it.node.log(message="a source has ended")}
    assert "a" in ended and "s29" not in ended


def member_is_in(it, i):
    return members(i) <= eligible(it.store).keys()


def test_a_bad_nameserver_ends_the_start(run):
    done = run("up", "--listen", "127.0.0.1:0", "--nameserver", "dns.example", check=2)
    assert done.stderr.count("\n") == 1 and "dns.example" in done.stderr
