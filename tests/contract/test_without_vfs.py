# SPDX-License-Identifier: Apache-2.0
"""vfctl runs a command while a VM has no VFs, by the real vfmgrd on fakes."""

import json
import re
from pathlib import Path

import pytest
from live_daemon import Daemon
from vfctl import VFCTL, vfctl

PF = "0000:01:00.0"
VM = "11111111-1111-1111-1111-111111111111"
HOST = {"pfs": [{"model": "igb", "pci": PF, "ifname": "enp1s0"}],
        "vms": [{"name": "vm1", "uuid": VM, "free_pcie_ports": 8}]}
NETWORK = {"prefix": "192.168.100.0/24", "vlan": 100, "rdma": "rxe",
           "pfs": [{"pf": PF, "host_address": "192.168.100.3"}]}
SPEC = {"vm": "vm1", "pf": PF, "network": "train"}


@pytest.fixture(name="daemon")
def daemon_with_two_attachments(tmp_path):
    started = Daemon(tmp_path, HOST)
    started.do("PUT", f"/v1/pfs/{PF}/spec", {"mode": "manage", "num_vfs": 4})
    assert started.ask("PUT", "/v1/networks/train", NETWORK)[0].status < 300
    started.do("POST", "/v1/attachments", {"attachments": [SPEC, SPEC]})
    yield started
    started.end()


def known_by(daemon):
    """What the VM knows its VFs by."""
    return sorted((one["settings"]["mac"], one["address"])
                  for one in daemon.ask("GET", "/v1/attachments")[1]["items"])


def without_vfs(daemon, *words, status=0):
    return vfctl(daemon, "vm", "without-vfs", *words, status=status)


def test_the_command_runs_without_vfs_and_they_come_back(daemon, tmp_path):
    before = known_by(daemon)
    listed = f"{VFCTL} --host unix:{daemon.socket} attachment list -o json >{tmp_path}/meanwhile"
    without_vfs(daemon, "vm1", "--", "sh", "-c", listed)
    assert json.loads((tmp_path / "meanwhile").read_text())["items"] == []
    assert known_by(daemon) == before and len(before) == 2


def test_they_come_back_after_a_command_that_fails(daemon):
    before = known_by(daemon)
    without_vfs(daemon, VM, "--", "sh", "-c", "exit 7", status=7)
    assert known_by(daemon) == before
    missing = without_vfs(daemon, "vm1", "--", "no-such-command", status=2)
    assert "no-such-command can't be run" in missing.stderr
    assert known_by(daemon) == before


def test_a_vm_without_vfs_needs_none(daemon):
    ids = ",".join(one["id"] for one in daemon.ask("GET", "/v1/attachments")[1]["items"])
    daemon.do("DELETE", f"/v1/attachments?ids={ids}")
    without_vfs(daemon, "vm1", "--", "sh", "-c", "exit 3", status=3)
    assert known_by(daemon) == []


def test_the_request_is_kept_if_they_do_not_come_back(daemon):
    """The PF has one VF of the two afterwards."""
    before = known_by(daemon)
    away = f"{VFCTL} --host unix:{daemon.socket} pf set {PF} --num-vfs 1"
    failed = without_vfs(daemon, "vm1", "--", "sh", "-c", away, status=4)
    assert known_by(daemon) == []
    kept = Path(re.search(r"<(\S+)", failed.stderr)[1])
    daemon.do("PUT", f"/v1/pfs/{PF}/spec", {"mode": "manage", "num_vfs": 4})
    daemon.do("POST", "/v1/attachments", json.loads(kept.read_text()))
    kept.unlink()
    assert known_by(daemon) == before
