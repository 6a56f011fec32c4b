# SPDX-License-Identifier: Apache-2.0
"""Many simulated hosts: a few processes of host_views, each with its share of them."""

import hashlib
import json
import ssl
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "contract")]

import live_daemon  # noqa: E402

PROGRAM = live_daemon.BUILD / "tests/host_views"
PORT = 8470
# How a P-256 key begins in DER (RFC 5480): an id-ecPublicKey on prime256v1, a point of 65 bytes.
P256 = bytes.fromhex("3059301306072a8648ce3d020106082a8648ce3d030107034200")


def key_hash(certificate):
    """Returns the SHA-256 of the public key in a PEM certificate of P-256, which a fleet pins."""
    der = ssl.PEM_cert_to_DER_cert(certificate)
    begin = der.index(P256)
    return hashlib.sha256(der[begin:begin + len(P256) + 65]).hexdigest()


class SimulatedHost:
    def __init__(self, number, keys, port):
        self.number, self.name, self.port = number, f"h{number}", port
        self.address = f"127.1.{number // 250}.{number % 250 + 1}"
        self.url = f"https://{self.address}:{port}"
        self.certificate = keys / f"{self.name}.crt"

    def public_key(self):
        return key_hash(self.certificate.read_text())


class Share:
    """A process with the hosts from number `first` on."""

    def __init__(self, folder, keys, first, hosts, port, ca_file, fleet, program):
        words = [program, "--views", HERE / "views", "--keys", keys, "--commits",
                 folder / f"commits-{first}", "--first", first, "--hosts", hosts, "--port", port,
                 *(["--ca", ca_file] if ca_file else []), *(["--fleet", fleet] if fleet else [])]
        self.log = (folder / f"log-{first}").open("w+")
        self.process = subprocess.Popen(list(map(str, words)), stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=self.log, text=True)

    def wait(self):
        said = self.process.stdout.readline()
        self.log.seek(0)
        assert said == "ready\n", self.log.read()

    def command(self, **what):
        self.process.stdin.write(json.dumps(what) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def memory_mib(self):
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0]) / 1024

    def end(self):
        self.process.stdin.close()
        assert self.process.wait(60) == 0
        self.process.stdout.close()
        self.log.close()


class Simulation:
    def __init__(self, folder, hosts, processes=2, port=PORT, ca_file=None, fleet=None,
                 program=PROGRAM):
        """Returns when all hosts serve; with `fleet`, as members of the fleet of that id. What they
        commit is in `folder`; their keys are in memory, and are gone at the end."""
        folder.mkdir(exist_ok=True)
        self.keys = tempfile.TemporaryDirectory(dir="/dev/shm")
        keys = Path(self.keys.name)
        self.hosts = {one.name: one for one in (SimulatedHost(number, keys, port)
                                                for number in range(1, hosts + 1))}
        began, each = time.monotonic(), -(-hosts // processes)
        self.shares = [Share(folder, keys, first, min(each, hosts + 1 - first), port, ca_file,
                             fleet, program)
                       for first in range(1, hosts + 1, each)]
        for share in self.shares:
            share.wait()
        self.started_in = time.monotonic() - began
        self.lock = threading.Lock()

    def events_per_second(self, number):
        """Of all hosts together."""
        with self.lock:
            for share in self.shares:
                share.command(events_per_second=number / len(self.shares))

    def counts(self):
        with self.lock:
            each = [share.command() for share in self.shares]
        return {name: sum(one[name] for one in each) for name in each[0]}

    def figures(self):
        memory = [share.memory_mib() for share in self.shares]
        return (f"{len(self.hosts)} simulated hosts serve after {self.started_in:.1f} s from "
                f"{len(memory)} processes, which take {sum(memory):.0f} MiB")

    def end(self):
        for share in self.shares:
            share.end()
        self.keys.cleanup()


def sent_at(event):
    """Returns when a simulated host sent an event, by CLOCK_MONOTONIC in seconds."""
    return float(event["detail"].rpartition("sent at ")[2])
