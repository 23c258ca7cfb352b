"""Results on standard output, messages on standard error, options anywhere, and outputs that break."""

import collections
import json
import os
import subprocess

import pytest

MEMBERS = [f"http://m{i}.example:3128" for i in range(3)]


@pytest.fixture
def filled(store, run):
    run("pool", "add", "--eligible", *MEMBERS)
    return store


@pytest.mark.core
@pytest.mark.parametrize("words", ["--json pool list", "pool --json list", "pool list --json",
                                   "--pool proxies pool list --json", "pool list --pool=proxies --json"])
def test_options_stand_before_or_behind_the_words(filled, run, words):
    lines = [json.loads(line) for line in run(*words.split(" ")).stdout.splitlines()]
    assert [line["member"] for line in lines] == MEMBERS


@pytest.mark.core
@pytest.mark.parametrize("words, keys", [
    ("pool list", {"state", "score", "allocations", "member"}),
    ("pool stats", {"pool", "eligible", "parked", "allocations", "lowest_score", "highest_score"}),
    ("pool rules", {"rule", "value", "set", "meaning"}),
    ("pool show " + MEMBERS[0], {"member", "state", "score", "allocations", "credentials"}),
    ("pool allocate --count 3", {"proxy"}), ("pool allocate --id", {"proxy"}),
    ("doctor", {"finding", "check", "detail"}),
])
def test_json_is_one_object_a_line(filled, run, words, keys):
    lines = run(*words.split(" "), "--json").stdout.splitlines()
    assert lines and all(keys <= json.loads(line).keys() for line in lines)


def test_the_version_is_told_with_that_of_the_wire(run):
    assert json.loads(run("version", "--json", redis=None).stdout)["wire"] == 1
    assert run("--version", redis=None).stdout == run("version", redis=None).stdout != ""


@pytest.mark.core
def test_allocations_are_shared_evenly_one_a_line(filled, run):
    lines = run("pool", "allocate", "--count", 500).stdout.splitlines()
    assert lines == [MEMBERS[i % 3] for i in range(500)]
    assert filled.client.zscore("proxies", MEMBERS[0]) == 167


def test_more_allocations_than_one_round_holds_are_all_made(filled, run):
    counts = collections.Counter(run("pool", "allocate", "--count", 3000, "--id").stdout.split())
    assert counts == {member: 1000 for member in MEMBERS}


def test_quiet_leaves_results_and_errors_alone(filled, run):
    done = run("pool", "add", "--eligible", "--quiet", "http://new.example:80")
    assert (done.stdout, done.stderr) == ("", "")
    assert run("pool", "allocate", "--quiet", "--pool", "none", check=3).stderr.count("\n") == 1


def test_piped_output_has_no_colours(filled, run):
    assert "\x1b" not in run("pool", "list").stdout + run("doctor").stdout


PRINTERS = ["pool list", "pool list --json", "pool stats", "pool rules", "pool show " + MEMBERS[0], "pool allocate",
            "pool allocate --count 2000", "doctor", "version", "help", "help settings", "pool list --help",
            "pool list --print-config"]


def run_into(binary, environment, server, words, stdout):
    return subprocess.run([binary, "--quiet", *words.split(" ")], env=environment | {"FAIRLEAD_REDIS": server.url},
                          stdin=subprocess.DEVNULL, stdout=stdout, stderr=subprocess.PIPE, encoding="utf-8",
                          timeout=30)


@pytest.mark.parametrize("words", PRINTERS)
def test_a_full_disk_fails_the_command_in_one_line(filled, binary, environment, words):
    with open("/dev/full", "w") as full:
        done = run_into(binary, environment, filled, words, full)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1 and "No space left on device" in done.stderr, done.stderr


@pytest.mark.parametrize("words", PRINTERS)
def test_a_closed_pipe_fails_the_command_in_one_line(filled, binary, environment, words):
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = run_into(binary, environment, filled, words, writing)
    finally:
        os.close(writing)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1 and "Broken pipe" in done.stderr, done.stderr


def test_a_closed_standard_output_is_a_failure_and_nothing_else_takes_its_place(filled, run, binary):
    words = ["sh", "-c", 'exec "$0" "$@" >&-', binary, "pool", "list", "--redis", filled.url]
    done = subprocess.run(words, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, encoding="utf-8", timeout=30)
    assert done.returncode == 1
    assert done.stderr == "fairlead pool list: cannot write to standard output: Bad file descriptor\n"
