# SPDX-License-Identifier: Apache-2.0
"""A network of namespaces on this machine, whose links can be cut, one way too. Needs root.

Each party has a namespace and an address of its own on one bridge; the bridge is in another. No
interface of the machine itself is touched. A cut drops packets where they arrive, so connections
hang, as they do when a switch fails; the kernel counts what was dropped.
"""

import contextlib
import ctypes
import ipaddress
import json
import os
import socket
import subprocess
import threading

PREFIX = ipaddress.ip_network("10.99.0.0/16")
# Loopback addresses of this process: other tests run at the same time.
OWN = f"127.{8 + os.getpid() % 200}"
CLONE_NEWNET = 0x40000000
RULES = """table inet cuts {
    set senders { type ipv4_addr; counter; }
    chain input { type filter hook input priority -300; ip saddr @senders drop; }
}
"""
libc = ctypes.CDLL(None, use_errno=True)


def run(*words, text=None):
    done = subprocess.run(list(map(str, words)), input=text, capture_output=True, text=True)
    assert done.returncode == 0, f"{' '.join(map(str, words))}: {done.stderr}"
    return done.stdout


@contextlib.contextmanager
def inside(namespace):
    """Makes the sockets of this thread in that namespace; they stay there."""
    with open("/proc/thread-self/ns/net") as before, open(f"/run/netns/{namespace}") as there:
        enter(there)
        try:
            yield
        finally:
            enter(before)


def enter(namespace):
    if libc.setns(namespace.fileno(), CLONE_NEWNET):
        number = ctypes.get_errno()
        raise OSError(number, f"setns: {os.strerror(number)}")


class Party:
    def __init__(self, name, namespace, address):
        self.name, self.namespace, self.address = name, namespace, address

    def command(self, words):
        """Returns the command that runs this program as the party."""
        return ["nsenter", f"--net=/run/netns/{self.namespace}", *map(str, words)]

    def connect(self, address, port, timeout):
        with inside(self.namespace):
            return socket.create_connection((address, port), timeout)

    def listen(self, port):
        with inside(self.namespace):
            return socket.create_server((self.address, port))

    def nft(self, *words):
        return run(*self.command(["nft", *words]))

    def dropped(self, sender):
        """Returns how many packets of this sender were dropped in the present cut."""
        rules = json.loads(self.nft("--json", "list", "set", "inet", "cuts", "senders"))["nftables"]
        found, = [one["set"] for one in rules if "set" in one]
        return next((one["elem"]["counter"]["packets"] for one in found.get("elem", [])
                     if one["elem"]["val"] == sender.address), 0)


class Here:
    """The machine's own loopback device, where nothing can be cut."""
    namespace = None

    def __init__(self, name, address="127.0.0.1"):
        self.name, self.address = name, address

    @staticmethod
    def command(words):
        return list(map(str, words))

    @staticmethod
    def connect(address, port, timeout):
        return socket.create_connection((address, port), timeout)

    def listen(self, port):
        return socket.create_server((self.address, port))


class Loopback:
    """As Network: parties with addresses of 127.0.0.0/8."""

    def __init__(self):
        self.parties, self.addresses = {}, iter(range(1, 60_000))

    def join(self, name):
        number = next(self.addresses)
        self.parties[name] = Here(name, f"{OWN}.{number // 250}.{number % 250 + 1}")
        return self.parties[name]

    def close(self):
        pass


class Network:
    numbers = iter(range(1000))  # of this process's networks

    def __init__(self):
        self.stem = f"vf{os.getpid()}-{next(self.numbers)}"
        self.parties, self.made = {}, []
        self.addresses = PREFIX.hosts()
        self.lock = threading.Lock()
        self.bridge = self.make("bridge")
        run("ip", "-n", self.bridge, "link", "add", "br0", "up", "type", "bridge")

    def make(self, name):
        namespace = f"{self.stem}-{name}"
        run("ip", "netns", "add", namespace)
        self.made.append(namespace)
        run("ip", "-n", namespace, "link", "set", "lo", "up")
        return namespace

    def join(self, name, address=None):
        with self.lock:
            namespace, address = self.make(name), address or str(next(self.addresses))
            port = f"p{len(self.made)}"
        party = Party(name, namespace, address)
        # Made inside the bridge's namespace: the machine's own never has it.
        run("ip", "-n", self.bridge, "link", "add", port, "type", "veth",
            "peer", "name", "up0", "netns", namespace)
        run("ip", "-n", self.bridge, "link", "set", port, "up", "master", "br0")
        run("ip", "-n", namespace, "address", "add", f"{address}/{PREFIX.prefixlen}", "dev", "up0")
        run("ip", "-n", namespace, "link", "set", "up0", "up")
        run(*party.command(["nft", "-f", "-"]), text=RULES)
        self.parties[name] = party
        return party

    def cut(self, sender, receiver):
        """Drops what `sender` sends to `receiver`. Of a pair, both ways are two cuts."""
        receiver.nft("add", "element", "inet", "cuts", "senders", f"{{ {sender.address} }}")

    def heal(self, sender, receiver):
        """Returns how many packets the cut has dropped."""
        dropped = receiver.dropped(sender)
        receiver.nft("delete", "element", "inet", "cuts", "senders", f"{{ {sender.address} }}")
        return dropped

    def close(self):
        """Ends the namespaces; the programs in them must have ended."""
        for namespace in reversed(self.made):
            run("ip", "netns", "delete", namespace)
        self.made = []
