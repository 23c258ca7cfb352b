"""Keepers that check a pool, and scripted proxies that note when they were tried."""

import collections
import threading
import time

import peers
import wire
from supplies import eligible, parked

# Soon, and without waiting between two moves.
QUICK = ("allow_private=1", "check_interval_ms=200", "check_timeout_ms=500", "min_state_ms=0", "backoff_max_ms=1000")


class Proxy(wire.Server):
    """A proxy and its target in one, whose answer can be changed at any time: `status` to a request, or to CONNECT.
    `tries` has the moment of each connection."""

    def __init__(self, status=200, **options):
        self.status = status
        self.tries = []
        self.gate = threading.Event()  # closed: whoever connects is kept waiting
        self.gate.set()
        super().__init__(self._serve, **options)

    def _serve(self, connection):
        self.tries.append(time.monotonic())
        connection.read_head()
        self.gate.wait(peers.WAIT_S)
        connection.send(wire.response(status=f"{self.status} Whatever"))



def wait_for_tries(more, *proxies):
    """Until each of them was tried so many times more."""
    wanted = [(proxy, len(proxy.tries) + more) for proxy in proxies]
    peers.wait_for(lambda: all(len(proxy.tries) >= count for proxy, count in wanted), f"{more} more checks")


class Sampler:
    """Looks at the pool again and again, in a thread; `states` has each state of each member that differs from the one
    before."""

    def __init__(self, store, pool="proxies"):
        self.store, self.pool = store, pool
        self.states = collections.defaultdict(list)
        self.is_done = threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.is_done.set()
        self.thread.join(peers.WAIT_S)

    def _look(self, members, state):
        for member in members:
            if self.states[member][-1:] != [state]:
                self.states[member].append(state)

    def _run(self):
        while not self.is_done.is_set():
            self._look(eligible(self.store, self.pool), "eligible")
            self._look(parked(self.store, self.pool), "parked")
            time.sleep(0.01)

    def moves(self):
        return {member: len(states) - 1 for member, states in self.states.items()}


def wait_eligible(store, *members, pool="proxies"):
    peers.wait_for(lambda: set(members) <= eligible(store, pool).keys(), f"{members} are eligible")


def wait_parked(store, *members, pool="proxies"):
    peers.wait_for(lambda: set(members) <= parked(store, pool).keys(), f"{members} are parked")


def health(store, member, pool="proxies"):
    """The unpacked health of a member."""
    packed = store.client.hget(f"{{{pool}}}:pool:health", member) or ""
    return dict(pair.split("=", 1) for pair in packed.split("\t") if pair)
