# SPDX-License-Identifier: Apache-2.0
"""Hosts join a fleet, and are one inventory: real etcd, two replicas, hosts on fakes."""

import json

import pytest

from fleet import Fleet, World, vfctl
from live_daemon import until


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("fleet")


@pytest.fixture(scope="module")
def fleet(folder):
    with Fleet(folder, members=3) as fleet:
        yield fleet


@pytest.fixture(scope="module")
def world(folder):
    with World(folder / "hosts", hosts=2) as world:
        yield world


@pytest.fixture(scope="module")
def joined(fleet, world):
    for host in world.hosts.values():
        fleet.join(host)
    for name in world.hosts:
        fleet.active(name)
    return world.hosts


def test_replicas_agree_on_the_fleet(fleet):
    one, other = (replica.get("/v1/fleet") for replica in fleet.replicas)
    assert one["fleet"] == other["fleet"]
    until(lambda: [r["schedules"] for r in fleet.replicas[0].get("/v1/fleet")["replicas"]].count(
        True) == 1 and len(fleet.replicas[0].get("/v1/fleet")["replicas"]) == 2,
        "two replicas are there, and one schedules")


def test_a_host_joins_and_both_know_each_other(fleet, joined):
    host = fleet.active("h1", fleet.replicas[1])
    assert host["url"].endswith(":8470") and host["joined_by"] == "uid:0"
    view = joined["h1"].ask("GET", "/v1/fleet")[1]
    assert view["membership"]["fleet"] == fleet.replicas[0].get("/v1/fleet")["fleet"]
    assert view["public_key"] == host["public_key"]
    assert until(lambda: joined["h1"].ask("GET", "/v1/fleet")[1]["membership"].get(
        "contacted_at"), "a replica was there")


def test_a_join_token_is_for_one_host(fleet, joined, world):
    token = vfctl("fleet", "token", "--for", "h9", at=fleet.replicas[0].socket).strip()
    answer, problem = fleet.replicas[1].ask("POST", "/v1/hosts", {
        "token": token, "name": "h8", "url": "https://127.0.0.1:1", "public_key": "0" * 64},
        connection=fleet.replicas[1].remote())
    assert answer.status == 403, problem
    used = dict(token=token, name="h9", url="https://127.0.0.9:1", public_key="0" * 64)
    connection = fleet.replicas[1].remote
    assert fleet.replicas[1].ask("POST", "/v1/hosts", used,
                                 connection=connection())[0].status == 200
    # Its answer was lost: the same again.
    assert fleet.replicas[0].ask("POST", "/v1/hosts", used,
                                 connection=fleet.replicas[0].remote())[0].status == 200
    used["public_key"] = "1" * 64
    assert fleet.replicas[1].ask("POST", "/v1/hosts", used,
                                 connection=connection())[0].status == 401
    lost = until(lambda: (h9 := fleet.replicas[0].get("/v1/hosts/h9"))["unreachable_since"] and h9,
                 "nobody answers as h9")
    assert lost["state"] == "joining"


def test_no_secret_is_in_etcd(fleet, joined):
    there = fleet.members[0].control("get", "--prefix", "/vfmgr/").stdout
    assert '"public_key"' in there and "BEGIN CERTIFICATE" in there
    assert "PRIVATE KEY" not in there and "vfj1." not in there and "vfm_" not in there


def test_one_inventory(fleet, joined):
    for replica in fleet.replicas:
        page = until(lambda: (page := replica.get("/v1/vfs")) and len(
            {vf["host"] for vf in page["items"]}) == 2 and page, "both hosts' VFs are there")
        own = [dict(vf, host=name) for name, host in sorted(joined.items())
               for vf in host.ask("GET", "/v1/vfs")[1]["items"]]
        assert page["items"] == own
    listed = vfctl("vf", "list", at=fleet.replicas[0].socket)
    assert "HOST" in listed.splitlines()[0] and {line.split()[-1] for line in
                                                 listed.splitlines()[1:]} == set(joined)
    # A cursor of one replica goes on at the other.
    first = fleet.replicas[0].get("/v1/vfs?limit=3")
    rest = fleet.replicas[1].get(f"/v1/vfs?cursor={first['next']}")
    assert [*first["items"], *rest["items"]] == own


def test_a_hosts_own_api_is_passed_on(fleet, joined):
    replica, host = fleet.replicas[0], joined["h1"]
    assert replica.get("/v1/hosts/h1/pfs") == host.ask("GET", "/v1/pfs")[1]
    answer, operation = replica.ask("POST", "/v1/hosts/h1/attachments",
                                    {"vm": host.vms[0], "pf": host.pfs[0]})
    assert answer.status == 202, operation
    assert answer.headers["Location"].startswith("/v1/hosts/h1/operations/")
    ended = replica.get(answer.headers["Location"] + "?wait=30")
    assert ended["state"] == "succeeded", ended
    assert ended["requested_by"] == "fleet:uid:0"
    assert until(lambda: [one for one in fleet.replicas[1].get("/v1/attachments")["items"]
                          if one["host"] == "h1" and one["state"] == "attached"],
                 "the other replica shows the attachment")
    # Both audit it, the host with the replica it came through.
    said = until(lambda: [entry for entry in host.ask("GET", "/v1/audit")[1]["items"]
                          if entry["action"].startswith("POST /v1/attachments")],
                 "the host has audited it")
    assert said[0]["who"] == "fleet:uid:0" and "fleet:r1" in said[0]["from"], said
    assert any(entry["who"] == "uid:0" and "/v1/hosts/h1/attachments" in entry["action"]
               for entry in replica.get("/v1/audit")["items"])


@pytest.mark.parametrize("path", ["tokens", "audit"])
def test_the_fleet_may_not_do_everything(fleet, joined, path):
    answer, problem = fleet.replicas[0].ask("GET", f"/v1/hosts/h1/{path}")
    assert answer.status == 403, problem


def test_a_host_that_does_not_answer_stays_as_it_was(fleet, joined):
    host, replica = joined["h2"], fleet.replicas[0]
    had = [vf for vf in replica.get("/v1/vfs")["items"] if vf["host"] == "h2"]
    host.stop()
    try:
        since = until(lambda: replica.get("/v1/hosts/h2")["unreachable_since"],
                      "h2 is known not to answer", 120)
        page = replica.get("/v1/vfs")
        assert [vf for vf in page["items"] if vf["host"] == "h2"] == had
        assert [(one["host"], one["why"]) for one in page["stale"] if one["host"] == "h2"] == [
            ("h2", "unreachable")], page["stale"]
        assert since
    finally:
        host.go_on()
    until(lambda: not replica.get("/v1/hosts/h2")["unreachable_since"], "h2 answers again", 120)


def test_a_store_restored_behind_the_fleets_back_is_quarantined(fleet, joined, folder):
    host, replica = joined["h2"], fleet.replicas[1]
    copy = host.copy_store(folder / "copy")
    answer, operation = replica.ask("POST", "/v1/hosts/h2/attachments",
                                    {"vm": host.vms[0], "pf": host.pfs[0]})
    assert answer.status == 202, operation
    replica.get(answer.headers["Location"] + "?wait=30")
    until(lambda: any(one["host"] == "h2" for one in replica.get("/v1/attachments")["items"]),
          "the attachment is known")
    host.replace_store(copy)
    host.start()
    state = until(lambda: (h2 := replica.get("/v1/hosts/h2"))["state"] == "quarantined" and h2,
                  "h2 is quarantined", 120)
    assert "is not the one that it sent before" in state["reason"], state
    vfctl("host", "confirm", "h2", at=replica.socket)
    assert replica.get("/v1/hosts/h2")["state"] == "active"


def test_admins_say_what_hosts_are(fleet, joined):
    at = fleet.replicas[0].socket
    vfctl("host", "set", "h1", "--rack", "r1", "--label", "zone=a", "--partition",
          "3=0000:1a:00.0,0000:1b:00.0", at=at)
    vfctl("host", "cordon", "h1", "--reason", "a fan is broken", at=at)
    host = json.loads(vfctl("-j", "host", "show", "h1", at=fleet.replicas[1].socket))
    assert (host["rack"], host["labels"]) == ("r1", {"zone": "a"})
    assert host["cordoned"]["reason"] == "a fan is broken"
    until(lambda: {vf["host"] for vf in fleet.replicas[1].get("/v1/vfs?rack=r1")["items"]} == {
        "h1"}, "lists know the rack")
    vfctl("host", "uncordon", "h1", at=at)
    vfctl("host", "fence", "h1", "--evidence", "its power was cut by pdu7", at=at)
    assert "pdu7" in vfctl("host", "show", "h1", at=at)
    vfctl("host", "unfence", "h1", at=at)
    assert json.loads(vfctl("-j", "host", "show", "h1", at=at))["fenced"] is None


def test_a_host_is_expelled_by_name_and_its_number_stays_taken(fleet, joined):
    replica = fleet.replicas[0]
    token = vfctl("fleet", "token", at=replica.socket).strip()
    answer, problem = replica.ask("POST", "/v1/hosts", {
        "token": token, "name": "h5", "url": "https://127.0.0.9:1", "public_key": "5" * 64})
    assert answer.status == 200, problem
    vfctl("host", "expel", "h5", at=fleet.replicas[1].socket)
    until(lambda: replica.call("GET", "/v1/hosts/h5").status == 404, "h5 is gone")
    assert replica.call("DELETE", "/v1/hosts/h5").status == 404
    numbers = fleet.members[0].control("get", "--prefix", "/vfmgr/host-numbers/").stdout
    assert '"h5"' in numbers


def test_a_replica_that_dies_is_missed_by_nobody(fleet, joined):
    scheduler = next(r["name"] for r in fleet.replicas[0].get("/v1/fleet")["replicas"]
                     if r["schedules"])
    dies, lives = sorted(fleet.replicas, key=lambda one: one.name != scheduler)
    dies.process.kill()
    dies.process.wait(60)
    try:
        until(lambda: [r["name"] for r in lives.get("/v1/fleet")["replicas"] if r["schedules"]] ==
              [lives.name], "the other one schedules", 60)
        assert len(lives.get("/v1/vfs")["items"]) > 0
    finally:
        dies.start()
        dies.ready()


def test_without_etcd_reads_go_on_and_say_so(fleet, joined):
    replica = fleet.replicas[0]
    for member in fleet.members[:2]:
        member.kill()
    try:
        since = until(lambda: replica.get("/v1/fleet")["stale_since"], "etcd is missed", 60)
        assert since and len(replica.get("/v1/vfs")["items"]) > 0
        assert replica.call("GET", "/readyz").status == 503
        # What goes through to a host does not need etcd.
        assert replica.get("/v1/hosts/h1/pfs")["items"]
        answer, problem = replica.ask("PATCH", "/v1/hosts/h1", {"rack": "r2"})
        assert answer.status in (503, 504), problem
    finally:
        for member in fleet.members[:2]:
            member.start()
    replica.ready()
    until(lambda: replica.ask("PATCH", "/v1/hosts/h1", {"rack": "r2"})[0].status == 200,
          "changes work again", 60)
