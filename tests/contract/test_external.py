# SPDX-License-Identifier: Apache-2.0
"""VFs for VMs that libvirt does not run: who may have them, what they get, and how they end."""

import json

import pytest
from live_daemon import Daemon, until
from test_live import refused
from vfctl import vfctl

PF = "0000:01:00.0"
VF_PCI = "0000:01:10.0"
UID = 64055
HOST = {"pfs": [{"model": "igb", "pci": PF, "ifname": "enp1s0"}],
        "vms": [{"name": "vm1", "uuid": "11111111-1111-1111-1111-111111111111",
                 "free_pcie_ports": 8}]}
ALLOWED = f'[bounds.external_holders]\nallowed = true\nuids = ["{UID}"]\n'
HOLDER = {"kind": "external", "name": "qm-104", "uid": UID}
ASK = {"holder": HOLDER, "pf": PF}
ALL = "/v1/attachments"


def start(folder, config):
    started = Daemon(folder, HOST, config)
    started.do("PUT", f"/v1/pfs/{PF}/spec", {"mode": "manage", "num_vfs": 4})
    return started


@pytest.fixture(name="daemon")
def running(tmp_path):
    started = start(tmp_path, ALLOWED)
    yield started
    started.end()


def attached(daemon, body=None):
    path = daemon.do("POST", ALL, body or ASK)["subject"]
    return path, daemon.ask("GET", path)[1]


def test_the_answer_says_how_to_open_the_vf(daemon):
    path, got = attached(daemon)
    assert got["holder"] == got["spec"]["holder"] == HOLDER and got["state"] == "attached"
    assert (got["vm"], got["vm_uuid"], got["live"], got["config"]) == ("qm-104", "", False, False)
    assert got["access"]["group"].startswith("/dev/vfio/") and got["access"]["device"] is None
    assert got["access"]["qemu"] == f"-device vfio-pci,host={got['vf_pci']}"
    assert got["settings"]["mac"] and got["node_owner"] == 0
    assert daemon.ask("GET", f"{ALL}?vm=qm-104")[1]["items"] == [got]
    vf = daemon.ask("GET", f"/v1/pfs/{PF}/vfs/0")[1]
    assert vf["vfio"] == {"group": got["access"]["group"], "device": None, "owner": UID}
    assert vf["vm"] == "qm-104"
    ended = daemon.do("DELETE", path)
    assert ended["certificate"]["vm"] == "qm-104" and ended["vm_uuid"] is None
    assert "vfio" not in daemon.ask("GET", f"/v1/pfs/{PF}/vfs/0")[1]


def test_an_attachment_of_libvirts_has_nothing_of_it(daemon):
    got = attached(daemon, {"vm": "vm1", "pf": PF})[1]
    assert not {"holder", "access", "node_owner"} & set(got) and "holder" not in got["spec"]


def test_a_holder_gets_several_at_once(daemon):
    ended = daemon.do("POST", ALL, {"attachments": [ASK, ASK]})
    assert len(ended["attachments"]) == 2
    mixed = [ASK, {"vm": "vm1", "pf": PF}]
    refused(daemon.ask("POST", ALL, {"attachments": mixed}), 400, "one VM")


def test_an_end_while_a_process_holds_the_vf_kills_nothing(daemon):
    path, got = attached(daemon)
    holding = {"pci": VF_PCI, "pid": 812, "comm": "qemu-system-x86"}
    daemon.happen(hold=holding)
    notes = until(lambda: daemon.ask("DELETE", path + "?dry_run=true")[1]["plan"]["notes"],
                  "the published view has the holder")
    assert "qemu-system-x86 (pid 812)" in notes[0]
    done = vfctl(daemon, "detach", "qm-104", status=4)
    assert "is held open by qemu-system-x86 (pid 812)" in done.stderr
    assert f"vfctl detach {got['id']}" in done.stderr
    assert daemon.ask("GET", path)[1]["state"] == "detaching"
    daemon.happen(release=holding)
    until(lambda: daemon.ask("GET", path)[0].status == 404, "it ends by itself")
    assert daemon.ask("GET", f"{path}/certificate")[1]["vm"] == "qm-104"


def test_root_decides_for_which_users(daemon):
    other = {**ASK, "holder": {**HOLDER, "uid": 1000}}
    for query in ("", "?dry_run=true"):
        refused(daemon.ask("POST", ALL + query, other), 403, "user 1000", "external_holders")
    attached(daemon, {**ASK, "holder": {"kind": "external", "name": "of-root"}})


def test_unless_root_allows_it_there_are_none(tmp_path):
    daemon = start(tmp_path, "")
    refused(daemon.ask("POST", ALL, ASK), 403, "external holders are not allowed")
    daemon.end()


def test_it_is_a_permission_of_its_own(daemon):
    def status(role, scopes, body):
        wanted = {"role": role, **({"scopes": scopes} if scopes else {})}
        token = daemon.ask("POST", "/v1/tokens", wanted)[1]["token"]
        answer, problem = daemon.ask("POST", ALL + "?dry_run=true", body,
                                     Authorization=f"Bearer {token}")
        assert answer.status == 200 or "external-holders" in problem["remedy"], problem
        return answer.status

    of_vm = {"vm": "vm1", "pf": PF}
    assert status("operator", None, of_vm) == 200
    assert status("operator", None, ASK) == 403
    assert status("operator", ["attachments"], ASK) == 403
    assert status("operator", ["attachments", "external-holders"], ASK) == 200
    assert status("admin", ["attachments"], ASK) == 403
    assert status("admin", None, ASK) == 200
    several = {"attachments": [ASK, ASK]}
    assert status("operator", None, several) == 403


def test_nothing_is_verified(daemon):
    network = {"prefix": "192.168.100.0/24", "rdma": "rxe",
               "pfs": [{"pf": PF, "host_address": "192.168.100.1"}]}
    assert daemon.ask("PUT", "/v1/networks/train", network)[0].status < 300
    wanted = {**ASK, "network": "train"}
    refused(daemon.ask("POST", ALL, {**wanted, "verify": "required"}), 422, "no VM of libvirt")
    path, got = attached(daemon, wanted)
    assert got["address"]
    refused(daemon.ask("POST", path + "/verifications", {}), 422, "no VM of libvirt")


def test_vfctl_attaches_and_shows_the_holder(daemon):
    done = vfctl(daemon, "attach", "--external", "qm-104", "--uid", str(UID), "--pf", "enp1s0")
    assert "external, uid 64055" in done.stdout
    page = vfctl(daemon, "attachment", "show", "qm-104").stdout
    assert f"-device vfio-pci,host={VF_PCI}" in page and "/dev/vfio/" in page
    assert "qm-104" in vfctl(daemon, "attachment", "list").stdout
    got = json.loads(vfctl(daemon, "-j", "attachment", "show", "qm-104").stdout)
    assert got["holder"] == HOLDER
    vfctl(daemon, "attach", "vm1", "--external", "qm-104", "--pf", "enp1s0", status=2)
    vfctl(daemon, "attach", "--pf", "enp1s0", status=2)
    assert "verified clean" in vfctl(daemon, "detach", "qm-104").stderr
