"""`fairlead check`: a list judged once, the right verdict and reason for each of its proxies, and nothing changed."""

import csv
import json
import os
import pty
import random
import signal
import subprocess
import time

import pytest

import farm as farms
import peers
import scripted
import wire

TARGET = ("--check-target", "http://target.example/page")
EXPECTED = (*TARGET, "--check-status", "200", "--check-text", farms.TEXT)
COLUMNS = ["host", "port", "scheme", "proxy", "ok", "reason", "latency_ms", "exit_address", "anonymity", "country",
           "status"]
BAD = ["refused", *(kind for kind in farms.ANSWERS if kind not in ("good", "unavailable"))]


@pytest.fixture
def farm():
    """farm(kind, ...) starts a proxy of each of these kinds."""
    started = []

    def start(*kinds):
        started.append(farms.Farm(*kinds))
        return started[-1]

    yield start
    for one in started:
        one.close()


@pytest.fixture
def check(run):
    """check(list, words...): no Redis is named, proxies on loopback are admitted."""

    def start(listed, *words, private=True, **options):
        private = ["--allow-private"] if private else []
        return run("check", *private, "--check-timeout", "1s", *words, "-", redis=None, input=listed, **options)

    return start


def rows(done):
    return {row["proxy"]: row for row in map(json.loads, done.stdout.splitlines())}


# --- verdicts -----------------------------------------------------------------------------------------------------


def test_three_hundred_proxies_get_the_right_verdict_and_reason_each(farm, check):
    kinds = ["good"] * 30 + [BAD[i % len(BAD)] for i in range(270)]
    random.Random(5).shuffle(kinds)
    it = farm(*kinds)
    begin = time.monotonic()
    found = rows(check(it.listed(), "--json", *EXPECTED))
    took = time.monotonic() - begin
    assert {url: row["reason"] for url, row in found.items()} == it.reasons()
    assert all(row["ok"] == (row["reason"] == "ok") for row in found.values())
    assert took < 1 + 3, "one timeout for all that are silent, and some time for the rest"


def test_at_most_as_many_at_once_as_asked_for(farm, check):
    """Six silent proxies, two at a time, need three timeouts."""
    it = farm(*["silent"] * 6, "good")
    begin = time.monotonic()
    done = check(it.listed(), "--check-concurrency", 2, "--check-timeout", "300ms", *TARGET)
    assert 0.9 <= time.monotonic() - begin < 2.5
    assert done.stdout.splitlines() == [it.urls[-1][0]]


def test_a_failure_that_may_be_the_target_s_is_inconclusive_unless_another_proxy_reached_it(farm, check):
    it = farm("unavailable", "refused", "unavailable")
    found = rows(check(it.listed(), "--json", *TARGET, check=3))
    assert [found[url]["ok"] for url, _ in it.urls] == [None, False, None]
    assert [found[url]["status"] for url, _ in it.urls] == [503, None, 503]
    it = farm("unavailable", "good", "unavailable")
    found = rows(check(it.listed(), "--json", *TARGET))
    assert [found[url]["ok"] for url, _ in it.urls] == [False, True, False]


def test_targets_are_taken_in_turn_and_each_is_known_by_its_own(upstream, check):
    def script(connection):
        is_good = b"//one.example/" in connection.read_head()
        connection.send(b"HTTP/1.1 %d X\r\nContent-Length: 0\r\n\r\n" % (200 if is_good else 500))

    urls = [upstream(script).url for _ in range(4)]
    found = rows(check("\n".join(urls), "--json", "--check-target", "http://one.example/", "--check-target",
                       "http://two.example/"))
    assert [found[url]["ok"] for url in urls] == [True, None, True, None]


def test_without_a_target_the_greeting_decides_and_nothing_is_asked_for(check, upstream):
    heard = []

    def greets(connection):
        heard.append(connection.read_exactly(3))
        connection.send(b"\5\0")
        heard.append(connection.read_to_end())

    def is_silent(connection):
        heard.append(connection.read_to_end())

    urls = [upstream(greets).url.replace("http", "socks5"), upstream(is_silent).url]
    done = check("\n".join(urls))
    assert sorted(done.stdout.splitlines()) == sorted(urls)
    peers.wait_for(lambda: sorted(heard) == [b"", b"", b"\5\1\0"], "each has heard the greeting, or nothing")
    assert "without --check-target" in done.stderr


def test_a_judge_s_answer_gives_exit_address_and_anonymity(upstream, check):
    def answers(headers):
        body = json.dumps({"judge": 1, "address": "203.0.113.9", "headers": headers}).encode()
        return lambda connection: connection.send(
            b"HTTP/1.1 200 OK\r\nFairlead-Judge: 1\r\nContent-Length: %d\r\n\r\n" % len(body), body)

    elite, anonymous = upstream(answers([])).url, upstream(answers([["Via", "1.1 proxy"]])).url
    found = rows(check(f"{elite}\n{anonymous}", "--json", *TARGET))
    assert {row["exit_address"] for row in found.values()} == {"203.0.113.9"}
    assert (found[elite]["anonymity"], found[anonymous]["anonymity"]) == ("elite", "anonymous")


# --- output -------------------------------------------------------------------------------------------------------


def test_the_text_of_those_that_work_fits_back_in(upstream, check):
    url = upstream(lambda connection: connection.send(farms.GOOD), lambda connection: connection.send(farms.GOOD)).url
    listed = url.replace("//", "//user:p%40ss@") + "\n"
    first = check(listed + "http://127.0.0.1:1\n", *TARGET)
    assert first.stdout == listed
    assert check(first.stdout, *TARGET).stdout == listed


def test_rows_for_programs_hide_credentials_and_hold_what_failed_too(farm, check):
    it = farm("good", "refused")
    good, refused = (url for url, _ in it.urls)
    port = int(good.rpartition(":")[2])
    listed = it.listed().replace(good, good.replace("//", "//user:geheim@"))
    done = check(listed, "--json", *EXPECTED)
    hidden = good.replace("//", "//***@")
    found = rows(done)
    assert found.keys() == {hidden, refused} and "geheim" not in done.stdout
    assert found[hidden].pop("latency_ms") >= 0
    assert found[hidden] == {"host": "127.0.0.1", "port": port, "scheme": "http", "proxy": hidden, "ok": True,
                             "reason": "ok", "exit_address": None, "anonymity": None, "country": None, "status": 200}
    assert found[refused]["latency_ms"] is None


def test_csv_has_a_head_line_and_the_same_columns(farm, check):
    it = farm("good", "refused")
    lines = list(csv.reader(check(it.listed(), "--csv", *EXPECTED).stdout.splitlines()))
    assert lines[0] == COLUMNS
    assert sorted(row[3:6] for row in lines[1:]) == sorted(
        [[it.urls[0][0], "yes", "ok"], [it.urls[1][0], "no", "proxy-refused"]])


def test_the_summary_counts_reasons_and_bad_lines_are_told(farm, check):
    it = farm("good", "refused", "redirect", "redirect")
    done = check(it.listed() + "http://nonsense:99999\n", *EXPECTED)
    assert "1 of 4 work, 4 checked" in done.stderr
    assert "1 proxy-refused" in done.stderr and "2 check-status" in done.stderr
    assert "standard input:5: " in done.stderr
    assert "%" not in done.stderr and "\r" not in done.stderr, "no bar in a file"


def test_a_terminal_gets_a_bar_and_keeps_nothing_of_it(farm, binary, environment):
    it = farm("silent", "good")
    near, far = pty.openpty()
    process = subprocess.Popen([binary, "check", "--allow-private", "--check-timeout", "1s", *TARGET, "-"],
                               env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=far)
    os.close(far)
    out, _ = process.communicate(it.listed().encode(), timeout=wire.LIMIT_S)
    text = os.read(near, 65536).decode()
    os.close(near)
    assert out.decode().split() == [it.urls[1][0]]
    assert "] 1 of 2, 1 good" in text
    assert text.rpartition("\r\033[K")[2].startswith("fairlead check: 1 of 2 work")


# --- ends ---------------------------------------------------------------------------------------------------------


def test_the_exit_status_says_whether_anything_works(farm, check):
    assert check(farm("refused").listed(), *EXPECTED, check=3).stdout == ""
    assert check("# nobody\n", *EXPECTED, check=3).stdout == ""
    done = check(farm("good").listed(), *EXPECTED, private=False, check=1)
    assert "private" in done.stderr, "loopback is refused as long as it is not allowed"


@pytest.mark.parametrize("words", [
    ("--check-target", "ftp://target.example/"), ("--check-target", "target.example"), ("--check-status", "abc"),
    ("--json", "--csv")])
def test_a_wrong_word_is_wrong_usage(check, words):
    assert check("http://127.0.0.1:1\n", *words, check=2).stdout == ""


def test_an_interrupt_leaves_what_is_known(farm, binary, environment):
    it = farm("silent", "good", "unavailable", "silent")
    process = subprocess.Popen([binary, "check", "--allow-private", "--check-timeout", "30s", "--json", *TARGET, "-"],
                               env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdin.write(it.listed().encode())
    process.stdin.close()
    lines = [json.loads(process.stdout.readline()) for _ in range(2)]
    process.send_signal(signal.SIGINT)
    assert process.wait(wire.LIMIT_S) == 1
    assert sorted(line["reason"] for line in lines) == ["check-status", "ok"]
    assert process.stdout.read() == b""
    assert b"1 of 4 work, 2 checked" in process.stderr.read()
    process.stdout.close()
    process.stderr.close()


def test_the_descriptor_limit_cuts_the_number_with_one_line(farm, binary, environment):
    it = farm(*["good"] * 100)
    done = subprocess.run(["sh", "-c", 'ulimit -n 96; exec "$@"', "sh", binary, "check", "--allow-private", "--json",
                           *EXPECTED, "-"], input=it.listed(), env=environment, capture_output=True, text=True,
                          timeout=wire.LIMIT_S)
    assert {row["reason"] for row in rows(done).values()} == {"ok"} and len(rows(done)) == 100
    assert done.stderr.count("descriptor limit") == 1


def test_no_server_is_started_and_nothing_is_written(farm, check, state):
    check(farm("good").listed(), *EXPECTED)
    assert list(state.iterdir()) == []


# --- the same as the gateway --------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["http", "socks4", "socks5"])
def test_a_probe_sends_what_a_client_s_request_through_the_gateway_does(kind, check, node, add):
    """What reaches the member, to its last byte, with its credentials."""
    heard = []

    def forwards(connection):
        if kind == "http":
            connection.read_head()
        else:
            scripted.take(kind, connection)
            connection.send(scripted.GRANT[kind])
            connection.read_head()
        heard.append(bytes(connection.received))
        connection.send(farms.GOOD)

    server = scripted.Raw(kind, forwards)
    url = server.url.replace("//", "//user@" if kind == "socks4" else "//user:pass@")
    try:
        check(url, "--check-target", "http://target.example:8080/page?q", check=0)
        add(url)
        with node().connect() as client:
            agent = next(line for line in heard[0].split(b"\r\n") if line.lower().startswith(b"user-agent:"))
            client.send(b"GET http://target.example:8080/page?q HTTP/1.1\r\nHost: target.example:8080\r\n" + agent +
                        b"\r\nAccept: */*\r\nConnection: close\r\n\r\n")
            assert client.read_to_end().endswith(farms.TEXT.encode())
    finally:
        server.close()
    assert len(heard) == 2 and heard[0] == heard[1]
    assert b"user" in heard[0] or b"Proxy-Authorization: Basic dXNlcjpwYXNz" in heard[0]
