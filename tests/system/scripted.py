"""Both ends of the proxy protocols, byte by byte: upstreams of each kind that tell what they were asked for, and
clients of the gateway's.

Upstream    a wire.Server that takes the handshake of its kind, grants it, and runs a script on the tunnel
Raw         one whose script has to do that itself, with take(..), and answers it otherwise"""

import base64
import contextlib
import socket
import ssl
import struct
import threading
import typing

import wire

KINDS = ("http", "https", "socks4", "socks4a", "socks5", "socks5h")
FAMILY = {"http": "http", "https": "http", "socks4": "socks4", "socks4a": "socks4", "socks5": "socks5",
          "socks5h": "socks5"}
GRANT = {"http": b"HTTP/1.1 200 OK\r\n\r\n", "socks4": b"\0\x5a" + bytes(6), "socks5": b"\5\0\0\1" + bytes(6)}


class Asked(typing.NamedTuple):
    """What a client of a proxy wants. `form` is how the host was said: name, IPv4 or IPv6."""

    form: str
    host: str
    port: int
    user: bytes = b""
    password: bytes = b""


# --- the upstream's side --------------------------------------------------------------------------------------------


def take_http(connection):
    head = wire.Head(connection.read_head())
    assert head.method == "CONNECT"
    host, _, port = head.target.rpartition(":")
    form = "IPv6" if host.startswith("[") else "IPv4" if host.replace(".", "").isdigit() else "name"
    login = base64.b64decode(head.fields.get("proxy-authorization", "Basic ").partition("Basic ")[2])
    user, _, password = login.partition(b":")
    return Asked(form, host.strip("[]"), int(port), user, password)


def take_socks4(connection):
    version, command, port, address = struct.unpack("!BBH4s", connection.read_exactly(8))
    assert (version, command) == (4, 1)
    user = connection.read_until(b"\0")[:-1]
    if address[:3] == bytes(3) and address[3]:
        return Asked("name", connection.read_until(b"\0")[:-1].decode(), port, user)
    return Asked("IPv4", socket.inet_ntoa(address), port, user)


def take_socks5(connection):
    """Wants a password of whoever offers one, and takes any."""
    version, count = connection.read_exactly(2)
    methods = connection.read_exactly(count)
    assert version == 5 and (0 in methods or 2 in methods)
    login = ()
    connection.send(b"\5\2" if 2 in methods else b"\5\0")
    if 2 in methods:
        assert connection.read_exactly(1) == b"\1"
        login = [connection.read_exactly(connection.read_exactly(1)[0]) for _ in range(2)]
        connection.send(b"\1\0")
    assert connection.read_exactly(3) == b"\5\1\0"
    form = {1: "IPv4", 3: "name", 4: "IPv6"}[connection.read_exactly(1)[0]]
    if form == "name":
        host = connection.read_exactly(connection.read_exactly(1)[0]).decode()
    elif form == "IPv4":
        host = socket.inet_ntoa(connection.read_exactly(4))
    else:
        host = socket.inet_ntop(socket.AF_INET6, connection.read_exactly(16))
    return Asked(form, host, *struct.unpack("!H", connection.read_exactly(2)), *login)


TAKE = {"http": take_http, "socks4": take_socks4, "socks5": take_socks5}


def take(kind, connection):
    return TAKE[FAMILY[kind]](connection)


class Raw(wire.Server):
    """A wire.Server by the URL of a kind; https: TLS with the files of a `certificate` and its key comes first."""

    def __init__(self, kind, script, certificate=None, **options):
        self.kind, self.script = kind, script
        self.context = None
        if kind == "https":
            self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self.context.load_cert_chain(*certificate)
        super().__init__(self._serve, **options)
        self.url = f"{kind}://{self.host}:{self.port}"

    def _serve(self, connection):
        if self.context:
            connection.sock = self.context.wrap_socket(connection.sock, server_side=True)
        self.script(connection)


class Upstream(Raw):
    """Takes the handshake of its kind, grants it, runs the script on the tunnel. `asked` has what each connection
    wanted. With forwards=True an http proxy hands what is no CONNECT to the script, unread."""

    def __init__(self, kind, script, forwards=False, **options):
        self.inner, self.forwards = script, forwards
        self.asked = []
        super().__init__(kind, self._grant, **options)

    def _grant(self, connection):
        if self.forwards and FAMILY[self.kind] == "http":
            connection.ahead = connection.read_some()
        if not connection.ahead or connection.ahead.startswith(b"CONNECT "):
            self.asked.append(take(self.kind, connection))
            connection.send(GRANT[FAMILY[self.kind]])
        self.inner(connection)


def relays_socks4(source):
    """A SOCKS4a proxy: connects from the address `source` to what was asked for, and copies both ways."""

    def script(connection):
        asked = take_socks4(connection)
        try:
            far = socket.create_connection((asked.host, asked.port), wire.LIMIT_S, source_address=(source, 0))
        except OSError:
            return connection.send(b"\0\x5b" + bytes(6))
        with far:
            connection.send(GRANT["socks4"])
            back = threading.Thread(target=copy, args=(far, connection.sock), daemon=True)
            back.start()
            far.sendall(connection.ahead)
            copy(connection.sock, far)
            back.join(wire.LIMIT_S)

    return script


def copy(source, sink):
    try:
        while data := source.recv(65536):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        sink.close()


# --- the client's side ----------------------------------------------------------------------------------------------


def basic(user, password=""):
    """The value of Proxy-Authorization (RFC 7617)."""
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


def connect(client, host, port, **fields):
    """CONNECT; returns the response, behind a 200 of which the wire is the tunnel."""
    lines = [f"CONNECT {host}:{port} HTTP/1.1", f"Host: {host}:{port}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in fields.items()]
    return client.ask(("\r\n".join(lines) + "\r\n\r\n").encode(), "CONNECT")


def socks5(client, host, port, user=None, password=""):
    """CONNECT; returns the reply code, behind a 0 of which the wire is the tunnel. A refused login is -1."""
    client.send(b"\5\1\0" if user is None else b"\5\1\2")
    version, method = client.read_exactly(2)
    assert version == 5
    if method == 0xff:
        return -1
    assert method == (0 if user is None else 2)
    if user is not None:
        login = [text.encode() for text in (user, password)]
        client.send(b"\1" + b"".join(bytes([len(text)]) + text for text in login))
        if client.read_exactly(2) != b"\1\0":
            return -1
    client.send(b"\5\1\0" + socks5_address(host, port))
    version, reply, reserved, form = client.read_exactly(4)
    assert (version, reserved) == (5, 0)
    client.read_exactly({1: 4, 4: 16}[form] + 2)
    return reply


def socks5_address(host, port):
    """A name, or an address, as RFC 1928 5 writes it."""
    form = b"\3" + bytes([len(host)]) + host.encode()
    for kind, family in ((b"\1", socket.AF_INET), (b"\4", socket.AF_INET6)):
        with contextlib.suppress(OSError):
            form = kind + socket.inet_pton(family, host)
    return form + struct.pack("!H", port)


def socks4(client, host, port, user=""):
    """CONNECT, as 4a if `host` is a name; returns the reply code, 90 if granted."""
    try:
        address, name = socket.inet_pton(socket.AF_INET, host), b""
    except OSError:
        address, name = b"\0\0\0\1", host.encode() + b"\0"
    client.send(struct.pack("!BBH4s", 4, 1, port, address) + user.encode() + b"\0" + name)
    version, reply = client.read_exactly(8)[:2]
    assert version == 0
    return reply
