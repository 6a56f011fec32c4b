# SPDX-License-Identifier: Apache-2.0
"""deploy/FLEET.md, typed as it is written: three members of etcd, two replicas and three hosts,
each a machine of its own (machine.py). What a newcomer forgets is tried on the way."""

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path[:0] = [str(HERE), str(HERE.parent / "contract"), str(HERE.parent / "lab")]

from etcd_cluster import ETCD  # noqa: E402
from fleetd import FLEETD  # noqa: E402
from fleet import VFCTL  # noqa: E402
from live_daemon import DAEMON, until  # noqa: E402
from network import Network  # noqa: E402
from vflab.pages import blocks_of  # noqa: E402
from world import a_vm, pf_address  # noqa: E402

PAGE = "deploy/FLEET.md"
BLOCKS = blocks_of(PAGE)
COMMANDS = [one for one in BLOCKS if one.heading.startswith("The ten") and not one.why]
TROUBLE = [one for one in BLOCKS if one.heading.startswith("When it") and not one.why]
ETCDS, HOSTS = ("e1", "e2", "e3"), ("h1", "h2", "h3")
ADDRESSES = {**{f"e{n}": f"10.0.0.{n}" for n in (1, 2, 3)},
             **{f"h{n}": f"10.0.0.1{n}" for n in (1, 2, 3)}}
WITHIN = 60  # seconds, for the whole page
# What a package has in place of a program of the build.
HOST = ["--config", "/etc/vfmgr/vfmgr.toml", "--config-dir", "/etc/vfmgr/conf.d",
        "--host", "/root/host.json", "--kept", "/root/kept.json",
        "--guests", "/run/guests.sock"]
UNITS = {
    "files": {"etcd": ETCD.parents[2] / "etcd.service",
              **{name: ROOT / f"deploy/systemd/{name}.service" for name in
                 ("vfmgr-fleetd", "vfmgrd")}},
    "programs": {"/usr/bin/etcd": [ETCD], "/usr/libexec/vfmgr/vfmgr-fleetd": [FLEETD],
                 "/usr/libexec/vfmgr/vfmgrd": [DAEMON, *HOST]}}
SSH = """#!/bin/sh
# As ssh root@NAME COMMAND: a shell there, which gets the words as one text.
pid=$(cat "{machines}/${{1#root@}}/pid") || exit 255
shift
exec nsenter --target "$pid" --net --mount --uts env HOME=/root bash -c "$*"
"""


def installed(folder, name):
    """Lays out what the packages have installed before the page's first command."""
    for part in ("vfmgr/conf.d", "vfmgr/fleetd.conf.d", "default"):
        (folder / "etc" / part).mkdir(parents=True)
    for file in (ROOT / "deploy/config").iterdir():
        (folder / "etc/vfmgr" / file.name).write_text(file.read_text())
    (folder / "root").mkdir()
    number = int(name[1])
    (folder / "root/host.json").write_text(json.dumps({
        "pfs": [{"model": "igb", "pci": pf_address(0), "ifname": "enp1s0", "total_vfs": 4}],
        "vms": [a_vm(number, 0)]}))


class Lab:
    """The machines, and the folder that commands are typed in."""

    def __init__(self, folder):
        self.folder, self.bin, self.machines = folder, folder / "bin", folder / "machines"
        self.bin.mkdir()
        (self.bin / "ssh").write_text(SSH.format(machines=self.machines))
        (self.bin / "ssh").chmod(0o755)
        for name, program in (("vfctl", VFCTL), ("etcdctl", ETCD.with_name("etcdctl")),
                              ("systemctl", HERE / "machine.py")):
            (self.bin / name).symlink_to(program)
        self.environment = {"PATH": f"{self.bin}:/usr/sbin:/usr/bin:/sbin:/bin",
                            "HOME": str(folder), "LANG": "C.UTF-8"}
        for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS"):
            if name in os.environ:
                self.environment[name] = os.environ[name]
        self.network, self.running = Network(), {}

    def boot(self):
        # As Debian's package does: etcd runs from its installation on, alone.
        for name, address in ADDRESSES.items():
            folder = self.machines / name
            installed(folder, name)
            party = self.network.join(name, address)
            boot = ["etcd"] if name in ETCDS else ["vfmgrd"]
            started = subprocess.Popen(
                party.command([HERE / "machine.py", name, folder,
                               json.dumps({**UNITS, "boot": boot}, default=str)]),
                env=self.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            self.running[name] = started
        for name, started in self.running.items():
            assert started.stdout.readline() == "ready\n", f"{name} does not boot"
            (self.machines / name / "pid").write_text(str(started.pid))
        for name in HOSTS:
            self.type(f"ssh root@{name} vfctl pf set enp1s0 --mode manage --num-vfs 2")

    def run(self, text, ends):
        done = subprocess.run(["bash", "-euo", "pipefail", "-c", text], cwd=self.folder,
                              env=self.environment, capture_output=True, text=True, timeout=120)
        assert done.returncode in ends, f"{text}\nends with {done.returncode}: {self.said(done)}"
        return done

    def type(self, text, ends=frozenset((0,))):
        """Returns what the terminal shows."""
        done = self.run(text, ends)
        return done.stdout + done.stderr

    def output(self, text):
        return self.run(text, {0}).stdout

    def said(self, done):
        logs = [f"--- {file}\n{file.read_text()[-1500:]}"
                for file in sorted(self.machines.glob("*/var/lib/*.log"))]
        return f"{done.stdout}{done.stderr}\n" + "\n".join(logs)

    def end(self):
        for started in self.running.values():
            started.stdin.close()
        for started in self.running.values():
            started.wait(60)
        self.network.close()


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    made = Lab(tmp_path_factory.mktemp("newcomer"))
    try:
        made.boot()
        yield made
    finally:
        made.end()


def conditions(lab):
    listed = json.loads(lab.output("ssh root@e1 vfctl --host fleet -j host list"))["items"]
    return {one["name"]: (one["state"], one["unreachable_since"]) for one in listed}


def test_it_is_ten_commands():
    assert len(COMMANDS) == 10
    assert all(one.language == "sh" and not one.where for one in COMMANDS)


def test_a_reason_says_something():
    assert all(len(one.why.split()) >= 5 for one in BLOCKS if one.why)


def test_the_page_makes_a_fleet(lab):
    refusals = [one.text.strip() for one in TROUBLE if one.language == "text"]
    repairs = [one.text for one in TROUBLE if one.language == "sh"]
    assert (len(refusals), len(repairs)) == (2, 3)
    types = iter(COMMANDS)
    began = time.monotonic()

    def type_next(times=1):
        for _ in range(times):
            block = next(types)
            said = lab.type(block.text, block.ends)
        return said

    type_next(5)  # etcd and the replicas are there
    join = COMMANDS[6].text
    # The sixth command was forgotten.
    assert refusals[0] in lab.type(join, {3, 4, 5, 6})
    lab.type(repairs[0])
    type_next()
    # The firewall of one host is closed.
    firewall = lab.network.parties["h1"].nft
    firewall("add chain inet cuts closed { type filter hook input priority 0; }")
    firewall("add rule inet cuts closed tcp dport 8470 reject with tcp reset")
    type_next()
    # A token that was revoked is as one that was used.
    made = json.loads(lab.output("ssh root@e1 vfctl --host fleet -j fleet token --for h9"))
    assert "h9" in lab.type(repairs[1])
    lab.type(f"ssh root@e1 vfctl --host fleet fleet revoke {made['id']}")
    again = f"ssh root@h2 vfctl fleet join https://10.0.0.1:8480 --token {made['token']} --name h9"
    assert refusals[1] in lab.type(again, {3, 4, 5, 6})
    until(lambda: conditions(lab)["h1"][1], "h1 is not reached")
    shown = lab.type(repairs[2])
    assert "joining" in shown and "unreachable" in shown
    firewall("flush chain inet cuts closed")
    until(lambda: set(conditions(lab).values()) == {("active", None)}, "each host is active")

    assert set(HOSTS) <= set(type_next().split())
    # The other replica may be a moment behind.
    until(lambda: set(HOSTS) <= set(lab.type(COMMANDS[8].text).split()),
          "the other replica lists each host's VFs")
    next(types)
    # Exit code 1 alone would also be a vfctl that could check nothing.
    assert re.search(r"\d+ ok$", type_next(), re.M)
    took = time.monotonic() - began
    print(f"the page took {took:.1f} s")
    assert took < WITHIN
