"""Bad input: one line on standard error that names it and the way out, exit status 1 or 2, nothing changed in Redis."""

import os
import shutil
import socket
import subprocess

import pytest

import look

MEMBER = "http://member.example:3128"


def the_line(done, *names):
    """The one line that a command said, with all of `names` in it, and nothing said as a result."""
    assert done.stdout == ""
    assert done.stderr.endswith("\n") and done.stderr.count("\n") == 1, done.stderr
    for name in names:
        assert name in done.stderr, (name, done.stderr)
    return done.stderr


@pytest.fixture
def filled(store, run):
    run("pool", "add", "--eligible", MEMBER, "http://user:sesame@other.example:3128")
    return store


WRONG_USAGE = [
    ("pool list --jsn", "--jsn", "--json"),
    ("frobnicate", "frobnicate", "fairlead help"),
    ("pool lst", "lst", "pool list"),
    ("pol allocate", "pol allocate", "pool allocate"),
    ("pool list extra", "extra", "pool list --help"),
    ("pool add", "URL", "pool add --help"),
    ("pool show", "MEMBER", "pool show --help"),
    ("pool list --count 3", "--count", "pool allocate"),
    ("pool allocate --count", "--count", "N"),
    ("pool allocate --count 0", "--count 0", "1 to 1000000"),
    ("pool allocate --count 1000001", "--count 1000001", "1 to 1000000"),
    ("pool allocate --count three", "--count three", "1 to 1000000"),
    ("pool list --log-format xml", "--log-format xml", "json"),
    ("pool list --store-timeout 1parsec", "--store-timeout 1parsec", "10ms to 1m"),
    ("pool list --store-timeout 2m", "--store-timeout 2m", "10ms to 1m"),
    ("pool list --pool=", "--pool"),
    ("pool list --pool web{", "web{", "tag"),
    ("pool list --pool web{}", "web{}", "tag"),
    ("pool add --pool {web} " + MEMBER, "{web}", "tag"),
    ("pool add --parked --eligible " + MEMBER, "--parked", "--eligible"),
    ("pool add http://no-port.example", "http://no-port.example", "missing-port"),
    ("pool add ftp://file.example:21", "ftp://file.example:21", "unsupported-scheme"),
    ("pool add http://10.0.0.1:80", "http://10.0.0.1:80", "--allow-private"),
    ("pool add http://new.example:80 http://intranet:80", "http://intranet:80", "--allow-single-label"),
    ("pool add http://name.example:65536", "port-range"),
    ("pool rules join=best", "join", "best", "floor"),
    ("pool rules jion=floor", "jion", "pool rules"),
    ("pool rules join", "join", "RULE=VALUE"),
    ("pool rules start=nan", "start", "nan"),
    ("pool rules start=0x10", "start", "0x10"),
    ("pool rules join=zero start=many", "start", "many"),
    ("pool rules allow_private=2", "allow_private", "2"),
    ("up --listen 0.0.0.0:0", "0.0.0.0:0", "--allow-client"),
    ("up --listen nonsense", "nonsense", "ADDRESS:PORT"),
    ("up --workers 0", "--workers 0", "1 to 64"),
    ("gateway --listen [::]:0", "[::]:0", "--allow-client"),
]


@pytest.mark.core
@pytest.mark.parametrize("case", WRONG_USAGE, ids=lambda case: case[0])
def test_wrong_usage_ends_with_2_and_changes_nothing(filled, run, case):
    before = look.dumps(filled)
    the_line(run(*case[0].split(" "), check=2), *case[1:])
    assert look.dumps(filled) == before


@pytest.mark.parametrize("url, name", [
    ("http://127.0.0.1:6379", "redis://"), ("redis://", "host"), ("redis://127.0.0.1:6379/many", "database"),
    ("redis://127.0.0.1:six", "host"), ("rediss://127.0.0.1", "TLS"), ("unix://relative", "unix:///"),
    ("redis+sentinel://127.0.0.1/m/0", "Sentinel"), ("redis+cluster://127.0.0.1", "Cluster"),
])
def test_a_wrong_redis_url_is_wrong_usage(run, url, name):
    the_line(run("pool", "list", redis=url, check=2), "--redis", name)


@pytest.mark.core
def test_bad_input_creates_no_key_in_an_empty_redis(store, run):
    run("pool", "add", "--eligible", "http://no-port.example", check=2)
    run("pool", "add", "--eligible", "-", input="nonsense\n10.0.0.1:80\n", check=1)
    assert look.dumps(store) == {}


@pytest.mark.parametrize("line, status, names", [
    (None, 1, ["No such file"]), ("not a setting", 2, [":1:", "name = value"]),
    ("store_timeout = 1parsec", 2, [":1:", "store_timeout", "10ms to 1m"]),
    ("no_such_setting = 1", 2, [":1:", "no_such_setting"]),
], ids=["missing", "syntax", "value", "name"])
def test_a_wrong_configuration_file_names_itself_and_the_place(filled, run, folder, line, status, names):
    path = folder / "fairlead.conf"
    if line is not None:
        path.write_text(line + "\n")
    before = look.dumps(filled)
    the_line(run("--config", path, "pool", "add", "http://new.example:80", check=status), str(path), *names)
    assert look.dumps(filled) == before


def test_an_environment_variable_with_a_wrong_value_names_itself(run):
    the_line(run("pool", "list", env={"FAIRLEAD_STORE_TIMEOUT": "soon"}, check=2), "FAIRLEAD_STORE_TIMEOUT", "soon")


@pytest.mark.core
@pytest.mark.parametrize("kind", ["missing", "directory"])
def test_an_unreadable_list_is_told_before_anything_starts(filled, run, folder, kind):
    path = folder if kind == "directory" else folder / "missing.txt"
    before = look.dumps(filled)
    the_line(run("up", "--list", path, "--listen", "127.0.0.1:0", check=1), str(path))
    assert look.dumps(filled) == before


def test_an_unreadable_list_starts_no_private_server(run, state):
    the_line(run("up", "--list", "/nonexistent", "--listen", "127.0.0.1:0", redis=None, check=1), "/nonexistent")
    assert not (state / "fairlead").exists()


@pytest.mark.parametrize("content", [None, ""], ids=["missing", "empty"])
def test_an_unusable_password_file_names_itself(store, run, folder, content):
    path = folder / "password"
    if content is not None:
        path.write_text(content)
    the_line(run("pool", "list", "--redis-password-file", path, check=1), "--redis-password-file", str(path))


@pytest.mark.core
def test_a_wrong_redis_password_is_told_in_one_line_without_it(redis_server, run):
    server = redis_server(password="right")
    url = server.url.replace(":right@", ":sesame@")
    done = run("pool", "list", redis=None, env={"FAIRLEAD_REDIS": url}, check=1)
    line = the_line(done, server.socket, "--redis")
    assert "WRONGPASS" in line and "sesame" not in line and "right" not in line


def test_a_password_from_a_file_opens_redis(redis_server, run, folder):
    server = redis_server(password="right")
    (folder / "password").write_text("right\n")
    run("pool", "stats", "--redis-password-file", folder / "password", redis=f"unix://{server.socket}")


def test_a_missing_redis_password_is_told(redis_server, run):
    server = redis_server(password="right")
    the_line(run("pool", "list", redis=f"unix://{server.socket}", check=1), server.socket, "NOAUTH")


@pytest.mark.core
def test_a_redis_that_cannot_be_used_is_told_in_one_line(run, folder):
    url = f"unix://{folder}/nobody"
    the_line(run("pool", "list", "--store-wait", "100ms", redis=url, check=1), url, "--redis")


@pytest.mark.core
@pytest.mark.parametrize("words", ["list", "stats", "allocate", "allocate --count 5", f"show {MEMBER}",
                                   f"add {MEMBER}", f"add --parked {MEMBER}", f"park {MEMBER}", f"restore {MEMBER}",
                                   f"remove {MEMBER}"])
def test_a_key_of_another_type_is_told_and_nothing_changed(store, run, words):
    store.client.set("proxies", "no sorted set")
    before = look.dumps(store)
    the_line(run("pool", *words.split(" "), check=1), "WRONGTYPE", "proxies", "--pool")
    assert look.dumps(store) == before


@pytest.mark.parametrize("key", ["parked", "offset", "proxies", "admin", "health", "rules", "secrets", "busy"])
def test_a_sibling_key_of_another_type_stops_an_addition(store, run, key):
    store.client.set("{proxies}:pool:" + key, "of no use")
    before = look.dumps(store)
    the_line(run("pool", "add", "--eligible", "-", input="http://user:sesame@new.example:80\n", check=1), "WRONGTYPE",
             key)
    assert look.dumps(store) == before


@pytest.mark.core
@pytest.mark.parametrize("role", ["up", "gateway"])
def test_a_port_in_use_is_told(store, run, role):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        place = "127.0.0.1:%d" % taken.getsockname()[1]
        the_line(run(role, "--listen", place, check=1), place, "in use", "--listen")
    assert look.dumps(store) == {}


def test_a_state_directory_that_is_not_writable_is_told(binary, folder, environment, run):
    place = folder / "closed" / "state"
    place.parent.mkdir(mode=0o500)
    as_somebody = []
    if os.geteuid() == 0:
        # Permissions do not bind root.
        as_somebody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    program = shutil.copy(binary, folder)
    done = subprocess.run([*as_somebody, program, "pool", "list", "--state-dir", place], env=environment,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8", timeout=30)
    assert done.returncode == 1
    the_line(done, str(place), "Permission denied", "--state-dir", "--redis")


def test_without_home_and_state_directory_the_way_out_is_told(run):
    env = {"HOME": "", "XDG_STATE_HOME": ""}
    the_line(run("pool", "list", redis=None, env=env, check=1), "HOME", "--state-dir")


def test_a_redis_user_without_permissions_is_told(redis_server, run):
    server = redis_server()
    server.client.acl_setuser("weak", enabled=True, passwords=["+weak"], keys=["*"], commands=["+ping", "+role"])
    url = f"unix://weak:weak@{server.socket}"
    done = run("pool", "list", redis=None, env={"FAIRLEAD_REDIS": url}, check=1)
    the_line(done, "NOPERM", "doctor")


@pytest.mark.core
def test_an_empty_pool_prints_nothing_and_ends_with_3(store, run):
    the_line(run("pool", "allocate", check=3), "proxies", "no eligible proxy")
    assert look.dumps(store) == {}


def test_a_pool_of_parked_members_is_empty_for_allocations(store, run):
    run("pool", "add", "--parked", MEMBER)
    before = look.dumps(store)
    the_line(run("pool", "allocate", "--count", 10, check=3), "proxies", "parked")
    assert look.dumps(store) == before
