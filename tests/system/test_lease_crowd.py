"""Leases under many hands: every change that Redis made is read from MONITOR and replayed.

Each process keeps its last lease while it asks for the next, so that there are more hands than leases."""

import itertools
import multiprocessing
import pathlib
import re
import socket
import time

import pytest
import redis

LUA_DIR = pathlib.Path(__file__).resolve().parents[2] / "lua"
CAP = 3
TTL_MS = 3_600_000
LIMIT_S = 900
FULL = 2
END = "all-is-said"

SIBLINGS = {name: "{proxies}:pool:" + name for name in
            ("live", "busy", "leases", "holders", "rules", "admin", "released")}
ACQUIRE_KEYS = ["proxies", *SIBLINGS.values()]
RELEASE_KEYS = [SIBLINGS[x] for x in ("live", "busy", "leases", "holders", "rules", "released")]

# A write to a hash by a script as MONITOR prints it; a tab in a word is the two characters \t.
SCRIPT_LINE = re.compile(r'\+[0-9.]+ \[\d+ lua\] ("(?:HSET|HDEL)" .*)')
WORD = re.compile(r'"([^"]*)"')
HOLDER = re.compile(r"token=[0-9]+-[0-9a-f]+\\tmember=(.*)")


def work(socket_path, number, rounds, gate, refusals):
    """Takes `rounds` leases, one after the other. FULL is met by giving back the lease in hand."""
    store = redis.Redis(unix_socket_path=socket_path)
    acquire, release = (store.script_load((LUA_DIR / f"{name}.lua").read_text()) for name in ("acquire", "release"))
    gate.wait(LIMIT_S)
    in_hand, full_count = None, 0
    for round_ in range(rounds):
        id = f"{number:04x}-{round_:x}"
        for attempt in itertools.count():
            code, _, token, *_ = store.evalsha(acquire, len(ACQUIRE_KEYS), *ACQUIRE_KEYS, "", id, f"{number:08x}", TTL_MS, "")
            if in_hand:
                assert store.evalsha(release, len(RELEASE_KEYS), *RELEASE_KEYS, "", *in_hand) == [0]
                in_hand = None
            if code != FULL:
                break
            full_count += 1
            time.sleep(0.005 * min(attempt + 1, 20))
        assert code == 0
        in_hand = [id, token]
    store.evalsha(release, len(RELEASE_KEYS), *RELEASE_KEYS, "", *in_hand)
    with refusals.get_lock():
        refusals.value += full_count


class Monitor:
    """Writes what MONITOR says into a file."""

    def __init__(self, socket_path, path):
        self.path = path
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(0.01)
        self.socket.connect(str(socket_path))
        self.socket.sendall(b"MONITOR\r\n")
        self.file = open(path, "wb")
        self.tail = b""
        while not self.tail:
            self.read()

    def read(self):
        try:
            data = self.socket.recv(1 << 20)
        except socket.timeout:
            return
        assert data, "MONITOR ended"
        self.file.write(data)
        self.tail = (self.tail + data)[-200:]

    def finish(self):
        self.socket.close()
        self.file.close()

    def commands(self):
        """The words of each HSET and HDEL of a script."""
        with open(self.path, encoding="latin-1", newline="\r\n") as lines:
            for line in lines:
                found = SCRIPT_LINE.match(line.rstrip("\r\n"))
                if found:
                    yield WORD.findall(found.group(1))


class Replay:
    """What was live when, by the holders and by `live`; `most` is what one member ever had."""

    def __init__(self):
        self.member_of, self.live, self.told = {}, {}, {}
        self.most = self.grants = 0

    def take(self, words):
        command, key, *rest = words
        if (command, key) == ("HSET", SIBLINGS["holders"]):
            _, _, id, packed = rest
            member = HOLDER.fullmatch(packed).group(1)
            assert id not in self.member_of
            self.member_of[id] = member
            self.live[member] = self.live.get(member, 0) + 1
            self.most = max(self.most, self.live[member])
            self.grants += 1
            assert self.told[member] == self.live[member]
        elif (command, key) == ("HDEL", SIBLINGS["holders"]):
            for id in rest:
                member = self.member_of.pop(id, None)
                if member:
                    self.live[member] -= 1
        elif (command, key) == ("HSET", SIBLINGS["live"]):
            self.told |= {member: int(count) for member, count in zip(rest[::2], rest[1::2])}
        elif (command, key) == ("HDEL", SIBLINGS["live"]):
            self.told |= {member: 0 for member in rest}


def run_crowd(server, folder, processes, rounds, members):
    """Returns the replay of what `processes` did, and how often somebody was refused."""
    store = server.client
    store.zadd("proxies", {m: 0 for m in members})
    store.zadd(SIBLINGS["busy"], {m: 0 for m in members})
    store.hset(SIBLINGS["rules"], "max_concurrent", CAP)
    context = multiprocessing.get_context("fork")
    gate, refusals = context.Barrier(processes + 1), context.Value("q", 0)
    workers = [context.Process(target=work, args=(str(server.socket), i, rounds, gate, refusals)) for i in range(processes)]
    for worker in workers:
        worker.start()
    monitor = Monitor(server.socket, folder / "monitor")
    try:
        gate.wait(LIMIT_S)
        deadline = time.monotonic() + LIMIT_S
        while any(worker.is_alive() for worker in workers):
            assert time.monotonic() < deadline
            monitor.read()
        store.echo(END)
        while END.encode() not in monitor.tail:
            assert time.monotonic() < deadline
            monitor.read()
    finally:
        monitor.finish()
        for worker in workers:
            worker.kill()
            worker.join()
    assert [worker.exitcode for worker in workers] == [0] * processes
    replay = Replay()
    for words in monitor.commands():
        replay.take(words)
    return replay, refusals.value


@pytest.mark.parametrize("processes, rounds, member_count", [(16, 40, 5), pytest.param(64, 500, 10, marks=pytest.mark.nightly)])
def test_no_member_ever_has_more_leases_than_its_cap(store, folder, processes, rounds, member_count):
    members = [f"http://10.0.0.{i}:80" for i in range(member_count)]
    replay, refusals = run_crowd(store, folder, processes, rounds, members)
    client, total = store.client, processes * rounds
    assert replay.most == CAP
    assert refusals > 0
    # No update was lost: each lease is counted once by everybody who counts.
    counts = dict(client.zrange("proxies", 0, -1, withscores=True))
    assert (replay.grants, sum(counts.values()), client.hgetall(SIBLINGS["holders"])) == (
        total, total, {"next": str(total)})
    # And all is back to zero.
    assert set(replay.live.values()) == set(replay.told.values()) == {0}
    assert (client.hgetall(SIBLINGS["live"]), client.zcard(SIBLINGS["leases"])) == ({}, 0)
    busy = dict(client.zrange(SIBLINGS["busy"], 0, -1, withscores=True))
    assert set(busy) == set(counts) and all(busy[m] <= counts[m] for m in busy)
