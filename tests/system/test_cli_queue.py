"""`fairlead queue` pop, claim, ack, nack, extend: tasks out, byte for byte, at most once or at least once, beside any
other Redis client."""

import base64
import datetime
import json
import random
import re
import signal
import subprocess

import pytest

import conftest
import look
import peers
from queues import LISTS, QUEUE, TASKS, call, objects

HANDLE = re.compile(r"[0-9]+:[0-9]+-[0-9a-f]+")
EXAMPLES = {"push": "x", "ack": "1:1-a", "nack": "1:1-a", "extend": "1:1-a", "dead": "list"}
BINARY = [b"", b"\0", bytes(6), bytes(range(256)), b"\xff\xfe", b"\r\n", b"9007199254740993", b"[]", b"a\tb\\x41\n",
          (TASKS / "t26-pickle.bin").read_bytes(), (TASKS / "t21-binary-payload.bin").read_bytes()]


@pytest.fixture
def queue(binary, environment, store):
    """queue("claim", ..., input=b"...", check=...) with bytes, on the store."""
    return lambda *words, **options: call(binary, environment, store, *words, **options)


@pytest.fixture
def claim(queue):
    """Claims, as objects."""
    return lambda *words, **options: objects(queue("claim", "--json", *words, **options).stdout)


@pytest.fixture
def lpush(store):
    """Pushes bytes as a foreign producer does."""

    def push(*tasks, level="normal"):
        with look.raw(store) as client:
            client.lpush(LISTS[level], *tasks)

    return push


def unescape(text):
    """Takes back what a line of text shows of a payload."""
    return re.sub(rb"\\(x..|.)", lambda m: bytes([int(m[1][1:], 16)]) if m[1][:1] == b"x" else
                  {b"t": b"\t", b"n": b"\n", b"r": b"\r", b"\\": b"\\"}[m[1]], text)


def payload_of(row):
    return base64.b64decode(row["payload_base64"]) if "payload_base64" in row else row["payload"].encode()


# --- help ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["push", "pop", "claim", "ack", "nack", "extend", "stats", "peek", "dead", "retry",
                                     "pause", "resume", "purge"])
def test_every_command_has_help_with_examples(run, command):
    text = run("queue", command, "--help", redis=None).stdout
    assert text.startswith(f"Usage: fairlead queue {command} [OPTION...]")
    assert re.search(rf"^Examples:\n  .*fairlead queue {command}", text, re.M)
    assert "3  nothing available: an empty pool, an empty queue" in text


def test_help_names_options_as_they_are_typed(run):
    text = run("queue", "push", "--help", redis=None).stdout
    assert re.search(r"^  --id KEY$", text, re.M) and not re.search(r"^  --push-id", text, re.M)


def test_help_says_that_a_popped_task_can_be_lost(run):
    assert "it is lost if whoever takes it dies" in run("queue", "pop", "--help", redis=None).stdout.replace("\n", " ")


@pytest.mark.core
@pytest.mark.parametrize("command", ["push", "pop", "claim", "ack", "nack", "extend", "stats", "peek", "dead", "retry",
                                     "pause", "resume", "purge"])
def test_every_command_refuses_a_queue_of_another_type(store, queue, command):
    store.client.set(QUEUE + "claims", "x")
    words = {"retry": ["--public"], "purge": ["--all", "--yes"]}.get(command, EXAMPLES.get(command, "").split())
    done = queue(command, *words, check=1)
    assert b"WRONGTYPE" in done.stderr and b"{jobs}:queue:claims" in done.stderr and done.stdout == b""


# --- pop ----------------------------------------------------------------------------------------------------------


@pytest.mark.core
@pytest.mark.parametrize("block", [[], ["--block", "5s"]], ids=["at once", "blocking"])
def test_pop_takes_the_levels_in_order(lpush, queue, block):
    lpush(b"n1", b"n2")
    lpush(b"l1", level="low")
    lpush(b"h1", level="high")
    assert [queue("pop", *block).stdout for _ in range(4)] == [b"h1\n", b"n1\n", b"n2\n", b"l1\n"]


@pytest.mark.core
@pytest.mark.parametrize("words", [[], ["--block", "50ms"]], ids=["at once", "blocking"])
def test_pop_of_nothing_ends_with_3(queue, words):
    done = queue("pop", *words, check=3)
    assert done.stdout == done.stderr == b""


def test_pop_waits_longer_than_an_operation_may_take(store, binary, environment):
    process = subprocess.Popen([binary, "queue", "pop", "--block", "60s", "--store-timeout", "300ms", "--redis", store.url],
                               env=environment, stdout=subprocess.PIPE)
    peers.wait_for(lambda: store.client.info("clients")["blocked_clients"] == 1, "it waits")
    before = store.client.time()
    peers.wait_for(lambda: store.client.time()[0] > before[0], "longer than its time for an operation")
    store.client.lpush("{jobs}:low", "x")
    assert process.communicate(timeout=peers.WAIT_S)[0] == b"x\n" and process.returncode == 0


@pytest.mark.parametrize("task", BINARY)
def test_raw_is_the_payload_byte_for_byte(lpush, queue, task):
    lpush(task, task)
    assert queue("pop", "--raw").stdout == task
    assert queue("claim", "--raw").stdout == task


def test_pop_as_json_tells_the_level(lpush, queue):
    lpush("é".encode(), b"\xff", level="low")
    assert objects(queue("pop", "--json").stdout + queue("pop", "--json").stdout) == [
        {"level": "low", "payload": "é"}, {"level": "low", "payload_base64": "/w=="}]


# --- claim --------------------------------------------------------------------------------------------------------


@pytest.mark.core
def test_a_claim_is_a_line_with_handle_level_attempt_and_payload(lpush, queue):
    lpush(b"do this", level="high")
    handle, *rest = queue("claim").stdout.decode().rstrip("\n").split("\t")
    assert HANDLE.fullmatch(handle) and rest == ["high", "1", "do this"]


@pytest.mark.core
def test_a_claim_as_json_tells_all(store, lpush, claim):
    lpush(b"do this")
    row, = claim("--lease", "90s")
    assert row["claim"] == f"{row['id']}:{row['token']}" and HANDLE.fullmatch(row["claim"])
    assert {k: row[k] for k in ("level", "attempts", "failures", "lost", "released", "payload")} == {
        "level": "normal", "attempts": 1, "failures": 0, "lost": 0, "released": 0, "payload": "do this"}
    ends = datetime.datetime.fromisoformat(row["expires_at"].replace("Z", "+00:00")).timestamp()
    assert round(ends * 1000) == store.client.zscore(QUEUE + "leases", row["claim"])


@pytest.mark.core
def test_binary_payloads_come_out_of_lines_and_json_as_they_went_in(lpush, queue, claim):
    lpush(*BINARY, *BINARY)
    lines = queue("claim", "--tasks", len(BINARY)).stdout.splitlines()
    assert [unescape(line.split(b"\t", 3)[3]) for line in lines] == BINARY
    assert [payload_of(row) for row in claim("--tasks", len(BINARY))] == BINARY


def test_many_claims_come_in_order_of_levels(lpush, claim):
    lpush(*(b"n%d" % i for i in range(5)))
    lpush(*(b"h%d" % i for i in range(3)), level="high")
    assert [row["payload"] for row in claim("--tasks", "7")] == ["h0", "h1", "h2", "n0", "n1", "n2", "n3"]


@pytest.mark.core
@pytest.mark.parametrize("words", [[], ["--block", "50ms"]], ids=["at once", "blocking"])
def test_a_claim_of_nothing_ends_with_3(queue, words):
    done = queue("claim", *words, check=3)
    assert done.stdout == done.stderr == b""


@pytest.mark.core
@pytest.mark.parametrize("name", list(LISTS))
def test_a_waiting_claim_is_woken_by_a_foreign_push(store, binary, environment, name):
    process = subprocess.Popen([binary, "queue", "claim", "--block", "60s", "--redis", store.url], env=environment,
                               stdout=subprocess.PIPE)
    peers.wait_for(lambda: store.client.info("clients").get("tracking_clients"), "it is armed")
    store.client.rpush(LISTS[name], "x")
    assert process.communicate(timeout=peers.WAIT_S)[0].endswith(b"\t1\tx\n") and process.returncode == 0


@pytest.mark.core
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_waiting_claim_and_no_task_is_left_claimed(store, binary, environment, number):
    process = subprocess.Popen([binary, "queue", "claim", "--block", "60s", "--redis", store.url], env=environment,
                               stdout=subprocess.PIPE)
    peers.wait_for(lambda: store.client.info("clients").get("tracking_clients"), "it is armed")
    process.send_signal(number)
    store.client.lpush(LISTS["normal"], *range(50))
    printed = process.communicate(timeout=peers.WAIT_S)[0].splitlines()
    assert process.returncode == (0 if printed else -number)
    assert store.client.hlen(QUEUE + "claims") == len(printed)
    assert store.client.llen(LISTS["normal"]) + store.client.llen(QUEUE + "retry:normal") == 50 - len(printed)


def test_verbose_tells_the_order(queue):
    text = queue("claim", "--verbose", "--levels", "a,b", "--aging", "10", check=3).stderr.decode()
    assert "order a, b (1 in 10 from the bottom)" in text
    assert "order b, a (strict)" in queue("pop", "-v", "--lists", "b,a", check=3).stderr.decode()


def test_with_raw_the_handle_is_told_beside_the_payload(lpush, queue):
    lpush(b"x")
    text = queue("claim", "--raw").stderr.decode()
    queue("ack", HANDLE.search(text)[0])


@pytest.mark.parametrize("words, text", [
    (["claim", "--raw", "--tasks", "2"], "--raw prints one task"), (["claim", "--raw", "--json"], "exclude each other"),
    (["pop", "--raw", "--json"], "exclude each other"), (["claim", "--tasks", "0"], "must be 1 to 256"),
    (["claim", "x"], "unexpected argument 'x'"), (["ack"], "an argument is missing: CLAIM..."),
    (["ack", "17"], "'17' is no claim: expected ID:TOKEN"), (["ack", "17:"], "is no claim"), (["ack", "x:1-a"], "is no claim"),
    (["ack", "1:" + "a" * 65], "is no claim"), (["nack", "1:1-a b"], "is no claim"),
    (["nack", "--dead", "--delay", "1s", "1:1-a"], "--dead and --delay exclude each other"),
    (["ack", "--delay", "1s", "1:1-a"], "--delay is no option of this command")])
def test_wrong_usage_is_told(queue, words, text):
    assert text in queue(*words, check=2).stderr.decode()


# --- how claims end -----------------------------------------------------------------------------------------------


@pytest.mark.core
def test_an_acknowledged_task_is_gone(store, lpush, queue, claim):
    lpush(b"a", b"b")
    handles = [row["claim"] for row in claim("--tasks", "2")]
    text = queue("ack", *handles).stderr.decode()
    assert text.splitlines() == [f"fairlead queue ack: {handle} is done" for handle in handles]
    assert store.client.hlen(QUEUE + "claims") == 0 and store.client.zcard(QUEUE + "leases") == 0
    assert store.client.hget(QUEUE + "stats", "acked") == "2"


@pytest.mark.core
@pytest.mark.parametrize("command", ["ack", "nack", "extend"])
def test_a_stale_claim_is_told_and_changes_nothing(lpush, queue, claim, command):
    lpush(b"a", b"b")
    row, other = claim("--tasks", "2")
    stale = f"{row['id']}:1-{'0' * 16}"
    text = queue(command, stale, other["claim"], check=1).stderr.decode()
    assert f"{stale} is stale: its lease ended, or it was settled before" in text and f"{other['claim']} is " in text
    queue("ack", row["claim"])


def test_ones_own_repeat_is_no_failure(lpush, queue, claim):
    lpush(b"a")
    handle = claim()[0]["claim"]
    queue("ack", handle)
    queue("ack", handle)


@pytest.mark.core
def test_a_failed_task_comes_again_with_the_count_of_its_failures(lpush, queue, claim):
    lpush(b"a")
    for attempt in (1, 2, 3):
        row, = claim("--block", "10s")
        assert (row["attempts"], row["failures"], row["payload"]) == (attempt, attempt - 1, "a")
        assert queue("nack", "--delay", "0", row["claim"]).stderr.endswith(b" is put back\n")


@pytest.mark.core
def test_a_failed_task_waits_longer_each_time(store, lpush, queue, claim):
    lpush(b"a")
    for failures, least, most in ((0, 50_000, 100_000), (1, 100_000, 200_000), (2, 200_000, 400_000)):
        row, = claim()
        before = int(store.client.time()[0]) * 1000
        queue("nack", "--backoff", "100s", "--failures-max", "0", row["claim"])
        (task, due), = store.client.zrange(QUEUE + "later", 0, -1, withscores=True)
        assert least <= due - before <= most + 20_000, failures
        store.client.zadd(QUEUE + "later", {task: 1})


@pytest.mark.core
def test_after_its_last_failure_a_task_is_a_dead_letter(lpush, queue, claim):
    lpush(b"a")
    queue("nack", "--failures-max", "2", "--delay", "0", claim()[0]["claim"])
    handle = claim()[0]["claim"]
    text = queue("nack", "--failures-max", "2", "--reason", "it broke", handle).stderr.decode()
    assert text == f"fairlead queue nack: {handle} is a dead letter now\n"
    letter, = objects(queue("dead", "list", "--json").stdout)
    assert (letter["reason"], letter["payload"], letter["failures"]) == ("it broke", "a", 2)


def test_a_task_can_be_dead_at_once(lpush, queue, claim):
    lpush(b"a")
    queue("nack", "--dead", "--reason", "no such page", claim()[0]["claim"])
    assert objects(queue("dead", "list", "--json").stdout)[0]["reason"] == "no such page"


@pytest.mark.core
def test_an_extension_lengthens_and_never_shortens(store, lpush, queue, claim):
    lpush(b"a")
    row, = claim("--lease", "60s")
    ends = lambda: store.client.zscore(QUEUE + "leases", row["claim"])
    before = ends()
    queue("extend", "--lease", "1s", row["claim"])
    assert ends() == before
    queue("extend", "--lease", "10m", row["claim"])
    assert ends() > before + 500_000


@pytest.mark.core
def test_a_lost_claim_comes_back_and_its_old_holder_is_told(store, lpush, queue, claim):
    lpush(b"a")
    first, = claim()
    store.client.zadd(QUEUE + "leases", {first["claim"]: 1})
    second, = claim()
    assert (second["id"], second["lost"], second["attempts"]) == (first["id"], 1, 2)
    for command in ("ack", "nack", "extend"):
        assert b"is stale" in queue(command, first["claim"], check=1).stderr
    queue("ack", second["claim"])


# --- beside others ------------------------------------------------------------------------------------------------


@pytest.mark.core
def test_redis_cli_pushes_and_pops_beside_it(store, queue):
    cli = [peers.program("redis-cli", "valkey-cli"), "-s", store.socket]
    subprocess.run([*cli, "LPUSH", "{jobs}:normal", "one", "two"], check=True, stdout=subprocess.DEVNULL)
    queue("push", "three")
    assert queue("pop").stdout == b"one\n"
    popped = subprocess.run([*cli, "BRPOP", "{jobs}:high", "{jobs}:normal", "1"], check=True, capture_output=True).stdout
    assert popped == b"{jobs}:normal\ntwo\n"
    assert queue("claim").stdout.endswith(b"\tthree\n")


@pytest.mark.core
@pytest.mark.parametrize("name, words", [("u2-domains.txt", []), ("t12-long-8k.txt", []), ("t03-latin1-bytes.txt", []),
                                         ("t08-crlf-file.txt", []), ("t21-binary-payload.bin", []),
                                         ("t21-binary-payload.bin", ["--null"]), ("t22-nul-only.bin", ["--null"]),
                                         ("t26-pickle.bin", ["--null"])])
def test_raw_input_is_claimed_back_identical(queue, claim, name, words):
    text = (TASKS / name).read_bytes()
    end = b"\0" if words else b"\n"
    tasks = text.removesuffix(end).split(end)
    queue("push", *words, "-", input=text)
    claimed = []
    while len(claimed) < len(tasks):
        claimed += claim("--tasks", "256")
    assert [payload_of(row) for row in claimed] == tasks
    claim(check=3)


@pytest.mark.core
def test_the_same_payload_pushed_a_hundred_times_with_one_time_comes_out_as_often(store, queue, claim):
    queue("push", "--at", "2040-01-01", *["again"] * 100)
    claim(check=3)
    later = store.client.zrange(QUEUE + "later", 0, -1)
    assert len(later) == 100
    store.client.zadd(QUEUE + "later", dict.fromkeys(later, 1))
    rows = []
    while len(rows) < 100:
        rows += claim("--tasks", "256", "--block", "10s")
    assert [row["payload"] for row in rows] == ["again"] * 100 and len({row["id"] for row in rows}) == 100


def test_random_bytes_are_claimed_back_identical(queue, claim):
    chance = random.Random(7)
    tasks = [chance.randbytes(chance.randrange(2000)) for _ in range(100)]
    rows = [json.dumps({"payload_base64": base64.b64encode(task).decode()}) for task in tasks]
    queue("push", "--jsonl", "-", input="\n".join(rows).encode())
    assert [payload_of(row) for row in claim("--tasks", "256")] == tasks


def test_lists_of_any_name_are_claimed_in_the_order_given(store, queue):
    store.client.lpush("slow", "s")
    store.client.lpush("fast", "f")
    lines = queue("claim", "--lists", "fast,slow", "--tasks", "2").stdout.decode().splitlines()
    assert [line.split("\t")[1:] for line in lines] == [["fast", "1", "f"], ["slow", "1", "s"]]


@pytest.mark.core
def test_on_a_cluster_lists_in_another_slot_are_refused(redis_server, binary, environment):
    server = redis_server(tcp=True, cluster_enabled="yes", cluster_port=peers.free_port())
    server.client.execute_command("CLUSTER", "ADDSLOTSRANGE", 0, 16383)
    peers.wait_for(lambda: "cluster_state:ok" in str(server.client.execute_command("CLUSTER", "INFO")), "the cluster is up")
    text = call(binary, environment, server, "claim", "--lists", "{jobs}:a,other", check=1).stderr.decode()
    slots = [server.client.execute_command("CLUSTER", "KEYSLOT", key) for key in ("other", "{jobs}")]
    assert "other" in text and all(f"slot {slot}" in text for slot in slots)
    call(binary, environment, server, "push", "x")
    assert call(binary, environment, server, "pop").stdout == b"x\n"


@pytest.mark.core
def test_the_redis_user_of_the_manual_may_do_all_that_is_needed(redis_server, binary, environment):
    page = (conftest.ROOT / "docs/queue.md").read_text()
    user = re.search(r"^```\n(user jobs on .*?)^```", page, re.M | re.S)[1].replace("PASSWORD", "sesame").split()
    server = redis_server(appendonly="yes")
    server.client.execute_command("ACL", "SETUSER", *user[1:])

    class User:
        url = f"unix://jobs:sesame@{server.socket}"

    do = lambda *words, **options: call(binary, environment, User, *words, **options)
    do("push", "a", "b", "c", "d", "e", "f")
    do("push", "--delay", "1h", "--id", "key", "g")
    handles = [row["claim"] for row in objects(do("claim", "--json", "--tasks", "4", "--block", "10s").stdout)]
    do("extend", handles[0])
    do("ack", handles[0])
    do("nack", handles[1])
    do("nack", "--dead", handles[2])
    server.client.zadd(QUEUE + "leases", {handles[3]: 1})
    for words in ("pop", "pop --block 1s", "stats", "peek", "peek --where later", "peek --where claimed", "dead list",
                  "dead retry", "claim", "pause", "resume", "retry --public", "purge --level low --yes",
                  "purge --all --yes", "dead purge --yes"):
        done = do(*words.split(), check=None)
        assert done.returncode in (0, 3) and b"NOPERM" not in done.stderr, (words, done.stderr)
    do("claim", "--block", "100ms", check=3)
    done = subprocess.run([binary, "--redis", User.url, "doctor", "--json", "--fix"], env=environment, capture_output=True)
    assert all("proxies" in entry["object"] for entry in server.client.acl_log())  # the doctor looks at a pool, too
    queue_rows = [row for row in objects(done.stdout) if row["check"].startswith("queue")]
    assert len(queue_rows) >= 5 and all(row["finding"] != "error" and "NOPERM" not in row["detail"] for row in queue_rows)
