"""fairlead auth: a line for the file of clients, and how the password comes in."""

import hashlib
import hmac
import json
import os
import pty
import re
import signal
import subprocess
import termios

import pytest

import peers

LINE = re.compile(r"([!-~]+) hmac-sha256:([0-9a-f]{32}):([0-9a-f]{64})")


@pytest.fixture
def auth(run):
    """auth("acme", input="secret\\n") -> CompletedProcess; no Redis is needed."""
    return lambda *words, **options: run("auth", *words, redis=None, **options)


def assert_line(line, name, password):
    found = LINE.fullmatch(line)
    assert found and found[1] == name
    digest = hmac.new(bytes.fromhex(found[2]), os.fsencode(password), hashlib.sha256)
    assert found[3] == digest.hexdigest()


@pytest.mark.core
def test_the_password_is_the_first_line_of_standard_input(auth):
    done = auth("acme", input="se cret:1\nnot this\n")
    assert_line(done.stdout.rstrip("\n"), "acme", "se cret:1")
    assert done.stdout.count("\n") == 1 and done.stderr == ""


@pytest.mark.parametrize("text, password", [
    ("pw", "pw"), ("pw\r\n", "pw"), ("p" * 255 + "\r\n", "p" * 255), ("päss\n", "päss"),
])
def test_lines_end_in_several_ways(auth, text, password):
    assert_line(auth("a-b", input=text).stdout.rstrip("\n"), "a-b", password)


def test_each_line_has_a_salt_of_its_own(auth):
    assert auth("acme", input="pw\n").stdout != auth("acme", input="pw\n").stdout


@pytest.mark.core
def test_a_generated_password_goes_to_standard_error_alone(auth):
    done = auth("--generate", "acme", "--quiet")
    told = re.fullmatch(r"password: ([A-Za-z0-9._]{24})\n", done.stderr)
    assert_line(done.stdout.rstrip("\n"), "acme", told[1])
    assert told[1] not in done.stdout
    assert auth("acme", "--generate").stderr != done.stderr


def test_json_has_the_line(auth):
    told = json.loads(auth("acme", "--json", input="pw\n").stdout)
    assert told["name"] == "acme"
    assert_line(told["line"], "acme", "pw")


@pytest.mark.parametrize("name", ["", "a:secret", "a b", "ä", "#a", "n" * 65])
def test_a_name_that_cannot_be_is_wrong_usage_and_not_shown(auth, name):
    done = auth(name, input="pw\n", check=2)
    assert "a name has 1 to 64 visible ASCII characters" in done.stderr
    assert "secret" not in done.stderr and done.stdout == ""


@pytest.mark.parametrize("text, fault", [
    ("", "is empty"), ("\nsecond\n", "is empty"), ("a\tb\n", "control bytes"), ("a\0b\n", "control bytes"),
    ("p" * 256 + "\n", "longer than 255 bytes"), ("p" * 5000, "longer than 255 bytes"),
])
def test_a_password_that_clients_cannot_send_is_refused(auth, text, fault):
    done = auth("acme", input=text, check=1)
    assert fault in done.stderr and done.stdout == ""


def test_a_name_is_needed_and_nothing_else(auth):
    assert "an argument is missing: NAME" in auth(check=2).stderr
    assert "unexpected argument" in auth("acme", "secret", input="pw\n", check=2).stderr


class Terminal:
    """fairlead on a terminal of its own."""

    def __init__(self, binary, environment):
        self.master, slave = pty.openpty()
        self.before = termios.tcgetattr(slave)
        self.slave = slave
        # A shell lets what it starts in the background ignore SIGINT.
        self.process = subprocess.Popen(["env", "--default-signal=INT", binary, "auth", "acme"], stdin=slave,
                                        stderr=slave, env=environment, stdout=subprocess.PIPE, encoding="utf-8",
                                        start_new_session=True)
        self.shown = ""

    def has_echo(self):
        return bool(termios.tcgetattr(self.slave)[3] & termios.ECHO)

    def wait_for(self, text):
        def look():
            os.set_blocking(self.master, False)
            try:
                self.shown += os.read(self.master, 4096).decode()
            except BlockingIOError:
                pass
            return text in self.shown
        peers.wait_for(look, f"the terminal shows {text!r}, not {self.shown!r}")

    def answer(self, question, text):
        self.wait_for(question)
        assert not self.has_echo()
        os.write(self.master, text.encode())

    def end(self):
        out, _ = self.process.communicate(timeout=peers.WAIT_S)
        return out

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self.master)
        os.close(self.slave)


@pytest.fixture
def terminal(binary, environment):
    it = Terminal(binary, environment)
    yield it
    it.close()


def test_a_terminal_asks_twice_and_shows_nothing(terminal):
    terminal.answer("Password: ", "se cret\n")
    terminal.answer("The same again: ", "se cret\n")
    assert_line(terminal.end().rstrip("\n"), "acme", "se cret")
    assert terminal.process.returncode == 0
    assert "cret" not in terminal.shown and terminal.has_echo()


def test_two_passwords_that_differ_are_refused(terminal):
    terminal.answer("Password: ", "secret\n")
    terminal.answer("The same again: ", "secreT\n")
    assert terminal.end() == "" and terminal.process.returncode == 1
    terminal.wait_for("the two passwords differ")


def test_a_signal_ends_it_and_leaves_the_terminal_as_it_was(terminal):
    terminal.wait_for("Password: ")
    assert not terminal.has_echo()
    terminal.process.send_signal(signal.SIGINT)
    assert terminal.end() == "" and terminal.process.returncode == -signal.SIGINT
    assert termios.tcgetattr(terminal.slave) == terminal.before
