"""A pool and the lists that supply it, as tests see both."""

import os
import signal

import look
import peers
from demonstration import nodes_of

LOADED = "source loaded"
UNUSABLE = "a source cannot be used; the pool stays as it is"


def member(i):
    """The i-th member of these tests: no test connects to one."""
    return f"http://192.0.2.{i}:8080"


def members(*numbers):
    return {member(i) for i in numbers}


def text_of(*numbers):
    return "".join(f"{member(i)}\n" for i in numbers)


def pool_dumps(store):
    """All that Redis holds of pools; what processes tell of themselves changes all the time."""
    return {key: value for key, value in look.dumps(store).items() if key != b"nodes"}


def eligible(store, pool="proxies"):
    """Member -> count."""
    return dict(store.client.zrange(pool, 0, -1, withscores=True))


def parked(store, pool="proxies"):
    return dict(store.client.zrange(f"{{{pool}}}:pool:parked", 0, -1, withscores=True))


def record(store, name, pool="proxies"):
    """The unpacked record of a member; `sources` as a set."""
    packed = store.client.hget(f"{{{pool}}}:pool:proxies", name)
    pairs = dict(pair.split("=", 1) for pair in packed.split("\t"))
    return pairs | {"sources": set(filter(None, pairs["sources"].split(",")))}


def use(store, counts, pool="proxies"):
    """As if the five lines had handed these members out so often."""
    for name, count in counts.items():
        store.client.zadd(pool, {name: count}, xx=True)


def replace(path, content):
    """rename() over it: nobody ever sees half of it."""
    data = content if isinstance(content, bytes) else content.encode()
    new = path.with_name(path.name + ".new")
    new.write_bytes(data)
    new.rename(path)


class Supplied:
    """A node and what it says of its sources."""

    def __init__(self, node, store):
        self.node, self.store = node, store

    def count(self, **wanted):
        return len(self.node.log(**wanted))

    def hang_up(self):
        os.kill(self.node.pid, signal.SIGHUP)

    def after(self, act, **wanted):
        """Acts, and waits for one more such line in the log; returns it."""
        before = self.count(**wanted)
        act()
        self._wait(lambda: self.count(**wanted) > before, f"one more of {wanted}")
        return self.node.log(**wanted)[before]

    def _wait(self, condition, what):
        try:
            peers.wait_for(condition, what)
        except AssertionError as late:
            raise AssertionError(f"{late}\n{self.node.text[-3000:]}") from None

    def left(self):
        """How many members have left so far: at the end of a reading, or later when their grace has passed."""
        return sum(line.get("left", 0) for line in self.node.log())

    def loses(self, count):
        """Reads again, and waits until so many members have left."""
        before = self.left()
        self.hang_up()
        self._wait(lambda: self.left() >= before + count, f"{count} have left")
        assert self.left() == before + count

    def reread(self, **wanted):
        return self.after(self.hang_up, **(wanted or {"message": LOADED}))

    def refused(self):
        """Reads again, which must fail with a warning and leave the pool as it was; returns the error."""
        before = pool_dumps(self.store)
        line = self.reread(message=UNUSABLE)
        assert pool_dumps(self.store) == before
        assert line["level"] == "warn" and line["age_ms"] > 0, line
        return line["error"]

    def age_ms(self):
        (keeper,) = [x for x in nodes_of(self.store).values() if x["role"] == "keeper"]
        return int(keeper["source_age_ms"])

    def grows_old(self):
        """The age of the last good reading grows, as Redis tells it."""
        before = self.age_ms()
        return peers.wait_for(lambda: self.age_ms() > before, "the age of the source grows")
