"""Help: of every command, with examples; and the tables of the manual."""

import re

import pytest

COMMANDS = ["auth", "up", "gateway", "keeper", "pool add", "pool remove", "pool park", "pool restore", "pool list", "pool show",
            "pool rules", "pool stats", "pool allocate", "doctor", "version", "help"]


@pytest.fixture
def told(run):
    """What a command without any Redis prints."""
    return lambda *words, **options: run(*words, redis=None, **options)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_examples(told, command):
    done = told(*command.split(), "--help")
    assert done.stderr == "" and done.stdout.startswith(f"Usage: fairlead {command}")
    assert re.search(r"^Examples:\n  .*fairlead", done.stdout, re.M)
    assert told("help", *command.split()).stdout == done.stdout


@pytest.mark.core
def test_the_overview_names_every_command_and_exit_status(told):
    text = told("help").stdout
    assert all(re.search(rf"^  {command} ", text, re.M) for command in COMMANDS)
    assert re.findall(r"^  ([0-3])  ", text, re.M) == ["0", "1", "2", "3"]
    assert told("--help").stdout == text


@pytest.mark.parametrize("words", ["--help pool list", "pool --help list", "pool list --help --nonsense",
                                   "pool list --help --pool {", "pool list -h"])
def test_help_wins_over_all_else_on_the_line(told, words):
    assert told(*words.split(" ")).stdout.startswith("Usage: fairlead pool list")


def test_without_a_command_the_overview_is_wrong_usage(told):
    done = told(check=2)
    assert done.stdout == "" and done.stderr.startswith("Usage: fairlead")
    assert "pool add" in told("pool", check=2).stderr


@pytest.mark.core
@pytest.mark.parametrize("topic, row", [
    ("settings", "store_timeout"), ("reasons", "`pool-empty` | 503"), ("commands", "fairlead pool allocate")])
def test_the_manuals_tables_are_markdown(told, topic, row):
    lines = told("help", topic).stdout.splitlines()
    tables = [line for line in lines if line.startswith("|")]
    assert len(tables) > 5 and any(row in line for line in tables)
    assert any(re.fullmatch(r"(\|-+)+\|", line) for line in tables)


def test_an_unknown_topic_is_wrong_usage(told):
    assert "weather" in told("help", "weather", check=2).stderr


def test_help_needs_no_redis_and_starts_none(told, state):
    told("pool", "allocate", "--help")
    told("version")
    assert not (state / "fairlead").exists()


def test_the_configuration_in_force_is_printed_without_secrets(told, folder):
    (folder / "conf").write_text("tries = 5\n")
    text = told("up", "--print-config", "--config", folder / "conf", "--workers", 2,
                env={"FAIRLEAD_REDIS": "redis://:sesame@127.0.0.1:6379", "FAIRLEAD_HEAD_TIMEOUT": "3s"}).stdout
    assert "sesame" not in text
    for value in ("tries = 5", "workers = 2", "head_timeout = 3s"):
        assert re.search(rf"^{value}\b", text, re.M), text
