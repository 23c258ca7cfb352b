"""What tests see from outside: all that Redis holds, and which processes run."""

import contextlib
import pathlib
import signal
import os

import redis

READERS = {
    b"string": lambda client, key: [client.get(key)],
    b"list": lambda client, key: client.lrange(key, 0, -1),
    b"set": lambda client, key: sorted(client.smembers(key)),
    b"hash": lambda client, key: sorted(client.hgetall(key).items()),
    b"zset": lambda client, key: client.zrange(key, 0, -1, withscores=True),
}


def raw(server):
    """A client that gives bytes."""
    return redis.Redis(unix_socket_path=server.socket, password=server.password)


def dumps(server):
    """Every key with the bytes that it stands for: equal means that nothing was changed."""
    with raw(server) as client:
        return {key: client.dump(key) for key in client.scan_iter()}


def contents(server):
    """Every key with all that it holds, as text to be searched."""
    with raw(server) as client:
        return {key.decode(): repr(READERS[client.type(key)](client, key))
                for key in client.scan_iter()}


def command_line(pid):
    """The words of a process as every user of this host sees them; b"" when it is gone."""
    with contextlib.suppress(OSError):
        return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""


def is_alive(pid):
    """Running: a zombie, which only waits for its parent to look, is not."""
    with contextlib.suppress(OSError):
        stat = pathlib.Path(f"/proc/{pid}/stat").read_text(errors="replace")
        return stat.rpartition(")")[2].split()[0] not in "ZX"
    return False


def processes(text):
    """Process ids of those whose command line holds `text`, a path or address of the test's own."""
    pids = [int(entry) for entry in os.listdir("/proc") if entry.isdigit()]
    return [pid for pid in pids
            if pid != os.getpid() and os.fsencode(str(text)) in command_line(pid) and is_alive(pid)]


def send(pids, number):
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def kill(pids):
    send(pids, signal.SIGKILL)
