# SPDX-License-Identifier: Apache-2.0
"""A whole fleet on one machine: etcd, replicas of vfmgr-fleetd and hosts, begun by the commands
that an admin types. Each member and replica has a loopback address of its own."""

import json
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "contract")]

import etcd  # noqa: E402
from fleetd import FLEETD, remote  # noqa: E402
from live_daemon import BUILD, Program, until  # noqa: E402
from network import OWN, Here, Loopback  # noqa: E402
from world import World  # noqa: E402

VFCTL = BUILD / "service/vfctl"
HERE_ITSELF = Here("here")


def vfctl(*words, at=None, text=None, party=HERE_ITSELF):
    """Runs vfctl at a daemon's socket; returns what it prints on standard output."""
    where = [] if at is None else ["--host", f"unix:{at}"]
    done = subprocess.run(party.command([VFCTL, *where, *words]), input=text, capture_output=True,
                          text=True, timeout=120)
    assert done.returncode == 0, f"vfctl {' '.join(map(str, words))}: {done.stderr}"
    return done.stdout


class Replica(Program):
    """`root`: the folder that is to be the machine's root, with etc/ in it."""

    def __init__(self, root, config="", party=HERE_ITSELF):
        self.root, self.name, self.keys = root, root.name, root / "etc/vfmgr-fleet"
        self.party = party
        settings = root / "etc/vfmgr/fleetd.toml"
        text = settings.read_text().replace('"/etc/', f'"{root}/etc/').replace(
            "/run/credentials/vfmgr-fleetd.service/", f"{self.keys}/")
        run = root / "run"
        run.mkdir(exist_ok=True)
        self.url = next(line.split('"')[1] for line in text.splitlines()
                        if line.startswith("url"))
        super().__init__(run, party.command([FLEETD, "--config", run / "fleetd.toml",
                                             "--config-dir", run / "fleetd.conf.d"]))
        (run / "fleetd.toml").write_text(
            f'{text}[listen.unix]\npath = "{self.socket}"\ngroup = "root"\n'
            f'[roles.groups]\nvfmgr = "none"\n[roles.uids]\n{os.getuid()} = "admin"\n{config}')
        self.start()

    def remote(self):
        return remote(self.url, self.keys / "ca.pem")

    def get(self, path):
        answer, body = self.ask("GET", path)
        assert answer.status == 200, f"GET {path}: {answer}"
        return body

    def ready(self):
        until(lambda: self.call("GET", "/readyz").status == 200, f"{self.name} is ready")


class Fleet:
    """`members` of etcd and `replicas`, begun; end() ends them. Hosts are a World's. `config`: of
    each replica, tables that fleetd.toml does not have yet. With a network, each member and replica
    is a party of it."""

    def __init__(self, folder, members=1, replicas=2, config="", network=None, environment=()):
        """`environment`: of the members, NAME=VALUE."""
        self.folder = folder / "fleet"
        etcds = self.parties(network, "e", 251, members)
        names = self.parties(network, "r", 252, replicas)
        vfctl("fleet", "init", self.folder,
              *(word for one in etcds for word in ("--etcd", f"{one.name}={one.address}")),
              *(word for one in names for word in ("--replica", f"{one.name}={one.address}")))
        self.members, self.replicas = [], []
        for one in etcds:
            self.members.append(etcd.Member(self.folder / "machines" / one.name, one, environment))
        for one in names:
            self.replicas.append(Replica(self.folder / "machines" / one.name, config, one))
        for replica in self.replicas:
            replica.ready()

    @staticmethod
    def parties(network, letter, net, count):
        names = [f"{letter}{number}" for number in range(1, count + 1)]
        if network:
            return [network.join(name) for name in names]
        return [Here(name, f"{OWN}.{net}.{number}") for number, name in enumerate(names, 1)]

    def join(self, host, **more):
        """Has a host of a World join, as its admin does."""
        more.setdefault("party", host.party)
        token = vfctl("fleet", "token", at=self.replicas[0].socket).strip()
        return vfctl("fleet", "join", self.replicas[0].url, "--token", token, "--name", host.name,
                     "--address", f"{host.party.address}:{host.port}", at=host.socket, **more)

    def active(self, name, replica=None):
        """Waits until the host is active and observed by the replica."""
        at = replica or self.replicas[0]
        return until(lambda: (host := at.get(f"/v1/hosts/{name}"))["state"] == "active"
                     and host["observed"] and host, f"{name} is active at {at.name}")

    def end(self):
        for one in [*self.replicas, *self.members]:
            one.end()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()


__all__ = ["Fleet", "Loopback", "World", "json", "vfctl"]
