# SPDX-License-Identifier: Apache-2.0
"""VFs that VMs declare in their libvirt metadata, by the real vfmgrd on fakes."""

import pytest
from event_stream import EventStream
from live_daemon import Daemon
from vfctl import vfctl

PF = "0000:01:00.0"
VM, OTHER = "11111111-1111-1111-1111-111111111111", "22222222-2222-2222-2222-222222222222"
DECLARED = [{"pool": "train", "count": 2, "verify_profile": "quick"}]
HOST = {"pfs": [{"model": "igb", "pci": PF, "ifname": "enp1s0"}],
        "vms": [{"name": "vm1", "uuid": VM, "runs": False, "free_pcie_ports": 8,
                 "declared": DECLARED},
                {"name": "vm2", "uuid": OTHER, "runs": False, "free_pcie_ports": 8,
                 "declared": [{"pool": "closed", "count": 1, "verify_profile": None}]}]}


@pytest.fixture(name="daemon")
def daemon_with_an_open_pool(tmp_path):
    started = Daemon(tmp_path, HOST)
    started.do("PUT", f"/v1/pfs/{PF}/spec", {"mode": "manage", "num_vfs": 4})
    vfctl(started, "pool", "set", "train", "--from-metadata", "on")
    vfctl(started, "pool", "set", "closed")
    yield started
    started.end()


def attached(daemon):
    return daemon.ask("GET", "/v1/attachments?state=attached")[1]["items"]


def test_a_vm_gets_what_it_declares_with_each_start(daemon):
    assert daemon.ask("GET", f"/v1/vms/{VM}")[1]["declared"] == DECLARED
    stream = EventStream(daemon, "?kind=operation_succeeded,detached")
    assert stream.next().event == "current"
    daemon.happen(start_vm=VM)
    stream.until("operation_succeeded")
    got = attached(daemon)
    assert {one["requested_by"] for one in got} == {f"metadata:{VM}"}
    assert [one["config"] for one in got] == [False, False]
    assert len({one["settings"]["mac"] for one in got}) == 2
    daemon.happen(stop_vm=VM)
    stream.until("operation_succeeded")
    assert daemon.ask("GET", "/v1/attachments")[1]["items"] == []
    stream.close()


def test_a_closed_pool_is_an_event_and_nothing_else(daemon):
    stream = EventStream(daemon, "?kind=declaration_refused")
    assert stream.next().event == "current"
    daemon.happen(start_vm=OTHER)
    refused = stream.next().body
    assert refused["vm"] == "vm2"
    assert "vfctl pool set closed --from-metadata on" in refused["detail"]
    assert daemon.ask("GET", f"/v1/vms/{OTHER}")[1]["state"] == "running"
    assert attached(daemon) == []
    stream.close()
