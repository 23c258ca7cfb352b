"""A farm of proxies on loopback, good and bad ones, in one thread: a port each, by which it is known how each behaves."""

import contextlib
import selectors
import socket
import struct
import threading

TEXT = "fairlead farm"
GOOD = f"HTTP/1.1 200 OK\r\nContent-Length: {len(TEXT)}\r\n\r\n{TEXT}".encode()
RST_ON_CLOSE = struct.pack("=ii", 1, 0)
TICK_S = 0.05

# What a proxy says when it has heard a whole head, and the reason that a check must find.
ANSWERS = {
    "good": (GOOD, "ok"),
    "silent": (b"", "proxy-silent"),
    "drip": (b"H", "response-timeout"),
    "reset": (None, "proxy-reset"),
    "garbage": (b"SSH-2.0-OpenSSH_9.2p1\r\n", "proxy-garbage"),
    "credentials": (b"HTTP/1.1 407 Who?\r\nProxy-Authenticate: Basic\r\nContent-Length: 0\r\n\r\n", "auth-failed"),
    "redirect": (b"HTTP/1.1 302 Found\r\nLocation: http://target.example/\r\nContent-Length: 0\r\n\r\n", "check-status"),
    "text": (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nother", "check-text"),
    "endless": (b"HTTP/1.1 200 OK\r\n" + b"X-Endless: aaaaaaaaaaaaaaaaaaa\r\n" * 3000, "response-head-size"),
    "unavailable": (b"HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n", "check-status"),
}
DRIPPED = b"TTP/1.1 200 OK\r\nX-Slow: "


class Farm:
    """`urls` has (url, kind) of each proxy; those of the kind "refused" are bound and do not listen."""

    def __init__(self, *kinds):
        self.selector = selectors.DefaultSelector()
        self.held, self.dripping, self.urls = [], {}, []
        self.is_over = False
        for kind in kinds:
            self._add(kind)
        self.thread = threading.Thread(target=self._serve)
        self.thread.start()

    def _add(self, kind):
        listener = socket.socket()
        listener.bind(("127.0.0.1", 0))
        self.urls.append((f"http://127.0.0.1:{listener.getsockname()[1]}", kind))
        self.held.append(listener)
        if kind != "refused":
            listener.listen(16)
            listener.setblocking(False)
            self.selector.register(listener, selectors.EVENT_READ, (self._accept, kind))

    def reasons(self):
        """url -> the reason that a check must find."""
        return {url: ANSWERS[kind][1] if kind in ANSWERS else "proxy-refused" for url, kind in self.urls}

    def listed(self):
        return "".join(url + "\n" for url, _ in self.urls)

    def _serve(self):
        while not self.is_over:
            for key, _ in self.selector.select(TICK_S):
                act, kind = key.data
                act(key.fileobj, kind)
            for sock in list(self.dripping):
                self._drip(sock)

    def _accept(self, listener, kind):
        with contextlib.suppress(OSError):
            sock = listener.accept()[0]
            self.selector.register(sock, selectors.EVENT_READ, (self._read, kind))

    def _read(self, sock, kind):
        """The requests of a check are short: one read has the whole head. Behind it comes the end alone."""
        try:
            is_over = not sock.recv(65536)
        except OSError:
            is_over = True
        if is_over or kind == "reset":
            self._close(sock, is_reset=not is_over)
        elif ANSWERS[kind][0]:
            with contextlib.suppress(OSError):
                sock.sendall(ANSWERS[kind][0])
            if kind == "drip":
                self.dripping[sock] = 0

    def _drip(self, sock):
        at = self.dripping[sock]
        with contextlib.suppress(OSError):
            sock.send(DRIPPED[at:at + 1] or b"a")
            self.dripping[sock] += 1

    def _close(self, sock, is_reset=False):
        if is_reset:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RST_ON_CLOSE)
        self.selector.unregister(sock)
        self.dripping.pop(sock, None)
        sock.close()

    def close(self):
        self.is_over = True
        self.thread.join()
        for key in list(self.selector.get_map().values()):
            key.fileobj.close()
        for listener in self.held:
            listener.close()
        self.selector.close()
