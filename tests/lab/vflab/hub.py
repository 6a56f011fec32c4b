# SPDX-License-Identifier: Apache-2.0
"""The wire between machines: a hub that repeats each frame to all others, over unix sockets.

QEMU's netdev "stream" sends each Ethernet frame after its length. The hub connects to the sockets
at which wires end (qemu.WIRE), again after each start of their machine, and other machines connect
to its own socket. It counts what each port sent, by MAC and VLAN, for judges that trust no host.
"""

import selectors
import socket
import struct
import threading
from collections import Counter

AGAIN_SECONDS = 0.2   # a new socket sends no event
WAITING_MAX = 16 << 20  # bytes for a machine that does not read; beyond, its frames are lost
LENGTH = struct.Struct("!I")
TAGS = (0x8100, 0x88a8)


def frames_of(data):
    """Returns the complete frames at the beginning of a stream, and the rest of it."""
    frames, at = [], 0
    while len(data) - at >= LENGTH.size:
        length, = LENGTH.unpack_from(data, at)
        if len(data) - at - LENGTH.size < length:
            break
        at += LENGTH.size
        frames.append(data[at:at + length])
        at += length
    return frames, data[at:]


def sender_of(frame):
    """Returns (MAC, VLAN) of a frame, with VLAN 0 for an untagged one."""
    mac = ":".join(f"{octet:02x}" for octet in frame[6:12])
    kind, tag = struct.unpack_from("!HH", frame.ljust(16, b"\0"), 12)
    return mac, tag & 0xfff if kind in TAGS else 0


class Port:
    def __init__(self, name, connection):
        self.name, self.connection = name, connection
        self.received, self.waiting = b"", bytearray()
        connection.setblocking(False)

    def put(self, frame):
        """Returns whether the frame was taken."""
        if len(self.waiting) > WAITING_MAX:
            return False
        self.waiting += LENGTH.pack(len(frame)) + frame
        return True

    def flush(self):
        try:
            del self.waiting[:self.connection.send(self.waiting)]
        except BlockingIOError:
            pass


class Hub:
    """`wires`: {name: socket of a machine's wire}; `listen`: the hub's own socket, a Path."""

    def __init__(self, wires, listen=None):
        self.wires = {name: str(path) for name, path in wires.items()}
        self.listen = listen
        self.ports = {}
        self.bytes = Counter()  # by (port's name, MAC, VLAN)
        self.lost = 0
        self.selector = selectors.DefaultSelector()
        self.wake, self.woken = socket.socketpair()
        self.thread = threading.Thread(target=self.repeat, daemon=True)

    def __enter__(self):
        self.selector.register(self.woken, selectors.EVENT_READ)
        if self.listen:
            self.listen.unlink(missing_ok=True)
            self.listener = socket.socket(socket.AF_UNIX)
            self.listener.bind(str(self.listen))
            self.listener.listen(8)
            self.selector.register(self.listener, selectors.EVENT_READ)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.wake.close()
        self.thread.join()
        for name in list(self.ports):
            self.drop(name)
        if self.listen:
            self.listener.close()
            self.listen.unlink(missing_ok=True)

    def sent(self, mac, vlan=None):
        """Returns {port's name: bytes} that came from this MAC."""
        found = Counter()
        for (name, sender, tag), length in list(self.bytes.items()):
            if sender == mac and vlan in (None, tag):
                found[name] += length
        return dict(found)

    def repeat(self):
        guests = 0
        while True:
            self.connect()
            for key, events in self.selector.select(AGAIN_SECONDS):
                if key.fileobj is self.woken:
                    return
                if key.data is None:
                    guests += 1
                    self.add(f"machine{guests}", self.listener.accept()[0])
                elif events & selectors.EVENT_READ:
                    self.take(key.data)
                else:
                    self.send(key.data)

    def connect(self):
        for name, path in self.wires.items():
            if name in self.ports:
                continue
            connection = socket.socket(socket.AF_UNIX)
            try:
                connection.connect(path)
            except OSError:
                connection.close()
                continue
            self.add(name, connection)

    def add(self, name, connection):
        self.ports[name] = Port(name, connection)
        self.selector.register(connection, selectors.EVENT_READ, self.ports[name])

    def drop(self, name):
        port = self.ports.pop(name, None)
        if port:
            self.selector.unregister(port.connection)
            port.connection.close()

    def take(self, port):
        if self.ports.get(port.name) is not port:
            return
        try:
            data = port.connection.recv(1 << 18)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            return self.drop(port.name)
        frames, port.received = frames_of(port.received + data)
        for frame in frames:
            self.bytes[(port.name, *sender_of(frame))] += len(frame)
            for other in self.ports.values():
                if other is not port and not other.put(frame):
                    self.lost += 1
        for other in list(self.ports.values()):
            if other is not port and other.waiting:
                self.send(other)

    def send(self, port):
        if self.ports.get(port.name) is not port:
            return
        try:
            port.flush()
        except OSError:
            return self.drop(port.name)
        wanted = selectors.EVENT_READ | (selectors.EVENT_WRITE if port.waiting else 0)
        self.selector.modify(port.connection, wanted, port)
