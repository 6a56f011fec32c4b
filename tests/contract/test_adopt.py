# SPDX-License-Identifier: Apache-2.0
"""VFs that somebody put into the XML of VMs become attachments, by the real vfmgrd on fakes."""

import json

import pytest
from live_daemon import Daemon
from vfctl import vfctl

PF = "0000:01:00.0"
FIRST, SECOND = "0000:01:10.0", "0000:01:10.2"
UUID = "11111111-1111-1111-1111-111111111111"
HOST = {"pfs": [{"model": "igb", "pci": PF, "ifname": "enp1s0"}],
        "vms": [{"name": "vm1", "uuid": UUID, "runs": False, "gpus": [FIRST, SECOND]},
                {"name": "vm2", "uuid": UUID.replace("1", "2"), "runs": False}]}


@pytest.fixture(name="daemon")
def daemon_with_a_pf(tmp_path):
    started = Daemon(tmp_path, HOST)
    started.do("PUT", f"/v1/pfs/{PF}/spec", {"mode": "manage", "num_vfs": 4})
    yield started
    started.end()


def test_all_that_a_vm_has_are_adopted_in_turn(daemon):
    done = vfctl(daemon, "-j", "attachment", "adopt", "vm1")
    adopted = json.loads(done.stdout)
    assert sorted(one["spec"]["adopt"] for one in adopted) == [FIRST, SECOND]
    assert all(one["baseline"] == {} and one["config"] and not one["live"] for one in adopted)
    aliases = {one["alias"] for one in daemon.ask("GET", f"/v1/vms/{UUID}")[1]["config"]}
    assert aliases == {"ua-vfmgr-" + one["id"] for one in adopted}
    vfctl(daemon, "attachment", "adopt", "vm1", status=3)  # none is left
    vfctl(daemon, "detach", "vm1", "--all")
    assert daemon.ask("GET", f"/v1/vms/{UUID}")[1]["config"] == []


def test_one_is_named_and_a_dry_run_changes_nothing(daemon):
    shown = vfctl(daemon, "attachment", "adopt", "vm1", "--vf", "enp1s0/1", "--dry-run").stdout
    assert "as attachment" in shown and daemon.ask("GET", "/v1/attachments")[1]["items"] == []
    vfctl(daemon, "attachment", "adopt", "vm1", "--vf", SECOND)
    [one] = daemon.ask("GET", "/v1/attachments")[1]["items"]
    assert one["vf_pci"] == SECOND
    vfctl(daemon, "attachment", "adopt", "vm2", "--vf", FIRST, status=3)  # it is not there


def test_a_token_for_vms_alone_adopts_nothing(daemon):
    def status(*scopes):
        token = daemon.ask("POST", "/v1/tokens", {"role": "operator", "scopes": [*scopes]})[1]
        return daemon.call("POST", f"/v1/vms/{UUID}/adoptions?dry_run=true", {"pci": FIRST},
                           Authorization="Bearer " + token["token"]).status

    assert (status("vms"), status("attachments"), status("vms", "attachments")) == (403, 403, 200)


def test_a_request_to_attach_adopts_nothing(daemon):
    answer = daemon.call("POST", "/v1/attachments", {"vm": "vm1", "pf": PF, "adopt": FIRST})
    assert answer.status == 422 and answer.body["violations"][0]["pointer"] == "/adopt"
