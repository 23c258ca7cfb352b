"""`fairlead work exec`: a command for each task. Whatever a command does, its claim is settled and nothing of it is left behind."""

import json
import os
import re
import signal
import subprocess

import pytest

import conftest
import look
import peers

A, B = (f"http://{name}.example:3128" for name in "ab")
LEASES = "{jobs}:queue:leases"
MEMBER_LEASES = "{proxies}:pool:leases"
HANGS = "sleep 1000 & echo $! >>{folder}/pids; wait"


class Worker:
    """A worker whose command is a script; its standard output and its log are read back from files."""

    def __init__(self, words, out, said, env):
        self.out, self.said = out, said
        with open(out, "wb") as stdout, open(said, "wb") as stderr:
            self.process = subprocess.Popen(words, env=env, stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr)

    @property
    def text(self):
        return self.said.read_text(errors="replace")

    def log(self, **wanted):
        lines = [json.loads(line) for line in self.text.splitlines() if line.startswith("{")]
        return [line for line in lines if all(line.get(key) == value for key, value in wanted.items())]

    def wait_for(self, text):
        peers.wait_for(lambda: text in self.text, f"{text!r} in the log")

    def send(self, number):
        self.process.send_signal(number)

    def wait(self, status=0):
        assert self.process.wait(45) == status, self.text[-3000:]
        conftest.assert_no_sanitizer_report(self.text)

    def stop(self):
        self.send(signal.SIGTERM)
        self.wait()


@pytest.fixture
def work(binary, environment, store, folder):
    """work("exit 65", "--drain", ...) starts a worker whose command runs this script; {folder} in it is the test's. At the end nothing of
    any worker is left, and no claim."""
    started = []

    def start(script, *options, command=None, before=()):
        n = len(started)
        path = folder / f"task{n}.sh"
        path.write_text(script.replace("{folder}", str(folder)))
        words = [*before, binary, "work", "exec", "--log-format", "json", "--redis", store.url, "--backoff", "0", *map(str, options)]
        words += ["--", *map(str, command or ["sh", path])]
        started.append(Worker(words, folder / f"out{n}", folder / f"said{n}", environment))
        return started[-1]

    yield start
    for worker in started:
        if worker.process.poll() is None:
            worker.stop()
        assert worker.process.returncode is not None
    peers.wait_for(lambda: not look.processes(folder / "task"), "all of the workers have ended")
    peers.wait_for(lambda: not any(map(look.is_alive, pids(folder))), "what commands have started has ended")


@pytest.fixture
def pool(run):
    """Two members that nobody asks whether they are there."""
    run("pool", "add", "--eligible", A, B)


@pytest.fixture
def push(run):
    return lambda *payloads: run("queue", "push", *payloads)


@pytest.fixture
def stats(run):
    """stats() -> counts of the queue; `ready` and `returned` over all levels."""

    def read(**options):
        told = json.loads(run("queue", "stats", "--json", **options).stdout)
        sums = {name: sum(level[name] for level in told["levels"]) for name in ("ready", "returned")}
        return {key: value for key, value in told.items() if isinstance(value, int)} | sums

    return read


@pytest.fixture
def settled(stats):
    """settled(acked=1): waits until the counts are these, with no claim left."""
    return lambda **wanted: peers.wait_for(lambda: stats().items() >= ({"in_flight": 0} | wanted).items(), f"{wanted}")


def pids(folder):
    """Numbers of processes that scripts have noted, one a line; a line that is not whole is none."""
    path = folder / "pids"
    return [int(line) for line in path.read_text().splitlines(True) if line.endswith("\n")] if path.exists() else []


def noted(folder, count=1):
    return peers.wait_for(lambda: len(pids(folder)) >= count and pids(folder), "the command notes a process")


def claim_of(store):
    [id] = store.client.zrange(LEASES, 0, -1)
    return id


def steal(store, run):
    """Takes the only claim away, as if its time had run out, and claims its task; unless it is extended in between, then once more."""

    def try_it():
        store.client.zadd(LEASES, {claim_of(store): 1})
        return run("queue", "claim", "--lease", "1h", check=False).stdout.split("\t")[0]

    return peers.wait_for(try_it, "the claim is another's")


# --- how commands end ---------------------------------------------------------------------------------------------


@pytest.mark.core
def test_the_exit_status_settles_the_task(pool, push, work, run, settled, stats):
    push("0", "75", "65", "1", "66", "126")
    worker = work('exit "$(cat)"', "--dead-status", "65,66", "--backoff", "1h")
    settled(acked=1, later=3, dead=2, failed=3)
    letters = [json.loads(line) for line in run("queue", "dead", "list", "--json").stdout.splitlines()]
    assert {(x["payload"], x["reason"]) for x in letters} == {("65", "exit status 65"), ("66", "exit status 66")}
    told = {line["reason"]: line["outcome"] for line in worker.log(message="task")}
    assert told == {"exit status 75": "retry", "exit status 1": "retry", "exit status 126": "retry", "exit status 65": "dead",
                    "exit status 66": "dead"}
    worker.stop()
    assert "1 done, 2 failed, 3 retried" in worker.text


def test_a_task_that_fails_too_often_is_a_dead_letter(pool, push, work, run, settled):
    push("x")
    worker = work('echo "$FAIRLEAD_TASK_ATTEMPT"; exit 1', "--failures-max", "3", "--drain")
    worker.wait()
    settled(dead=1, failed=3, acked=0)
    assert worker.out.read_text() == "1\n2\n3\n"
    assert "exit status 1" in run("queue", "dead", "list").stdout


def test_death_by_a_signal_is_a_failure(pool, push, work, settled):
    push("x")
    worker = work("kill -SEGV $$", "--backoff", "1h")
    settled(later=1, failed=1)
    assert worker.log(message="task", outcome="retry", reason="killed by SIGSEGV")


@pytest.mark.core
def test_a_command_that_hangs_is_ended_with_all_that_it_has_started(pool, push, work, settled, folder):
    push("x")
    worker = work(f"({HANGS}) & {HANGS}", "--task-timeout", "1s", "--backoff", "1h")
    settled(later=1, failed=1)
    assert not any(map(look.is_alive, noted(folder, 2)))
    assert worker.log(message="task", outcome="retry", reason="timed out after 1000 ms")


def test_a_command_that_ignores_sigterm_is_killed_when_its_time_is_over(pool, push, work, settled, folder):
    push("x")
    worker = work(f"trap '' TERM; echo $$ >>{folder}/pids; while :; do sleep 0.1; done", "--task-timeout", "500ms", "--backoff", "1h")
    settled(later=1, failed=1)
    assert not look.is_alive(noted(folder)[0])
    assert worker.log(outcome="retry", reason="timed out after 500 ms")


def test_zero_after_its_time_is_not_done(pool, push, work, settled, folder):
    push("x")
    work(f"trap 'exit 0' TERM; echo $$ >>{folder}/pids; while :; do sleep 0.05; done", "--task-timeout", "500ms", "--backoff", "1h")
    settled(later=1, failed=1, acked=0)


@pytest.mark.core
def test_what_a_command_leaves_behind_ends_with_it(pool, push, work, settled, folder):
    push("x")
    work(f"({HANGS}) & until test -s {folder}/pids; do :; done; exit 0")
    settled(acked=1)
    assert not look.is_alive(noted(folder)[0])


# --- what a command gets ------------------------------------------------------------------------------------------


@pytest.mark.core
def test_the_payload_is_standard_input_to_the_byte(pool, store, work, settled, folder):
    payloads = {b"", b"\x00\xff\r\n'\"$(x)\n", os.urandom(1 << 20)}
    with look.raw(store) as client:
        client.lpush("{jobs}:normal", *payloads)
    work("cat >{folder}/got.$FAIRLEAD_TASK_ID")
    settled(acked=3)
    assert {path.read_bytes() for path in folder.glob("got.*")} == payloads


@pytest.mark.parametrize("script", ["exec <&-", "head -c 1 >/dev/null", ":"])
def test_a_command_need_not_read_its_input(pool, store, work, settled, script):
    store.client.lpush("{jobs}:normal", "x" * (1 << 20))
    work(script)
    settled(acked=1, failed=0)


@pytest.mark.core
def test_the_environment_names_proxy_and_task(run, store, work, settled):
    run("pool", "add", "--eligible", "socks5://user:p%40ss@a.example:1080")
    run("queue", "push", "--level", "high", "x")
    worker = work("env -0", "--drain")
    worker.wait()
    told = dict(x.split("=", 1) for x in worker.out.read_text().split("\0") if x)
    proxies = {told[name] for name in told if name.lower() in ("http_proxy", "https_proxy", "all_proxy", "ftp_proxy")}
    assert proxies == {"socks5h://user:p%40ss@a.example:1080"}
    assert told["FAIRLEAD_PROXY"] == "socks5://user:p%40ss@a.example:1080"
    assert told["FAIRLEAD_TASK_LEVEL"] == "high" and told["FAIRLEAD_TASK_ATTEMPT"] == "1"
    assert re.fullmatch("[0-9]+", told["FAIRLEAD_TASK_ID"])
    assert {x for x in told if x.startswith("FAIRLEAD_")} == {
        "FAIRLEAD_PROXY", "FAIRLEAD_TASK_ID", "FAIRLEAD_TASK_LEVEL", "FAIRLEAD_TASK_ATTEMPT"}
    assert "p%40ss" not in worker.text


def test_what_stands_behind_the_dashes_is_the_commands(pool, push, work):
    push("x")
    worker = work("", "--drain", command=["echo", "--drain", "--", "--queue", "-q"])
    worker.wait()
    assert worker.out.read_text() == "--drain -- --queue -q\n"


@pytest.mark.core
def test_curl_reaches_the_origin_through_the_members_evenly(run, add, peer, push, work, store):
    proxies = [peer(peers.Tinyproxy, f"127.0.0.{n}", user="user", password="s3cret") for n in (2, 3)]
    origin = peer(peers.Nginx)
    add(*(proxy.url for proxy in proxies))
    push(*(f"{origin.url}/who?{n}" for n in range(10)))
    worker = work('exec curl -q -sSf "$(cat)"', "--drain")
    worker.wait()
    assert sorted(line.split("?")[1] for line in worker.out.read_text().splitlines()) == [str(n) for n in range(10)]
    assert sorted(line["addr"] for line in origin.log()) == ["127.0.0.2"] * 5 + ["127.0.0.3"] * 5
    assert [count for _, count in store.client.zrange("proxies", 0, -1, withscores=True)] == [5, 5]
    assert "s3cret" not in worker.text


# --- members ------------------------------------------------------------------------------------------------------


@pytest.mark.core
def test_without_a_member_no_command_is_started_and_the_worker_waits(run, push, work, settled, folder):
    push("x", "y")
    worker = work("touch {folder}/ran.$FAIRLEAD_TASK_ID")
    worker.wait_for("no member of the pool can be had")
    settled(acked=0)
    assert not list(folder.glob("ran.*"))
    run("pool", "add", "--eligible", A)
    settled(acked=2, failed=0, dead=0)
    assert len(list(folder.glob("ran.*"))) == 2


def test_a_command_is_never_given_a_direct_member(run, push, work, settled, folder):
    run("pool", "add", "--eligible", "direct://")
    push("x")
    worker = work("echo $ALL_PROXY")
    worker.wait_for("member-unreadable")
    assert worker.out.read_text() == ""
    run("pool", "add", "--eligible", A)
    settled(acked=1, failed=0)
    assert worker.out.read_text() == A + "\n"


@pytest.mark.core
def test_a_member_is_leased_to_one_command_at_a_time(pool, run, push, work, settled, store):
    run("pool", "rules", "policy=least-concurrent", "max_concurrent=1")
    push(*range(8))
    worker = work("using={folder}/using.${FAIRLEAD_PROXY##*/}; mkdir $using || exit 65; sleep 0.1; rmdir $using",
                  "--dead-status", "65", "--concurrency", "8", "--lease-wait", "10ms")
    settled(acked=8, dead=0, failed=0, released=0)
    peers.wait_for(lambda: not store.client.hgetall("{proxies}:pool:live"), "the leases are released")
    worker.stop()
    assert not worker.log(level="warn")


def test_a_lease_is_renewed_while_the_command_runs(pool, run, push, work, settled, store, folder):
    run("pool", "rules", "policy=least-concurrent", "lease_ms=1000")
    push("x")
    work("echo $$ >>{folder}/pids; until test -e {folder}/go; do sleep 0.02; done")
    noted(folder)
    [(lease, first)] = store.client.zrange(MEMBER_LEASES, 0, -1, withscores=True)
    peers.wait_for(lambda: store.client.zscore(MEMBER_LEASES, lease) > first + 1000, "renewals")
    (folder / "go").touch()
    settled(acked=1)
    peers.wait_for(lambda: not store.client.zcard(MEMBER_LEASES), "the lease is released")


# --- the command cannot be run ------------------------------------------------------------------------------------


@pytest.mark.core
@pytest.mark.parametrize("name, status", [("no-such-command", 127), ("/no/such/command", 127), ("{folder}/data", 126)])
def test_a_command_that_cannot_be_run_ends_the_worker_at_once(pool, push, work, stats, folder, name, status):
    (folder / "data").write_text("no program\n")
    push("x")
    worker = work("", command=[name.replace("{folder}", str(folder)), "x"])
    worker.wait(status)
    assert "cannot run" in worker.text and os.path.basename(name) in worker.text
    assert stats()["ready"] == 1 and stats()["in_flight"] == 0


def test_a_command_that_goes_away_loses_no_task(pool, push, work, settled, folder):
    command = folder / "command"
    command.write_text('#!/bin/sh\nrm "$0"\n')
    command.chmod(0o755)
    push("x", "y", "z")
    worker = work("", "--concurrency", "1", command=[command])
    worker.wait(127)
    assert "cannot run" in worker.text
    settled(acked=1, returned=1, ready=1, failed=0)


@pytest.mark.parametrize("words", [(), ("--",), ("--dead-status", "0", "--", "true"), ("--dead-status", "65,75", "--", "true"),
                                   ("--dead-status", "x", "--", "true"), ("--levels", "a", "--lists", "b", "--", "true")], ids=" ".join)
def test_wrong_usage_is_told(run, words):
    done = run("work", "exec", *words, redis=None, check=2)
    assert done.stderr.count("\n") == 1 and "fairlead work exec --help" in done.stderr


# --- many at a time -----------------------------------------------------------------------------------------------


@pytest.mark.core
def test_as_many_run_at_a_time_as_they_should(pool, push, work, settled, folder):
    """Each waits until eight have been running together, and counts how many there are."""
    (folder / "running").mkdir()
    push(*range(24))
    worker = work("mkdir {folder}/running/$$; ls {folder}/running | wc -l; until test -e {folder}/met; do "
                  "test $(ls {folder}/running | wc -l) -lt 8 || touch {folder}/met; sleep 0.02; done; rmdir {folder}/running/$$",
                  "--concurrency", "8", "--drain")
    worker.wait()
    assert (folder / "met").exists()
    assert max(map(int, worker.out.read_text().split())) == 8
    settled(acked=24, failed=0)


def test_descriptors_return_to_their_baseline(pool, push, work, settled):
    worker = work("cat >/dev/null")

    def count():
        return len(os.listdir(f"/proc/{worker.process.pid}/fd"))

    push(*range(4))
    settled(acked=4)
    before = peers.steady(count)
    push(*range(40))
    settled(acked=44)
    peers.wait_for(lambda: count() == before, "the descriptors of commands are closed")


def test_where_there_is_no_room_for_a_command_its_task_goes_back(pool, push, work, settled):
    push(*range(20))
    worker = work("cat >/dev/null; sleep 0.1", "--concurrency", "20", "--drain", before=["sh", "-c", 'ulimit -n 40; exec "$@"', "sh"])
    worker.wait()
    assert "cannot be started now" in worker.text
    settled(acked=20, failed=0, dead=0)


def test_draining_ends_with_a_summary(pool, push, work, settled):
    push("x", "y")
    worker = work(":", "--drain")
    worker.wait()
    settled(acked=2, ready=0)
    assert re.search("^2 done, 0 failed, 0 retried", worker.text, re.M) and A in worker.text


# --- the worker ends ----------------------------------------------------------------------------------------------


@pytest.mark.core
def test_told_to_stop_it_lets_commands_end(pool, push, work, settled, folder):
    push("x", "y")
    worker = work("echo $$ >>{folder}/pids; until test -e {folder}/go; do sleep 0.02; done", "--concurrency", "1")
    noted(folder)
    worker.send(signal.SIGTERM)
    worker.wait_for("stopping")
    (folder / "go").touch()
    worker.wait()
    settled(acked=1, ready=1, failed=0)


@pytest.mark.core
def test_what_has_not_ended_within_the_grace_period_is_killed_and_given_back(pool, push, work, settled, folder):
    push("x", "y")
    worker = work(f"trap '' TERM; {HANGS}", "--drain-timeout", "300ms")
    left = noted(folder, 2)
    worker.stop()
    assert not any(map(look.is_alive, left))
    settled(returned=2, released=2, failed=0)


def test_told_to_stop_twice_it_ends_at_once(pool, push, work, settled, folder):
    push("x")
    worker = work(HANGS, "--drain-timeout", "1h")
    left = noted(folder)
    worker.send(signal.SIGTERM)
    worker.wait_for("stopping")
    worker.send(signal.SIGTERM)
    worker.wait()
    assert not any(map(look.is_alive, left))
    settled(returned=1, released=1, failed=0)


def test_commands_that_are_told_to_end_with_the_worker_have_not_failed(pool, push, work, settled, folder):
    """As systemd does it: SIGTERM to all of the unit."""
    push("x")
    worker = work("echo $$ >>{folder}/pids; exec sleep 1000")
    [command] = noted(folder)
    worker.send(signal.SIGTERM)
    worker.wait_for("stopping")
    os.kill(command, signal.SIGTERM)
    worker.wait()
    settled(returned=1, released=1, failed=0)


@pytest.mark.core
def test_killed_it_leaves_nothing_behind_and_its_claims_come_back(pool, push, work, settled, stats, folder):
    push("x", "y")
    worker = work(f"({HANGS}) & {HANGS}", "--lease", "1s")
    left = noted(folder, 4)
    worker.send(signal.SIGKILL)
    worker.wait(-signal.SIGKILL)
    peers.wait_for(lambda: not any(map(look.is_alive, left)), "commands end with their worker")
    peers.wait_for(lambda: not look.processes(folder / "task"), "nothing else is left either")
    work(":", "--drain").wait()
    settled(acked=2, dead=0, failed=0)
    assert stats()["lost"] >= 2


# --- claims -------------------------------------------------------------------------------------------------------


@pytest.mark.core
def test_a_claim_is_extended_while_its_command_runs(pool, push, work, settled, store, folder):
    push("x")
    work("echo $$ >>{folder}/pids; until test -e {folder}/go; do sleep 0.05; done", "--lease", "2s")
    noted(folder)
    first = store.client.zscore(LEASES, claim_of(store))
    peers.wait_for(lambda: store.client.zscore(LEASES, claim_of(store)) > first + 1000, "extensions")
    (folder / "go").touch()
    settled(acked=1, lost=0)


@pytest.mark.core
def test_a_command_whose_claim_is_lost_is_killed(pool, push, run, work, settled, store, folder):
    push("x")
    worker = work(f"trap '' TERM; {HANGS}", "--lease", "2s", "--concurrency", "1")
    left = noted(folder)
    handle = steal(store, run)
    worker.wait_for("the claim of a task was lost")
    peers.wait_for(lambda: not any(map(look.is_alive, left)), "the command is killed")
    run("queue", "ack", handle)
    settled(acked=1, lost=1, failed=0)


@pytest.mark.core
def test_a_late_ack_is_refused_and_shown(pool, push, run, work, settled, store, folder):
    push("x")
    worker = work("echo $$ >>{folder}/pids; until test -e {folder}/go; do sleep 0.02; done", "--lease", "1h", "--concurrency", "1")
    noted(folder)
    handle = steal(store, run)
    (folder / "go").touch()
    worker.wait_for("refused, because it came too late")
    run("queue", "ack", handle)
    settled(acked=1, lost=1)


@pytest.mark.core
def test_the_task_of_a_stopped_worker_is_done_once_more_by_another(pool, push, work, settled, stats, folder):
    push("x")
    first = work("echo $$ >>{folder}/pids; echo first; until test -e {folder}/go; do sleep 0.02; done", "--lease", "1s", "--concurrency", "1")
    [command] = noted(folder)
    first.send(signal.SIGSTOP)
    second = work("echo second", "--drain")
    second.wait()
    assert second.out.read_text() == "second\n" and stats().items() >= {"acked": 1, "lost": 1}.items()
    (folder / "go").touch()
    peers.wait_for(lambda: not look.is_alive(command), "the first command ends")
    first.send(signal.SIGCONT)
    # The ack is refused; or the claim was found lost before it could be asked for.
    peers.wait_for(lambda: re.search("refused, because it came too late|the claim of a task was lost", first.text), "it says so")
    first.stop()
    settled(acked=1, lost=1, ready=0, returned=0)
