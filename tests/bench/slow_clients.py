#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Clients that hold connections to a TLS port and get nowhere, from many addresses.

  slow_clients.py PORT COUNT

A third says nothing, a third sends a ClientHello octet by octet, and a third completes the
handshake and then sends a request octet by octet. Who loses a connection opens it again after a
pause. Each line on standard input is answered with a line of JSON: how many were open at least
once, how many are open now, how many were opened in all. Ends with standard input.
"""

import dataclasses
import errno
import heapq
import json
import resource
import selectors
import socket
import ssl
import sys
import time

ADDRESSES = 64
PAUSE_SECONDS = 5
DRIP_SECONDS = 1
OPENED_AT_ONCE = 200  # at the beginning, between two looks at what came
CLIENT_HELLO = bytes.fromhex("16030102000100") + bytes(300)
REQUEST = b"GET /v1/pfs HTTP/1.1\r\nHost: localhost\r\nX-Slow: " + b"x" * 8192
# asm/socket.h: a bound address takes no port before it connects.
IP_BIND_ADDRESS_NO_PORT = 24


@dataclasses.dataclass
class Client:
    address: str
    kind: str
    wire: socket.socket = None
    opened: int = 0  # how often
    sent: int = 0
    state: str = "closed"


class Crowd:
    def __init__(self, port, count):
        self.port = port
        self.selector = selectors.EpollSelector()
        self.context = ssl.create_default_context()
        self.context.check_hostname, self.context.verify_mode = False, ssl.CERT_NONE
        self.clients = [Client(f"127.1.{n % ADDRESSES}.1", ("silent", "hello", "request")[n % 3])
                        for n in range(count)]
        self.due = []  # (when, number of the client, how often it had opened)
        for n in range(count):
            heapq.heappush(self.due, (0.0, n, 0))
        self.selector.register(sys.stdin, selectors.EVENT_READ)

    def run(self):
        while True:
            for key, _ in self.selector.select(self.patience()):
                if key.fileobj is sys.stdin:
                    if not sys.stdin.readline():
                        return
                    print(json.dumps(self.counts()), flush=True)
                else:
                    self.happened(key.data)
            self.act()

    def counts(self):
        return {"once": sum(client.opened > 0 for client in self.clients),
                "open": sum(client.state in ("handshake", "open") for client in self.clients),
                "opened": sum(client.opened for client in self.clients)}

    def patience(self):
        return max(0.0, self.due[0][0] - time.monotonic()) if self.due else None

    def act(self):
        now = time.monotonic()
        for _ in range(OPENED_AT_ONCE):
            if not self.due or self.due[0][0] > now:
                return
            _, n, opened = heapq.heappop(self.due)
            client = self.clients[n]
            if client.state == "closed":
                self.open(n)
            elif client.state == "open" and client.opened == opened:
                self.drip(n)

    def later(self, n, seconds):
        heapq.heappush(self.due, (time.monotonic() + seconds, n, self.clients[n].opened))

    def open(self, n):
        client = self.clients[n]
        client.wire = socket.socket()
        client.wire.setblocking(False)
        client.wire.setsockopt(socket.IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1)
        client.wire.bind((client.address, 0))
        client.state, client.sent = "connecting", 0
        failed = client.wire.connect_ex(("127.0.0.1", self.port))
        if failed not in (0, errno.EINPROGRESS):
            return self.closed(n)
        self.selector.register(client.wire, selectors.EVENT_WRITE, n)

    def closed(self, n):
        client = self.clients[n]
        if client.wire.fileno() in self.selector.get_map():
            self.selector.unregister(client.wire)
        client.wire.close()
        client.state = "closed"
        self.later(n, PAUSE_SECONDS)

    def happened(self, n):
        client = self.clients[n]
        try:
            if client.state == "connecting":
                self.connected(n)
            elif client.state == "handshake":
                self.shake(n)
            elif not client.wire.recv(4096):
                self.closed(n)
        except (BlockingIOError, ssl.SSLWantReadError):
            pass
        except OSError:
            self.closed(n)

    def connected(self, n):
        client = self.clients[n]
        if client.wire.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
            return self.closed(n)
        client.opened += 1
        self.selector.unregister(client.wire)
        if client.kind == "request":
            client.wire = self.context.wrap_socket(client.wire, do_handshake_on_connect=False)
        client.state = "handshake" if client.kind == "request" else "open"
        self.selector.register(client.wire, selectors.EVENT_READ, n)
        if client.state == "handshake":
            self.shake(n)
        elif client.kind == "hello":
            self.later(n, 0)

    def shake(self, n):
        self.clients[n].wire.do_handshake()
        self.clients[n].state = "open"
        self.later(n, 0)

    def drip(self, n):
        client = self.clients[n]
        text = REQUEST if client.kind == "request" else CLIENT_HELLO
        try:
            client.wire.send(text[client.sent:client.sent + 1])
            client.sent = (client.sent + 1) % len(text)
            self.later(n, DRIP_SECONDS)
        except OSError:
            self.closed(n)


if __name__ == "__main__":
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    Crowd(int(sys.argv[1]), int(sys.argv[2])).run()
