# SPDX-License-Identifier: Apache-2.0
"""Real members of etcd, on loopback addresses, as `vfctl fleet init` configures them."""

import os
import signal
import subprocess

from etcd_cluster import ETCD
from network import Here


class Member:
    """`root`: the folder that is to be the machine's root, with etc/ in it."""

    def __init__(self, root, party=None, environment=()):
        self.root, self.name, self.process = root, root.name, None
        self.party = party or Here(root.name)
        self.more = dict(one.split("=", 1) for one in environment)
        self.keys = root / "etc/vfmgr-etcd"
        self.log = (root / "log").open("a+")
        self.start()

    def environment(self):
        lines = (self.root / "etc/default/etcd").read_text().splitlines()
        named = dict(line.split("=", 1) for line in lines if line and line[0] != "#")
        named = {key: value.replace("/etc/", f"{self.root}/etc/")
                 for key, value in named.items()}
        certificate, key = self.keys / "member.pem", self.keys / "member.key"
        # As the unit's drop-in has them.
        return {**os.environ, **named, **self.more, "ETCD_DATA_DIR": str(self.root / "data"),
                "ETCD_CERT_FILE": str(certificate), "ETCD_KEY_FILE": str(key),
                "ETCD_PEER_CERT_FILE": str(certificate), "ETCD_PEER_KEY_FILE": str(key)}

    def start(self):
        self.process = subprocess.Popen(self.party.command([ETCD]), env=self.environment(),
                                        stdout=self.log, stderr=self.log)

    def url(self):
        return self.environment()["ETCD_ADVERTISE_CLIENT_URLS"]

    def control(self, *words, **more):
        """Runs etcdctl at this member; returns what it prints."""
        done = subprocess.run(self.party.command(
            [ETCD.with_name("etcdctl"), "--endpoints", self.url(), "--cacert", self.keys / "ca.pem",
             "--cert", self.keys / "member.pem", "--key", self.keys / "member.key", *words]),
            env={**os.environ, "ETCDCTL_API": "3"}, capture_output=True, text=True, timeout=60,
            **more)
        return done

    def kill(self):
        self.process.kill()
        return self.process.wait(60)

    def pause(self):
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self):
        self.process.send_signal(signal.SIGCONT)

    def end(self):
        if self.process.poll() is None:
            self.go_on()
            self.process.terminate()
            self.process.wait(60)
        self.log.close()
