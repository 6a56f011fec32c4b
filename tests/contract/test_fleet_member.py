# SPDX-License-Identifier: Apache-2.0
"""The real vfmgrd on fakes as a member of a fleet: who comes in by the fleet's CA, and what becomes
of that when it leaves, starts again, or gets a store from a backup."""

import json
import shutil
import ssl

import pytest
from certificates import Authority
from described import example
from live_daemon import Daemon, free_port, until
from remote import Remote
from vfctl import vfctl

PF = "0000:01:00.0"
HOST = {"pfs": [{"model": "igb", "pci": PF, "ifname": "enp1s0"}],
        "vms": [{"name": "vm1", "uuid": "11111111-1111-1111-1111-111111111111"}]}
FLEET = example("fleet_membership")["fleet"]
REPLICA = f"vfmgr://{FLEET}/replica/fleet1"
# A fleet's certificates are for DNS names, too.
NAMES = f"URI:{REPLICA},DNS:fleet1.example"
CLIENT = json.dumps({"who": "token:ab12cd34", "role": "operator"})


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("ca"))


@pytest.fixture(scope="module")
def replica(authority):
    return authority.issue("fleet1", NAMES, "serverAuth,clientAuth")


@pytest.fixture
def daemon(tmp_path):
    (tmp_path / "daemon").mkdir()
    port = free_port()
    started = Daemon(tmp_path / "daemon", HOST, f"[listen.tls]\nenabled = true\nport = {port}\n")
    started.port = port
    yield started
    started.end()


def join(daemon, authority):
    answer, joined = daemon.ask("PUT", "/v1/fleet", {**example("fleet_membership"),
                                                     "ca": authority.file.read_text()})
    assert answer.status == 200, joined


def refused(remote):
    """Whether the listener, or who answers behind it, lets nobody in."""
    try:
        return remote.status() in (401, 403)
    except (ssl.SSLError, ConnectionError):
        return True


def is_closed(connection):
    connection.sock.settimeout(30)
    try:
        return connection.sock.recv(1) == b""
    except (ConnectionError, ssl.SSLError):
        return True


def test_a_replica_comes_in_while_the_host_is_a_member(daemon, authority, replica):
    fleet = Remote(daemon, replica)
    assert refused(fleet)
    join(daemon, authority)
    assert fleet.status() == 200, "as soon as the host has answered"
    assert fleet.status(path="/v1/tokens") == 403
    stays = fleet.connection()
    assert fleet.ask("GET", "/v1/pfs", connection=stays).status == 200
    vfctl(daemon, "fleet", "leave")
    assert is_closed(stays)
    assert refused(fleet)


def test_a_replica_comes_in_after_a_restart(daemon, authority, replica):
    join(daemon, authority)
    daemon.end()
    daemon.start()
    assert Remote(daemon, replica).status() == 200
    assert daemon.ask("GET", "/v1/fleet")[1]["membership"]["contacted_at"]


def test_no_other_certificate_of_its_ca_comes_in(daemon, authority):
    daemon.reload(f"[listen.tls]\nenabled = true\nport = {daemon.port}\n")
    join(daemon, authority)
    for name, names in (("host", f"URI:vfmgr://{FLEET}/host/a"), ("plain", "DNS:fleet1.example")):
        answer = Remote(daemon, authority.issue(name, names)).ask("GET", "/v1/pfs")
        assert answer.status == 403, answer
        assert "of no replica of fleet" in answer.body["detail"]


def test_a_reload_keeps_the_fleet(daemon, authority, replica):
    join(daemon, authority)
    daemon.reload()
    assert Remote(daemon, replica).status() == 200


def test_what_it_passes_on_is_its_clients(daemon, authority, replica):
    join(daemon, authority)
    fleet = Remote(daemon, replica)
    spec = json.dumps({"num_vfs": 2})
    by_client = {"Vfmgr-On-Behalf-Of": CLIENT}
    assert fleet.ask("PUT", f"/v1/pfs/{PF}/spec", spec, **by_client).status == 403
    made = fleet.ask("PUT", f"/v1/pfs/{PF}/spec", spec)
    assert made.status == 202, made
    assert daemon.ended(made.body)["requested_by"] == "fleet:fleet1"
    attached = fleet.ask("POST", "/v1/attachments", json.dumps({"vm": "vm1", "pf": PF}),
                         **by_client)
    assert attached.status == 202, attached
    assert daemon.ended(attached.body)["requested_by"] == "fleet:token:ab12cd34"
    entry = until(lambda: [one for one in daemon.ask("GET", "/v1/audit")[1]["items"]
                           if one["who"] == "fleet:token:ab12cd34" and one["operation"]],
                  "no entry in the audit")[0]
    assert entry["from"] == "address:127.0.0.1 fleet:fleet1"


def test_an_earlier_scheduler_is_refused_after_a_restart_too(daemon, authority, replica):
    join(daemon, authority)
    put = ("PUT", "/v1/pools/fast", "{}")
    assert Remote(daemon, replica).ask(*put, Vfmgr_Fence="42").status == 200
    daemon.end()
    daemon.start()
    answer = Remote(daemon, replica).ask(*put, Vfmgr_Fence="41")
    assert (answer.status, answer.body["code"]) == (412, "precondition_failed"), answer
    assert Remote(daemon, replica).ask(*put, Vfmgr_Fence="42").status == 200


def test_a_restored_store_waits_for_a_word(daemon, authority, replica, tmp_path):
    daemon.do("PUT", f"/v1/pfs/{PF}/spec", {"num_vfs": 2})
    join(daemon, authority)
    before = daemon.ask("GET", "/v1/fleet")[1]["store"]
    store = daemon.folder / "state/vfmgr.db"
    running = vfctl(daemon, "store", "restore", str(store), "--store", str(store), status=6)
    assert "a daemon has the store" in running.stderr
    daemon.end()
    shutil.copy(store, tmp_path / "backup.db")
    said = vfctl(daemon, "store", "restore", str(tmp_path / "backup.db"), "--store", str(store))
    assert "the store that was there is" in said.stderr
    daemon.start()
    view = daemon.ask("GET", "/v1/fleet")[1]
    assert view["store"] != before and view["restored_at"]
    attach = ("POST", "/v1/attachments", {"vm": "vm1", "pf": PF})
    answer, problem = daemon.ask(*attach)
    assert (answer.status, problem["remedy"][-20:]) == (503, " vfctl fleet confirm"), problem
    assert Remote(daemon, replica).ask("POST", "/v1/fleet/confirm").status == 204
    assert daemon.ask("GET", "/v1/fleet")[1]["restored_at"] is None
    daemon.do("PUT", f"/v1/pfs/{PF}/spec", {"num_vfs": 2})  # the fake host began without VFs
    daemon.do(*attach)
