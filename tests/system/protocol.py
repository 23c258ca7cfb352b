"""What the conformance tests share: every way to cut a message, a gateway for a whole module, and a second reader.

Ways     whole, and once at each border of a grammar element and in the middle of each
Stage    a gateway with one scripted member; the connections of all messages of a case stand at the same time, so that
         no piece of a message waits for an acknowledgement"""

import contextlib
import hashlib
import hmac
import http.client
import io
import os
import re
import socket
import subprocess
import threading

import conftest
import peers
import wire

TOKEN = rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+|."
OK = b"HTTP/1.1 200 OK\r\nDate: x\r\nContent-Length: 2\r\n\r\nok"


def cuts(raw, token=TOKEN):
    """Places at which a message is split."""
    places = set()
    for element in re.finditer(token, raw, re.S):
        places.add(element.start())
        places.add((element.start() + element.end()) // 2)
    return sorted(places - {0})


def ways(raw, token=TOKEN):
    """Of a long message not more than a hundred cuts, evenly spread."""
    places = cuts(raw, token)
    return [[raw]] + [[raw[:at], raw[at:]] for at in places[::1 + len(places) // 100]]


# --- the second reader ----------------------------------------------------------------------------------------------


class Message:
    """A request as http.client's parser of fields and the plain rules of RFC 9112 6.3 read it."""

    def __init__(self, stream):
        self.line = stream.readline(65537).decode("latin-1").rstrip("\r\n")
        self.method, self.target, self.version = self.line.split(" ")
        self.fields = http.client.parse_headers(stream)
        codings = self.fields.get_all("Transfer-Encoding") or []
        lengths = self.fields.get_all("Content-Length") or []
        assert len(codings) + len(lengths) <= 1, self.line
        self.is_whole = True
        if codings:
            assert codings == ["chunked"]
            self.body = self._chunks(stream)
        else:
            size = int(lengths[0]) if lengths else 0
            self.body = stream.read(size)
            self.is_whole = len(self.body) == size

    def _chunks(self, stream):
        body = b""
        while True:
            size = stream.readline()
            if not size.endswith(b"\r\n"):
                self.is_whole = False
                return body
            chunk = stream.read(int(size, 16))
            body += chunk
            if stream.read(2) != b"\r\n":
                self.is_whole = False
                return body
            if not chunk:
                return body


def messages(raw):
    """All requests in what a server received."""
    stream, found = io.BytesIO(raw), []
    while stream.tell() < len(raw):
        found.append(Message(stream))
    return found


# --- the stage ------------------------------------------------------------------------------------------------------


def until_end(script):
    """Runs `script`, then reads what else comes, so that nothing that was sent is overlooked."""

    def run(connection):
        script(connection)
        connection.read_to_end()

    return run


class Stage:
    """`member`: its URL without the port, or direct. `words`: of the gateway."""

    def __init__(self, binary, folder, member="http://127.0.0.1", words=("--allow-private",)):
        self.folder, self.binary = folder, binary
        self.stack = contextlib.ExitStack()
        self.seen = []  # the connections of earlier cases
        self.redis = peers.RedisServer(folder / "redis").start()
        self.stack.callback(self.redis.stop)
        self.server = wire.Server(wire.is_silent)
        self.stack.callback(self.server.close)
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith("FAIRLEAD_")}
        self.environment["HOME"] = str(folder)
        self.run("pool", "add", "--eligible", "--allow-private",
                 member if member == "direct://" else f"{member}:{self.server.port}")
        # The member fails as often as a test likes: that has no consequences for the next one.
        self.run("pool", "rules", "fall=1000", "cooldown_ms=0")
        self.gateway = self.start(words)

    def run(self, *words):
        subprocess.run([self.binary, *words, "--redis", self.redis.url], check=True, stdin=subprocess.DEVNULL,
                       stdout=subprocess.DEVNULL, env=self.environment, timeout=conftest.COMMAND_LIMIT_S)

    def start(self, words):
        port = peers.free_port()
        gateway = conftest.Node(
            [self.binary, "gateway", "--log-format", "json", "--listen", f"127.0.0.1:{port}",
             "--allow-port", "1-65535", "--redis", self.redis.url, *words], self.folder / "stderr", self.environment)
        gateway.port = port
        self.stack.callback(gateway.stop)
        peers.wait_for(gateway._serves, "the gateway serves")
        return gateway

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stack.close()

    def play(self, script):
        """The member answers by `script` from now on."""
        self._accept_all()
        self.seen += self.server.connections
        self.server.connections = []
        self.server.scripts = (script,)

    def _accept_all(self):
        """Connections are accepted in their order: when one of our own has been, so have all before it."""
        with socket.create_connection((self.server.host, self.server.port)) as last:
            mine = last.getsockname()
            found = peers.wait_for(lambda: [c for c in self.server.connections if c.peer == mine], pause_s=0.001)
        found[0].done.wait(wire.LIMIT_S)
        self.server.connections.remove(found[0])

    def received(self):
        """What each connection of the member received, when all of them are over."""
        self._accept_all()
        for connection in self.server.connections:
            assert connection.done.wait(wire.LIMIT_S)
            if connection.trouble:
                raise connection.trouble
        return [bytes(connection.received) for connection in self.server.connections]

    def ask(self, all_ways, read):
        """Sends each way on a connection of its own, piece by piece in turn, and returns what `read` made of each."""
        with contextlib.ExitStack() as stack:
            clients = [stack.enter_context(self.gateway.connect()) for _ in all_ways]
            for i in range(max(len(way) for way in all_ways)):
                for client, way in zip(clients, all_ways):
                    # A gateway that has refused the first piece may be gone.
                    with contextlib.suppress(ConnectionError):
                        client.send(*way[i:i + 1])
            return [read(client) for client in clients]


def answers_in_pieces(pieces, count):
    """A script of `count` connections: all of them send the first piece before one sends the next."""
    barrier = threading.Barrier(count)

    def script(connection):
        connection.read_request()
        mine = next(pieces)
        connection.send(mine[0])
        barrier.wait(wire.LIMIT_S)
        connection.send(*mine[1:])

    return script


def account_file(folder, **passwords):
    """A file for --auth-file."""
    salt = bytes(range(16))
    lines = [f"{name} hmac-sha256:{salt.hex()}:{hmac.new(salt, password.encode(), hashlib.sha256).hexdigest()}\n"
             for name, password in passwords.items()]
    path = folder / "accounts"
    path.write_text("".join(lines))
    return path


def without_date(raw):
    return re.sub(rb"\r\nDate: [^\r]*", b"", raw)
