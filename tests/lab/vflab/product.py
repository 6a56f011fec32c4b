# SPDX-License-Identifier: Apache-2.0
"""vfmgr as a scenario drives it: REST requests and their operations.

Nothing here judges: vflab.observe observes the results.
"""

import json

from vflab.observe import flat_vf, global_addresses

OPERATION_SECONDS = 400
TRAIN = {"name": "train", "vlan": 100, "prefix": "192.168.100.0/24",
         "host_address": "192.168.100.3", "mtu": 9000, "rdma": "rxe"}
PLAIN = {"name": "plain", "prefix": "192.168.50.0/24", "host_address": "192.168.50.1",
         "mtu": 1500, "rdma": "rxe"}

NFT = "/usr/sbin/nft"
STATE = "/var/lib/vfmgr"
STORE = f"{STATE}/vfmgr.db"
SERVICES = "vfmgrd.socket vfmgrd.service"
BROKER = "vfmgr-broker.socket vfmgr-broker.service"
STOP = "systemctl stop vfmgrd.service vfmgr-broker.service vfmgr-guestd.service"


# The VFs of PF, a line each, and then three lines of JSON.
LOOK = """cd /sys/class/net/PF/device
for v in virtfn*; do [ -e $v ] || continue
  d=$(readlink $v/driver); p=$(readlink $v); echo "${v#virtfn}|${p##*/}|${d##*/}"; done
ip -j -d link show; ip -j addr show dev PF; rdma -j link"""


class Refused(AssertionError):
    """The answer was a problem where success was needed."""


class Product:
    def __init__(self, lab, pf=None):
        self.lab = lab
        self.pf = pf or lab.observe.pf()
        self.pci = lab.observe.pf_pci(self.pf)

    # --- requests ---

    def ask(self, method, path, body=None, headers=()):
        """Returns the answer and waits for its operation: (answer, operation or None)."""
        answer = self.lab.api(method, path, body, headers)
        if answer.status != 202:
            return answer, None
        return answer, self.ended(answer.body["id"])

    def ended(self, operation):
        """Long-polls until the operation has ended."""
        for _ in range(OPERATION_SECONDS // 50):
            answer = self.lab.api("GET", f"/v1/operations/{operation}?wait=50")
            if answer.status != 200:
                raise Refused(f"operation {operation}: {answer}")
            if answer.body["state"] in ("succeeded", "failed"):
                return answer.body
        raise Refused(f"operation {operation} has not ended in {OPERATION_SECONDS} s")

    def must(self, method, path, body=None):
        answer, operation = self.ask(method, path, body)
        if answer.status >= 300 or (operation and operation["state"] != "succeeded"):
            raise Refused(f"{method} {path}: {operation['problem'] if operation else answer}")
        return answer, operation

    # --- the usual ---

    def manage(self, num_vfs=7, networks=(TRAIN, PLAIN), **spec):
        for network in networks:
            self.carry(**network)
        return self.must("PUT", f"/v1/pfs/{self.pci}/spec",
                         {"mode": "manage", "num_vfs": num_vfs, **spec})

    def carry(self, name, host_address, **network):
        """The network is this PF's alone."""
        self.must("PUT", f"/v1/networks/{name}",
                  {**network, "pfs": [{"pf": self.pci, "host_address": host_address}]})

    def attach(self, vm, **members):
        """Must succeed; returns the attachment."""
        _, operation = self.must("POST", "/v1/attachments", {"vm": vm, "pf": self.pci, **members})
        return self.attachment(operation["subject"].rsplit("/", 1)[1])

    def refused(self, **members):
        """Must fail; returns the problem."""
        answer, operation = self.ask("POST", "/v1/attachments", {"pf": self.pci, **members})
        if operation:
            self.lab.check(operation["state"] == "failed", f"{members} was accepted: {operation}")
            return operation["problem"]
        self.lab.check(answer.status >= 400, f"{members} was accepted: {answer}")
        return answer.body

    def verify(self, attachment, **members):
        """Must succeed; returns the verification."""
        self.must("POST", f"/v1/attachments/{attachment['id']}/verifications", members)
        return self.attachment(attachment["id"])["verification"]

    def detach(self, attachment):
        return self.must("DELETE", f"/v1/attachments/{attachment['id']}")

    def attachment(self, identifier):
        answer = self.lab.api("GET", f"/v1/attachments/{identifier}")
        return answer.body if answer.status == 200 else None

    def attachments(self):
        return self.lab.api("GET", "/v1/attachments").body["items"]

    def calm(self):
        """Returns whether vfmgrd's last observation found no drift."""
        return self.lab.api("GET", "/readyz").body.get("drift") == 0

    def quarantined(self):
        return [vf for vf in self.lab.api("GET", f"/v1/pfs/{self.pci}/vfs").body["items"]
                if vf["quarantine"]]

    def open_host(self):
        """Lets VMs reach all of the host until close_host(): vfmgrd can't restore flushed rules."""
        self.lab.host.run(f"mv {NFT} {NFT}.away && {NFT}.away flush ruleset")

    def close_host(self):
        self.lab.host.run(f"mv {NFT}.away {NFT}")

    def leave(self):
        """Detaches everything, removes networks and VFs, and stops managing the PF."""
        for attachment in self.attachments():
            self.detach(attachment)
        for network in self.lab.api("GET", "/v1/networks").body["items"]:
            self.must("DELETE", f"/v1/networks/{network['name']}")
        self.must("PUT", f"/v1/pfs/{self.pci}/spec", {"mode": "manage", "num_vfs": 0})
        self.must("DELETE", f"/v1/pfs/{self.pci}/spec")


class Before:
    """Returns the host's state by its own tools, to be compared later."""

    def __init__(self, product):
        self.product = product
        self.seen = self.look()

    def look(self):
        """In one command: an emulated host takes as long for each of them."""
        pf = self.product.pf
        shown = self.product.lab.host.run(LOOK.replace("PF", pf)).stdout.splitlines()
        *vfs, links, addresses, rdma = shown
        links = json.loads(links)
        own = next(link for link in links if link["ifname"] == pf)
        settings = {vf["vf"]: flat_vf(vf) for vf in own.get("vfinfo_list", [])}
        found = {}
        for index, pci, driver in (line.split("|") for line in vfs):
            found[int(index)] = {"pci": pci, "driver": driver or None,
                                 "ip_link": settings.get(int(index))}
        return {"vfs": found, "links": sorted(link["ifname"] for link in links),
                "addresses": global_addresses(json.loads(addresses)),
                "rdma": {link["ifname"]: link.get("netdev") for link in json.loads(rdma)},
                "mtu": own["mtu"]}

    def check_again(self, text):
        now = self.look()
        for part, was in self.seen.items():
            self.product.lab.check_equal(now[part], was, f"{text}: {part}")
