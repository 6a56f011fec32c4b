#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""etcd_cluster.py FOLDER [MEMBERS]: a real etcd on loopback, with TLS, that dies on request.

Prints its endpoints and the files of a client as one line of JSON. Then each line of standard
input is a command, such as {"do": "kill", "member": 1}: start, stop, kill, pause, resume; the
answer is the same line as the first. It ends its members when standard input ends.

Members are of $VFMGR_ETCD, or of build/etcd, which tests/fleet/unpack-etcd makes.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests/contract"))

from certificates import Authority  # noqa: E402

ETCD = Path(os.environ.get("VFMGR_ETCD", ROOT / "build/etcd/usr/bin/etcd"))
USER = "vfmgr-fleetd"  # etcd's user is the CN of the certificate


def free_ports(number):
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(number)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


class Cluster:
    def __init__(self, folder, members=3, words=()):
        assert ETCD.exists(), f"{ETCD} is missing; tests/fleet/unpack-etcd unpacks it"
        self.folder, self.words = Path(folder), words
        (self.folder / "ca").mkdir(parents=True)
        self.authority = Authority(self.folder / "ca")
        self.server = self.authority.issue("etcd", "IP:127.0.0.1", "serverAuth,clientAuth")
        self.client = self.authority.issue(USER)
        self.ports = list(zip(free_ports(members), free_ports(members)))
        self.processes = [None] * members
        for member in range(members):
            self.start(member)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for member in range(len(self.ports)):
            self.kill(member)

    @property
    def endpoints(self):
        return [f"https://127.0.0.1:{client}" for client, _ in self.ports]

    def describe(self):
        return {"endpoints": self.endpoints, "ca_file": str(self.authority.file),
                "certificate_file": self.client[0], "key_file": self.client[1]}

    def start(self, member):
        client, peer = (f"https://127.0.0.1:{port}" for port in self.ports[member])
        folder = self.folder / f"m{member}"
        initial = ",".join(f"m{number}=https://127.0.0.1:{port}"
                           for number, (_, port) in enumerate(self.ports))
        certificate, key = self.server
        command = [
            ETCD, "--name", f"m{member}", "--data-dir", folder / "data",
            "--listen-client-urls", client, "--advertise-client-urls", client,
            "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
            "--initial-cluster", initial, "--client-cert-auth", "--cert-file", certificate,
            "--key-file", key, "--trusted-ca-file", self.authority.file,
            "--peer-client-cert-auth", "--peer-cert-file", certificate, "--peer-key-file", key,
            "--peer-trusted-ca-file", self.authority.file, "--logger", "zap", *self.words]
        folder.mkdir(exist_ok=True)
        log = (folder / "log").open("a")
        self.processes[member] = subprocess.Popen(list(map(str, command)), stdin=subprocess.DEVNULL,
                                                  stdout=log, stderr=log)
        log.close()

    def end(self, member, number):
        process = self.processes[member]
        if process:
            process.send_signal(number)
            process.send_signal(signal.SIGCONT)
            process.wait(60)
            self.processes[member] = None

    def stop(self, member):
        self.end(member, signal.SIGTERM)

    def kill(self, member):
        self.end(member, signal.SIGKILL)

    def pause(self, member):
        self.processes[member].send_signal(signal.SIGSTOP)

    def resume(self, member):
        self.processes[member].send_signal(signal.SIGCONT)

    def control(self, *words, certificate=None, members=None):
        """Runs etcdctl; returns its output, as JSON if it is."""
        where = self.endpoints if members is None else [self.endpoints[one] for one in members]
        file, key = certificate or self.client
        ended = subprocess.run(
            [ETCD.with_name("etcdctl"), "--endpoints", ",".join(where), "--cacert",
             self.authority.file, "--cert", file, "--key", key, "-w", "json", *words],
            env={**os.environ, "ETCDCTL_API": "3"}, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True)
        if ended.returncode:
            raise OSError(f"etcdctl {' '.join(map(str, words))}: {ended.stderr}")
        try:
            return json.loads(ended.stdout)
        except ValueError:
            return ended.stdout

    def await_leader(self, among=None, seconds=60):
        """Returns the number of the member that leads, once one does."""
        deadline = time.monotonic() + seconds
        among = range(len(self.ports)) if among is None else among
        while time.monotonic() < deadline:
            for member in among:
                try:
                    status = self.control("endpoint", "status", members=[member])[0]["Status"]
                except (OSError, KeyError, TypeError):
                    continue
                if status["header"]["member_id"] == status.get("leader"):
                    return member
        raise AssertionError(f"no leader within {seconds} s: {self.folder}/m*/log")


def main(folder, members="3"):
    with Cluster(folder, int(members)) as cluster:
        cluster.await_leader()
        print(json.dumps(cluster.describe()), flush=True)
        for line in sys.stdin:
            command = json.loads(line)
            assert command["do"] in ("start", "stop", "kill", "pause", "resume"), command
            getattr(cluster, command["do"])(command["member"])
            print(json.dumps(cluster.describe()), flush=True)


if __name__ == "__main__":
    if not 2 <= len(sys.argv) <= 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
