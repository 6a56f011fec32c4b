# SPDX-License-Identifier: Apache-2.0
"""VFs of whichever host suits: reserved through any replica, kept by the host, attached there."""

import base64
import http.client
import json
import threading

import pytest

from fleet import Fleet, World, vfctl
from live_daemon import until

NETWORK = "train"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("reservations")


@pytest.fixture(scope="module")
def world(folder):
    with World(folder / "hosts", hosts=3, pfs=2, vfs=4) as world:
        for host in world.hosts.values():
            answer, problem = host.ask("PUT", f"/v1/networks/{NETWORK}", {
                "prefix": f"10.{host.number}.0.0/16",
                "pfs": [{"pf": pf, "host_address": f"10.{host.number}.0.{number}"}
                        for number, pf in enumerate(host.pfs, 1)]})
            assert answer.status == 200, problem
        yield world


@pytest.fixture(scope="module")
def fleet(folder, world):
    with Fleet(folder, members=3) as fleet:
        for host in world.hosts.values():
            fleet.join(host)
        for name in world.hosts:
            for replica in fleet.replicas:
                fleet.active(name, replica)
        yield fleet


def roles(fleet):
    """Returns the replica that schedules, and the other one."""
    def leader():
        names = [one["name"] for one in fleet.replicas[0].get("/v1/fleet")["replicas"]
                 if one["schedules"]]
        return names[0] if names else None
    name = until(leader, "a replica schedules")
    return sorted(fleet.replicas, key=lambda one: one.name != name)


@pytest.fixture(autouse=True)
def nothing_is_left(fleet):
    yield
    for replica in fleet.replicas:
        replica.ready()
    scheduler, _ = roles(fleet)
    for name in reserved(fleet):
        until(lambda name=name: scheduler.call("DELETE", f"/v1/reservations/{name}").status
              in (204, 404), f"{name} is released")
    until(lambda: not any(replica.get("/v1/reservations")["items"] for replica in fleet.replicas),
          "no replica knows a reservation")


def reserved(fleet):
    """Returns the reservations in etcd, with their hosts."""
    there = json.loads(fleet.members[0].control(
        "get", "--prefix", "/vfmgr/reservations/", "-w", "json").stdout)
    texts = [json.loads(base64.b64decode(one["value"])) for one in there.get("kvs", [])]
    return {one["spec"]["name"]: one["host"] for one in texts}


def kept(world):
    """Returns what each host keeps: (host, name) -> VFs, none of them twice."""
    all_kept = {}
    for name, host in world.hosts.items():
        taken = []
        for one in host.ask("GET", "/v1/reservations")[1]["items"]:
            all_kept[name, one["name"]] = one["vfs"]
            taken += [(vf["pf"], vf["index"]) for vf in one["vfs"]]
        assert len(taken) == len(set(taken)), f"{name} keeps a VF twice: {taken}"
    return all_kept


def reserve(replica, expected=201, **spec):
    answer, body = replica.ask("POST", "/v1/reservations", {"network": NETWORK, **spec})
    assert answer.status == expected, body
    return body


def test_any_replica_takes_the_request(fleet, world):
    scheduler, other = roles(fleet)
    one = reserve(scheduler, name="one", count=3)
    two = reserve(other, name="two", count=3)
    assert one["state"] == two["state"] == "held"
    assert two["requested_by"] == "uid:0", "its own name, not the replica's"
    assert kept(world) == {(one["host"], "one"): one["vfs"], (two["host"], "two"): two["vfs"]}
    assert reserved(fleet) == {"one": one["host"], "two": two["host"]}
    for replica in fleet.replicas:
        shown = replica.get("/v1/reservations/two")
        assert (shown["host"], shown["vfs"], shown["state"]) == (two["host"], two["vfs"], "held")
    until(lambda: {(item["host"], item["name"]) for item in other.get("/v1/reservations")["items"]}
          == {(one["host"], "one"), (two["host"], "two")}, "the list has both")
    # Both ends audit it, with the replica that it came through.
    said = scheduler.get("/v1/audit")["items"]
    assert any(entry["who"] == "uid:0" and f"fleet:{other.name}" in entry["from"]
               for entry in said), said[:3]
    assert other.call("DELETE", "/v1/reservations/one").status == 204
    assert (one["host"], "one") not in kept(world)
    assert scheduler.call("GET", "/v1/reservations/one").status == 404


def test_a_dry_run_keeps_nothing(fleet, world):
    answer, planned = roles(fleet)[1].ask("POST", "/v1/reservations?dry_run=true",
                                          {"network": NETWORK, "count": 2})
    assert (answer.status, planned["state"], planned["vfs"]) == (200, "planned", [])
    assert len(planned["candidates"]) == 3 and planned["candidates"][0]["chosen"]
    assert not kept(world) and not reserved(fleet)


def test_when_vfs_run_out_each_host_says_why(fleet, world):
    replica = roles(fleet)[1]
    vfctl("host", "cordon", "h3", "--reason", "a fan is broken", at=replica.socket)
    try:
        made = [reserve(replica, name=f"job-{number}", count=4) for number in range(4)]
        assert sorted(one["host"] for one in made) == ["h1", "h1", "h2", "h2"]
        problem = reserve(replica, 422, name="more", count=4)
        assert problem["code"] == "limit_exceeded", problem
        for words in ("h1 has 0 free VFs", "h2 has 0 free VFs", "h3 is cordoned", "a fan is"):
            assert words in problem["detail"], problem
    finally:
        vfctl("host", "uncordon", "h3", at=replica.socket)
    assert len(kept(world)) == 4
    assert reserve(replica, name="more", count=4)["host"] == "h3"


def test_a_host_that_refuses_gives_way_to_the_next(fleet, world):
    scheduler, _ = roles(fleet)
    # A client of the host itself has the name there.
    first = reserve(scheduler, name="probe", count=1)["host"]
    assert scheduler.call("DELETE", "/v1/reservations/probe").status == 204
    host = world.hosts[first]
    answer, problem = host.ask("PUT", "/v1/reservations/job", {"network": NETWORK, "count": 1})
    assert answer.status == 200, problem
    made = reserve(scheduler, name="job", count=1)
    assert made["host"] != first
    assert any(one["host"] == first and "refused" in one["reason"]
               for one in made["candidates"]), made["candidates"]
    assert host.ask("DELETE", "/v1/reservations/job")[0].status == 204


def test_the_same_request_again_renews(fleet, world):
    _, other = roles(fleet)
    first = reserve(other, name="job", count=2, seconds=60)
    again = reserve(other, name="job", count=2, seconds=3600)
    assert again["host"] == first["host"] and again["expires_at"] > first["expires_at"]
    assert len(kept(world)) == 1
    assert reserve(other, 409, name="job", count=3)["code"] == "conflict"


def attached(replica, **body):
    answer, operation = replica.ask("POST", "/v1/attachments", body)
    assert answer.status == 202, operation
    assert answer.headers["Location"].startswith(f"/v1/hosts/{operation['host']}/operations/")
    ended = replica.get(answer.headers["Location"] + "?wait=30")
    assert ended["state"] == "succeeded", ended
    return operation["host"], ended["subject"].rsplit("/", 1)[1]


def detached(replica, identity):
    until(lambda: replica.call("GET", f"/v1/attachments/{identity}").status == 200,
          "the attachment is known")
    answer, operation = replica.ask("DELETE", f"/v1/attachments/{identity}")
    assert answer.status == 202, operation
    ended = replica.get(answer.headers["Location"] + "?wait=30")
    assert ended["state"] == "succeeded", ended


def test_an_attachment_goes_to_its_vms_host(fleet, world):
    replica = fleet.replicas[1]
    vm = world.hosts["h2"].vms[1]
    host, identity = attached(replica, vm=vm, network=NETWORK)
    assert host == "h2"
    assert world.hosts["h2"].ask("GET", f"/v1/attachments/{identity}")[1]["vm_uuid"] == vm
    detached(replica, identity)
    answer, problem = replica.ask("POST", "/v1/attachments", {"vm": "nobody", "network": NETWORK})
    assert (answer.status, problem["code"]) == (404, "not_found"), problem
    answer, problem = replica.ask("POST", "/v1/attachments",
                                  {"vm": vm, "network": NETWORK, "host": "h1"})
    assert answer.status == 409 and "h2" in problem["detail"], problem


def test_an_attachment_takes_a_vf_of_the_reservation(fleet, world):
    replica = fleet.replicas[0]
    made = reserve(replica, name="job", count=2)
    vm = world.hosts[made["host"]].vms[0]
    host, identity = attached(replica, vm=vm, reservation="job")
    assert host == made["host"]
    until(lambda: len(replica.get("/v1/reservations/job")["vfs"]) == 1,
          "the replica has heard that the attachment took one")
    elsewhere = next(one for name, one in world.hosts.items() if name != host).vms[0]
    answer, problem = replica.ask("POST", "/v1/attachments",
                                  {"vm": elsewhere, "reservation": "job"})
    assert answer.status == 409 and made["host"] in problem["detail"], problem
    detached(replica, identity)


def test_vfctl_says_why_it_is_that_host(fleet, world):
    at = roles(fleet)[1].socket
    shown = vfctl("reservation", "make", "job", "--network", NETWORK, "--count", 2, "--on-host",
                  "h3", at=at)
    assert "h3" in shown and "is not among the hosts that the request names" in shown
    assert "held" in vfctl("reservation", "show", "job", at=at)
    assert "job" in vfctl("reservation", "list", at=at)
    text = vfctl("attach", world.hosts["h3"].vms[0], "--reservation", "job", "-j", at=at)
    identity = json.loads(text)["id"]
    vfctl("reservation", "release", "job", at=at)
    detached(fleet.replicas[0], identity)


def lose(replica):
    """Sends a request whose answer does not come."""
    with pytest.raises((OSError, http.client.HTTPException)):
        reserve(replica, name="open", count=1)


def test_a_scheduler_that_dies_leaves_nothing_open(fleet, world):
    scheduler, other = roles(fleet)
    made = reserve(scheduler, name="before", count=1)
    # A host that does not answer: the reservation is written, and nothing is known of it.
    planned = scheduler.ask("POST", "/v1/reservations?dry_run=true",
                            {"network": NETWORK, "count": 1})[1]["host"]
    host = world.hosts[planned]
    host.stop()
    try:
        waiting = threading.Thread(target=lose, args=(scheduler,))
        waiting.start()
        until(lambda: "open" in reserved(fleet), "it is written")
        scheduler.process.kill()
        scheduler.process.wait(60)
        waiting.join(60)
    finally:
        host.go_on()
    try:
        until(lambda: [one["name"] for one in other.get("/v1/fleet")["replicas"]
                       if one["schedules"]] == [other.name], "the other one schedules", 60)
        # Settled: etcd and the hosts agree.
        until(lambda: {(where, name) for name, where in reserved(fleet).items()} ==
              set(kept(world)), "etcd says what hosts keep", 90)
        assert (made["host"], "before") in kept(world)
        again = reserve(other, name="open", count=1)
        assert again["state"] == "held"
        assert [name for _, name in kept(world)].count("open") == 1
    finally:
        scheduler.start()
        scheduler.ready()
