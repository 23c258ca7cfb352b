"""What every file of lua/ must keep to: its contract block, and the rules for scripts."""

import pathlib
import re
import shutil
import subprocess

import pytest

SCRIPTS = sorted((pathlib.Path(__file__).resolve().parents[2] / "lua").glob("*.lua"))
# Whose first argument is no key.
KEYLESS = {"TIME"}
# The first word of what names a member, or holds text: never compared but for equality.
TEXTS = {"member", "members", "name", "names", "chosen", "head", "key", "value", "packed", "text"}


def contract(path):
    """The comment block on top, and the code below it without comments."""
    lines = path.read_text().splitlines()
    size = next(i for i, line in enumerate(lines) if not line.startswith("--"))
    code = "\n".join(re.sub(r"--.*", "", line) for line in lines[size:])
    return lines[:size], code


def without_strings(code):
    return re.sub(r"'(?:[^'\\\n]|\\.)*'|\"(?:[^\"\\\n]|\\.)*\"", "''", code)


def declared_key_count(block):
    """How many, and whether the caller decides how many more there are ("7+")."""
    counts = [line for line in block if re.fullmatch(r"-- KEYS: [1-9][0-9]*\+?", line)]
    assert len(counts) == 1
    word = counts[0].split()[-1]
    return int(word.rstrip("+")), word.endswith("+")


@pytest.fixture(params=SCRIPTS, ids=lambda path: path.name)
def path(request):
    return request.param


def test_there_are_scripts():
    assert len(SCRIPTS) >= 6


def test_a_contract_stands_on_top(path):
    block, _ = contract(path)
    assert block[0].startswith(f"-- {path.name} - ")
    order = [r"-- KEYS: \d+\+?$", r"-- ARGV:$", r"-- Returns: \S", r"-- Worst case: \S"]
    found = [next(i for i, line in enumerate(block) if re.match(p, line)) for p in order]
    assert found == sorted(found)


def test_each_key_is_declared_named_and_used(path):
    block, code = contract(path)
    count, takes_more = declared_key_count(block)
    expected = list(range(1, count + 1))
    named = [int(m) for line in block for m in re.findall(r"^-- KEYS\[(\d+)\] \w+: \S", line)]
    used = sorted({int(m) for m in re.findall(r"\bKEYS\[(\d+)\]", code)})
    assert (named, used) == (expected, expected)
    more = code.count(f"{{ unpack(KEYS, {count + 1}) }}")
    assert more == len(re.findall(rf"^-- KEYS\[{count + 1}\.\.\] \w+: \S", "\n".join(block), re.M))
    assert more == int(takes_more)
    assert re.sub(r"KEYS\[\d+\]", "", code).count("KEYS") == more


def test_each_key_and_argument_has_a_local_name(path):
    _, code = contract(path)
    inside = [line for line in code.splitlines() if re.match(r"\s+.*\bKEYS\b", line)]
    assert inside == []
    assert re.search(r"^local [\w, ]+ = .*ARGV", code, re.M)


def test_no_key_is_built(path):
    """Every key that a command gets is a plain name, and nothing is joined by `..` at all."""
    _, code = contract(path)
    calls = re.findall(r"redis\.p?call\(\s*'(\w+)'\s*(?:,\s*([^,)]+))?", code)
    assert len(calls) == len(re.findall(r"redis\.p?call\b", code))
    wrong = [c for c in calls if c[0] not in KEYLESS and not re.fullmatch(r"[a-z_]+", c[1])]
    assert wrong == []
    assert ".." not in without_strings(code)


@pytest.mark.parametrize(
    "word",
    ["math.random", "tostring", "table.sort", "strcoll", "os.", "loadstring", "pcall", "SCAN"],
)
def test_what_must_not_be_used_is_not(path, word):
    _, code = contract(path)
    assert not re.search(rf"(?<!\w){re.escape(word)}", code)


def test_members_and_texts_are_compared_by_equality_alone(path):
    """`<` on strings follows the locale. Of a text only its length may be compared."""
    _, code = contract(path)
    compared = re.findall(r"([#'\w.\[\]]+)\s*(?:<=|>=|<|>)\s*([#'\w.\[\]]+)", without_strings(code))
    operands = {operand for pair in compared for operand in pair if not operand.startswith("#")}
    assert {re.match(r"\w*", operand).group() for operand in operands} & TEXTS == set()
    assert not {operand for operand in operands if "ARGV" in operand}


def test_numbers_become_text_by_two_formats_alone(path):
    _, code = contract(path)
    texts = " ".join(re.findall(r"format\(\s*'([^']*)'", code))
    assert code.count("string.format") == len(re.findall(r"string\.format\(\s*'", code))
    assert set(re.findall(r"%[-+ #0-9.]*[a-zA-Z]", texts)) <= {"%.17g", "%.0f"}


def test_errors_carry_the_prefix(path):
    _, code = contract(path)
    texts = re.findall(r"error_reply\(\s*(?:string\.format\()?'([^']*)'", code)
    assert len(texts) == code.count("error_reply")
    assert [text for text in texts if not text.startswith("ERR fairlead: ")] == []


def test_lines_fit(path):
    long = [line for line in path.read_text().splitlines() if len(line.expandtabs(8)) > 100]
    assert long == []


@pytest.mark.skipif(not shutil.which("luacheck"), reason="luacheck is not installed")
def test_luacheck_has_nothing_to_say(path):
    options = ["--std", "lua51", "--globals", "redis", "cjson", "KEYS", "ARGV"]
    run = subprocess.run(
        ["luacheck", "--no-config", "--no-color", *options, "--", str(path)],
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stdout + run.stderr
