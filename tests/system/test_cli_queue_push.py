"""`fairlead queue push`: tasks from arguments and from standard input, in order, byte for byte, and nothing lost in
silence."""

import base64
import datetime
import json
import os
import pty
import subprocess
import threading

import pytest

import conftest
import look
import peers
from queues import QUEUE, TASKS, call, objects, payloads


@pytest.fixture
def push(binary, environment, store):
    """push("a", input=b"...", check=...) with bytes, on the store."""
    return lambda *words, **options: call(binary, environment, store, "push", *words, **options)


# --- arguments ----------------------------------------------------------------------------------------------------


@pytest.mark.core
def test_tasks_stand_in_the_order_in_which_they_were_pushed(store, push):
    done = push("a", "b", "c")
    assert payloads(store) == [b"a", b"b", b"c"]
    assert done.stdout == b"" and done.stderr == b"fairlead queue push: queue 'jobs': 3 pushed\n"


@pytest.mark.core
def test_an_urgent_task_is_taken_first(store, push):
    push("a", "b")
    push("--urgent", "U")
    assert payloads(store) == [b"U", b"a", b"b"]


@pytest.mark.parametrize("words, level", [
    ([], "normal"), (["--level", "high"], "high"), (["--levels", "normal,low"], "low"), (["--levels", "low"], "low"),
    (["--levels", "high", "--levels", "low", "--levels", "normal"], "low")])
def test_without_a_level_the_middle_one_is_taken(store, push, words, level):
    push(*words, "x")
    assert payloads(store, level) == [b"x"]


def test_lists_of_any_name_are_levels(store, push):
    push("--lists", "first,second", "--level", "second", "x")
    assert store.client.lrange("second", 0, -1) == ["x"]


@pytest.mark.core
def test_a_foreign_consumer_gets_what_was_pushed_and_nothing_else(store, push):
    push("http://www.example.com/a")
    assert store.client.brpop(["{jobs}:high", "{jobs}:normal"], 1) == ("{jobs}:normal", "http://www.example.com/a")


def test_a_payload_may_begin_with_a_dash_behind_two_dashes(store, push):
    push("--", "-x", "--level")
    assert payloads(store) == [b"-x", b"--level"]


def test_an_empty_argument_is_a_task_of_no_bytes(store, push):
    push("")
    assert payloads(store) == [b""]


# --- when, and once only ------------------------------------------------------------------------------------------


@pytest.mark.core
def test_a_second_push_with_a_key_is_left_out(store, push):
    push("--id", "order-1", "x")
    done = push("--id=order-1", "y", "--json")
    assert payloads(store) == [b"x"]
    assert b"0 pushed, 1 left out (their keys were pushed before)" in done.stderr
    assert objects(done.stdout) == [{"queue": "jobs", "pushed": 0, "left_out": 1, "refused": 0}]


def test_a_delayed_task_waits_in_later(store, push):
    push("--delay", "10m", "x")
    assert payloads(store) == []
    (_, due), = store.client.zrange(QUEUE + "later", 0, -1, withscores=True)
    now = store.client.time()[0] * 1000
    assert now + 540_000 < due < now + 660_000


@pytest.mark.core
def test_a_time_of_utc_is_taken_to_the_millisecond(store, push):
    push("--at", "2040-01-02T03:04:05.250Z", "x")
    at = datetime.datetime(2040, 1, 2, 3, 4, 5, tzinfo=datetime.timezone.utc).timestamp() * 1000 + 250
    assert store.client.zrange(QUEUE + "later", 0, -1, withscores=True)[0][1] == at


def test_a_time_that_has_passed_is_at_once(store, push):
    push("--at", "2001-01-01", "x")
    assert payloads(store) == [b"x"]


@pytest.mark.parametrize("words, text", [
    (["--delay", "1s", "--at", "2040-01-01", "x"], "--delay and --at exclude each other"),
    (["--urgent", "--delay", "1s", "x"], "--urgent cannot be delayed"),
    (["--id", "k", "x", "y"], "--id is the key of one PAYLOAD"),
    (["--id", "k", "-"], "with --jsonl a line has its \"id\""),
    (["--null", "x"], "--null, --jsonl and --trim are for '-'"),
    (["--null", "--jsonl", "-"], "exclude each other"),
    (["--jsonl", "--urgent", "-"], "with --jsonl each line says urgent"),
    (["--at", "tomorrow", "x"], "--at: 'tomorrow' is no time"),
    (["--level", "nowhere", "x"], "queue 'jobs' has no level 'nowhere', but high, normal, low (strict)"),
    (["--levels", "a", "--lists", "b", "x"], "--levels and --lists exclude each other"),
    (["--levels", "a,a", "x"], "a"), (["--levels", "a,,b", "x"], "level"), (["--queue", "{", "x"], "{"),
    (["--id", "--json", "x"], "--id needs a value: KEY"), ([], "an argument is missing: PAYLOAD... | -")])
def test_wrong_usage_is_told_and_pushes_nothing(store, push, words, text):
    done = push(*words, check=2)
    assert text in done.stderr.decode() and "see 'fairlead queue push --help'" in done.stderr.decode()
    assert done.stdout == b"" and look.contents(store) == {}


# --- standard input -----------------------------------------------------------------------------------------------


@pytest.mark.core
@pytest.mark.parametrize("text, tasks", [
    (b"a\nb\n", [b"a", b"b"]), (b"a\nb", [b"a", b"b"]), (b"a\r\nb\rc\n", [b"a\r", b"b\rc"]),
    (b"a\n\nb\n", [b"a", b"", b"b"]), (b"\0\n\xff\n", [b"\0", b"\xff"]), (b"", []), (b"\n", [b""])])
def test_each_line_is_a_task_and_only_the_line_feed_is_cut(store, push, text, tasks):
    push("-", input=text)
    assert payloads(store) == tasks


def test_with_null_tasks_hold_line_feeds(store, push):
    push("--null", "-", input=b"a\nb\0c\r\n\0\0d")
    assert payloads(store) == [b"a\nb", b"c\r\n", b"", b"d"]


@pytest.mark.core
def test_the_order_of_many_lines_is_kept(store, push):
    lines = [b"task-%06d" % i for i in range(20_000)]
    assert b"20000 pushed" in push("-", input=b"\n".join(lines)).stderr
    assert payloads(store) == lines


@pytest.mark.core
def test_a_line_over_the_cap_is_told_with_its_number_and_the_rest_goes_in(store, push):
    text = b"a\n" + b"x" * 2000 + b"\nb\n" + b"y" * 300_000 + b"\nc\n" + b"z" * 1025
    done = push("--payload-max", "1k", "-", input=text, check=1)
    assert payloads(store) == [b"a", b"b", b"c"]
    assert done.stderr.decode().splitlines() == [
        f"fairlead queue push: line {n} is left out: it is larger than --payload-max (1k)" for n in (2, 4, 6)
    ] + ["fairlead queue push: queue 'jobs': 3 pushed, 3 refused"]


def test_a_task_of_exactly_the_cap_goes_in(store, push):
    push("--payload-max", "1k", "-", input=b"x" * 1024 + b"\n")
    assert payloads(store) == [b"x" * 1024]


def test_an_argument_over_the_cap_is_told_and_the_others_go_in(store, push):
    done = push("--payload-max", "3", "abcd", "abc", check=1)
    assert payloads(store) == [b"abc"] and b"argument 1 is left out" in done.stderr


def test_large_tasks_go_in_whole(store, push):
    tasks = [os.urandom(3 << 20).replace(b"\0", b"\1") for _ in range(4)]
    push("--null", "--payload-max", "4m", "-", input=b"\0".join(tasks))
    assert payloads(store) == tasks


@pytest.mark.core
def test_what_is_written_slowly_is_pushed_when_it_comes(store, binary, environment):
    process = subprocess.Popen([binary, "queue", "push", "-", "--redis", store.url], env=environment,
                               stdin=subprocess.PIPE, stderr=subprocess.DEVNULL)
    process.stdin.write(b"one\ntw")
    process.stdin.flush()
    peers.wait_for(lambda: payloads(store) == [b"one"], "the first line is there")
    process.stdin.write(b"o\n")
    process.stdin.close()
    assert process.wait(peers.WAIT_S) == 0
    assert payloads(store) == [b"one", b"two"]


# --- lists for people ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name, tasks", [
    ("t01-plain.txt", ["http://www.example.com/a", "http://www.example.com/b"]),
    ("t07-surrounding-space.txt", ["http://www.example.com/a", "http://www.example.com/b"]),
    ("t08-crlf-file.txt", ["http://www.example.com/a", "http://www.example.com/b"]),
    ("t09-bom.txt", ["http://www.example.com/a", "http://www.example.com/b"]),
    ("t10-comments-blank.txt", ["http://www.example.com/a#frag"]),
    ("t11-no-final-newline.txt", ["http://www.example.com/a", "http://www.example.com/b"])])
def test_trimmed_a_list_is_read_as_people_mean_it(store, push, name, tasks):
    push("--trim", "-", input=(TASKS / name).read_bytes())
    assert payloads(store) == [task.encode() for task in tasks]


@pytest.mark.parametrize("name, count", [
    ("t02-nonascii-path.txt", 1), ("t03-latin1-bytes.txt", 1), ("t04-idn.txt", 2), ("t05-fragment.txt", 3),
    ("t12-long-8k.txt", 1), ("t14-duplicates.txt", 3), ("t15-missing-scheme.txt", 2), ("t18-comma-apostrophe.txt", 1)])
def test_trimmed_or_not_a_task_is_opaque(store, push, name, count):
    text = (TASKS / name).read_bytes()
    push("--trim", "-", input=text)
    push("--level", "low", "-", input=text)
    assert payloads(store) == payloads(store, "low") == text.removesuffix(b"\n").split(b"\n")
    assert len(payloads(store)) == count


@pytest.mark.parametrize("name, count", [("t14-duplicates.txt", 2), ("t05-fragment.txt", 3)])
def test_with_its_text_as_key_the_same_task_is_pushed_once(store, push, name, count):
    """The key is the producer's, to the byte: no URL is made equal to another."""
    lines = (TASKS / name).read_text().splitlines()
    push("--jsonl", "-", input="".join(json.dumps({"payload": line, "id": line}) + "\n" for line in lines).encode())
    assert payloads(store) == [line.encode() for line in dict.fromkeys(lines)]
    assert len(payloads(store)) == count


# --- JSON lines ---------------------------------------------------------------------------------------------------


@pytest.mark.core
def test_json_lines_say_payload_level_key_and_urgency(store, push):
    rows = [{"payload": "a"}, {"payload": "h\0é", "level": "high"}, {"payload": "U", "urgent": True},
            {"payload": "k", "id": "key"}, {"payload": "k again", "id": "key"}, {"payload": "n", "level": None},
            {"payload_base64": base64.b64encode(bytes(range(256))).decode(), "level": "low"},
            {"payload": "later", "delay_ms": 600_000}, {"payload": "then", "at": "2040-01-01T00:00:00Z"},
            {"payload": "at", "at": 2_208_988_800_000}]
    done = push("--jsonl", "-", input="\n".join(map(json.dumps, rows)).encode())
    assert payloads(store) == [b"U", b"a", b"k", b"n"]
    assert payloads(store, "high") == ["h\0é".encode()] and payloads(store, "low") == [bytes(range(256))]
    times = [due for _, due in store.client.zrange(QUEUE + "later", 0, -1, withscores=True)]
    assert len(times) == 3 and times[1:] == [2_208_988_800_000] * 2
    assert b"9 pushed, 1 left out" in done.stderr


@pytest.mark.core
@pytest.mark.parametrize("line, why", [
    (b'{"url":', "bad JSON"), (b"[]", "no JSON object"), (b"", "bad JSON"), (b'"x"', "bad JSON"),
    (b'{"url":"http://www.example.com/a"}', '"url" is no name that is known here'),
    (b"{}", 'there is neither "payload" nor "payload_base64"'), (b'{"payload":1}', '"payload" must be a text'),
    (b'{"payload":"\xff"}', "bad JSON"), (b'{"payload":"a","payload":"b"}', "bad JSON"),
    (b'{"payload_base64":"AP8"}', "is no base 64"), (b'{"payload":"a","payload_base64":"AP8="}', "stands beside"),
    (b'{"payload":"a","level":"nowhere"}', "has no level 'nowhere'"),
    (b'{"payload":"a","id":""}', '"id" must be a text of 1 to 256 bytes'),
    (b'{"payload":"a","delay_ms":-1}', "must be a whole number"), (b'{"payload":"a","at":"soon"}', "must be a time"),
    (b'{"payload":"a","at":99999999999999}', "must be a time"),
    (b'{"payload":"a","urgent":1}', "must be true or false"),
    (b'{"payload":"a","urgent":true,"delay_ms":5}', '"urgent" stands beside a time'),
    (b'{"payload":"a","at":"2040-01-01","delay_ms":5}', "stands beside")])
def test_a_bad_json_line_is_told_with_its_number_and_the_rest_goes_in(store, push, line, why):
    done = push("--jsonl", "-", input=b'{"payload":"first"}\n' + line + b'\n{"payload":"last"}\n', check=1)
    assert payloads(store) == [b"first", b"last"] and payloads(store, "high") == []
    text = done.stderr.decode()
    assert text.startswith("fairlead queue push: line 2 is left out: ") and why in text and "1 refused" in text


# --- what fails ---------------------------------------------------------------------------------------------------


@pytest.mark.core
def test_at_maxmemory_it_stops_and_tells_how_many_went_in(redis_server, binary, environment):
    server = redis_server(maxmemory="6mb", maxmemory_policy="noeviction")
    lines = [b"%06d" % i + b"x" * 2000 for i in range(5000)]
    text = call(binary, environment, server, "push", "-", input=b"\n".join(lines), check=1).stderr.decode()
    inside = payloads(server)
    assert 0 < len(inside) < 5000 and inside == lines[:len(inside)]
    assert "OOM" in text and "Redis is at its maxmemory" in text
    assert f"{len(inside)} tasks went in; lines {len(inside) + 1} to " in text
    assert f"queue 'jobs': {len(inside)} pushed" in text


@pytest.mark.core
def test_at_maxmemory_claims_go_on_and_the_queue_drains(redis_server, binary, environment):
    server = redis_server(maxmemory_policy="noeviction")
    tasks = [b"%06d" % i + b"x" * 1000 for i in range(300)]
    call(binary, environment, server, "push", "-", input=b"\n".join(tasks))
    server.client.config_set("maxmemory", "1mb")
    assert b"OOM" in call(binary, environment, server, "push", "x", check=1).stderr
    claimed = []
    for _ in range(3):
        claimed += objects(call(binary, environment, server, "claim", "--json", "--tasks", "100").stdout)
    assert [row["payload"].encode() for row in claimed] == tasks
    call(binary, environment, server, "nack", "--delay", "0", claimed[0]["claim"])
    call(binary, environment, server, "extend", claimed[1]["claim"])
    call(binary, environment, server, "ack", *(row["claim"] for row in claimed[1:]))
    assert objects(call(binary, environment, server, "claim", "--json").stdout)[0]["payload"].encode() == tasks[0]


def test_a_redis_that_is_away_is_told(run, folder):
    done = run("queue", "push", "--store-wait", "100ms", "x", redis=f"unix://{folder}/nobody", check=1)
    assert done.stderr.count("\n") == 1 and "the store cannot be used" in done.stderr


def test_a_queue_of_another_type_is_refused_with_its_key(store, push):
    store.client.set("{jobs}:low", "x")
    text = push("x", check=1).stderr.decode()
    assert "WRONGTYPE" in text and "{jobs}:low" in text and "choose another --queue" in text
    assert payloads(store) == []


# --- progress -----------------------------------------------------------------------------------------------------


@pytest.mark.core
@pytest.mark.parametrize("quiet, bars", [([], True), (["--quiet"], False)], ids=["told", "quiet"])
def test_on_a_terminal_there_is_a_progress_bar(store, binary, environment, folder, quiet, bars):
    (folder / "tasks").write_bytes(b"".join(b"task-%d\n" % i for i in range(150_000)))
    main, other = pty.openpty()
    seen = []
    reader = threading.Thread(target=lambda: read_all(main, seen))
    reader.start()
    with open(folder / "tasks", "rb") as tasks:
        process = subprocess.Popen([binary, "queue", "push", "-", "--redis", store.url, *quiet], env=environment,
                                   stdin=tasks, stderr=other)
    os.close(other)
    assert process.wait(conftest.COMMAND_LIMIT_S) == 0
    reader.join(peers.WAIT_S)
    assert (b"[#" in b"".join(seen)) == bars and store.client.llen("{jobs}:normal") == 150_000


def read_all(fd, seen):
    try:
        while data := os.read(fd, 65536):
            seen.append(data)
    except OSError:
        pass  # the other end is closed

