# SPDX-License-Identifier: Apache-2.0
"""The real vfmgrd on fakes hands out no MAC that anything visible has."""

import pytest
from live_daemon import Daemon

PF = "0000:01:00.0"
VM, OFF = "11111111-1111-1111-1111-111111111111", "22222222-2222-2222-2222-222222222222"
OF_VM, OF_OFF, OF_BRIDGE, FREE, SHARED = (f"02:00:00:00:00:0{last}" for last in range(1, 6))
OWNERS = {OF_VM: "an interface of VM vm1 (type network)",
          OF_OFF: "an interface of VM off (type bridge)", OF_BRIDGE: "network device br0"}


def interface(mac, kind, standby=False):
    return {"mac": mac, "type": kind, "pci": None, "standby": standby}


HOST = {"pfs": [{"model": "igb", "pci": PF, "ifname": "enp1s0"}],
        "vms": [{"name": "vm1", "uuid": VM,
                 "interfaces": [interface(OF_VM, "network"),
                                interface(SHARED, "bridge", standby=True)]},
                {"name": "off", "uuid": OFF, "runs": False,
                 "interfaces": [interface(OF_OFF, "bridge")]}],
        "network": {"netdevs": {"br0": {"ethernet": True, "loopback": False, "up": True,
                                        "mac": OF_BRIDGE}},
                    "rdma": {}, "stale": False, "stale_reason": "",
                    "observed_at": "2026-01-31T12:00:00.000Z"}}


@pytest.fixture(scope="module")
def daemon(tmp_path_factory):
    started = Daemon(tmp_path_factory.mktemp("identities"), HOST)
    started.do("PUT", f"/v1/pfs/{PF}/spec", {"mode": "manage", "num_vfs": 4})
    yield started
    started.end()


def attach(daemon, mac, method="ask", **headers):
    return getattr(daemon, method)("POST", "/v1/attachments", {
        "vm": "vm1", "pool": "all", "network": "lab", "settings": {"mac": mac}}, **headers)


@pytest.fixture(scope="module")
def tenant(daemon):
    """The headers of an operator of the tenant that has vm1."""
    for path, body in (("/v1/networks/lab", {"prefix": "10.1.0.0/24", "pfs": [
                           {"pf": PF, "host_address": "10.1.0.1"}]}),
                       ("/v1/pools/all", {"select": {"pfs": [PF]}}),
                       ("/v1/tenants/blue", {"vms": [VM], "pools": ["all"], "networks": ["lab"],
                                             "fields": ["mac"]})):
        answer, problem = daemon.ask("PUT", path, body)
        assert answer.status == 200, problem
    token = daemon.ask("POST", "/v1/tokens", {"role": "operator", "tenant": "blue"})[1]
    return {"Authorization": "Bearer " + token["token"]}


@pytest.mark.parametrize("mac", OWNERS)
def test_a_request_for_what_another_has_is_refused_with_its_name(daemon, tenant, mac):
    answer, problem = attach(daemon, mac)
    assert answer.status == 409, problem
    assert f"MAC {mac} is already used by {OWNERS[mac]}" in problem["detail"]
    answer, problem = attach(daemon, mac, **tenant)
    assert answer.status == 409, problem
    assert f"MAC {mac} is already in use on this host" in problem["detail"]
    assert OWNERS[mac] not in str(problem)


def test_what_is_chosen_is_free(daemon, tenant):
    answer, problem = daemon.ask("PUT", "/v1/identities", {"macs": [f"{OF_VM}-{FREE}"]})
    assert answer.status == 200, problem
    try:
        ended = daemon.do("POST", "/v1/attachments", {"vm": "vm1", "pool": "all"})
        assert daemon.ask("GET", ended["subject"])[1]["settings"]["mac"] == FREE
        answer, problem = daemon.ask("POST", "/v1/attachments", {"vm": "vm1", "pool": "all"})
        assert (answer.status, problem["code"]) == (422, "limit_exceeded"), problem
        daemon.do("DELETE", ended["subject"])
    finally:
        daemon.ask("PUT", "/v1/identities", {})


def test_the_interface_that_awaits_a_vf_shares_its_mac(daemon, tenant):
    ended = attach(daemon, SHARED, "do")
    assert daemon.ask("GET", ended["subject"])[1]["settings"]["mac"] == SHARED
    daemon.do("DELETE", ended["subject"])


def test_a_vm_shows_its_interfaces(daemon):
    shown = daemon.ask("GET", f"/v1/vms/{OFF}")[1]["interfaces"]
    assert shown == [interface(OF_OFF, "bridge")]
