# SPDX-License-Identifier: Apache-2.0
"""Settings of VFs that no VM has, by the real vfmgrd on fakes and vfctl."""

import json

import pytest
from live_daemon import Daemon
from vfctl import vfctl

PF = "0000:01:00.0"
SPEC = f"/v1/pfs/{PF}/spec"
MAC, OTHER_MAC = "02:00:00:00:51:01", "02:00:00:00:51:02"
HOST = {"pfs": [{"model": "igb", "pci": PF, "ifname": "enp1s0"}],
        "vms": [{"name": "vm1", "uuid": "11111111-1111-1111-1111-111111111111"}]}


@pytest.fixture
def daemon(tmp_path):
    started = Daemon(tmp_path, HOST)
    started.do("PUT", SPEC, {"mode": "enforce", "num_vfs": 4})
    yield started
    started.end()


def settings_of(daemon, index):
    return daemon.ask("GET", f"/v1/pfs/{PF}/vfs/{index}")[1]["settings"]


def test_vfctl_sets_them_and_takes_them_back(daemon):
    vfctl(daemon, "vf", "set", "enp1s0/2", "--mac", MAC, "--vlan", "200")
    assert settings_of(daemon, 2)["mac"] == MAC and settings_of(daemon, 2)["vlan"]["id"] == 200
    assert "already" in vfctl(daemon, "vf", "set", "enp1s0/2", "--mac", MAC).stderr
    vfctl(daemon, "vf", "set", "enp1s0", "2", "--unset", "vlan")
    assert daemon.ask("GET", SPEC)[1]["free_vfs"] == [{"index": 2, "settings": {"mac": MAC}}]
    assert settings_of(daemon, 2)["vlan"]["id"] == 200, "what was set stays until it is set anew"
    refused = vfctl(daemon, "vf", "set", "enp1s0/3", "--mac", MAC, status=2)
    assert "is another VF's in this spec" in refused.stderr


def test_new_vfs_have_them(daemon):
    daemon.do("PUT", SPEC, {"mode": "manage", "num_vfs": 4,
                            "free_vfs": [{"index": 3, "settings": {"mac": MAC}}]})
    daemon.do("PUT", SPEC, {"mode": "manage", "num_vfs": 6,
                            "free_vfs": [{"index": 3, "settings": {"mac": MAC}}]})
    assert settings_of(daemon, 3)["mac"] == MAC


def test_an_attachment_has_its_own_and_gives_them_back(daemon):
    vfctl(daemon, "vf", "set", "enp1s0/0", "--mac", MAC, "--vlan", "200")
    attached = daemon.do("POST", "/v1/attachments", {
        "vm": "vm1", "pf": PF, "vf": 0, "settings": {"mac": OTHER_MAC}})
    assert settings_of(daemon, 0)["mac"] == OTHER_MAC
    assert settings_of(daemon, 0)["vlan"]["id"] == 200, "the request does not name it"
    assert daemon.ask("GET", "/readyz")[1]["drift"] == 0
    daemon.do("DELETE", attached["subject"])
    assert settings_of(daemon, 0)["mac"] == MAC


def test_they_are_in_the_desired_state(daemon):
    vfctl(daemon, "vf", "set", "enp1s0/1", "--trust", "on")
    document = json.loads(vfctl(daemon, "export", "-o", "json").stdout)
    assert document["pfs"][PF]["free_vfs"] == [{"index": 1, "settings": {"trust": True}}]


def test_a_vf_that_is_not_there_is_refused(daemon):
    answer, problem = daemon.ask("PUT", SPEC, {
        "free_vfs": [{"index": 4, "settings": {"mac": MAC}}]})
    assert answer.status == 422 and "enp1s0 has 4 VFs" in problem["detail"]
    answer, problem = daemon.ask("PUT", SPEC, {
        "num_vfs": 4, "free_vfs": [{"index": 4, "settings": {"mac": MAC}}]})
    assert answer.status == 422
    assert [one["pointer"] for one in problem["violations"]] == ["/free_vfs/0/index"]
