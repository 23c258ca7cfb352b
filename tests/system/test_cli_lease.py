"""Leases by hand: `fairlead pool acquire`, `renew`, `release`, and commands that run on a lease by `acquire --exec`."""

import json
import os
import pathlib
import pty
import re
import signal
import subprocess

import pytest

import look
import peers

A, B = (f"http://{name}.example:3128" for name in "ab")
PREFIX = "{proxies}:pool:"
ROW = re.compile(r"(\S+)\t([0-9a-f-]{1,64}:[0-9a-f-]+)\t(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z)\n")


@pytest.fixture
def concurrent(store, run):
    """A pool of A and B under least-concurrent; concurrent("max_concurrent=1") sets more rules."""

    def make(*rules):
        run("pool", "add", "--eligible", A, B)
        run("pool", "rules", "policy=least-concurrent", *rules)
        return store

    return make


@pytest.fixture
def acquire(run):
    """(proxy, lease word) of one acquisition."""
    return lambda *words, **options: ROW.fullmatch(run("pool", "acquire", *words, **options).stdout).groups()[:2]


@pytest.fixture
def execute(run, store):
    """execute("--ttl", "5s", "--exec", "true"): what is behind --exec is the command's, so Redis is named by the environment."""
    return lambda *words, env=None, **options: run(
        "pool", "acquire", *words, redis=None, env={"FAIRLEAD_REDIS": store.url} | (env or {}), **options)


@pytest.fixture
def begin(binary, environment, store, folder):
    """Starts a command on a lease, as execute(), without waiting for its end; what still runs at the end is killed."""
    started = []

    def start(*words, ignored=()):
        with open(folder / "said", "wb") as stderr:
            started.append(subprocess.Popen(
                [binary, "pool", "acquire", *map(str, words)], stderr=stderr, stdout=subprocess.DEVNULL,
                stdin=subprocess.DEVNULL, start_new_session=True, preexec_fn=lambda: set_ignored(ignored),
                env=environment | {"FAIRLEAD_REDIS": store.url}))
        return started[-1]

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
        process.wait(peers.WAIT_S)


def set_ignored(ignored):
    """Whatever has been ignored by whoever runs the tests."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN if number in ignored else signal.SIG_DFL)


def live(store):
    return {member: int(n) for member, n in store.client.hgetall(PREFIX + "live").items()}


def leases(store):
    return store.client.zrange(PREFIX + "leases", 0, -1, withscores=True)


def ms_left(store, lease):
    seconds, microseconds = store.client.time()
    return store.client.zscore(PREFIX + "leases", lease.split(":")[0]) - seconds * 1000 - microseconds // 1000


def is_running(pid):
    """A zombie runs no more."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def noted(path):
    """The number that a command has written into a file; 0 while it is not there, or not whole."""
    text = path.read_text() if path.exists() else ""
    return int(text) if text.endswith("\n") else 0


# --- acquire ------------------------------------------------------------------------------------------------------


@pytest.mark.core
def test_the_member_with_the_fewest_leases_is_taken_and_counted(concurrent, run, acquire):
    store = concurrent()
    store.client.zincrby("proxies", 10, A)
    taken = [acquire() for _ in range(3)]
    assert [proxy for proxy, _ in taken] == [B, A, B]
    assert live(store) == {A: 1, B: 2} and len({lease for _, lease in taken}) == 3
    assert store.client.zscore("proxies", A) == 11 and store.client.zscore("proxies", B) == 2


def test_json_has_proxy_member_lease_and_expiry(store, run):
    run("pool", "add", "--eligible", "http://user:sesame@a.example:3128")
    told = json.loads(run("pool", "acquire", "--json").stdout)
    assert list(told) == ["proxy", "member", "lease", "expires_at"]
    assert told["proxy"] == "http://user:sesame@a.example:3128"
    assert told["member"] == store.client.zrange("proxies", 0, -1)[0]
    assert told["lease"].split(":")[0] == leases(store)[0][0]


def test_a_lease_outlives_the_command_for_its_ttl_or_the_pools(concurrent, acquire):
    store = concurrent("lease_ms=500000")
    _, by_rule = acquire()
    _, by_ttl = acquire("--ttl", "20m")
    assert 400_000 < ms_left(store, by_rule) <= 500_000
    assert 1_100_000 < ms_left(store, by_ttl) <= 1_200_000


@pytest.mark.core
def test_asking_again_for_an_operation_gives_the_same_lease(concurrent, run, acquire):
    store = concurrent()
    first = acquire("--operation", "abc-1")
    assert first[1].startswith("abc-1:") and acquire("--operation", "abc-1") == first
    assert sum(live(store).values()) == 1 and store.client.zscore("proxies", first[0]) == 1


def test_an_operation_whose_lease_rests_has_ended(concurrent, run, acquire):
    concurrent("rest_ms=600000")
    run("pool", "release", acquire("--operation", "abc-1")[1])
    assert "operation abc-1 has been released" in run("pool", "acquire", "--operation", "abc-1", check=1).stderr


@pytest.mark.core
def test_an_empty_pool_and_a_full_one_are_told_apart(concurrent, run, acquire):
    empty = run("pool", "acquire", "--pool", "none", check=3)
    assert empty.stdout == "" and "no eligible proxy" in empty.stderr
    concurrent("max_concurrent=1")
    acquire(), acquire()
    full = run("pool", "acquire", check=3)
    assert full.stdout == "" and "at their cap" in full.stderr and "--wait" in full.stderr


def test_whoever_waits_gets_the_lease_that_is_released(concurrent, run, acquire, binary, environment, store):
    concurrent("max_concurrent=1")
    lease = acquire()[1]
    acquire()
    waiting = subprocess.Popen([binary, "pool", "acquire", "--wait", "60s", "--redis", store.url], env=environment,
                               stdout=subprocess.PIPE, encoding="utf-8")
    run("pool", "release", lease)
    assert ROW.fullmatch(waiting.communicate(timeout=60)[0])
    assert live(store) == {A: 1, B: 1}


def test_a_member_that_is_no_proxy_is_passed_over(store, run, acquire):
    store.client.zadd("proxies", {"no proxy": 0})
    refused = run("pool", "acquire", check=3)
    assert "that can be used" in refused.stderr and live(store) == {}
    run("pool", "add", "--eligible", A)
    assert acquire()[0] == A and live(store) == {A: 1}


def test_a_lease_that_nobody_can_read_is_given_back(concurrent, binary, environment):
    store = concurrent()
    with open("/dev/full", "wb") as full:
        done = subprocess.run([binary, "pool", "acquire", "--redis", store.url], env=environment, stdout=full,
                              stderr=subprocess.PIPE, timeout=60)
    assert done.returncode == 1 and b"standard output" in done.stderr and live(store) == {}


# --- renew and release --------------------------------------------------------------------------------------------


@pytest.mark.core
def test_a_renewal_lengthens_and_never_shortens(concurrent, run, acquire):
    store = concurrent()
    lease = acquire("--ttl", "10m")[1]
    run("pool", "renew", "--ttl", "1s", lease)
    assert ms_left(store, lease) > 500_000
    run("pool", "renew", "--ttl", "30m", lease)
    assert ms_left(store, lease) > 1_700_000


@pytest.mark.core
def test_a_release_frees_the_member_and_may_be_repeated(concurrent, run, acquire):
    store = concurrent()
    lease = acquire()[1]
    for _ in range(2):
        done = run("pool", "release", lease)
        assert done.stdout == "" and "released" in done.stderr and live(store) == {}


@pytest.mark.core
@pytest.mark.parametrize("command", ["renew", "release"])
def test_a_stale_lease_is_named_and_changes_nothing(concurrent, run, acquire, command):
    store = concurrent()
    lease, other = acquire()[1], acquire()[1]
    before = look.dumps(store)
    stale = lease[:-1] + ("0" if lease[-1] != "0" else "1")
    said = run("pool", command, stale, "abc-dead:1-00000000", check=1).stderr
    assert lease.split(":")[0] in said and "abc-dead" in said and said.count("\n") == 2
    assert look.dumps(store) == before
    run("pool", command, stale, other, check=1)
    assert (other.split(":")[0] in dict(leases(store))) == (command == "renew")


def test_a_lease_that_has_run_out_is_stale(concurrent, run, acquire):
    store = concurrent()
    lease = acquire()[1]
    store.client.zadd(PREFIX + "leases", {lease.split(":")[0]: 1000})
    for command in ("renew", "release"):
        assert "has run out" in run("pool", command, lease, check=1).stderr
    assert live(store) == {}


@pytest.mark.parametrize("words", [
    ("renew",), ("release",), ("release", "nonsense"), ("renew", "abc:"), ("renew", ":1-ab"), ("renew", "abc:1-ab:2"),
    ("renew", "ABC:1-ab"), ("release", "a" * 65 + ":1-ab"), ("release", "--ttl", "5s", "a:1"), ("renew", "--ttl", "2h", "a:1"),
    ("acquire", "curl"), ("acquire", "--operation", "xyz"), ("acquire", "--operation", "a" * 65), ("acquire", "--ttl", "61m"),
    ("add", "--max-concurrent", "many", A), ("add", "--max-concurrent", "1000001", A), ("add", "--max-concurrent", "-1", A),
    ("rules", "max_concurrent=1000001"), ("rules", "policy=least-used"), ("rules", "lease_ms=50"), ("rules", "rest_ms=3600001")],
    ids=" ".join)
def test_wrong_usage_changes_nothing(concurrent, run, words):
    store = concurrent()
    before = look.dumps(store)
    done = run("pool", *words, check=2)
    assert done.stdout == "" and done.stderr.count("\n") == 1 and "Usage" not in done.stderr
    assert look.dumps(store) == before


# --- what is shown ------------------------------------------------------------------------------------------------


@pytest.mark.core
def test_leases_are_shown_where_they_concern(store, run, acquire):
    run("pool", "add", "--eligible", A, B)
    assert "leases" not in run("pool", "list").stdout + run("pool", "stats").stdout
    lease = acquire()[1]
    rows = [json.loads(line) for line in run("pool", "list", "--json").stdout.splitlines()]
    assert {row["member"]: row["leases"] for row in rows} == {A: 1, B: 0}
    assert json.loads(run("pool", "stats", "--json").stdout)["leases"] == 1
    assert json.loads(run("pool", "show", "--json", A).stdout)["leases"] == 1
    run("pool", "release", lease)
    assert "leases" not in run("pool", "list").stdout
    run("pool", "rules", "policy=least-concurrent")
    assert "leases" in run("pool", "list").stdout and re.search(r"^leases +0$", run("pool", "stats").stdout, re.M)


def test_a_members_own_cap_holds_before_the_rule(concurrent, run, acquire):
    concurrent("max_concurrent=1")
    run("pool", "add", "--max-concurrent", "2", A)
    assert json.loads(run("pool", "show", "--json", A).stdout)["max_concurrent"] == 2
    assert sorted(acquire()[0] for _ in range(3)) == [A, A, B]
    run("pool", "acquire", check=3)
    run("pool", "add", "--max-concurrent", "0", A)
    assert [acquire()[0] for _ in range(2)] == [A, A]
    run("pool", "add", "--max-concurrent", "default", A)
    assert json.loads(run("pool", "show", "--json", A).stdout)["max_concurrent"] is None
    run("pool", "acquire", check=3)


def test_an_allocation_reserves_nothing_under_any_policy(concurrent, run):
    store = concurrent("max_concurrent=1")
    assert len(run("pool", "allocate", "--count", 6).stdout.splitlines()) == 6 and live(store) == {}
    assert "reserves nothing" in run("pool", "allocate", "--help", redis=None).stdout


# --- a command on a lease -----------------------------------------------------------------------------------------


PRINT_STATUS = [("exit 0", 0), ("exit 7", 7), ("kill -TERM $$", 128 + signal.SIGTERM), ("kill -KILL $$", 128 + signal.SIGKILL)]


@pytest.mark.core
@pytest.mark.parametrize("script, status", PRINT_STATUS, ids=lambda x: str(x))
def test_the_status_is_the_commands_and_the_lease_is_released(concurrent, execute, script, status):
    store = concurrent()
    done = execute("--exec", "sh", "-c", script, check=status)
    assert done.stdout == "" and done.stderr == "" and live(store) == {} and leases(store) == []


def test_what_cannot_be_run_ends_as_in_a_shell(concurrent, execute, folder):
    store = concurrent()
    (folder / "data").write_text("no program\n")
    assert "no-such-command" in execute("--exec", "no-such-command", check=127).stderr
    assert str(folder / "data") in execute("--exec", folder / "data", check=126).stderr
    assert live(store) == {}


@pytest.mark.parametrize("words", [("--exec",), ("--exec", "--")], ids=" ".join)
def test_a_command_must_be_there(execute, words):
    assert "--exec needs a command" in execute(*words, check=2).stderr


def test_what_stands_behind_exec_is_the_commands(concurrent, execute):
    concurrent()
    for words in (["--exec"], ["--exec", "--"]):
        assert execute(*words, "echo", "--pool", "--", "--help", "-q").stdout == "--pool -- --help -q\n"


def test_exec_has_nothing_to_give_when_the_pool_is_empty_or_full(concurrent, execute, acquire, folder):
    assert "no eligible proxy" in execute("--exec", "touch", folder / "ran", check=3).stderr
    concurrent("max_concurrent=1")
    acquire(), acquire()
    assert "at their cap" in execute("--exec", "touch", folder / "ran", check=3).stderr
    assert not (folder / "ran").exists()


@pytest.mark.core
def test_the_environment_names_the_proxy_and_no_way_around_it(store, run, execute):
    run("pool", "add", "--eligible", "http://user:p%40ss@a.example:3128")
    caller = {"no_proxy": "example.com", "NO_PROXY": "*", "http_proxy": "http://other.example:1", "HTTPS_PROXY": "x", "FTP_PROXY": "x"}
    text = execute("--exec", "env", "-0", env=caller).stdout
    told = dict(line.split("=", 1) for line in text.split("\0") if line)
    proxies = {name: value for name, value in told.items() if name.lower().endswith("_proxy") and name != "FAIRLEAD_PROXY"}
    assert proxies == {name: "http://user:p%40ss@a.example:3128"
                       for x in ("http", "https", "all", "ftp") for name in (f"{x}_proxy", f"{x.upper()}_PROXY")}
    assert told["FAIRLEAD_PROXY"] == "http://user:p%40ss@a.example:3128"
    assert re.fullmatch("[0-9a-f]{32}:[0-9a-f-]+", told["FAIRLEAD_LEASE_WORD"])


@pytest.mark.parametrize("member, told", [
    ("socks5://a.example:1080", "socks5h://a.example:1080"), ("socks5h://a.example:1080", "socks5h://a.example:1080"),
    ("socks4a://a.example:1080", "socks4a://a.example:1080"), ("https://a.example:443", "https://a.example:443")])
def test_names_are_left_to_the_proxy(store, run, execute, member, told):
    run("pool", "add", "--eligible", member)
    assert execute("--exec", "sh", "-c", "echo $ALL_PROXY $FAIRLEAD_PROXY").stdout == f"{told} {member}\n"


def test_a_command_is_never_given_a_direct_member(store, run, execute, folder):
    run("pool", "add", "--eligible", "direct://")
    assert "can be used by a command" in execute("--exec", "touch", folder / "ran", check=3).stderr
    assert not (folder / "ran").exists() and live(store) == {}
    run("pool", "add", "--eligible", A)
    assert execute("--exec", "sh", "-c", "echo $ALL_PROXY").stdout == A + "\n"


@pytest.mark.core
def test_curl_reaches_the_origin_through_the_leased_proxy(store, run, add, execute, peer):
    proxy = peer(peers.Tinyproxy, "127.0.0.2", user="user", password="s3cret")
    origin = peer(peers.Nginx)
    add(proxy.url)
    for scheme, port in (("http", origin.port), ("https", origin.tls_port)):
        url = f"{scheme}://{origin.host}:{port}/who"
        done = execute("--exec", "curl", "-q", "-sS", "--cacert", origin.certificate, url, env={"no_proxy": "*"})
        assert done.stdout == "127.0.0.2 /who\n"
    assert live(store) == {} and store.client.zrange("proxies", 0, -1, withscores=True)[0][1] == 2


@pytest.mark.core
def test_a_lease_is_renewed_while_the_command_runs(concurrent, begin, folder):
    store = concurrent()
    go = folder / "go"
    process = begin("--ttl", "300ms", "--exec", "sh", "-c", f"until test -e {go}; do sleep 0.05; done")
    [(lease, first)] = peers.wait_for(lambda: leases(store))
    peers.wait_for(lambda: store.client.zscore(PREFIX + "leases", lease) > first + 600, "renewals")
    assert sum(live(store).values()) == 1
    go.touch()
    assert process.wait(peers.WAIT_S) == 0 and live(store) == {}


def test_a_lost_lease_is_told_and_the_command_goes_on(concurrent, begin, folder):
    store = concurrent()
    process = begin("--ttl", "300ms", "--exec", "sh", "-c", f"until test -e {folder}/go; do sleep 0.05; done; exit 5")
    peers.wait_for(lambda: leases(store))
    store.client.delete(PREFIX + "leases", PREFIX + "holders", PREFIX + "live")
    peers.wait_for(lambda: "is lost" in (folder / "said").read_text(), "it says so")
    (folder / "go").touch()
    assert process.wait(peers.WAIT_S) == 5


@pytest.mark.core
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_is_passed_on_and_the_lease_released(concurrent, begin, folder, number):
    store = concurrent()
    name = signal.Signals(number).name[3:]
    process = begin("--exec", "sh", "-c", f"trap 'exit 9' {name}; echo $$ >{folder}/pid; while :; do sleep 0.01; done")
    peers.wait_for(lambda: noted(folder / "pid"))
    process.send_signal(number)
    assert process.wait(peers.WAIT_S) == 9 and live(store) == {}


def test_at_a_terminal_the_command_reads_from_it_and_hears_ctrl_c(concurrent, binary, environment, folder):
    store = concurrent()
    script = f"read word; echo $word >{folder}/word; echo $$ >{folder}/pid; while :; do sleep 0.01; done"
    pid, terminal = pty.fork()
    if pid == 0:
        set_ignored(())
        os.execve(binary, [binary, "pool", "acquire", "--exec", "sh", "-c", script],
                  environment | {"FAIRLEAD_REDIS": store.url})
    os.write(terminal, b"hello\n")
    command = peers.wait_for(lambda: noted(folder / "pid"))
    os.write(terminal, b"\x03")
    status = peers.wait_for(lambda: os.waitpid(pid, os.WNOHANG)[1] or None, "it ends")
    os.close(terminal)
    assert os.waitstatus_to_exitcode(status) == 128 + signal.SIGINT and not is_running(command)
    assert (folder / "word").read_text() == "hello\n" and live(store) == {}


def test_what_nohup_has_had_ignored_stays_so(concurrent, begin, folder):
    concurrent()
    process = begin("--exec", "sh", "-c", f"echo $$ >{folder}/pid; until test -e {folder}/go; do sleep 0.01; done; exit 6",
                    ignored=[signal.SIGHUP])
    peers.wait_for(lambda: noted(folder / "pid"))
    process.send_signal(signal.SIGHUP)
    (folder / "go").touch()
    assert process.wait(peers.WAIT_S) == 6


def test_what_the_command_leaves_behind_ends_with_it(concurrent, execute, folder):
    store = concurrent()
    execute("--exec", "sh", "-c", f"sleep 1000 & echo $! >{folder}/pid")
    assert not is_running(noted(folder / "pid")) and live(store) == {}


@pytest.mark.core
def test_killed_it_leaves_no_command_behind_and_its_lease_runs_out(concurrent, begin, run, acquire, folder):
    store = concurrent("max_concurrent=1")
    process = begin("--ttl", "1s", "--exec", "sh", "-c", f"sleep 1000 & echo $! >{folder}/pid; wait")
    left = peers.wait_for(lambda: noted(folder / "pid"))
    process.kill()
    process.wait(peers.WAIT_S)
    peers.wait_for(lambda: not is_running(left), "the command's own child ends")
    assert sum(live(store).values()) == 1
    taken = [acquire("--wait", "60s")[0] for _ in range(2)]
    assert sorted(taken) == [A, B] and live(store) == {A: 1, B: 1}


def test_a_store_that_is_away_at_the_end_does_not_change_the_status(redis_server, run, execute, folder):
    server = redis_server()
    run("pool", "add", "--eligible", A, redis=server)
    done = execute("--store-timeout", "200ms", "--exec", "sh", "-c", f"kill -9 {server.process.pid}; exit 4",
                   env={"FAIRLEAD_REDIS": server.url}, check=4)
    assert "could not be released" in done.stderr


def test_a_command_may_use_fairlead_itself(concurrent, execute, binary):
    store = concurrent()
    done = execute("--exec", "sh", "-c", f'{binary} pool release "$FAIRLEAD_LEASE_WORD"')
    assert "released" in done.stderr and live(store) == {}
