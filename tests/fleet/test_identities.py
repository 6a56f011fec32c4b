# SPDX-License-Identifier: Apache-2.0
"""Whose identities are, carried out: real etcd, two replicas, two hosts on fakes."""

import ipaddress
import json

import pytest

from fleet import Fleet, World, vfctl
from live_daemon import until

MACS = "02:00:5e:00:00:00-02:00:5e:00:ff:ff"
ADDRESSES = "10.7.0.0-10.7.0.255"
NAMED = "02:00:5e:00:f0:01"  # in the ranges, and in no block


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("identities")


@pytest.fixture(scope="module")
def fleet(folder):
    with Fleet(folder) as fleet:
        yield fleet


@pytest.fixture(scope="module")
def hosts(fleet, folder):
    with World(folder / "hosts", hosts=2) as world:
        for host in world.hosts.values():
            answer, problem = host.ask("PUT", "/v1/networks/train", {
                "prefix": "10.7.0.0/24",
                "pfs": [{"pf": host.pfs[0], "host_address": f"10.7.0.{host.number}"}]})
            assert answer.status == 200, problem
            fleet.join(host)
        for name in world.hosts:
            fleet.active(name)
        yield world.hosts


def number(mac):
    return int(mac.replace(":", ""), 16)


def ranges_of(host):
    return host.ask("GET", "/v1/identities")[1]


def has_mac(host, mac):
    return any(number(first) <= number(mac) <= number(last or first) for first, _, last in
               (one.partition("-") for one in ranges_of(host)["macs"]))


def has_address(host, address):
    one = ipaddress.ip_address(address)
    return any(ipaddress.ip_address(first) <= one <= ipaddress.ip_address(last or first)
               for of in ranges_of(host)["addresses"] if of["network"] == "train"
               for first, _, last in (text.partition("-") for text in of["ranges"]))


def attach(host, vm, **more):
    ended = host.do("POST", "/v1/attachments", {"vm": host.vms[vm], "pf": host.pfs[0],
                                                "verify": "none", **more})
    return host.ask("GET", ended["subject"])[1]


def blocks(fleet):
    there = json.loads(fleet.members[0].control("get", "--prefix", "/vfmgr/blocks/",
                                                "-w", "json").stdout)
    return len(there.get("kvs", []))


def scheduler(fleet):
    """Returns the replica that schedules, and the other."""
    name = until(lambda: next((one["name"] for one in fleet.replicas[0].get("/v1/fleet")[
        "replicas"] if one["schedules"]), None), "one schedules")
    return sorted(fleet.replicas, key=lambda one: one.name != name)


def test_hosts_hand_out_what_they_like_until_the_fleet_has_ranges(fleet, hosts):
    assert "generation" not in ranges_of(hosts["h1"])
    assert fleet.replicas[0].get("/v1/identities") == {"macs": [], "guids": [], "addresses": []}


def test_both_hosts_get_blocks_of_the_fleets_ranges(fleet, hosts):
    vfctl("identities", "set", "--mac", MACS, "--address", f"train={ADDRESSES}",
          at=fleet.replicas[0].socket)
    assert MACS in vfctl("identities", "show", at=fleet.replicas[1].socket)
    for host in hosts.values():
        until(lambda host=host: "generation" in ranges_of(host), f"{host.name} has its blocks", 60)
    one, other = (ranges_of(host) for host in hosts.values())
    assert one["macs"] and other["macs"] and one["macs"] != other["macs"]
    assert one["addresses"] and one["addresses"] != other["addresses"]
    assert fleet.replicas[0].get("/v1/fleet")["problems"] == []


def test_what_is_attached_is_of_the_hosts_own_block(fleet, hosts):
    for host in hosts.values():
        attachment = attach(host, 0, network="train")
        assert has_mac(host, attachment["settings"]["mac"]), attachment
        assert has_address(host, attachment["address"]), attachment


def test_who_has_which_is_listed(fleet, hosts):
    replica = fleet.replicas[1]
    rows = until(lambda: (rows := replica.get("/v1/fleet/identities?state=held")["items"])
                 and len(rows) == 4 and rows, "a MAC and an address of each host are held")
    assert [(row["kind"], row["network"], row["host"], row["vm"]) for row in rows
            if row["host"] == "h1"] == [("address", "train", "h1", "vm1-0"),
                                        ("mac", None, "h1", "vm1-0")]
    assert all(row["source"] == "block" and row["since"] for row in rows)
    assert {row["public_key"] for row in rows} == {
        host["public_key"] for host in replica.get("/v1/hosts")["items"]}
    table = vfctl("fleet", "identities", "--on", "h2", "--kind", "mac", at=replica.socket)
    assert "vm2-0" in table and "vm1-0" not in table and "held" in table
    first = replica.get("/v1/fleet/identities?limit=1")
    rest = fleet.replicas[0].get(f"/v1/fleet/identities?cursor={first['next']}&limit=500")
    assert len(first["items"]) == 1 and len(rest["items"]) == 3
    assert replica.get("/v1/fleet/identities?vm=vm2-0&kind=address")["items"][0]["host"] == "h2"


def test_ranges_that_leave_blocks_outside_are_refused(fleet, hosts):
    answer, problem = fleet.replicas[0].ask("PUT", "/v1/identities", {
        "macs": ["02:00:5e:00:ff:00-02:00:5e:00:ff:ff"]})
    assert answer.status == 409, problem
    assert "h1 has " in problem["detail"] or "h2 has " in problem["detail"], problem
    answer, problem = fleet.replicas[0].ask("PUT", "/v1/identities", {"macs": [MACS]},
                                            **{"If-Match": '"1"'})
    assert answer.status == 412, problem


def test_an_identity_is_claimed_for_one_host(fleet, hosts):
    one, other = fleet.replicas
    assert one.ask("POST", "/v1/claims", {"mac": NAMED, "host": "h1"})[0].status == 201
    assert other.ask("POST", "/v1/claims", {"mac": NAMED, "host": "h1"})[0].status == 201
    answer, problem = other.ask("POST", "/v1/claims", {"mac": NAMED, "host": "h2"})
    assert answer.status == 409 and "claimed by h1" in problem["detail"], problem
    until(lambda: ranges_of(hosts["h1"]).get("claims", {}).get("macs") == [NAMED],
          "h1 may name it", 60)
    assert attach(hosts["h1"], 1, settings={"mac": NAMED})["settings"]["mac"] == NAMED
    answer, problem = hosts["h2"].ask("POST", "/v1/attachments", {
        "vm": hosts["h2"].vms[1], "pf": hosts["h2"].pfs[0], "settings": {"mac": NAMED}})
    assert answer.status == 409, problem
    # It is released when no VM of h1 has it any more.
    held = until(lambda: [row for row in one.get(f"/v1/fleet/identities?identity={NAMED}")["items"]
                          if row["state"] == "held"], "the VM's attachment is known")
    assert held[0]["source"] == "claim"
    attachments = hosts["h1"].ask("GET", "/v1/attachments")[1]["items"]
    named = next(each for each in attachments if each["settings"]["mac"] == NAMED)
    hosts["h1"].do("DELETE", f"/v1/attachments/{named['id']}")
    until(lambda: one.call("DELETE", f"/v1/claims/mac/{NAMED}").status == 204,
          "it is released", 60)
    assert one.get(f"/v1/fleet/identities?identity={NAMED}")["items"] == []


def test_without_etcd_attaching_goes_on(fleet, hosts):
    for member in fleet.members:
        member.kill()
    try:
        until(lambda: fleet.replicas[0].get("/v1/fleet")["stale_since"], "etcd is missed", 60)
        for host in hosts.values():
            assert has_mac(host, attach(host, 2, network="train")["settings"]["mac"])
    finally:
        for member in fleet.members:
            member.start()
    for replica in fleet.replicas:
        replica.ready()


def test_the_other_replica_gives_more_when_the_leader_dies(fleet, hosts):
    leads, other = scheduler(fleet)
    had = blocks(fleet)
    leads.process.kill()
    leads.process.wait(60)
    try:
        until(lambda: any(one["schedules"] and one["name"] == other.name
                          for one in other.get("/v1/fleet")["replicas"]),
              "the other one schedules", 60)
        # A network that the hosts carry, and of which they have nothing yet.
        for host in hosts.values():
            answer, problem = host.ask("PUT", "/v1/networks/store", {
                "prefix": "10.8.0.0/24",
                "pfs": [{"pf": host.pfs[1], "host_address": f"10.8.0.{host.number}"}]})
            assert answer.status == 200, problem
        vfctl("identities", "set", "--address", f"train={ADDRESSES}", "--address",
              "store=10.8.0.0-10.8.0.255", at=other.socket)
        for host in hosts.values():
            until(lambda host=host: any(of["network"] == "store" and of["ranges"]
                                        for of in ranges_of(host)["addresses"]),
                  f"{host.name} has addresses of the new network", 60)
        assert blocks(fleet) >= had + 2
    finally:
        leads.start()
        leads.ready()


def test_a_host_that_is_expelled_releases_everything(fleet, hosts):
    host, replica = hosts["h2"], fleet.replicas[0]
    until(lambda: len([one for one in replica.get("/v1/attachments")["items"]
                       if one["host"] == "h2"]) == 2, "the attachments of h2 are known")
    answer, problem = replica.ask("DELETE", "/v1/hosts/h2")
    assert answer.status == 409 and "vm2-0" in problem["detail"], problem
    for attachment in host.ask("GET", "/v1/attachments")[1]["items"]:
        host.do("DELETE", f"/v1/attachments/{attachment['id']}")
    until(lambda: not [one for one in replica.get("/v1/attachments")["items"]
                       if one["host"] == "h2"], "h2 has none any more")
    until(lambda: replica.call("DELETE", "/v1/hosts/h2").status in (204, 404), "h2 is gone", 90)
    left = fleet.members[0].control("get", "--prefix", "/vfmgr/blocks/").stdout
    assert '"h1"' in left and '"h2"' not in left
    given = ranges_of(host)
    assert given["macs"] == [] and given["addresses"] == [], given
