"""The server that fairlead brings along: started on demand, shared, stopped by the last, and healed."""

import collections
import contextlib
import json
import os
import pathlib
import signal
import socket
import stat
import subprocess

import pytest
import redis

import look
import peers

MEMBERS = [f"http://m{i}.example:3128" for i in range(4)]
GONE_S = 15


@pytest.fixture
def place(state):
    """The state directory."""
    return state / "fairlead"


@pytest.fixture
def private(run):
    """run() without --redis."""
    return lambda *words, **options: run(*words, redis=None, **options)


@pytest.fixture(autouse=True)
def no_server_is_left(folder):
    """Comes before all fixtures that start something, so it looks when they have ended it."""
    yield
    left = look.processes(folder)
    look.kill(left)
    assert left == []


@pytest.fixture
def servers(folder):
    """Process ids of the servers of this test."""
    return lambda: look.processes(f"unixsocket:{folder}") + look.processes(f"--unixsocket\0{folder}")


@pytest.fixture
def allocations(private):
    return lambda *words: json.loads(private("pool", "stats", "--json", *words).stdout)["allocations"]


def client_of(place):
    return redis.Redis(unix_socket_path=str(place / "redis.sock"), decode_responses=True)


def mode(path):
    return stat.S_IMODE(os.stat(path).st_mode)


@pytest.fixture
def user(node, servers):
    """user() keeps the server in use by a running gateway; it has bound its port before it has its server."""

    def start(*words):
        running = node(*words, redis=None)
        peers.wait_for(lambda: [x for x in servers() if b"unixsocket:" in look.command_line(x)], "the server runs")
        return running

    return start


@pytest.mark.core
def test_it_is_started_on_demand_for_its_user_alone(place, user, servers):
    user()
    assert len(servers()) == 1
    assert mode(place) == 0o700 and mode(place / "redis.sock") == 0o700
    with client_of(place) as client:
        told = client.config_get("append*") | client.config_get("maxmemory-policy") | client.config_get("port")
    assert (told["appendonly"], told["appendfsync"]) == ("yes", "everysec")
    assert (told["maxmemory-policy"], told["port"]) == ("noeviction", "0")


@pytest.mark.core
def test_the_last_stops_it_and_no_write_is_lost(private, servers, allocations):
    private("pool", "add", "--eligible", *MEMBERS)
    private("pool", "allocate", "--count", 100)
    assert servers() == []
    assert allocations() == 100
    assert servers() == []


@pytest.mark.core
def test_parallel_commands_share_one_server(binary, environment, private, servers, allocations):
    private("pool", "add", "--eligible", *MEMBERS)
    most = 0
    processes = [subprocess.Popen([binary, "pool", "allocate"], env=environment, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, encoding="utf-8") for _ in range(20)]
    while any(process.poll() is None for process in processes):
        most = max(most, len(servers()))
    answers = [process.communicate(timeout=30)[0].strip() for process in processes]
    assert [process.returncode for process in processes] == [0] * 20
    assert collections.Counter(answers) == dict.fromkeys(MEMBERS, 5)
    assert most == 1 and servers() == [] and allocations() == 20


def test_a_command_beside_a_node_leaves_the_server_running(private, user, servers):
    user()
    before = servers()
    private("pool", "add", "--eligible", *MEMBERS)
    private("pool", "allocate")
    assert servers() == before


def test_two_nodes_share_one_server_until_both_are_gone(node, private, servers):
    first, second = node(role="up", redis=None), node(role="up", redis=None)
    assert len(servers()) == 1 and first.port != second.port
    first.stop()
    assert len(servers()) == 1
    with second.connect() as client:
        assert client.get("http://origin.test/").status == 503
    second.stop()
    assert servers() == []


def test_stale_socket_and_lock_files_heal(place, private, servers):
    place.mkdir(mode=0o700)
    for name in ("users", "start"):
        (place / name).write_text("left by a killed process")
    with socket.socket(socket.AF_UNIX) as stale:
        stale.bind(str(place / "redis.sock"))
    private("pool", "add", "--eligible", *MEMBERS)
    assert servers() == []


def test_a_socket_of_nobodys_file_heals(place, private, servers):
    place.mkdir(mode=0o700)
    (place / "redis.sock").write_text("no socket")
    private("pool", "add", "--eligible", *MEMBERS)


def kill_and_restart_by(place, private, servers, action):
    """Fills a pool, kills the server, lets `action` happen; a new server must have come with all counts."""
    with client_of(place) as client:
        client.config_set("appendfsync", "always")
    private("pool", "add", "--eligible", *MEMBERS)
    private("pool", "allocate", "--count", 100)
    before = servers()
    look.kill(before)
    action()
    peers.wait_for(lambda: servers() and set(servers()).isdisjoint(before), "another server runs", GONE_S)


@pytest.mark.core
def test_a_killed_server_is_started_again_by_the_node(place, node, private, servers, allocations):
    running = node(role="up", redis=None)
    kill_and_restart_by(place, private, servers, lambda: None)
    assert allocations() == 100
    assert len(servers()) == 1
    with running.connect() as client:
        assert client.get("http://origin.test/").status != 503


def test_a_killed_server_is_started_again_by_the_next_command(place, node, private, servers, allocations):
    running = node(role="up", redis=None)
    sleepers = [running.pid, *running.children()]

    def a_command_alone():
        look.send(sleepers, signal.SIGSTOP)
        assert allocations() == 100

    try:
        kill_and_restart_by(place, private, servers, a_command_alone)
    finally:
        look.send(sleepers, signal.SIGCONT)
    assert len(servers()) == 1


def test_a_server_that_loses_its_last_second_tells_the_counts_before_it(place, user, private, servers, allocations):
    user()
    private("pool", "add", "--eligible", *MEMBERS)
    private("pool", "allocate", "--count", 100)
    with client_of(place) as client:
        peers.wait_for(lambda: client.info("persistence")["aof_pending_bio_fsync"] == 0, "all is on disk")
    private("pool", "allocate", "--count", 20)
    look.kill(servers())
    assert 100 <= allocations() <= 120


def test_killed_user_and_server_leave_nothing_in_the_way(place, user, private, servers, allocations):
    running = user()
    private("pool", "add", "--eligible", *MEMBERS)
    running.process.kill()
    look.kill(servers())
    running.process.wait(peers.WAIT_S)
    private("pool", "allocate", "--count", 8)
    assert allocations() == 8


def test_a_server_whose_user_was_killed_is_stopped_by_the_next_last(user, private, servers):
    user().kill()
    assert len(servers()) == 1
    private("pool", "list")
    peers.wait_for(lambda: servers() == [], "no server is left", GONE_S)


def test_a_long_state_directory_works(folder, private, servers, allocations):
    long = folder / ("d" * 120) / "state"
    private("pool", "add", "--eligible", "--state-dir", long, *MEMBERS)
    private("pool", "allocate", "--count", 10, "--state-dir", long)
    assert allocations("--state-dir", long) == 10
    assert (long / "appendonlydir").is_dir()
    sockets = [path for path in (folder / "run").iterdir() if path.is_dir()]
    assert len(sockets) == 1 and mode(sockets[0]) == 0o700


def test_two_long_state_directories_have_a_server_each(folder, private, servers, allocations):
    first, second = (folder / ("d" * 120) / name for name in ("one", "two"))
    private("pool", "add", "--eligible", "--state-dir", first, *MEMBERS)
    assert allocations("--state-dir", second) == 0
    private("pool", "allocate", "--state-dir", second, check=3)


@pytest.mark.core
def test_without_a_server_program_the_way_out_is_told(folder, private, servers):
    (folder / "bin").mkdir()
    done = private("pool", "list", env={"PATH": str(folder / "bin")}, check=1)
    assert done.stderr.count("\n") == 1
    for name in ("redis-server", "valkey-server", "PATH", "--redis"):
        assert name in done.stderr


def test_valkey_serves_as_well(folder, private, servers, allocations):
    (folder / "bin").mkdir()
    (folder / "bin" / "valkey-server").symlink_to(peers.program("redis-server", "valkey-server"))
    env = {"PATH": str(folder / "bin")}
    private("pool", "add", "--eligible", *MEMBERS, env=env)
    private("pool", "allocate", "--count", 4, env=env)
    assert allocations() == 4


@pytest.mark.core
@pytest.mark.parametrize("words, env, where", [
    (["--state-dir", "{folder}/mine"], {}, "mine"), ([], {"FAIRLEAD_STATE_DIR": "{folder}/mine"}, "mine"),
    ([], {}, "state/fairlead"), ([], {"XDG_STATE_HOME": ""}, "home/.local/state/fairlead"),
    ([], {"XDG_STATE_HOME": "relative"}, "home/.local/state/fairlead")],
    ids=["flag", "environment", "XDG_STATE_HOME", "HOME", "relative XDG_STATE_HOME"])
def test_the_state_directory_is_where_it_was_named(folder, private, servers, words, env, where):
    words = [word.format(folder=folder) for word in words]
    private("pool", "add", "--eligible", *MEMBERS, *words, env={k: v.format(folder=folder) for k, v in env.items()})
    assert [path.parent for path in folder.rglob("appendonlydir")] == [folder / where]
    assert mode(folder / where) == 0o700


def test_two_spellings_of_a_directory_are_one_server(folder, user, private, servers):
    (folder / "link").symlink_to("mine")
    user("--state-dir", folder / "mine")
    private("pool", "add", "--eligible", "--state-dir", folder / "link", *MEMBERS)
    assert len(servers()) == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a directory of another user")
def test_a_directory_of_another_user_is_refused(folder, private, servers):
    other = folder / "other"
    other.mkdir(mode=0o777)
    os.chown(other, 65534, 65534)
    done = private("pool", "list", "--state-dir", other, check=1)
    assert done.stderr.count("\n") == 1 and str(other) in done.stderr and "--state-dir" in done.stderr


def test_a_directory_that_others_may_read_is_closed(place, private, servers):
    place.mkdir(mode=0o755)
    private("pool", "add", "--eligible", *MEMBERS)
    assert mode(place) == 0o700


def test_a_server_that_cannot_start_tells_why_and_where_to_look(place, private, servers):
    private("pool", "add", "--eligible", *MEMBERS)
    for path in (place / "appendonlydir").iterdir():
        path.write_bytes(b"this is no append-only file\n")
    done = private("pool", "list", check=1)
    assert done.stderr.count("\n") == 1 and str(place / "redis.log") in done.stderr


def test_the_server_holds_none_of_our_descriptors_and_its_own_session(place, user, servers):
    running = user()
    (server,) = servers()
    targets = [os.readlink(path) for path in pathlib.Path(f"/proc/{server}/fd").iterdir()]
    assert not [name for name in targets if name.endswith(("/users", "/start"))]
    assert str(place / "redis.log") in targets
    assert os.getsid(server) == server != os.getsid(running.pid)


def test_the_servers_log_does_not_grow_for_ever(place, private, servers):
    place.mkdir(mode=0o700)
    (place / "redis.log").write_bytes(b"x" * 79 + b"\n" * 100_000 + b"y" * (8 << 20))
    private("pool", "add", "--eligible", *MEMBERS)
    assert (place / "redis.log").stat().st_size < 2 << 20


def test_kills_while_many_come_and_go_lose_and_invent_no_count(binary, environment, private, servers, allocations):
    """Whoever is the first, the last, or killed in between: what was printed was counted, and no server is left."""
    private("pool", "add", "--eligible", *MEMBERS)
    printed = begun = 0
    for step in range(10):
        processes = [subprocess.Popen([binary, "pool", "allocate"], env=environment, stdout=subprocess.PIPE,
                                      stderr=subprocess.DEVNULL, encoding="utf-8") for _ in range(6)]
        with contextlib.suppress(subprocess.TimeoutExpired):
            processes[step % 6].wait(step / 500)
        processes[step % 6].kill()
        begun += len(processes)
        printed += sum(len(process.communicate(timeout=60)[0].split()) for process in processes)
    assert begun - 10 <= printed <= allocations() <= begun
    peers.wait_for(lambda: servers() == [], "no server is left", GONE_S)
