"""`fairlead pool import`: lists into a pool, one bad line never at the cost of the rest."""

import os
import re
import subprocess

import pytest

import look
import peers
import wire
from conftest import ROOT
from supplies import eligible, members, parked, record, text_of, use

DATA = ROOT / "tests/data"
LISTS = sorted(path for path in (DATA / "lists").iterdir() if path.name != "EXPECTED.tsv")
LINE_TOO_LONG = 1_000_000
SESAME = "sesame-0451"
DEAD_REDIS = {"FAIRLEAD_REDIS": "redis://127.0.0.1:1"}


def expected():
    """EXPECTED.tsv: file, line, verdict, result; a note behind them is for people."""
    lines = (DATA / "lists/EXPECTED.tsv").read_text().splitlines()
    return ["\t".join(line.split("\t")[:4]) for line in lines if not line.startswith("#")]


def readme_counts():
    """File -> accepted, duplicate, skipped, rejected, {reason: count} as the table in the README has them."""
    rows = {}
    for line in (DATA / "raw-lists/README.md").read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 4 and cells[3][0].isdigit():
            numbers, reasons = re.match(r"([\d /]*\d) ?\(?(.*?)\)?$", cells[3]).groups()
            accepted, duplicate, skipped, rejected = map(int, numbers.split("/"))
            named = [reason.split() for reason in reasons.split(", ") if reason]
            rows[cells[0]] = (accepted, duplicate, skipped, rejected,
                              {word[0]: int(word[1]) if len(word) > 1 else rejected for word in named})
    return rows


@pytest.fixture
def dry(run):
    """dry(words) -> (rows of verdicts, standard error). There is no Redis."""

    def start(*words, check=0, **options):
        done = run("pool", "import", "--dry-run", "--verdicts", *words, redis=None, check=check, env=DEAD_REDIS,
                   **options)
        return done.stdout.split("\n")[:-1], done.stderr

    return start


@pytest.fixture
def load(run, folder):
    """load(text, words) imports a file of that text and returns standard error."""

    def start(text, *words, check=0, **options):
        path = folder / "list.txt"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return run("pool", "import", path, *words, check=check, **options).stderr

    return start


# --- verdicts -----------------------------------------------------------------------------------------------------


@pytest.mark.core
def test_every_verdict_is_the_expected_one(dry):
    """Files that are refused as a whole are among them, and make the status 1."""
    rows, _ = dry(*LISTS, check=1)
    assert rows == expected()


def test_standard_input_gets_the_verdicts_that_the_file_gets(binary, environment):
    rows = []
    for path in LISTS:
        with open(path, "rb") as file:
            done = subprocess.run([binary, "pool", "import", "--dry-run", "--verdicts", "-"], stdin=file, check=False,
                                  env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=peers.WAIT_S)
        mine = [row for row in expected() if row.startswith(path.name + "\t")]
        is_refused = any(row.split("\t")[1] == "*" for row in mine)
        is_list = any(row.split("\t")[2] == "accepted" for row in mine)
        has_rejects = any(row.split("\t")[2] == "rejected" for row in mine)
        assert done.returncode == (has_rejects and not is_list), path.name
        assert not is_refused or done.returncode == 1
        out = done.stdout.decode().split("\n")[:-1]
        assert all(row.startswith("-\t") for row in out), path.name
        rows += [path.name + row[1:] for row in out]
    assert rows == expected()


def test_bytes_that_come_one_at_a_time_make_the_same_verdicts(binary, environment):
    path = DATA / "lists/f19-json-array-strings.json"
    command = [binary, "pool", "import", "--dry-run", "--verdicts", "-"]
    with subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as child:
        for byte in path.read_bytes():
            child.stdin.write(bytes([byte]))
        child.stdin.close()
        out = child.stdout.read().decode().split("\n")[:-1]
    assert [path.name + row[1:] for row in out] == [row for row in expected() if row.startswith(path.name)]


@pytest.mark.parametrize("name, counts", readme_counts().items())
def test_lists_of_the_wild_give_the_counts_of_their_readme(dry, name, counts):
    accepted, duplicate, skipped, rejected, reasons = counts
    rows, stderr = dry(DATA / "raw-lists" / name)
    kinds = [row.split("\t") for row in rows]
    assert [sum(kind[2] == word for kind in kinds) for word in ("accepted", "duplicate", "skipped", "rejected")] == [
        accepted, duplicate, skipped, rejected]
    assert stderr.endswith(f"{accepted} accepted, {duplicate} duplicate, {rejected} rejected\n")
    for reason, count in reasons.items():
        assert sum(kind[2:] == ["rejected", reason] for kind in kinds) == count
        assert f": {reason} ({count} in all): " in stderr


def test_every_list_of_the_wild_has_its_row():
    files = {path.name for path in (DATA / "raw-lists").iterdir()} - {"README.md"}
    assert readme_counts().keys() == files and len(files) == 8


def test_a_dry_run_changes_nothing(load, store):
    load(text_of(1), "--eligible", "--dry-run")
    assert look.dumps(store) == {}


def test_the_first_column_is_the_base_name_of_the_file_however_long_its_path(dry, folder):
    deep = folder
    while len(str(deep)) < 400:
        deep = deep / ("d" * 60)
    deep.mkdir(parents=True)
    (deep / "a list.txt").write_text("192.0.2.1:1\n")
    assert dry(deep / "a list.txt")[0] == ["a list.txt\t1\taccepted\thttp://192.0.2.1:1"]


# --- what becomes of entries --------------------------------------------------------------------------------------


@pytest.mark.core
def test_entries_are_candidates_that_nobody_is_given(load, store, run):
    stderr = load(text_of(1, 2, 2) + "nonsense\n")
    assert eligible(store) == {} and parked(store) == dict.fromkeys(members(1, 2), 0)
    assert "2 accepted, 1 duplicate, 1 rejected" in stderr and "0 joined, 0 were eligible, 2 parked" in stderr
    run("pool", "allocate", check=3)


@pytest.mark.core
def test_eligible_entries_are_members_at_once(load, store, run):
    assert "2 joined, 0 were eligible, 0 parked" in load(text_of(1, 2), "--eligible")
    assert eligible(store).keys() == members(1, 2) and parked(store) == {}
    assert set(run("pool", "allocate", "--count", 2).stdout.split()) == members(1, 2)


@pytest.mark.parametrize("words", [(), ("--eligible",)])
def test_a_second_import_changes_nothing(load, store, words):
    load(text_of(1, 2, 3), *words)
    use(store, {"http://192.0.2.1:8080": 7, "http://192.0.2.2:8080": 3})
    before = look.dumps(store)
    stderr = load(text_of(1, 2, 3), *words)
    assert look.dumps(store) == before
    assert ("0 joined, 3 were eligible" if words else "0 joined, 0 were eligible, 3 parked") in stderr


def test_a_paused_member_stays_paused(load, store, run):
    load(text_of(1, 2), "--eligible")
    run("pool", "park", "http://192.0.2.1:8080")
    load(text_of(1, 2), "--eligible")
    assert eligible(store).keys() == members(2) and parked(store).keys() == members(1)


def test_a_candidate_list_takes_nobody_out_of_the_pool(load, store):
    load(text_of(1), "--eligible")
    load(text_of(1, 2))
    assert eligible(store).keys() == members(1) and parked(store).keys() == members(2)


def test_several_files_become_one_pool(run, store, folder):
    (folder / "a.txt").write_text(text_of(1, 2))
    (folder / "b.json").write_text('["192.0.2.2:8080", "192.0.2.3:8080"]')
    stderr = run("pool", "import", "--eligible", folder / "a.txt", folder / "b.json").stderr
    assert eligible(store).keys() == members(1, 2, 3)
    assert "4 accepted, 0 duplicate, 0 rejected" in stderr
    assert record(store, "http://192.0.2.2:8080")["sources"] == {"import:a.txt", "import:b.json"}


def test_two_accounts_on_one_address_are_two_members(load, store, run):
    urls = ["http://ann:one@192.0.2.1:8080", "http://bob:two@192.0.2.1:8080"]
    load("\n".join(urls), "--eligible")
    assert store.client.zcard("proxies") == 2
    assert sorted(run("pool", "allocate", "--count", 2).stdout.split()) == urls
    assert set(store.client.hvals("{proxies}:pool:secrets")) == {"ann:one", "bob:two"}


def test_tags_of_columns_stand_in_the_record(load, store):
    load("ip,port,country,anonymity\n192.0.2.1,8080,US,elite\n192.0.2.2,8080,,\n", "--eligible")
    tagged = record(store, "http://192.0.2.1:8080")
    assert tagged == {"sources": {"import:list.txt"}, "country": "US", "anonymity": "elite"}
    assert record(store, "http://192.0.2.2:8080") == {"sources": {"import:list.txt"}}


def test_tags_of_json_stand_in_the_record(load, store):
    load('[{"ip": "192.0.2.1", "port": 8080, "country": "DE", "anonymity": "anonymous"}]', "--eligible")
    tagged = record(store, "http://192.0.2.1:8080")
    assert (tagged["country"], tagged["anonymity"]) == ("DE", "anonymous")


def test_twenty_thousand_lines_become_members(load, store):
    names = [f"http://198.51.100.{i % 250}:{1000 + i // 250}" for i in range(20_000)]
    assert "20000 accepted, 0 duplicate, 0 rejected" in load("\n".join(names), "--eligible")
    assert eligible(store) == dict.fromkeys(names, 0)


def test_another_pool_gets_its_entries(load, store):
    load(text_of(1), "--eligible", "--pool", "other")
    assert eligible(store, "other").keys() == members(1) and eligible(store) == {}


# --- options ------------------------------------------------------------------------------------------------------


def test_a_default_scheme_is_for_entries_without_one(load, store):
    load("192.0.2.1:8080\nhttp://192.0.2.2:8080\n", "--eligible", "--default-scheme", "socks5h")
    assert eligible(store).keys() == {"socks5h://192.0.2.1:8080", "http://192.0.2.2:8080"}


@pytest.mark.parametrize("words, scheme", [((), "https"), (("--https-means", "tls"), "https"),
                                           (("--https-means", "connect"), "http")])
def test_https_means_what_was_said(load, store, words, scheme):
    load("https://192.0.2.1:8080\n", "--eligible", *words)
    assert eligible(store).keys() == {f"{scheme}://192.0.2.1:8080"}


@pytest.mark.parametrize("order, result", [("auto", "rejected\tambiguous-colon-list"),
                                           ("host-first", "accepted\thttp://b.example:2@a.example:1"),
                                           ("user-first", "accepted\thttp://a.example:1@b.example:2")])
def test_a_colon_order_decides_what_is_ambiguous(dry, folder, order, result):
    (folder / "l").write_text("a.example:1:b.example:2")
    assert dry("--colon-order", order, folder / "l", check=order == "auto")[0] == [f"l\t1\t{result}"]


def test_a_format_that_was_given_is_not_guessed(dry, folder):
    (folder / "l").write_text("ip,port\n192.0.2.1,8080\n")
    assert [row.split("\t")[2] for row in dry(folder / "l")[0]] == ["skipped", "accepted"]
    rows, _ = dry("--format", "lines", folder / "l")
    assert [row.split("\t")[2] for row in rows] == ["rejected", "accepted"]
    assert [row.split("\t")[2:] for row in dry("--format", "json", folder / "l", check=1)[0]] == [
        ["rejected", "json-syntax"]]


def test_private_addresses_need_the_word(load, store):
    assert "bogon" in load("10.0.0.1:8080\n192.0.2.1:8080\n", "--eligible")
    assert eligible(store).keys() == members(1)
    load("10.0.0.1:8080\n", "--eligible", "--allow-private")
    assert "http://10.0.0.1:8080" in eligible(store)


def test_names_without_a_dot_need_the_word(load, store):
    load("tor:8118\n", "--eligible", check=1)
    load("tor:8118\n", "--eligible", "--allow-single-label")
    assert eligible(store).keys() == {"http://tor:8118"}


@pytest.mark.core
@pytest.mark.parametrize("bad", ["nonsense\n", "direct://\n", "10.0.0.1:1\n"])
def test_with_on_reject_fail_one_bad_line_changes_nothing(load, store, bad):
    load(text_of(1, 2), "--eligible")
    use(store, {"http://192.0.2.1:8080": 5})
    before = look.dumps(store)
    stderr = load(text_of(2, 3) + bad, "--eligible", "--on-reject", "fail", check=1)
    assert look.dumps(store) == before and "nothing was changed" in stderr


def test_with_on_reject_fail_a_bad_file_spoils_the_good_ones(run, store, folder):
    (folder / "good").write_text(text_of(1))
    words = ("pool", "import", "--on-reject", "fail", folder / "good", folder / "missing")
    assert "missing: No such file" in run(*words, check=1).stderr
    assert look.dumps(store) == {}


def test_with_on_reject_fail_a_clean_list_is_taken(load, store):
    load("# fine\n\n" + text_of(1, 1), "--eligible", "--on-reject", "fail")
    assert eligible(store).keys() == members(1)


# --- what is no list ----------------------------------------------------------------------------------------------


def make_directory(path):
    path.mkdir()


def make_fifo(path):
    os.mkfifo(path)


@pytest.mark.parametrize("make, words", [(lambda path: None, "No such file"), (make_directory, "Is a directory"),
                                         (make_fifo, "'-'"), (lambda path: path.symlink_to(path), "symbolic links"),
                                         (lambda path: path.symlink_to("/dev/zero"), "not a file")],
                         ids=["missing", "directory", "fifo", "loop", "device"])
def test_what_cannot_be_read_is_named_and_the_rest_is_taken(run, store, folder, make, words):
    make(folder / "odd")
    (folder / "good").write_text(text_of(1))
    stderr = run("pool", "import", "--eligible", folder / "odd", folder / "good", check=1, timeout=10).stderr
    assert re.search(rf"^fairlead pool import: {folder}/odd: .*{words}", stderr, re.M), stderr
    assert eligible(store).keys() == members(1)


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_file_without_permission_is_named(run, folder):
    (folder / "secret").touch(mode=0)
    assert "Permission denied" in run("pool", "import", folder / "secret", check=1).stderr


@pytest.mark.parametrize("name, reason", [("m08-utf16.txt", "encoding-utf16"), ("m36-gzip.bin", "binary-file"),
                                          ("m30-pac.pac", "pac-file"), ("m32-clash.yaml", "clash-yaml")])
def test_a_file_that_is_no_list_is_refused_as_a_whole_with_a_hint(run, store, name, reason):
    stderr = run("pool", "import", "--eligible", DATA / "lists" / name, check=1).stderr
    assert re.search(rf"{name}: {reason}: \w+", stderr) and eligible(store) == {}


def test_a_line_of_a_megabyte_costs_itself_alone(load, store):
    stderr = load(text_of(1) + "x" * LINE_TOO_LONG + "\n" + text_of(2), "--eligible")
    assert "list.txt:2: line-too-long (1 in all)" in stderr and len(stderr) < 2000
    assert eligible(store).keys() == members(1, 2)


def test_nul_bytes_cost_their_line_alone(load, store):
    stderr = load(b"http://192.0.2.1:8080\n192.0.2.9:80\x0080\n\x00\nhttp://192.0.2.2:8080\n", "--eligible")
    assert "\x00" not in stderr and "control-char (2 in all)" in stderr
    assert eligible(store).keys() == members(1, 2)


@pytest.mark.skipif("ASAN_OPTIONS" in os.environ, reason="AddressSanitizer needs a large address space")
def test_a_list_of_many_lines_needs_little_memory(binary, environment):
    lines = "".join(f"192.0.2.{i % 250}:{1 + i // 250}\n" for i in range(100_000))
    script = 'ulimit -v 200000; exec "$0" pool import --dry-run -'
    done = subprocess.run(["bash", "-c", script, binary], input=lines * 4, env=environment,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="ascii",
                          timeout=peers.WAIT_S, check=False)
    assert done.returncode == 0, done.stderr
    assert "100000 accepted, 300000 duplicate" in done.stderr


def test_a_list_of_over_two_million_entries_is_refused_in_words(run, folder):
    with open(folder / "l", "w", encoding="ascii") as file:
        file.writelines(f"192.0.2.{i % 250}:{1 + i // 250}\n" for i in range(2_000_001))
    stderr = run("pool", "import", "--dry-run", folder / "l", redis=None, check=1).stderr
    assert "0 accepted" in stderr and "2,000,000" in stderr


def test_direct_is_never_taken_from_a_list(load, store):
    stderr = load("direct://\ndirect://127.0.0.1\n" + text_of(1), "--eligible", "--allow-private")
    assert "list.txt:1: direct (2 in all)" in stderr and eligible(store).keys() == members(1)


def test_an_empty_file_is_no_failure_and_changes_no_member(load, store):
    load(text_of(1), "--eligible")
    before = look.dumps(store)
    assert "0 accepted, 0 duplicate, 0 rejected" in load("", "--eligible")
    assert look.dumps(store) == before


# --- messages -----------------------------------------------------------------------------------------------------


@pytest.mark.core
@pytest.mark.parametrize("line", [
    f"http://user:{SESAME}@192.0.2.1:80800", f"user:{SESAME}@192.0.2.1", f"192.0.2.1:0:user:{SESAME}",
    f"user:{SESAME}:192.0.2.1:99999", f"192.0.2.1:80@user:{SESAME}\x01", f"vmess://{SESAME}",
    f"socks4://u:{SESAME}@192.0.2.1:80",
    f"http://us%3Aer:{SESAME}@192.0.2.1:80", f"192.0.2.1:80 user:{SESAME}", f"socks5 192.0.2.1 0 user {SESAME}",
    f"http://user:{SESAME}@10.0.0.1:80", f"https://http://user:{SESAME}@192.0.2.1:80", f"192.0.2.1;80;user:{SESAME}",
    f'[{{"ip": "192.0.2.1", "port": 0, "user": "u", "password": "{SESAME}"}}]',
    f"ip,port,username,password\n192.0.2.1,0,u,{SESAME}",
])
def test_messages_never_show_credentials(load, line):
    stderr = load(line, "--verbose", check=1)
    assert SESAME not in stderr and "1 rejected" in stderr, stderr


def test_credentials_of_a_url_are_masked_where_it_is_named(run, upstream, store):
    server = upstream(wire.answers(wire.response(b"192.0.2.1:80\nnonsense\n")))
    url = f"http://user:{SESAME}@{server.host}:{server.port}/list"
    done = run("pool", "import", "--eligible", url)
    assert SESAME not in done.stderr and "/list:2: not-an-endpoint" in done.stderr
    held = look.contents(store)
    assert [key for key, text in held.items() if SESAME in text] == []
    assert b"Authorization: Basic " in server.connections[0].received


def test_each_reason_is_told_once_with_its_count_and_first_line(load):
    stderr = load(text_of(1) + "10.0.0.1:1\nnonsense\n10.0.0.2:1\n10.0.0.3:1\n")
    assert len(re.findall(r"list\.txt:2: bogon \(3 in all\): 10\.0\.0\.1:1: ", stderr)) == 1
    assert "10.0.0.2" not in stderr and "list.txt:3: not-an-endpoint (1 in all)" in stderr
    assert "1 accepted, 0 duplicate, 4 rejected" in stderr


def test_quiet_keeps_the_summary_to_itself(load):
    assert load(text_of(1), "--quiet") == ""


# --- URLs ---------------------------------------------------------------------------------------------------------


@pytest.mark.core
def test_a_url_is_imported(run, store, peer):
    origin = peer(peers.Nginx)
    origin.put("list.txt", text_of(1, 2).encode())
    run("pool", "import", "--eligible", f"{origin.url}/list.txt")
    assert eligible(store).keys() == members(1, 2)
    assert record(store, "http://192.0.2.1:8080")["sources"] == {"import:list.txt"}


def test_a_url_that_is_not_there_changes_nothing(run, store, peer):
    origin = peer(peers.Nginx)
    stderr = run("pool", "import", "--eligible", f"{origin.url}/missing.txt", check=1).stderr
    assert "/missing.txt: " in stderr and "404" in stderr and eligible(store) == {}


def test_a_page_of_html_changes_nothing(run, store, upstream):
    server = upstream(wire.answers(wire.response(b"<html>\n192.0.2.1:80\n</html>\n", Content_Type="text/html")))
    done = run("pool", "import", "--eligible", f"{server.url}/list", check=False)
    assert eligible(store) == {}, done.stderr
    assert done.returncode == 1 and "HTML" in done.stderr


def test_a_body_cut_short_changes_nothing(run, store, upstream):
    server = upstream(wire.answers(b"HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n" + text_of(1).encode()))
    stderr = run("pool", "import", "--eligible", f"{server.url}/list", check=1).stderr
    assert f"{server.url}/list: " in stderr and eligible(store) == {}


def test_a_port_that_nobody_listens_on_is_told(run, store):
    url = f"http://127.0.0.1:{peers.free_port()}/list"
    assert f"{url}: " in run("pool", "import", url, check=1).stderr and eligible(store) == {}
