# SPDX-License-Identifier: Apache-2.0
"""A host of fakes that outlives its process, as tests of a fleet need it."""

import json
import time

from live_daemon import Daemon

PF, VM = "0000:01:00.0", "11111111-1111-1111-1111-111111111111"
OTHER = "22222222-2222-2222-2222-222222222222"
HOST = {"pfs": [{"model": "igb", "pci": PF, "ifname": "enp1s0"}],
        "vms": [{"name": "vm1", "uuid": VM}]}


def told(folder):
    return [json.loads(line) for line in (folder / "h1.log").read_text().splitlines()]


def killed(daemon):
    daemon.process.kill()
    daemon.process.wait(60)


def test_it_is_what_it_was_when_its_process_was_killed(tmp_path):
    daemon = Daemon(tmp_path, HOST, words=("--kept", tmp_path / "h1.json"))
    daemon.do("PUT", f"/v1/pfs/{PF}/spec", {"mode": "manage", "num_vfs": 2})
    daemon.happen(define_vm={"name": "vm2", "uuid": OTHER})
    for uuid in (VM, OTHER):
        daemon.do("POST", "/v1/attachments", {"vm": uuid, "pf": PF, "verify": "none"})
    vms, kept = daemon.ask("GET", "/v1/vms")[1], (tmp_path / "h1.json").read_text()
    killed(daemon)
    daemon.start()
    assert daemon.ask("GET", "/v1/vms")[1] == vms
    assert [(vf["vm"], vf["state"], vf["drift"]) for vf in
            daemon.ask("GET", "/v1/vfs")[1]["items"]] == [
                ("vm1", "attached", []), ("vm2", "attached", [])]
    assert (tmp_path / "h1.json").read_text() == kept
    for attachment in daemon.ask("GET", "/v1/attachments")[1]["items"]:
        daemon.do("DELETE", f"/v1/attachments/{attachment['id']}")
    daemon.end()


def test_it_tells_each_change_with_its_time(tmp_path):
    began = time.monotonic()
    daemon = Daemon(tmp_path, HOST, words=("--kept", tmp_path / "h1.json"))
    assert told(tmp_path)[0]["vfs"] == []
    daemon.do("PUT", f"/v1/pfs/{PF}/spec", {"mode": "manage", "num_vfs": 2})
    ended = daemon.do("POST", "/v1/attachments", {"vm": VM, "pf": PF, "verify": "none"})
    attachment = daemon.ask("GET", ended["subject"])[1]
    assert told(tmp_path)[-1]["vfs"] == [
        {"vf": f"{PF}/{attachment['vf']['index']}", "mac": attachment["settings"]["mac"],
         "guid": None, "driver": "vfio-pci", "vms": [VM]}]
    daemon.do("DELETE", ended["subject"])
    lines = told(tmp_path)
    assert lines[-1]["vfs"] == []
    times = [began, *(line["at"] for line in lines), time.monotonic()]
    assert times == sorted(times)
    daemon.end()


def test_a_line_that_a_killed_process_left_unfinished_is_cut_off(tmp_path):
    daemon = Daemon(tmp_path, HOST, words=("--kept", tmp_path / "h1.json"))
    killed(daemon)
    with (tmp_path / "h1.log").open("a") as log:
        log.write('{"host": "h')
    daemon.start()
    assert [line["vfs"] for line in told(tmp_path)] == [[], []]
    daemon.end()
