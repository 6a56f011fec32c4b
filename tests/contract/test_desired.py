# SPDX-License-Identifier: Apache-2.0
"""What vfctl export prints, apply accepts: it plans nothing, and another host becomes the same."""

import json

import pytest
import yaml
from live_daemon import Daemon
from vfctl import vfctl

PF, OTHER = "0000:01:00.0", "0000:02:00.0"
HOST = {"pfs": [{"model": "igb", "pci": PF, "ifname": "enp1s0"},
                {"model": "igb", "pci": OTHER, "ifname": "enp2s0"}],
        "vms": [{"name": "vm1", "uuid": "11111111-1111-1111-1111-111111111111"}]}


def start(folder):
    folder.mkdir()
    return Daemon(folder, HOST)


@pytest.fixture
def host(tmp_path):
    started = start(tmp_path / "one")
    for words in (("pf", "set", PF, "--num-vfs", "4", "--label", "rail=0"),
                  ("network", "set", "lab", "--vlan", "100", "--prefix", "10.1.0.0/24",
                   "--pf", f"{PF}=10.1.0.1"),
                  ("pool", "set", "fast", "--pf", f"{PF}/0-1", "--network", "lab", "--trust", "on"),
                  ("identities", "set", "--mac", "02:00:00:00:00:01-02:00:00:00:00:ff"),
                  ("attach", "vm1", "--pool", "fast")):
        vfctl(started, *words)
    yield started
    started.end()


@pytest.fixture
def file(tmp_path):
    return tmp_path / "host.yaml"


def operations(daemon):
    return daemon.ask("GET", "/v1/operations")[1]["items"]


def test_its_own_export_plans_nothing(host, file):
    for how in ((), ("-o", "json")):
        file.write_text(vfctl(host, "export", *how).stdout)
        before = operations(host)
        for prune in ((), ("--prune",)):
            assert vfctl(host, "diff", "-f", str(file), *prune).stdout == "nothing changes\n"
            vfctl(host, "apply", "-f", str(file), *prune)
        assert operations(host) == before, "there was nothing to do"


def test_another_host_becomes_the_same(host, file, tmp_path):
    file.write_text(vfctl(host, "export").stdout)
    other = start(tmp_path / "other")
    try:
        differs = vfctl(other, "diff", "-f", str(file), status=8).stdout
        assert f"PF {PF} is new" in differs and "network lab is new" in differs
        vfctl(other, "apply", "-f", str(file))
        assert vfctl(other, "export").stdout == file.read_text()
        assert other.ask("GET", f"/v1/pfs/{PF}")[1]["info"]["num_vfs"] == 4
        assert [one["kind"] for one in operations(other)] == ["apply"]
    finally:
        other.end()


def test_all_or_nothing(host, file):
    wanted = yaml.safe_load(vfctl(host, "export").stdout)
    wanted["networks"]["more"] = {"prefix": "10.2.0.0/24"}
    wanted["pfs"][OTHER] = {"num_vfs": 2}
    wanted["pfs"][PF]["num_vfs"] = 2  # its VF is attached
    file.write_text(yaml.safe_dump(wanted))
    before = vfctl(host, "export").stdout
    refused = vfctl(host, "apply", "-f", str(file), status=4).stderr
    assert "vm1" in refused and "vfctl detach" in refused
    assert vfctl(host, "export").stdout == before


def test_a_step_that_fails_undoes_what_was_done(host, file):
    before = vfctl(host, "export").stdout
    file.write_text(json.dumps({"networks": {"more": {"prefix": "10.2.0.0/24"}},
                                "pfs": {OTHER: {"num_vfs": 2, "vf_driver": "vfio-pci"}}}))
    host.happen(refuse_step="bind_vfs")
    vfctl(host, "apply", "-f", str(file), status=1)
    host.happen(refuse_step="")
    assert vfctl(host, "export").stdout == before
    assert host.ask("GET", f"/v1/pfs/{OTHER}")[1]["info"]["num_vfs"] == 0
    vfctl(host, "apply", "-f", str(file))
    assert host.ask("GET", f"/v1/pfs/{OTHER}")[1]["info"]["num_vfs"] == 2


def test_prune_forgets_what_is_not_named(host, file):
    wanted = yaml.safe_load(vfctl(host, "export").stdout)
    wanted["pools"] = {}
    file.write_text(yaml.safe_dump(wanted))
    assert vfctl(host, "diff", "-f", str(file)).stdout == "nothing changes\n"
    assert "pool fast is removed" in vfctl(host, "diff", "--prune", "-f", str(file),
                                           status=8).stdout
    vfctl(host, "apply", "--prune", "-f", str(file))
    assert host.ask("GET", "/v1/pools")[1]["items"] == []


def test_a_document_of_another_revision_is_refused(host):
    before = host.ask("GET", "/v1/desired")[0].headers["ETag"]
    vfctl(host, "pool", "remove", "fast")
    answer, problem = host.ask("PUT", "/v1/desired", {"pools": {}}, If_Match=before)
    assert answer.status == 412, problem


def test_the_same_key_twice_applies_once(host):
    body = {"pfs": {OTHER: {"num_vfs": 2}}}
    first = host.ask("PUT", "/v1/desired", body, Idempotency_Key="one")[1]
    host.ended(first)
    assert host.ask("PUT", "/v1/desired", body, Idempotency_Key="one")[1]["id"] == first["id"]
    assert [one["kind"] for one in operations(host)].count("apply") == 1
