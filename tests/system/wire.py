"""Clients and servers that put exact bytes on the wire and read strictly.

Client      a socket to the gateway; reads responses with a parser of its own that accepts no more than RFC 9112 allows
Server      a scripted upstream (or origin): runs one function a connection and keeps every byte that it received"""

import contextlib
import re
import socket
import struct
import threading
import time

import peers

LIMIT_S = 20
RST_ON_CLOSE = struct.pack("ii", 1, 0)


class Truncated(Exception):
    """The connection ended in the middle of a message."""


class Wire:
    """A connected socket that remembers what was read ahead."""

    def __init__(self, sock):
        self.sock = sock
        self.sock.settimeout(LIMIT_S)
        if sock.family != socket.AF_UNIX:
            self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.ahead = b""
        self.received = bytearray()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def send(self, *pieces):
        for piece in pieces:
            self.sock.sendall(piece)

    def send_pieces(self, pieces):
        """Each piece in a segment of its own: the next goes when the peer's kernel has acknowledged the last."""
        for piece in pieces:
            self.sock.sendall(piece)
            self.wait_until_acknowledged()

    def wait_until_acknowledged(self):
        peers.wait_for(lambda: self._unacknowledged() == 0, "the peer's kernel acknowledges", LIMIT_S,
                       pause_s=0)

    def _unacknowledged(self):
        """tcpi_unacked of struct tcp_info."""
        info = self.sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 104)
        return struct.unpack_from("=I", info, 24)[0]

    def read_some(self, size=65536):
        """What comes next; empty at the end."""
        if self.ahead:
            data, self.ahead = self.ahead[:size], self.ahead[size:]
            return data
        data = self.sock.recv(size)
        self.received += data
        return data

    def read_exactly(self, size):
        data = bytearray()
        while len(data) < size:
            piece = self.read_some(size - len(data))
            if not piece:
                raise Truncated(bytes(data[-200:]))
            data += piece
        return bytes(data)

    def read_until(self, end):
        data = b""
        while end not in data:
            piece = self.read_some()
            if not piece:
                raise Truncated(data)
            data += piece
        head, _, self.ahead = data.partition(end)
        return head + end

    def read_head(self):
        return self.read_until(b"\r\n\r\n")

    def read_to_end(self):
        """All until the peer's FIN."""
        data = bytearray()
        while piece := self.read_some():
            data += piece
        return bytes(data)

    def end(self):
        """Half-close: nothing more is sent."""
        self.sock.shutdown(socket.SHUT_WR)

    def reset(self):
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RST_ON_CLOSE)
        self.sock.close()

    def close(self):
        self.sock.close()

    # --- HTTP ---

    def read_chunked(self):
        body = bytearray()
        while True:
            size = int(self.read_until(b"\r\n")[:-2], 16)
            body += self.read_exactly(size)
            assert self.read_exactly(2) == b"\r\n"
            if size == 0:
                return bytes(body)

    def read_response(self, method="GET"):
        head = Head(self.read_head())
        if method == "CONNECT" and head.status // 100 == 2:
            return head
        if method == "HEAD" or head.status in (204, 304) or head.status // 100 == 1:
            head.body = b""
        elif "transfer-encoding" in head.fields:
            assert head.fields["transfer-encoding"].lower() == "chunked"
            assert "content-length" not in head.fields
            head.body = self.read_chunked()
        elif "content-length" in head.fields:
            head.body = self.read_exactly(int(head.fields["content-length"]))
        else:
            head.body = self.read_to_end()
        return head

    def read_request(self):
        """A request with its body, as a server reads it."""
        head = Head(self.read_head())
        if "transfer-encoding" in head.fields:
            head.body = self.read_chunked()
        else:
            head.body = self.read_exactly(int(head.fields.get("content-length", 0)))
        return head


class Head:
    """The head of a message: `line`, `fields` (lower-case names; repeated ones joined by comma), `raw`; of a response
    `status`, of a request `method` and `target`."""

    def __init__(self, raw):
        self.raw, self.body, self.fields = raw, None, {}
        lines = raw[:-4].decode("latin-1").split("\r\n")
        self.line = lines[0]
        for line in lines[1:]:
            name, colon, value = line.partition(":")
            assert colon and name and name == name.strip(), line
            name = name.lower()
            value = value.strip(" \t")
            self.fields[name] = f"{self.fields[name]}, {value}" if name in self.fields else value
        words = self.line.split(" ", 2)
        if words[0].startswith("HTTP/"):
            self.status = int(words[1])
        else:
            self.method, self.target, _ = words

    def names(self):
        return {line.partition(b":")[0].lower().decode("latin-1")
                for line in self.raw[:-4].split(b"\r\n")[1:]}


class Client(Wire):
    """A client of the gateway."""

    def __init__(self, address, receive_buffer=None):
        sock = socket.socket()
        if receive_buffer:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        sock.settimeout(LIMIT_S)
        sock.connect(address)
        super().__init__(sock)

    def get(self, url="http://origin.test/", **fields):
        """A GET and its response."""
        self.send(request("GET", url, **fields))
        return self.read_response()

    def tunnel(self, authority="origin.test:443"):
        """CONNECT and its response; after 200 the wire is the tunnel."""
        self.send(f"CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n\r\n".encode())
        return self.read_response("CONNECT")

    def ask(self, raw, method="GET"):
        """Sends raw bytes, returns the response."""
        self.send(raw)
        return self.read_response(method)

    def is_closed(self):
        """Waits for the end of the connection; true if nothing came before it."""
        try:
            return self.read_some() == b""
        except ConnectionResetError:
            return True


def request(method, url, body=b"", **fields):
    """A request in absolute form with the Host that belongs to it; `Transfer_Encoding="chunked"` becomes a field."""
    host = re.match(r"[a-z]+://([^/?]*)", url)[1]
    lines = [f"{method} {url} HTTP/1.1", f"Host: {host}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in fields.items()]
    if body:
        lines.append(f"Content-Length: {len(body)}")
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1") + body


def chunked(*pieces):
    return b"".join(b"%x\r\n%s\r\n" % (len(x), x) for x in pieces) + b"0\r\n\r\n"


def response(body=b"", status="200 OK", **fields):
    lines = [f"HTTP/1.1 {status}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in fields.items()]
    lines.append(f"Content-Length: {len(body)}")
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1") + body


class Connection(Wire):
    """One connection of a Server: what it received, and from whom."""

    def __init__(self, sock, peer):
        super().__init__(sock)
        self.peer = peer
        self.trouble = None
        self.done = threading.Event()

    @property
    def head(self):
        return Head(bytes(self.received).partition(b"\r\n\r\n")[0] + b"\r\n\r\n")


class Server:
    """Listens on a free port and runs scripts[i] on connection i, the last one on all that follow. A script is a
    function of a Connection, in a thread of its own; the connection is closed when it returns. `connections` grows in
    the order of arrival. Errors of the socket end a script quietly (the peer may go any time), others fail the test at
    close()."""

    def __init__(self, *scripts, host="127.0.0.1", port=0, receive_buffer=None):
        self.scripts = scripts
        self.connections = []
        self.listener = socket.socket()
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if receive_buffer:
            self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.listener.bind((host, port))
        self.listener.listen(512)
        self.host, self.port = self.listener.getsockname()
        self.url = f"http://{self.host}:{self.port}"
        self.thread = threading.Thread(target=self._accept, daemon=True)
        self.thread.start()

    def _accept(self):
        while True:
            try:
                sock, peer = self.listener.accept()
            except OSError:
                return
            connection = Connection(sock, peer)
            script = self.scripts[min(len(self.connections), len(self.scripts) - 1)]
            self.connections.append(connection)
            threading.Thread(target=self._run, args=(script, connection), daemon=True).start()

    def _run(self, script, connection):
        try:
            script(connection)
        except (OSError, Truncated):
            pass
        except Exception as trouble:  # told by close()
            connection.trouble = trouble
        finally:
            with contextlib.suppress(OSError):
                connection.close()
            connection.done.set()

    def wait_for_connection(self, index=0):
        return peers.wait_for(lambda: len(self.connections) > index and self.connections[index],
                              f"connection {index} arrives")

    def refuse(self):
        """From now on connections are refused; those that stand go on."""
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.thread.join(LIMIT_S)

    def close(self):
        self.refuse()
        for connection in self.connections:
            with contextlib.suppress(OSError):
                connection.sock.shutdown(socket.SHUT_RDWR)
            connection.done.wait(LIMIT_S)
        for connection in self.connections:
            if connection.trouble:
                raise connection.trouble


# --- scripts ------------------------------------------------------------------------------------------------------


def answers(*pieces):
    """Reads a head and its body, sends the pieces, closes."""

    def script(connection):
        connection.read_request()
        connection.send_pieces(pieces)

    return script


def serves(body=b"hello", **fields):
    """A proxy and its origin in one: answers every request, tells its own port, closes after each."""
    return answers(response(body, **fields))


def echoes(connection):
    """Answers with the method, the target and the body that it got."""
    got = connection.read_request()
    connection.send(response(b"%s %s %s" % (got.method.encode(), got.target.encode(), got.body)))


def tunnels(script, reply=b"HTTP/1.1 200 OK\r\n\r\n"):
    """Takes a CONNECT, then runs `script` on the tunnel."""

    def run(connection):
        connection.read_head()
        connection.send(reply)
        script(connection)

    return run


def returns_all(connection):
    """Sends back what comes, until the end."""
    while data := connection.read_some():
        connection.send(data)


def resets(connection):
    """Reads a head and resets."""
    connection.read_head()
    connection.reset()


def closes(connection):
    """Reads a head and closes."""
    connection.read_head()


def is_silent(connection):
    """Reads until the peer goes, says nothing."""
    connection.read_to_end()


def drips(first, piece):
    """Reads a head, sends `first`, then `piece` again and again without end, each long before any time-out."""

    def script(connection):
        connection.read_head()
        connection.send(first)
        while True:
            connection.send(piece)
            time.sleep(0.02)

    return script
