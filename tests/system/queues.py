"""What tests of `fairlead queue` share: the names of a queue's keys, and a way to run it with bytes."""

import json
import pathlib
import subprocess

import conftest
import look

TASKS = pathlib.Path(__file__).resolve().parents[1] / "data/tasks"
LISTS = {level: "{jobs}:" + level for level in ("high", "normal", "low")}
QUEUE = "{jobs}:queue:"


def call(binary, environment, server, *words, input=b"", check=0):
    """One command of `fairlead queue` whose input and output are bytes. check=None: any status will do."""
    done = subprocess.run([binary, "--redis", server.url, "queue", *(str(word) for word in words)], input=input,
                          env=environment, capture_output=True, timeout=conftest.COMMAND_LIMIT_S)
    conftest.assert_no_sanitizer_report(done.stderr.decode(errors="replace"))
    assert check in (None, done.returncode), (words, done.returncode, done.stderr)
    return done


def payloads(server, level="normal"):
    """What stands in a level, the next one first."""
    with look.raw(server) as client:
        return client.lrange(LISTS[level], 0, -1)[::-1]


def objects(text):
    """The objects of JSON lines."""
    return [json.loads(line) for line in text.splitlines()]
