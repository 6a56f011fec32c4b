# SPDX-License-Identifier: Apache-2.0
"""The world: real hosts on fakes, what happens to them, and what is known of it."""

import os
import ssl
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

import checker  # noqa: E402
from client import Lost, Unsent  # noqa: E402
from history import read_lines  # noqa: E402
from network import Network  # noqa: E402
from world import World  # noqa: E402

needs_root = pytest.mark.skipif(os.getuid() != 0, reason="only root makes network namespaces")


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    with World(tmp_path_factory.mktemp("world"), hosts=2, pfs=1, vfs=2, vms=2) as world:
        yield world


@pytest.fixture
def host(world):
    return world.hosts["h1"]


@pytest.fixture
def attached(host):
    """A VF in the first VM of h1."""
    ended = host.do("POST", "/v1/attachments", {"vm": host.vms[0], "pf": host.pfs[0],
                                                "verify": "none"})
    yield ended["subject"]
    if host.ask("GET", ended["subject"])[0].status == 200:
        host.do("DELETE", ended["subject"])


def test_hosts_differ_and_serve_over_tls(world):
    print(world.figures())
    certificates = set()
    for host in world.hosts.values():
        answer = host.server(world.client, token=host.token()).ask("GET", "/v1/vms")
        assert [vm["uuid"] for vm in answer.body["items"]] == host.vms
        certificates.add(ssl.get_server_certificate((host.party.address, host.port)))
    assert len(certificates) == 2


def test_the_log_knows_what_the_api_says(host, attached):
    vf, = host.now()
    assert vf["vms"] == [host.vms[0]]
    assert vf["mac"] == host.ask("GET", attached)[1]["settings"]["mac"]


@pytest.mark.parametrize("fault", ["kill", "stop"])
def test_the_log_is_readable_when_the_daemon_is_not(host, attached, fault):
    before = host.now()
    print(getattr(host, fault)())
    assert host.now() == before
    host.start() if fault == "kill" else host.go_on()
    assert host.ask("GET", attached)[1]["state"] == "attached"


def test_a_killed_host_gets_no_request_and_a_stopped_one_loses_it(world, host):
    server = host.server(world.client, token=host.token())
    host.stop()
    with pytest.raises((Lost, Unsent)):
        server.ask("GET", "/v1/vms", timeout=0.3)
    host.go_on()
    host.kill()
    with pytest.raises(Unsent):
        server.ask("GET", "/v1/vms")
    host.start()


def test_an_older_store_does_not_know_what_the_host_has(tmp_path, host):
    copy = host.copy_store(tmp_path / "copy")
    subject = host.do("POST", "/v1/attachments", {"vm": host.vms[1], "pf": host.pfs[0],
                                                  "verify": "none"})["subject"]
    newer = host.copy_store(tmp_path / "newer")
    host.replace_store(copy)
    host.start()
    assert host.ask("GET", subject)[0].status == 404
    assert [vf["vms"] for vf in host.now()] == [[host.vms[1]]]
    host.replace_store(newer)
    host.start()
    host.do("DELETE", subject)
    assert host.now() == []


def test_a_wiped_store_leaves_the_key_of_the_certificate(host):
    before = host.ask("GET", "/v1/pfs")[1]["items"][0]["spec"]
    files = {file: file.read_bytes() for file in (host.folder / "state").glob("*.key")}
    assert before and files
    host.replace_store()
    host.start()
    assert host.ask("GET", "/v1/pfs")[1]["items"][0]["spec"] is None
    assert files == {file: file.read_bytes() for file in files}
    host.make_vfs(2)


def test_a_host_that_lost_its_power_has_no_vm_with_a_vf(host, attached):
    assert host.now()
    host.lose_power()
    assert host.now() == []
    host.start()
    assert host.lines()[-1]["vfs"] == []
    host.make_vfs(2)


def test_what_happened_here_is_a_history(world):
    """Nobody wrote the acts down, so each VF came and went unasked."""
    rules = {one.rule for one in checker.check(read_lines(world.histories()))}
    assert rules == {"taken_by_nobody", "freed_by_nobody"}


@needs_root
def test_hosts_behind_links_that_can_be_cut(tmp_path):
    with World(tmp_path, hosts=2, pfs=1, vfs=1, vms=1, network=Network()) as world:
        network, parties = world.network, world.network.parties
        servers = {name: host.server(world.client, token=host.token())
                   for name, host in world.hosts.items()}
        network.cut(world.client, parties["h1"])
        with pytest.raises(Unsent):
            servers["h1"].ask("GET", "/v1/vms", timeout=0.3)
        assert servers["h2"].ask("GET", "/v1/vms").status == 200
        assert network.heal(world.client, parties["h1"]) > 0
        assert servers["h1"].ask("GET", "/v1/vms").status == 200
