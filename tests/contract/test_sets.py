# SPDX-License-Identifier: Apache-2.0
"""Several VFs for one VM in one operation, by the real vfmgrd on fakes and vfctl."""

import json

import pytest
from live_daemon import Daemon, until
from test_live import refused
from vfctl import vfctl

PF, OTHER = "0000:01:00.0", "0000:02:00.0"
GPUS = ["0000:11:00.0", "0000:12:00.0"]


def place(function, switch):
    """The place of a function below a switch of its NUMA node, which has the switch's number."""
    port = {"vendor": 0, "device": 0, "subsystem_vendor": 0, "subsystem_device": 0}
    above = [f"0000:{0xd0 + switch:02x}:01.0", f"0000:{0xe0 + switch:02x}:00.0"]
    return {"address": function, "above": [{"address": one, **port} for one in above],
            "numa_node": switch, "speed_gts": None, "width": None}


HOST = {"pfs": [{"model": "igb", "pci": PF, "ifname": "enp1s0"},
                {"model": "igb", "pci": OTHER, "ifname": "enp2s0"}],
        "places": {"gpus": [place(gpu, n) for n, gpu in enumerate(GPUS)],
                   "pfs": [place(PF, 1), place(OTHER, 0)], "redirecting": [], "unread": []},
        "vms": [{"name": "vm1", "uuid": "11111111-1111-1111-1111-111111111111",
                 "free_pcie_ports": 8, "gpus": GPUS,
                 "pcie": {"next_bus": 3, "free_slots": [4, 5], "cell_nodes": [],
                          "placed": []}},
                {"name": "vm2", "uuid": "22222222-2222-2222-2222-222222222222"}]}
RAILS = [{"vm": "vm1", "pf": pf} for pf in (PF, OTHER)]


@pytest.fixture(name="daemon")
def host_with_two_pfs(tmp_path):
    started = Daemon(tmp_path, HOST)
    for pf in (PF, OTHER):
        started.do("PUT", f"/v1/pfs/{pf}/spec", {"mode": "manage", "num_vfs": 4})
    yield started
    started.end()


def attachments(daemon):
    return daemon.ask("GET", "/v1/attachments")[1]["items"]


def test_a_vm_gets_a_vf_of_each_pf_in_one_operation(daemon):
    ended = daemon.do("POST", "/v1/attachments", {"attachments": RAILS})
    assert ended["subject"] == "/v1/attachments" and ended["kind"] == "attach"
    got = [daemon.ask("GET", f"/v1/attachments/{each}")[1] for each in ended["attachments"]]
    assert [each["vf"]["pf"] for each in got] == [PF, OTHER], "in the order of the request"
    assert {each["operation"] for each in got} == {ended["id"]}
    ids = ",".join(ended["attachments"])
    detached = daemon.do("DELETE", f"/v1/attachments?ids={ids}")
    assert detached["attachments"] == ended["attachments"]
    assert attachments(daemon) == []


def test_a_dry_run_shows_all_of_them(daemon):
    answer, shown = daemon.ask("POST", "/v1/attachments?dry_run=true", {"attachments": RAILS})
    assert answer.status == 200 and "attachment" not in shown
    assert [each["vf"]["pf"] for each in shown["attachments"]] == [PF, OTHER]
    sentences = [step["sentence"] for step in shown["plan"]["steps"]]
    first = next(i for i, text in enumerate(sentences) if text.startswith("attach VF"))
    assert all(text.startswith("attach VF") for text in sentences[first:]), "the kernel's first"
    assert attachments(daemon) == []


def test_what_can_not_be_refuses_all(daemon):
    wrong = [*RAILS, {"vm": "vm1", "pf": PF, "vf": 9}]
    refused(daemon.ask("POST", "/v1/attachments", {"attachments": wrong}), 404, "attachment 3 of 3")
    two_vms = [RAILS[0], {"vm": "vm2", "pf": PF}]
    refused(daemon.ask("POST", "/v1/attachments", {"attachments": two_vms}), 400, "vm1 and vm2")
    unknown = [RAILS[0], {"vm": "vm1", "pf": PF, "vlan": 5}]
    answer, problem = daemon.ask("POST", "/v1/attachments", {"attachments": unknown})
    assert answer.status == 422
    assert problem["violations"][0]["pointer"] == "/attachments/1/vlan"
    for count in (0, 33):
        refused(daemon.ask("POST", "/v1/attachments", {"attachments": RAILS[:1] * count}), 422,
                "1 to 32")
    assert attachments(daemon) == []


@pytest.mark.parametrize("ids, words", [("", "ids has no value"), ("1", "is no id"),
                                        ("0badbad0,../x", "is no id")])
def test_what_is_to_be_detached_is_named(daemon, ids, words):
    refused(daemon.ask("DELETE", f"/v1/attachments?ids={ids}"), 400, words)


def test_an_unknown_one_keeps_all(daemon):
    made = daemon.do("POST", "/v1/attachments", RAILS[0])["subject"].rsplit("/", 1)[1]
    refused(daemon.ask("DELETE", f"/v1/attachments?ids={made},0badbad0"), 404, "0badbad0")
    refused(daemon.ask("DELETE", "/v1/attachments"), 400, "ids is missing")
    assert len(attachments(daemon)) == 1


def test_vfctl_attaches_several_and_detaches_all(daemon):
    shown = vfctl(daemon, "-j", "attach", "vm1", "--pf", "enp1s0", "--count", "3")
    assert len(json.loads(shown.stdout)) == 3 and "VM vm1 has its 3 VFs" in shown.stderr
    vfctl(daemon, "attach", "vm1", "--pf", "enp1s0", "--count", "2", status=4)  # one is free
    one = vfctl(daemon, "attach", "vm1", "--pf", "enp1s0", "--count", "2", "--vf", "3", status=2)
    assert "--vf names one VF's" in one.stderr
    assert "3 VFs of VM vm1" in vfctl(daemon, "detach", "vm1", "--all").stderr
    assert attachments(daemon) == []
    assert "no VM vm1 has" in vfctl(daemon, "detach", "vm1", "--all", status=3).stderr


def test_each_gpu_gets_the_nearest_vf(daemon):
    near = {"vm": "vm1", "near": "gpu"}
    ended = daemon.do("POST", "/v1/attachments", {"attachments": [near, near]})
    got = [daemon.ask("GET", f"/v1/attachments/{each}")[1] for each in ended["attachments"]]
    assert {each["near"]["gpu"]: each["vf"]["pf"] for each in got} == {GPUS[0]: OTHER, GPUS[1]: PF}
    assert [each["near"]["distance"] for each in got] == ["PIX", "PIX"]
    assert sorted(one["distance"] for one in got[0]["candidates"]) == ["PIX", "SYS"]
    refused(daemon.ask("POST", "/v1/attachments", {"vm": "vm2", "near": "gpu"}), 409, "has no GPU")
    for command in (("show", ended["attachments"][0]), ("list",)):
        assert "PIX" in vfctl(daemon, "attachment", *command).stdout, command


def test_a_vm_that_is_off_gets_its_devices_placed_as_on_the_host(daemon):
    vm = "/v1/vms/vm1"
    near = {"vm": "vm1", "near": "gpu"}
    daemon.do("POST", "/v1/attachments", {"attachments": [near, near]})
    until(lambda: daemon.ask("GET", vm + "/topology")[1]["xml"], "the VFs are not in its XML")
    refused(daemon.ask("POST", vm + "/topology"), 409, "virsh shutdown vm1")
    daemon.happen(stop_vm=HOST["vms"][0]["uuid"])
    until(lambda: daemon.ask("GET", vm)[1]["state"] == "shut_off", "stopped")
    shown = vfctl(daemon, "topology", "--vm", "vm1").stdout
    assert "ON THE HOST" in shown and "PIX" in shown and "SYS" in shown
    assert "pcie-switch-upstream-port" in vfctl(daemon, "topology", "--vm", "vm1", "--xml").stdout
    vfctl(daemon, "topology", "--vm", "vm1", "--apply")
    topology = daemon.ask("GET", vm + "/topology")[1]
    assert topology["placed"]
    assert [pair["in_guest"] for pair in topology["pairs"]] == ["PHB", "PIX", "PIX", "PHB"]
    assert all(device["in_guest"] == device["proposed"] for device in topology["devices"])
    vfctl(daemon, "topology", "--vm", "vm1", "--back")
    assert daemon.ask("GET", vm)[1]["pcie"]["placed"] == []
