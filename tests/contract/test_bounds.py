# SPDX-License-Identifier: Apache-2.0
"""Root's bounds hold for every caller, an admin too, and vfctl says whose they are."""

import pytest
from live_daemon import Daemon
from vfctl import vfctl

PF = "0000:01:00.0"
VM = "11111111-1111-1111-1111-111111111111"
HOST = {"pfs": [{"model": "mlx5", "pci": PF, "ifname": "enp1s0"}],
        "vms": [{"name": "vm1", "uuid": VM, "free_pcie_ports": 8}]}
CONFIG = """[bounds.pfs.default]
num_vfs_max = 4
vlans = ["0", "100-199"]
trust = false
"""


@pytest.fixture(name="daemon")
def running(tmp_path):
    started = Daemon(tmp_path, HOST, CONFIG)
    started.do("PUT", f"/v1/pfs/{PF}/spec", {"mode": "manage", "num_vfs": 4})
    yield started
    started.end()


@pytest.mark.parametrize("method, path, body, said", [
    ("PUT", f"/v1/pfs/{PF}/spec", {"mode": "manage", "num_vfs": 5}, "5 VFs of"),
    ("POST", "/v1/attachments", {"vm": VM, "pf": PF, "settings": {"trust": True}}, "trust on"),
    ("POST", "/v1/attachments", {"vm": VM, "pf": PF, "settings": {"vlan": {"id": 200}}},
     "VLAN 200"),
])
def test_a_request_beyond_them_is_forbidden(daemon, method, path, body, said):
    for query in ("", "?dry_run=true"):
        answer, problem = daemon.ask(method, path + query, body)
        assert (answer.status, problem["code"]) == (403, "forbidden"), problem
        assert said in problem["detail"] and "[bounds]" in problem["remedy"]
    assert daemon.ask("GET", "/v1/attachments")[1]["items"] == []


def test_what_is_within_them_is_done(daemon):
    daemon.do("POST", "/v1/attachments",
              {"vm": VM, "pf": PF, "settings": {"vlan": {"id": 199}, "trust": False}})


def test_vfctl_names_the_bound(daemon):
    done = vfctl(daemon, "attach", "vm1", "--pf", "enp1s0", "--trust", "on", "--dry-run", status=5)
    assert "trust on is not allowed for VF 0000:01:00.0/0" in done.stderr
    assert "remedy: this host's bounds are root's" in done.stderr
