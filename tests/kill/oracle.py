"""What the harness knows for certain: a log that is only appended to, the intent of an operation before it begins and its
outcome after it has ended.

The harness writes it, or a command that fairlead runs (one line by one write, O_APPEND): no kill of a process under test
loses a line. A line is a JSON object; `t` is the time in seconds."""

import json
import os
import threading
import time


class Oracle:
    """
    intent   an operation begins: `operation`, and what it is (`does`, ...)
    outcome  it has ended: ok (it was carried out and said so), failed (it said that it was not), unknown
    killed   a process was ended: `point`, its `operation`, and `left`, what it leaves behind in the store
    gone     something that a process had left is not there any more
    granted  written by a command that runs under a lease"""

    def __init__(self, path):
        self.path = path
        self.descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self.lock = threading.Lock()
        self.count = 0

    def write(self, **line):
        data = json.dumps({"t": time.monotonic(), **line}).encode() + b"\n"
        assert os.write(self.descriptor, data) == len(data)

    def intend(self, does, **more):
        """An operation's name; no two have the same. Hex digits with a dash, as an operation's id may be."""
        with self.lock:
            self.count += 1
            operation = f"{self.count:08x}-0"
        self.write(intent=operation, does=does, **more)
        return operation

    def conclude(self, operation, verdict, **more):
        assert verdict in ("ok", "failed", "unknown")
        self.write(outcome=operation, verdict=verdict, **more)

    def read(self):
        with open(self.path, encoding="utf-8") as file:
            return [json.loads(line) for line in file]

    def about(self, word):
        """The lines in which a word stands, for a complaint."""
        with open(self.path, encoding="utf-8") as file:
            return "".join(line for line in file if str(word) in line)

    def close(self):
        os.close(self.descriptor)
