"""`fairlead up --demo`, whose addresses are fixed, and what processes tell of themselves in Redis."""

import contextlib
import socket

import pytest

import peers

UPSTREAMS = ["127.0.0.11", "127.0.0.12", "127.0.0.13"]
ORIGIN = "http://127.0.0.1:8889/"
PLACES = [(host, 8901) for host in UPSTREAMS] + [("127.0.0.1", 8889)]


def can_bind(place):
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        with contextlib.suppress(OSError):
            probe.bind(place)
            return True
    return False


@pytest.fixture
def demo(node):
    """demo(...) starts one; somebody else's demonstration is waited for."""

    def start(*words, **options):
        peers.wait_for(lambda: all(map(can_bind, PLACES)), "the demonstration's ports are free", 60)
        return node("--demo", *words, role="up", private=False, checks=True, **options)

    return start


def nodes_of(store):
    """The hash `nodes`, unpacked."""
    return {key: dict(pair.split("=", 1) for pair in packed.split("\t"))
            for key, packed in store.client.hgetall("nodes").items()}
