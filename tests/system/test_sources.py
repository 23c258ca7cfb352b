"""Lists that keep a pool supplied: files that change while a node runs, and sections of the configuration."""

import os
import re

import pytest

import peers
import wire
from supplies import (LOADED, UNUSABLE, Supplied, eligible, member, members, parked, pool_dumps, record, replace,
                      text_of, use)

NOW = ("--list-grace", "1ms")


@pytest.fixture
def path(folder):
    return folder / "list.txt"


@pytest.fixture
def supplied(node, store, path):
    """supplied(text, words) -> a node that serves and has read `path`; text=None: without --list."""

    def start(text, *words, **options):
        if text is not None:
            replace(path, text)
            words = ("--list", path, *words)
        return Supplied(node(*words, role="up", **options), store)

    return start


@pytest.fixture
def sections(supplied, folder):
    """sections({name: "key = value\n..."}) -> a node with these sources; each has its NAME.txt in the folder."""

    def start(wanted, *words, **options):
        text = "".join(f"[source {name}]\nplace = {folder}/{name}.txt\n{lines}\n" for name, lines in wanted.items())
        (folder / "conf").write_text(text)
        return supplied(None, "--config", folder / "conf", *words, **options)

    return start


def wait_parked(store, names, pool="proxies"):
    peers.wait_for(lambda: parked(store, pool).keys() == set(names), f"{names} are parked")


# --- how a file changes -------------------------------------------------------------------------------------------


def rename_over(path, text):
    replace(path, text)


def truncate_and_write(path, text):
    path.write_text(text)


def swap_symlink(path, text):
    """The link has stood there from the start."""
    target = path.with_name("target2")
    target.write_text(text)
    link = path.with_name("link.new")
    link.symlink_to(target)
    link.rename(path)


@pytest.mark.core
@pytest.mark.parametrize("change", [rename_over, truncate_and_write, swap_symlink])
def test_a_file_that_changes_is_read_again_by_difference(supplied, store, path, change):
    if change is swap_symlink:
        path.with_name("target1").write_text(text_of(1, 2))
        path.symlink_to(path.with_name("target1"))
        it = supplied(None, "--list", path)
    else:
        it = supplied(text_of(1, 2))
    assert eligible(store) == dict.fromkeys(members(1, 2), 0)
    use(store, {member(1): 9, member(2): 4})
    line = it.after(lambda: change(path, text_of(2, 1, 3)), message=LOADED)
    assert (line["joined"], line["known"], line["missing"]) == (1, 2, 0)
    # Newcomers join at the lowest count.
    assert eligible(store) == {member(1): 9, member(2): 4, member(3): 4}


def test_a_file_that_stands_still_is_not_read_again(supplied, path):
    it = supplied(text_of(1))
    it.after(lambda: replace(path, text_of(1, 2)), message=LOADED)
    assert it.count(message=LOADED) == 2


@pytest.mark.core
def test_sighup_reads_again_at_once(supplied, store, path):
    it = supplied(text_of(1))
    replace(path, text_of(1, 2))
    it.reread()
    assert eligible(store).keys() == members(1, 2)
    assert it.count(message="lists are read again") == 1


def test_reading_the_same_again_changes_nothing(supplied, store):
    it = supplied(text_of(1, 2) + "http://u:p@192.0.2.9:80\n")
    use(store, {member(1): 5})
    before = pool_dumps(store)
    line = it.reread()
    assert pool_dumps(store) == before
    assert (line["joined"], line["known"], line["missing"], line["left"]) == (0, 3, 0, 0)


def test_what_the_gateway_hands_out_is_kept(supplied, store, path, upstream):
    """Counts of real requests, not of ZADD."""
    server = upstream(wire.serves())
    it = supplied(f"{server.url}\n")
    for _ in range(3):
        with it.node.connect() as client:
            assert client.get().status == 200
    replace(path, f"{server.url}\n{text_of(1)}")
    it.reread()
    assert eligible(store) == {server.url: 3, member(1): 3}


def test_survivors_keep_their_health_and_administrative_state(supplied, store, run, path):
    it = supplied(text_of(1, 2, 3, 4))
    run("pool", "park", member(1))
    store.client.hset("{proxies}:pool:health", member(2), "state=up\tsince_ms=7")
    store.client.hset("{proxies}:pool:admin", member(3), "state=enabled\tnote=mine")
    replace(path, text_of(1, 2, 3, 5))
    it.reread()
    assert parked(store).keys() == members(1)
    assert store.client.hget("{proxies}:pool:health", member(2)) == "state=up\tsince_ms=7"
    assert store.client.hget("{proxies}:pool:admin", member(3)) == "state=enabled\tnote=mine"


def test_a_candidate_of_an_import_waits_for_its_judgement(supplied, store, run, folder):
    (folder / "candidates").write_text(text_of(1))
    run("pool", "import", folder / "candidates")
    supplied(text_of(1, 2))
    assert eligible(store).keys() == members(2) and parked(store).keys() == members(1)
    assert record(store, member(1))["sources"] == {"import:candidates", f"list:{folder}/list.txt"}


def test_a_member_of_the_five_lines_stays_eligible_when_a_list_names_it(supplied, store, path):
    it = supplied(text_of(1))
    store.client.zadd("proxies", {member(2): 6})
    replace(path, text_of(1, 2))
    it.reread()
    assert eligible(store)[member(2)] == 6


# --- what a list names no more ------------------------------------------------------------------------------------


@pytest.mark.core
def test_who_is_gone_leaves_after_the_grace_with_the_count_kept(supplied, store, path):
    it = supplied(text_of(1, 2), *NOW)
    use(store, {member(1): 12, member(2): 3})
    replace(path, text_of(2))
    it.loses(1)
    assert eligible(store) == {member(2): 3} and parked(store) == {member(1): 12}
    assert record(store, member(1))["sources"] == set()


@pytest.mark.core
def test_who_comes_back_is_eligible_again_with_its_count(supplied, store, path):
    """The rule join is `floor`: the own count, but not below the lowest of the pool."""
    it = supplied(text_of(1, 2, 3), *NOW)
    use(store, {member(1): 12, member(2): 3, member(3): 10})
    replace(path, text_of(3))
    it.loses(2)
    replace(path, text_of(1, 2, 3))
    it.reread()
    assert eligible(store) == {member(1): 12, member(2): 10, member(3): 10} and parked(store) == {}


def test_with_the_rule_keep_its_own_count_alone_decides(supplied, store, run, path):
    run("pool", "rules", "join=keep")
    it = supplied(text_of(1, 2), *NOW)
    use(store, {member(1): 3, member(2): 10})
    replace(path, text_of(2))
    it.loses(1)
    replace(path, text_of(1, 2))
    it.reread()
    assert eligible(store) == {member(1): 3, member(2): 10}


def test_during_the_grace_a_member_stays_and_may_come_back_unharmed(supplied, store, path):
    it = supplied(text_of(1, 2), "--list-grace", "1h")
    use(store, {member(1): 12})
    before = eligible(store)
    replace(path, text_of(2))
    assert it.reread()["missing"] == 1
    assert eligible(store) == before
    replace(path, text_of(1, 2))
    assert it.reread()["missing"] == 0
    assert eligible(store) == before and it.left() == 0


def test_the_grace_runs_from_when_it_was_first_missed(supplied, store, path):
    it = supplied(text_of(1, 2), "--list-grace", "2s")
    replace(path, text_of(2))
    it.reread()
    it.reread()
    assert eligible(store).keys() == members(1, 2)
    wait_parked(store, members(1))


def test_a_restart_forgets_nobody_who_has_left_meanwhile(supplied, store, path):
    supplied(text_of(1, 2), *NOW).node.stop()
    use(store, {member(1): 5})
    replace(path, text_of(2))
    supplied(text_of(2), *NOW)
    wait_parked(store, members(1))
    assert parked(store) == {member(1): 5} and eligible(store) == {member(2): 0}


def test_a_paused_member_that_leaves_and_comes_back_stays_paused(supplied, store, run, path):
    it = supplied(text_of(1, 2), *NOW)
    use(store, {member(1): 8})
    run("pool", "park", member(1))
    replace(path, text_of(2))
    it.loses(1)
    replace(path, text_of(1, 2))
    it.reread()
    assert parked(store) == {member(1): 8} and eligible(store).keys() == members(2)


def test_another_account_on_the_same_address_is_another_member(supplied, store, path):
    it = supplied("http://ann:old@192.0.2.1:80\n", *NOW)
    (old,) = eligible(store)
    replace(path, "http://ann:new@192.0.2.1:80\n")
    it.loses(1)
    (new,) = eligible(store)
    assert new != old and parked(store).keys() == {old}
    assert store.client.hget("{proxies}:pool:secrets", new) == "ann:new"


def test_thousands_leave_and_thousands_come(supplied, store, path):
    """More than one page and many batches."""
    names = [f"http://192.0.2.{i % 250}:{1 + i // 250}" for i in range(6000)]
    it = supplied("\n".join(names[:4000]), *NOW)
    use(store, dict.fromkeys(names[:4000], 2))
    replace(path, "\n".join(names[2000:]))
    it.loses(2000)
    assert eligible(store) == dict.fromkeys(names[2000:], 2) and parked(store) == dict.fromkeys(names[:2000], 2)


# --- what is no list ----------------------------------------------------------------------------------------------

GARBAGE = {"emptied": b"", "blank": b"\n# nothing\n\n", "garbage": os.urandom(64) * 64, "prose": b"Not found.\n" * 9,
           "HTML": b"<!DOCTYPE html>\n<html><body>Sorry</body></html>\n", "gzip": b"\x1f\x8b\x08\x00" + bytes(60),
           "JSON cut short": b'[{"ip": "192.0.2.1", "port": 8080}, {"ip": "192.0.', "bogons": b"10.0.0.1:1\n",
           "UTF-16": "192.0.2.3:80\n".encode("utf-16"), "direct": b"direct://\n"}


@pytest.mark.core
def test_a_file_that_is_no_list_changes_nothing(supplied, store, path):
    it = supplied(text_of(1, 2), *NOW, private=False)
    use(store, {member(1): 7})
    before = pool_dumps(store)
    for content in GARBAGE.values():
        replace(path, content)
        assert "no usable entry" in it.refused()
    assert pool_dumps(store) == before
    it.grows_old()
    replace(path, text_of(1, 2, 3))
    it.reread()
    assert eligible(store) == {member(1): 7, member(2): 0, member(3): 0}


def test_a_file_that_was_emptied_is_told_without_being_asked(supplied, store, path):
    it = supplied(text_of(1), *NOW)
    before = pool_dumps(store)
    it.after(lambda: path.write_text(""), message=UNUSABLE)
    assert pool_dumps(store) == before


@pytest.mark.core
def test_a_file_that_was_deleted_is_told_and_changes_nothing(supplied, store, path):
    it = supplied(text_of(1), *NOW)
    path.unlink()
    assert "No such file" in it.refused()
    it.grows_old()
    replace(path, text_of(1, 2))
    peers.wait_for(lambda: eligible(store).keys() == members(1, 2), "the file is read that has come back")


def test_a_file_that_was_deleted_is_told_without_being_asked(supplied, store, path):
    it = supplied(text_of(1), *NOW)
    before = pool_dumps(store)
    line = it.after(path.unlink, message=UNUSABLE)
    assert "No such file" in line["error"] and pool_dumps(store) == before


@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo], ids=["directory", "fifo"])
def test_what_is_no_file_changes_nothing(supplied, store, path, make):
    it = supplied(text_of(1), *NOW)
    path.unlink()
    make(path)
    it.refused()
    assert eligible(store).keys() == members(1)


def test_a_file_over_the_cap_changes_nothing(supplied, store, path):
    it = supplied(text_of(1), *NOW, "--list-max-bytes", "1024")
    replace(path, text_of(1, 2) + "#" * 1024)
    it.refused()


def test_a_list_that_is_not_there_at_the_start_is_told_at_once(run, path):
    stderr = run("up", "--listen", "127.0.0.1:0", "--list", path, check=1).stderr
    assert f"{path}: No such file or directory" in stderr and stderr.count("\n") == 1


def test_bad_lines_are_told_without_credentials_and_the_rest_is_used(supplied, store, path):
    it = supplied(text_of(1) + "user:sesame@192.0.2.9\n")
    (line,) = it.node.log(message="entries rejected", reason="missing-port")
    assert line["count"] == 1 and line["first_line"] == 2 and "sesame" not in it.node.text
    assert eligible(store).keys() == members(1)


# --- sections -----------------------------------------------------------------------------------------------------

COUNTRIES = ("ip,port,country,anonymity\n"
             "192.0.2.1,8080,US,elite\n192.0.2.2,8080,DE,anonymous\n192.0.2.3,8080,us,elite\n"
             "192.0.2.4,8080,,elite\n192.0.2.5,8080,United States,\n")


@pytest.mark.core
def test_a_split_routes_entries_into_pools_of_their_own(sections, store, folder):
    (folder / "free.txt").write_text(COUNTRIES)
    sections({"free": "split = country"})
    assert eligible(store).keys() == members(1, 2, 3, 4, 5)
    assert eligible(store, "proxies.us").keys() == members(1, 3)
    assert eligible(store, "proxies.de").keys() == members(2)
    pools = {key for key in store.client.scan_iter() if store.client.type(key) == "zset" and "{" not in key}
    assert pools == {"proxies", "proxies.us", "proxies.de"}
    assert record(store, member(2), "proxies.de") == {"sources": {"free"}, "country": "DE", "anonymity": "anonymous"}


def test_a_split_by_anonymity_and_another_pool(sections, store, folder):
    (folder / "free.txt").write_text(COUNTRIES)
    sections({"free": "split = anonymity"}, "--pool", "mine")
    assert eligible(store, "mine").keys() == members(1, 2, 3, 4, 5)
    assert eligible(store, "mine.elite").keys() == members(1, 3, 4)
    assert eligible(store, "mine.anonymous").keys() == members(2)


def test_who_changes_its_country_changes_its_pool(sections, store, folder):
    (folder / "free.txt").write_text(COUNTRIES)
    it = sections({"free": "split = country\ngrace = 1ms"})
    use(store, {member(1): 4}, "proxies.us")
    use(store, {member(1): 6})
    replace(folder / "free.txt", COUNTRIES.replace("192.0.2.1,8080,US", "192.0.2.1,8080,FR"))
    it.hang_up()
    wait_parked(store, members(1), "proxies.us")
    assert parked(store, "proxies.us") == {member(1): 4} and eligible(store, "proxies.us").keys() == members(3)
    assert eligible(store, "proxies.fr").keys() == members(1)
    assert eligible(store)[member(1)] == 6


def test_a_country_that_is_gone_leaves_an_empty_pool(sections, store, folder):
    (folder / "free.txt").write_text(COUNTRIES)
    it = sections({"free": "split = country\ngrace = 1ms"})
    replace(folder / "free.txt", re.sub(".*,DE,.*\n", "", COUNTRIES))
    it.hang_up()
    wait_parked(store, members(2), "proxies.de")
    wait_parked(store, members(2))
    assert eligible(store, "proxies.de") == {}


def test_a_country_that_was_gone_before_a_restart_leaves_an_empty_pool(sections, store, folder):
    (folder / "free.txt").write_text(COUNTRIES)
    sections({"free": "split = country\ngrace = 1ms"}).node.stop()
    replace(folder / "free.txt", re.sub(".*,DE,.*\n", "", COUNTRIES))
    sections({"free": "split = country\ngrace = 1ms"})
    wait_parked(store, members(2))
    wait_parked(store, members(2), "proxies.de")


def test_settings_of_a_section_are_its_own(sections, store, folder):
    (folder / "plain.txt").write_text("192.0.2.1:1080\nhttps://192.0.2.2:8080\n")
    (folder / "socks.txt").write_text("192.0.2.1:1080\nhttps://192.0.2.2:8080\n")
    sections({"plain": "https_means = connect", "socks": "default_scheme = socks5"})
    assert eligible(store).keys() == {"http://192.0.2.1:1080", "http://192.0.2.2:8080", "socks5://192.0.2.1:1080",
                                      "https://192.0.2.2:8080"}


# --- sources that share members -----------------------------------------------------------------------------------


@pytest.mark.core
def test_who_is_named_by_another_source_stays(sections, store, folder):
    (folder / "one.txt").write_text(text_of(1, 2, 3))
    (folder / "two.txt").write_text(text_of(2, 3, 4))
    it = sections({"one": "grace = 1ms", "two": "grace = 1ms"})
    assert record(store, member(2))["sources"] == {"one", "two"}
    counts = {member(1): 11, member(2): 5, member(3): 7, member(4): 6}
    use(store, counts)
    replace(folder / "one.txt", text_of(1))
    it.loses(2)
    assert eligible(store) == counts and parked(store) == {}
    assert record(store, member(2))["sources"] == {"two"}
    replace(folder / "two.txt", text_of(4))
    it.loses(2)
    assert eligible(store) == {member(1): 11, member(4): 6}
    assert parked(store) == {member(2): 5, member(3): 7}


def test_both_may_drop_it_at_once(sections, store, folder):
    for name in ("one", "two"):
        (folder / f"{name}.txt").write_text(text_of(1, 2))
    it = sections({"one": "grace = 1ms", "two": "grace = 1ms"})
    use(store, {member(1): 3, member(2): 8})
    for name in ("one", "two"):
        replace(folder / f"{name}.txt", text_of(1))
    it.hang_up()
    wait_parked(store, members(2))
    assert parked(store) == {member(2): 8} and eligible(store) == {member(1): 3}


@pytest.mark.core
def test_who_was_added_by_the_operator_stays(supplied, store, run, path):
    it = supplied(text_of(1, 2), *NOW)
    run("pool", "add", "--eligible", member(2))
    assert record(store, member(2))["sources"] == {"operator", f"list:{path}"}
    replace(path, text_of(1))
    it.loses(1)
    assert eligible(store).keys() == members(1, 2) and record(store, member(2))["sources"] == {"operator"}


def test_two_lists_of_one_node_are_two_sources(supplied, store, path, folder):
    other = folder / "other.txt"
    other.write_text(text_of(2))
    it = supplied(text_of(1, 2), "--list", other, *NOW)
    replace(path, text_of(1))
    it.loses(1)
    assert eligible(store).keys() == members(1, 2) and record(store, member(2))["sources"] == {f"list:{other}"}


def test_long_paths_that_begin_alike_are_two_sources(supplied, store, folder):
    deep = folder / ("d" * 120)
    deep.mkdir()
    for name, numbers in (("one", (1, 2)), ("two", (2, 3))):
        (deep / name).write_text(text_of(*numbers))
    it = supplied(None, "--list", deep / "one", "--list", deep / "two", *NOW)
    assert eligible(store).keys() == members(1, 2, 3)
    before = it.count(message=LOADED)
    it.hang_up()
    peers.wait_for(lambda: it.count(message=LOADED) == before + 2, "both are read again")
    assert eligible(store).keys() == members(1, 2, 3)


@pytest.mark.parametrize("name", ["operator", "demo"])
def test_a_section_cannot_take_the_name_of_another_hand(run, folder, name):
    """Members that the operator added would leave with the list."""
    (folder / "list.txt").write_text(text_of(1))
    (folder / "conf").write_text(f"[source {name}]\nplace = {folder}/list.txt\n")
    done = run("up", "--listen", "127.0.0.1:0", "--config", folder / "conf", check=False, timeout=5)
    assert done.returncode and name in done.stderr


def test_a_strict_node_refuses_a_list_for_one_bad_entry(node, store, folder):
    (folder / "list").write_text("192.0.2.1:80\n192.0.2.2:80:\x01\n")
    running = node("--list", folder / "list", "--on-reject", "fail", role="up")
    assert not store.client.exists("proxies")
    assert [line for line in running.log() if "on_reject" in line.get("error", "")]
