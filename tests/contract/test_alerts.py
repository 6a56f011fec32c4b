# SPDX-License-Identifier: Apache-2.0
"""Each alert fires for the trouble that it is about, and none on a host that is well: Prometheus
judges what a live daemon on fakes reports while the host is in that trouble."""

import re
import shlex
import subprocess

import pytest
from guest_answers import end_at
from live_daemon import BUILD, Daemon, UnixConnection, until
from promtool import ALERTS, ROOT, RULES, down, judged, promtool, scraped

PF, LOST, STUCK, BLIND = (f"0000:0{number}:00.0" for number in range(1, 5))
VM = "11111111-1111-1111-1111-111111111111"
HOST = {"pfs": [{"model": "mlx5", "pci": PF, "ifname": "enp1s0"},
                *({"model": "igb", "pci": pci, "ifname": f"enp{number}s0"}
                  for number, pci in enumerate((LOST, STUCK, BLIND), 2))],
        "vms": [{"name": "vm1", "uuid": VM, "free_pcie_ports": 8}],
        "gids": ["192.168.100.1"]}
NETWORK = {"prefix": "192.168.100.0/24", "rdma": "rxe",
           "pfs": [{"pf": PF, "host_address": "192.168.100.1"}]}
COUNTED = ("rx_packets", "rx_bytes", "rx_dropped", "tx_packets", "tx_bytes", "tx_dropped",
           "multicast", "broadcast")
VFCTL = BUILD / "service/vfctl"


def set_up(folder):
    """A host at work: two VFs of a VM with traffic, and three PFs without any."""
    daemon = Daemon(folder, HOST, addresses=["192.168.100.1/24"])
    daemon.ask("PUT", "/v1/networks/lab", NETWORK)
    for pf in (PF, LOST, STUCK, BLIND):
        daemon.do("PUT", f"/v1/pfs/{pf}/spec", {"mode": "manage", "num_vfs": 7})
    for vf in (0, 1):
        daemon.do("POST", "/v1/attachments", {"vm": VM, "pf": PF, "vf": vf, "network": "lab"})
    count(daemon, 0, rx_packets=0, rx_dropped=0)
    daemon.happen(rdma={"pf": PF, "counters": {"out_of_sequence": 0, "rx_write_requests": 0}})
    return daemon


def count(daemon, index, **counters):
    daemon.happen(traffic={"pf": PF, "index": index,
                           "counters": {**dict.fromkeys(COUNTED), **counters}})


@pytest.fixture(name="daemon")
def running(tmp_path):
    started = set_up(tmp_path)
    yield started
    started.end()


@pytest.fixture(name="small")
def on_a_small_disk(tmp_path):
    """A daemon whose store has 8 MiB; what is free there can be taken."""
    folder = tmp_path / "small"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", folder], check=True)
    started = set_up(folder)
    yield started
    started.end()
    started.log.close()
    subprocess.run(["umount", folder], check=True)


def metric(daemon, name, **labels):
    return sum(value for (found, of), value in scraped(daemon).items()
               if found == name and labels.items() <= dict(of).items())


def test_the_rules_are_good():
    status, said = promtool("check", "rules", RULES)
    assert status == 0 and f"{len(ALERTS)} rules found" in said, said
    for name, rule in ALERTS.items():
        assert rule["labels"]["severity"] in ("critical", "warning"), name
        assert rule["annotations"].keys() == {"summary", "description", "remedy"}, name


def test_promtool_sees_an_alert_that_does_not_fire(daemon, tmp_path):
    now = scraped(daemon)
    assert "VfmgrDown" in judged(tmp_path, now, now, [{"alertname": "VfmgrDown"}])


def test_a_host_that_is_well_fires_nothing(daemon, tmp_path):
    before = scraped(daemon)
    count(daemon, 0, rx_packets=10_000_000, rx_dropped=1000)
    daemon.happen(rdma={"pf": PF, "counters": {"out_of_sequence": 10, "rx_write_requests": 10**9}})
    attachment = daemon.do("POST", "/v1/attachments", {"vm": VM, "pf": LOST})["subject"]
    daemon.do("DELETE", attachment)
    assert judged(tmp_path, before, scraped(daemon), []) == ""


def test_what_does_not_answer(daemon, tmp_path):
    assert judged(tmp_path, down(), down(), [{"alertname": "VfmgrDown"}]) == ""
    daemon.happen(libvirt="down")
    until(lambda: metric(daemon, "vfmgr_libvirt_up") == 0, "libvirt is still there")
    now = scraped(daemon)
    assert judged(tmp_path, now, now, [{"alertname": "VfmgrLibvirtDown"}]) == ""
    daemon.happen(libvirt="up")
    until(lambda: metric(daemon, "vfmgr_libvirt_up") == 1, "libvirt is still down")
    daemon.happen(guestd="down")
    until(lambda: metric(daemon, "vfmgr_guestd_up") == 0, "vfmgr-guestd is still there")
    now = scraped(daemon)
    assert judged(tmp_path, now, now, [{"alertname": "VfmgrGuestdDown"}]) == ""
    daemon.happen(guestd="up")
    until(lambda: metric(daemon, "vfmgr_guestd_up") == 1, "vfmgr-guestd is still down")


def test_pfs_in_trouble(daemon, tmp_path):
    daemon.happen(take_out=LOST)
    daemon.happen(stuck={"pf": STUCK, "why": "the test hangs"})
    daemon.happen(change_pf={"pf": BLIND, "stale": True})
    daemon.happen(change_pf={"pf": PF, "carrier": False})
    until(lambda: metric(daemon, "vfmgr_pf_present", pf=LOST) == 0, "it is still there")
    until(lambda: metric(daemon, "vfmgr_pf_stuck", pf=STUCK) == 1, "it is not stuck")
    until(lambda: metric(daemon, "vfmgr_pf_readable", pf=BLIND) == 0, "it is still read")
    until(lambda: metric(daemon, "vfmgr_pf_carrier", pf=PF) == 0, "it has carrier")
    now = scraped(daemon)
    assert judged(tmp_path, now, now, [
        {"alertname": "VfmgrPfMissing", "pf": LOST}, {"alertname": "VfmgrPfStuck", "pf": STUCK},
        {"alertname": "VfmgrPfUnreadable", "pf": BLIND},
        {"alertname": "VfmgrPfLinkDown", "pf": PF}]) == ""


def test_vfs_in_trouble(daemon, tmp_path):
    before = scraped(daemon)
    attachment = daemon.do("POST", "/v1/attachments", {"vm": VM, "pf": LOST})["subject"]
    daemon.happen(refuse_step="reset_vf")
    assert daemon.ended(daemon.ask("DELETE", attachment)[1])["state"] == "failed"
    daemon.happen(refuse_step="")
    daemon.happen(change_vf={"pf": PF, "index": 1, "settings": {"mac": "02:00:00:00:99:99"}})
    silent = daemon.ask("GET", "/v1/attachments")[1]["items"][0]
    for _ in range(3):
        asked = daemon.ask("POST", f"/v1/attachments/{silent['id']}/verifications",
                           {"timeout_seconds": 5})[1]
        assert daemon.ended(asked)["state"] == "failed"
    run = guest(daemon, "POST", f"/guest/v1/attachments/{silent['id']}/runs",
                {"profile": "quick"}).body
    said = guest(daemon, "PUT", f"/guest/v1/runs/{run['run']}/error",
                 {"nonce": run["nonce"], "tests": [], "error": "the VF has no link"})
    assert said.status == 200, said
    until(lambda: metric(daemon, "vfmgr_pf_drift", pf=PF) == 1, "no drift is found")
    count(daemon, 0, rx_packets=1_000_000, rx_dropped=100_000)
    daemon.happen(rdma={"pf": PF, "counters": {"out_of_sequence": 10_000,
                                               "rx_write_requests": 0}})
    now = scraped(daemon)
    # Operations failed at once, and not over half an hour.
    failed = {key: value for key, value in now.items()
              if key[0] == "vfmgr_operations_total" and dict(key[1])["kind"] == "verify"}
    assert sum(failed.values()) == 3
    more = {**now, **{key: value * 3 for key, value in failed.items()}}
    assert judged(tmp_path, before, more, [
        {"alertname": "VfmgrVfQuarantined", "pf": LOST}, {"alertname": "VfmgrDrift", "pf": PF},
        {"alertname": "VfmgrVfNotProved", "pf": PF, "vf": str(silent["vf"]["index"])},
        {"alertname": "VfmgrOperationsFail", "kind": "verify"},
        {"alertname": "VfmgrVfDrops", "pf": PF, "vf": "0"},
        {"alertname": "VfmgrRdmaRetransmits", "pf": PF}]) == ""


def guest(daemon, method, path, body=None):
    return daemon.call(method, path, body, connection=UnixConnection(daemon.guests),
                       X_Vsock_Cid=str(daemon.ask("GET", "/v1/vms")[1]["items"][0]["vsock_cid"]),
                       Prefer="respond-async")


def test_guests_that_want_too_much(daemon, tmp_path):
    before = scraped(daemon)
    had = daemon.ask("GET", "/v1/attachments")[1]["items"]
    for _ in range(4):
        made = daemon.do("POST", "/v1/attachments", {"vm": VM, "pf": PF, "network": "lab"})
        had.append(daemon.ask("GET", made["subject"])[1])
    statuses = [opened(daemon, attachment) for attachment in had]
    assert statuses[:4] == [201] * 4 and 202 in statuses, statuses
    for _ in range(400):
        guest(daemon, "GET", "/guest/v1/config")
    now = scraped(daemon)
    assert judged(tmp_path, before, now, [
        {"alertname": "VfmgrGuestPlaneBusy"}, {"alertname": "VfmgrResponderBusy"}]) == ""


def opened(daemon, attachment):
    """Asks for a session, and again if that was too often; returns the answer's status."""
    def asked(*what):
        answer = guest(daemon, *what)
        return answer if answer.status != 503 else None

    run = until(lambda: asked("POST", f"/guest/v1/attachments/{attachment['id']}/runs",
                              {"profile": "quick"}), "it is turned away").body
    return until(lambda: asked("POST", "/guest/v1/sessions", {
        "attachment": attachment["id"], "run": run["run"], "nonce": run["nonce"],
        "guest": end_at(run["address"])}),
        "it is turned away").status


def test_a_store_that_cant_be_written(small, tmp_path):
    (small.folder / "rest").write_bytes(b"")
    with (small.folder / "rest").open("wb") as rest:
        try:
            while True:
                rest.write(bytes(65536))
                rest.flush()
        except OSError:
            pass
    for number in range(50):
        small.ask("PUT", f"/v1/pools/p{number}", {"select": {}})
    until(lambda: metric(small, "vfmgr_store_writable") == 0, "it is still written")
    now = scraped(small)
    assert judged(tmp_path, now, now, [{"alertname": "VfmgrStoreReadOnly"},
                                       {"alertname": "VfmgrStoreDiskFull"}]) == ""


def test_each_alert_is_tried_here():
    tried = set(re.findall(r'"alertname": "(\w+)"', (ROOT / "tests/contract/test_alerts.py")
                           .read_text()))
    assert tried == ALERTS.keys()


def test_remedies_of_vfctl_are_accepted(daemon):
    """As they are typed, for a PF and a VF that exist."""
    commands = set()
    for rule in ALERTS.values():
        text = re.sub(r"\{\{ \$labels\.(\w+) \}\}", lambda label: {"pf": PF, "vf": "0"}[label[1]],
                      rule["annotations"]["remedy"])
        commands |= {one.strip() for one in text.split(";") if one.strip().startswith("vfctl ")}
    assert len(commands) > 5
    for command in commands - {"vfctl doctor"}:
        words = shlex.split(command)[1:]
        if words[0] in ("top", "events"):  # they go on until they are ended
            words += ["--help"]
        ended = subprocess.run([VFCTL, "--host", f"unix:{daemon.socket}", *words],
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        assert ended.returncode == 0, f"{command}: {ended.stdout}"
