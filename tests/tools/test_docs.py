"""The documents tell the truth: their tables, links, commands, figures and examples."""

import collections
import hashlib
import hmac
import os
import re
import shutil
import subprocess
import time
from pathlib import Path

import pytest
import redis

ROOT = Path(__file__).resolve().parents[2]
BINARY = os.environ.get("FAIRLEAD_BINARY") or str(ROOT / "build/fairlead")
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")])
START_LIMIT_S = 10


def text_of(path):
    return (ROOT / path).read_text(encoding="utf-8")


def blocks(path, language):
    """What stands between the fences ```language and ```."""
    found = re.findall(r"^```(\w*)\n(.*?)^```$", text_of(path), re.DOTALL | re.MULTILINE)
    return [block for name, block in found if name == language]


def run(*command, **options):
    return subprocess.run(command, capture_output=True, text=True, timeout=60, **options)


def first_arguments(path, macro):
    return re.findall(rf'^{macro}\((?:\w+, )?"([^"]+)"', text_of(path), re.MULTILINE)


COMMANDS = first_arguments("tables/command.def", "COMMAND")
SETTINGS = first_arguments("tables/config.def", "CONF")
SOURCE_SETTINGS = first_arguments("tables/source.def", "SOURCE")


# A Redis


class Store:
    """A server on a unix socket in `folder`, ended by its process. `user`: as --redis names it."""

    def __init__(self, folder, configuration=""):
        self.socket = f"{folder}/redis.sock"
        file = Path(folder) / "redis.conf"
        file.write_text(f'port 0\nunixsocket {self.socket}\ndir {folder}\nsave ""\n{configuration}\n')
        program = shutil.which("redis-server") or shutil.which("valkey-server")
        self.process = subprocess.Popen([program, file], stdout=subprocess.DEVNULL)
        self.client = redis.Redis(unix_socket_path=self.socket, decode_responses=True)

    def wait(self):
        deadline = time.monotonic() + START_LIMIT_S
        while True:
            try:
                return self.client.ping()
            except redis.ConnectionError:
                assert self.process.poll() is None, "the server ended at its start"
                assert time.monotonic() < deadline, "the server does not answer"
                time.sleep(0.01)

    def stop(self):
        self.client.close()
        self.process.terminate()
        self.process.wait(timeout=START_LIMIT_S)

    def fairlead(self, *words, user="", given=None):
        """Standard output of a command that must succeed."""
        environment = os.environ | {"FAIRLEAD_REDIS": f"unix://{user}{self.socket}"}
        result = run(BINARY, *words, env=environment, input=given)
        assert result.returncode == 0, (words, result.stderr)
        return result.stdout


@pytest.fixture
def store(tmp_path):
    server = Store(tmp_path)
    try:
        server.wait()
        yield server
    finally:
        server.stop()


# Tables


def docs_tables(*arguments):
    return run(ROOT / "tools/docs_tables", *arguments, env=os.environ | {"FAIRLEAD_BINARY": BINARY})


@pytest.fixture
def copy(tmp_path):
    for folder in ("docs", "man", "tables"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    shutil.copy(ROOT / "README.md", tmp_path)
    return tmp_path


def test_all_tables_are_up_to_date():
    result = docs_tables("--check")
    assert result.returncode == 0, result.stdout + result.stderr
    assert re.fullmatch(r"tables: [1-9]\d* blocks, 0 stale files\n", result.stdout)


def test_a_table_that_is_behind_is_noticed_and_rewritten(copy):
    page = copy / "docs/reference.md"
    good = page.read_text()
    page.write_text(good.replace("| `join` |", "| `joint` |"))
    stale = docs_tables("--check", copy)
    assert (stale.returncode, stale.stdout.splitlines()[0]) == (
        1, "docs/reference.md: out of date: run tools/docs_tables")
    assert docs_tables(copy).returncode == 0
    assert page.read_text() == good


def test_a_new_row_makes_its_documents_stale(copy):
    with open(copy / "tables/verdict.def", "a") as table:
        table.write('VERDICT(NEW, "new-verdict", "a " "hint, with (marks)")\n')
    assert docs_tables("--check", copy).returncode == 1
    docs_tables(copy)
    assert "| `new-verdict` | a hint, with (marks) |\n" in (copy / "docs/lists.md").read_text()


# Manual and reference


def test_the_manual_page_builds_without_a_complaint():
    result = run("scdoc", input=text_of("man/fairlead.1.scd"))
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.count("\n.SH ") >= 10


@pytest.mark.parametrize("words", COMMANDS)
def test_a_command_stands_in_the_manual_and_the_reference(words):
    assert re.search(rf"^\*{words}\*", text_of("man/fairlead.1.scd"), re.MULTILINE)
    assert f"| `fairlead {words}" in text_of("docs/reference.md")


@pytest.mark.parametrize("name", SETTINGS)
def test_a_setting_stands_in_the_manual_and_the_reference(name):
    flag = "--" + name.replace("_", "-")
    assert f"\n*{flag}*" in text_of("man/fairlead.1.scd")
    assert f"\n| `{flag}` |" in text_of("docs/reference.md")


@pytest.mark.parametrize("name", SOURCE_SETTINGS)
def test_a_setting_of_a_source_stands_in_the_manual_and_the_reference(name):
    sources = text_of("man/fairlead.1.scd").partition("\n# SOURCES\n")[2].partition("\n# ")[0]
    escaped = name.replace("_", r"\_")
    assert f"*{escaped}*" in sources or f"\n{name} = " in sources
    assert f"\n| `{name}` |" in text_of("docs/reference.md").partition("## Settings of a source")[2]


@pytest.mark.parametrize("page", ROOT.glob("docs/*.md"), ids=lambda page: page.name)
def test_a_document_is_installed(page):
    assert f"'docs/{page.name}'" in text_of("meson.build")


# Links


def anchors(page):
    """As the usual renderers make them of headings."""
    heads = re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.S | re.M), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


@pytest.mark.parametrize("page", DOCUMENTS, ids=lambda page: page.name)
def test_relative_links_lead_somewhere(page):
    for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = page.parent / path if path else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


# Commands


def shell_lines(page):
    for block in blocks(page, "sh"):
        yield from (line.partition(" #")[0] for line in block.splitlines())


def calls(line):
    return re.findall(r"(?:^|[\s|(;])(?:build/)?fairlead ([^|>;)]*)", line)


@pytest.mark.parametrize("page", DOCUMENTS, ids=lambda page: page.name)
def test_commands_in_examples_exist(page):
    for call in (call for line in shell_lines(page) for call in calls(line)):
        words = call.split()
        assert any(words[:len(command.split())] == command.split() for command in COMMANDS), call
        for flag in re.findall(r"--([a-z-]+)", call):
            assert flag.replace("-", "_") in SETTINGS, call


@pytest.mark.parametrize("page", DOCUMENTS, ids=lambda page: page.name)
def test_make_targets_in_examples_exist(page):
    targets = set(re.findall(r"^([a-z-]+):", text_of("Makefile"), re.MULTILINE))
    for line in shell_lines(page):
        if line.startswith("make "):
            assert {word for word in line.split()[1:] if "=" not in word} <= targets, line


def test_the_readme_has_commands_at_all():
    lines = list(shell_lines(ROOT / "README.md"))
    assert sum(len(calls(line)) for line in lines) >= 10
    assert ["make deps build", "make run"] == [line for line in lines if line.startswith("make ")][:2]


def test_the_example_of_a_configuration_file_is_accepted(tmp_path):
    file = tmp_path / "fairlead.conf"
    file.write_text(blocks("docs/operations.md", "ini")[0])
    result = run(BINARY, "up", "--config", file, "--print-config")
    assert (result.returncode, result.stderr) == (0, "")
    assert "dial_timeout = 15s\n" in result.stdout


def test_the_example_of_sources_is_accepted(tmp_path):
    file = tmp_path / "fairlead.conf"
    file.write_text(next(block for block in blocks("docs/operations.md", "ini") if "[source" in block))
    result = run(BINARY, "up", "--config", file, "--print-config")
    assert (result.returncode, result.stderr) == (0, "")
    assert "[source provider]\n" in result.stdout


def test_the_sources_of_the_manual_page_are_accepted(tmp_path):
    file = tmp_path / "fairlead.conf"
    file.write_text(next(block for block in blocks("man/fairlead.1.scd", "") if block.startswith("[source")))
    result = run(BINARY, "up", "--config", file, "--print-config")
    assert (result.returncode, result.stderr) == (0, "")


# The wire contract


def contract_of_the_script_ring():
    return re.search(r'FIVE_LINES = """\\\n(.*?)"""', text_of("tests/script/conftest.py"), re.DOTALL)[1]


@pytest.mark.parametrize("page", ["README.md", "docs/wire.md"])
def test_the_five_lines_are_those_that_the_tests_run(page):
    assert blocks(page, "lua") == [contract_of_the_script_ring()]


def worked_example():
    return dict(re.findall(r"^\| ([^|]+?) \| `([^`]+)` \|$", text_of("docs/wire.md"), re.MULTILINE))


def test_the_example_of_an_identifier_computes():
    example = worked_example()
    salt = bytes.fromhex(example["salt, as the rules hold it"])
    digest = hmac.new(salt, example["canonical credentials"].encode(), hashlib.sha256).hexdigest()[:16]
    assert example["first 8 bytes of the digest"] == digest
    assert example["identifier"] == f"http://proxy1.example:3128#{digest}"


def test_the_command_of_that_example_prints_the_digest():
    result = run("sh", "-c", blocks("docs/wire.md", "sh")[0])
    assert result.stdout.strip() == worked_example()["first 8 bytes of the digest"]


def test_the_program_makes_the_same_identifier(store):
    example = worked_example()
    store.client.hset("{proxies}:pool:rules", "salt", example["salt, as the rules hold it"])
    store.fairlead("pool", "add", "--eligible", "-", given="http://alice:p%40ss%3Aword@proxy1.example:3128\n")
    assert store.client.zrange("proxies", 0, -1) == [example["identifier"]]
    assert store.client.hgetall("{proxies}:pool:secrets") == {
        example["identifier"]: example["canonical credentials"]}


def client_in_ten_lines():
    page = {"FIVE_LINES": blocks("docs/wire.md", "lua")[0]}
    exec(next(block for block in blocks("docs/wire.md", "python") if "def take_proxy" in block), page)
    return page["take_proxy"]


def test_the_client_in_ten_lines_takes_turns_and_knows_passwords(store):
    take_proxy = client_in_ten_lines()
    given = ["http://alice:p%40ss@proxy1.example:3128", "http://192.0.2.1:3128"]
    store.fairlead("pool", "add", "--eligible", "-", given="\n".join(given))
    store.client.zadd("proxies", {"198.51.100.1:8080": 0})
    taken = collections.Counter(take_proxy(store.client, "proxies") for _ in range(6))
    assert taken == dict.fromkeys([*given, "http://198.51.100.1:8080"], 2)


def test_the_client_in_ten_lines_gets_nothing_from_an_empty_pool(store):
    assert client_in_ten_lines()(store.client, "proxies") is None


def test_every_key_of_a_pool_is_named():
    names = re.findall(r'\[KEY_\w+\] = "(\w+)"', text_of("src/store/keys.c"))
    assert len(names) > 10
    missing = [name for name in names if f":pool:{name}`" not in text_of("docs/wire.md")]
    assert missing == []


@pytest.mark.parametrize("script", sorted(ROOT.glob("lua/*.lua")), ids=lambda script: script.stem)
def test_every_script_is_named_with_its_keys(script):
    keys, more = re.search(r"^-- KEYS: (\d+)(\+?)$", script.read_text(), re.MULTILINE).groups()
    row = re.search(rf"^\| `{script.stem}` \| ([^|]*) \|", text_of("docs/wire.md"), re.MULTILINE)
    count = 1 if row[1].startswith("one of") else len(row[1].split(", "))
    assert count == int(keys) + len(more)


def test_every_error_that_decides_an_outcome_is_named():
    table = re.search(r"reply_classify.*?\n}", text_of("src/store/reply.c"), re.DOTALL)[0]
    words = {word.split()[0] for word in re.findall(r'\{"([A-Z]+ ?)"', table)}
    assert len(words) > 10
    outcomes = text_of("docs/wire.md").partition("## Outcomes")[2]
    assert [word for word in sorted(words) if f"`{word}`" not in outcomes] == []


# Operations


def shares(store, rule, before, until):
    """The next 600 allocations, as docs/operations.md has them made."""
    members = [f"http://192.0.2.{i}:8080" for i in range(1, 7)]
    store.fairlead("pool", "add", "--eligible", *members)
    store.fairlead("pool", "allocate", "--count", str(before))
    store.fairlead("pool", "park", members[5])
    store.fairlead("pool", "allocate", "--count", str(until))
    store.fairlead("pool", "rules", f"join={rule}")
    store.fairlead("pool", "restore", members[5])
    taken = collections.Counter(store.fairlead("pool", "allocate", "--count", "600", "--id").split())
    return sorted({taken[member] for member in members[:5]}), taken[members[5]]


@pytest.mark.parametrize("rule", ["floor", "keep", "zero"])
@pytest.mark.parametrize("table, counts", [(0, (60, 49950)), (1, (240, 300))], ids=["10,000", "100"])
def test_the_figures_of_the_joining_rules_are_those_of_the_program(store, rule, table, counts):
    rows = re.findall(rf"^\| `{rule}` \| [\d,]+ \| ([^|]+) \| (\d+) \|", text_of("docs/operations.md"), re.MULTILINE)
    others, returned = rows[table]
    assert shares(store, rule, *counts) == ([int(n) for n in others.split(" or ")], int(returned))


def test_the_redis_user_of_the_manual_may_do_all_that_is_needed(tmp_path):
    block = next(block for block in blocks("docs/operations.md", "") if block.startswith("user fairlead"))
    server = Store(tmp_path, " ".join(block.split()).replace("PASSWORD", "sesame"))
    try:
        server.wait()
        source = tmp_path / "list.txt"
        source.write_text("192.0.2.3:1\nhttp://user:password@192.0.2.4:1\n")
        for words in ("add --eligible http://192.0.2.1:1 http://192.0.2.2:1", "add http://192.0.2.9:1", "allocate --count 5", "park http://192.0.2.1:1",
                      "restore http://192.0.2.1:1", "show http://192.0.2.1:1", "list", "stats", "rules start=1",
                      f"import {source}", f"import --eligible {source}", "export",
                      "remove http://192.0.2.1:1"):
            server.fairlead("pool", *words.split(), user="fairlead:sesame@")
        assert "error" not in server.fairlead("doctor", user="fairlead:sesame@")
    finally:
        server.stop()


def test_the_redis_user_of_the_manual_may_run_every_script():
    users = " ".join(block for page in ("docs/operations.md", "docs/queue.md") for block in blocks(page, "")
                     if block.startswith("user "))
    calls_ = {name.lower() for script in ROOT.glob("lua/*.lua")
              for name in re.findall(r"redis\.call\('([A-Z]+)'", script.read_text())}
    assert len(calls_) > 15 and calls_ <= set(re.findall(r"\+(\w+)", users))


# Lists


@pytest.mark.parametrize("page", ["README.md", "docs/lists.md"])
def test_every_line_of_an_example_list_is_understood(store, page):
    example = next(block for block in blocks(page, "") if "203.0.113.7:3128" in block)
    store.fairlead("pool", "add", "--parked", "-", given=example)
    entries = [line for line in example.splitlines() if not line.startswith("#")]
    assert store.client.zcard("{proxies}:pool:parked") == len(entries)


def verdicts(*words, given):
    """[(verdict, result)] of a dry import; there is no Redis."""
    result = run(BINARY, "pool", "import", "--dry-run", "--verdicts", *words, "-", input=given,
                 env=os.environ | {"FAIRLEAD_REDIS": "redis://127.0.0.1:1"})
    assert result.returncode == 0, result.stderr
    return [tuple(line.split("\t")[2:]) for line in result.stdout.splitlines()]


def test_the_three_formats_of_the_page_are_read():
    """What the table and the document of the example say, as RFC 4180 and RFC 8259 read them."""
    first = ("accepted", "http://203.0.113.7:3128")
    second = ("accepted", "http://user:pa%20ss@proxy.example:8080")
    third = ("accepted", "socks5h://[2001:db8::7]:1080")
    assert verdicts(given=blocks("docs/lists.md", "csv")[0]) == [("skipped", "header"), first, second, third]
    assert verdicts(given=blocks("docs/lists.md", "json")[0]) == [
        first, ("accepted", "socks5://203.0.113.7:3128"), second, third]
    assert verdicts(given=blocks("docs/lists.md", "")[0])[1:4] == [first, second, third]


def test_what_https_means_is_as_the_page_says():
    assert verdicts(given="https://192.0.2.1:1") == [("accepted", "https://192.0.2.1:1")]
    assert verdicts("--https-means", "connect", given="https://192.0.2.1:1") == [("accepted", "http://192.0.2.1:1")]


def test_an_export_is_imported_as_the_page_says(store):
    members = ["http://alice:p%40ss@proxy1.example:3128", "socks5h://[2001:db8::7]:1080"]
    store.fairlead("pool", "add", "--eligible", *members, "direct://")
    store.fairlead("pool", "park", members[1])
    exported = store.fairlead("pool", "export")
    assert sorted(line for line in exported.splitlines() if not line.startswith("#")) == sorted(members)
    store.fairlead("pool", "import", "--pool", "spare", "-", given=exported)
    assert sorted(store.fairlead("pool", "export", "--pool", "spare").split()) == sorted(members)


def known_names():
    """The words that name the parts of an entry, as src/list/fields.c has them."""
    table = re.search(r"names\[.*?\] = \{(.*?)\n};", text_of("src/list/fields.c"), re.DOTALL)[1]
    return set(re.findall(r'"(\w+)"', table))


def test_every_name_of_a_column_is_on_the_page():
    names = known_names()
    assert len(names) > 20
    page = text_of("docs/lists.md").partition("**Names**")[2].partition("**Tags.**")[0].lower()
    assert {name for name in names if not re.search(rf"\b{name.lower()}\b", page)} == set()
