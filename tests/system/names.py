"""A name server that counts: it answers A questions from a table, all others with NXDOMAIN."""

import socket
import struct
import threading

NXDOMAIN, TYPE_A, CLASS_IN = 3, 1, 1


class NameServer:
    """`asked` has the name of each question, in lower case, in the order of arrival."""

    def __init__(self, **addresses):
        self.addresses = addresses
        self.asked = []
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 0))
        self.place = "127.0.0.1:%d" % self.socket.getsockname()[1]
        self.thread = threading.Thread(target=self._serve, daemon=True)
        self.thread.start()

    def asked_for(self, name):
        """How often: by itself or with a search domain behind it."""
        return sum(1 for asked in self.asked if asked == name or asked.startswith(name + "."))

    def _serve(self):
        while True:
            query, peer = self.socket.recvfrom(4096)
            if not query:
                return
            self.socket.sendto(self._answer(query), peer)

    def _answer(self, query):
        """RFC 1035 4.1: header, the question again, one A record or none."""
        name, end = read_name(query, 12)
        kind, _ = struct.unpack_from("!HH", query, end)
        self.asked.append(name)
        address = self.addresses.get(name) if kind == TYPE_A else None
        is_known = name in self.addresses
        header = query[:2] + struct.pack("!HHHHH", 0x8180 | (0 if is_known else NXDOMAIN), 1,
                                         1 if address else 0, 0, 0)
        answer = header + query[12:end + 4]
        if address:
            answer += struct.pack("!HHHIH", 0xc00c, TYPE_A, CLASS_IN, 60, 4) + socket.inet_aton(address)
        return answer

    def close(self):
        # An empty datagram tells the thread, which close() would not wake.
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as last:
            last.sendto(b"", self.socket.getsockname())
        self.thread.join(5)
        self.socket.close()


def read_name(message, at):
    labels = []
    while length := message[at]:
        labels.append(message[at + 1:at + 1 + length].decode("latin-1").lower())
        at += 1 + length
    return ".".join(labels), at + 1
