# SPDX-License-Identifier: Apache-2.0
"""One VF's story. vfmgr's steps are printed; sysfs, iproute2, virsh and /proc confirm them."""

import ipaddress
import json
import time

from api import Api
from report import expect

VM = "demo-vm"
MAC = "52:54:00:de:00:01"
VLAN = 100
VF_COUNT = 4
HOST_ADDRESS, VM_ADDRESS = "10.71.0.1", "10.71.0.10"
NETWORK = {"name": "demo", "vlan": VLAN, "prefix": "10.71.0.0/24", "mtu": 9000, "rdma": "rxe"}
CHECKED_BYTES_MIN = 1 << 20  # by each of rdma_write and rdma_read
RDMA_MTU_MAX = 4096          # bytes: no RDMA packet carries more


class Story:
    def __init__(self, host, observe, make_vm, report, port):
        self.host, self.observe, self.report, self.port = host, observe, report, port
        self.make_vm = make_vm
        self.pf = observe.pf()
        self.pci = observe.pf_pci(self.pf)
        self.vm = None
        self.api = None
        self.attachment = None
        self.untouched = None  # the VF as iproute2 showed it before it was attached

    def tell(self, keep):
        """With `keep`, the VM has a proved VF at the end, so that whoever comes sees one."""
        self.reach_the_api()
        self.create_vfs()
        self.start_a_vm()
        self.attach_and_prove()
        self.detach()
        if keep:
            self.attach_again()

    # --- the chapters ---

    def reach_the_api(self):
        with self.report.step("api_reached", "The REST API answers over TLS, only with a token") \
                as observed:
            active = self.host.run("systemctl is-active vfmgrd.service", check=False).stdout.strip()
            expect(active == "active", f"vfmgrd.service is {active}")
            certificate = self.host.read("/var/lib/vfmgr/tls.crt")
            token = self.host.run("vfctl -o json token create --name demo --role admin").json()
            self.api = Api(self.port, certificate, token["token"])
            refused, _ = self.api.ask("GET", "/v1", token="not-a-token")
            expect(refused == 401, f"a wrong token was answered with {refused}, not 401")
            about = self.api.get("/v1")
            pfs = {pf["info"]["pci"]: pf["info"] for pf in self.api.get("/v1/pfs")["items"]}
            expect(self.pci in pfs, f"/v1/pfs does not list {self.pci}: {list(pfs)}")
            observed.update(version=about["version"], pf=f"{self.pf} ({self.pci})",
                            device=pfs[self.pci]["device_name"],
                            without_token=f"{refused} unauthorized",
                            certificate_sha256=self.api.fingerprint)

    def create_vfs(self):
        with self.report.step("vfs_created", f"{self.pf} has {VF_COUNT} VFs") as observed:
            expect(self.observe.numvfs(self.pf) == 0, f"{self.pf} has VFs before the story begins")
            carried = {**NETWORK, "pfs": [{"pf": self.pci, "host_address": HOST_ADDRESS}]}
            self.api.put(f"/v1/networks/{NETWORK['name']}", carried)
            spec = {"mode": "manage", "num_vfs": VF_COUNT}
            self.follow("PUT", f"/v1/pfs/{self.pci}/spec", spec)
            seen = self.observe.numvfs(self.pf)
            expect(seen == VF_COUNT, f"sysfs shows {seen} VFs, not {VF_COUNT}")
            observed.update(sysfs_virtfn_links=seen, first_vf=self.observe.vf_pci(self.pf, 0))

    def start_a_vm(self):
        with self.report.step("vm_started", f"VM {VM} runs without a NIC") as observed:
            self.vm = self.make_vm(VM)
            self.vm.define().start().wait_ready()
            netdevs = self.vm.run("ls /sys/class/net").stdout.split()
            expect(netdevs == ["lo"], f"the VM has network devices already: {netdevs}")
            observed.update(virsh_domstate=self.vm.state(), netdevs_in_vm=netdevs)

    def attach_and_prove(self):
        """One request configures, attaches and proves; each is recorded once it is observed."""
        packets_before = self.rdma_packets()
        free = {index: self.observe.ip_link_vf(self.pf, index) for index in range(VF_COUNT)}
        wanted = self.wanted()
        began = time.monotonic()
        chapters = [(self.see_configured, "vf_configured", "The VF has its MAC, VLAN and trust"),
                    (self.see_attached, "vf_attached", f"The VF is attached to VM {VM}")]

        def meanwhile():
            while chapters:
                see, name, sentence = chapters[0]
                observed = see()
                if not observed:
                    return
                self.report.record(name, began, observed, sentence)
                chapters.pop(0)

        self.report.say(f"  POST /v1/attachments {json.dumps(wanted)}")
        self.follow("POST", "/v1/attachments", wanted, meanwhile)
        expect(not chapters, f"never observed: {chapters[0][1] if chapters else ''}")
        self.untouched = free[self.index()]
        self.see_proof(packets_before, began)

    def wanted(self):
        return {"vm": VM, "pf": self.pci, "network": NETWORK["name"], "address": VM_ADDRESS,
                "settings": {"mac": MAC, "trust": True}, "verify": "required"}

    def see_configured(self):
        for index in range(VF_COUNT):
            shown = ip_link(self.observe.ip_link_vf(self.pf, index))
            if shown["mac"] == MAC and shown["vlan"] == VLAN and shown["trust"]:
                self.report.ip_link = shown
                return {"ip_link": f"vf {index} mac {MAC} vlan {VLAN} trust on",
                        "vf": self.observe.vf_pci(self.pf, index)}
        return None

    def see_attached(self):
        live, config = (self.observe.hostdevs(VM, which) for which in ("live", "config"))
        if not live or not config:
            return None
        holders = self.observe.vfio_holders(live[0]["pci"])
        if not holders or "qemu" not in holders[0][1]:
            return None
        return {"live_xml": live[0]["pci"], "persistent_xml": config[0]["pci"],
                "vfio_group_held_by": f"{holders[0][1]} (pid {holders[0][0]})"}

    def see_proof(self, packets_before, began):
        attachments = self.api.get(f"/v1/attachments?vm={VM}")["items"]
        expect(len(attachments) == 1, f"{VM} has {len(attachments)} attachments, not 1")
        self.attachment = attachments[0]
        proof = self.attachment["verification"] or {}
        self.report.verification = {
            "tests": [{key: test[key] for key in ("name", "verdict", "by", "bytes_checked",
                                                  "mismatches", "figures")}
                      for test in proof.get("tests", [])],
            "peer_gid": proof.get("peer_gid"), "vf_mac": proof.get("vf_mac")}
        expect(proof.get("verdict") == "pass", f"the verdict is {proof.get('verdict')}: "
               f"{proof.get('detail')}")
        tests = {test["name"]: test for test in proof["tests"]}
        for name in ("rdma_write", "rdma_read"):
            test = tests.get(name, {})
            expect(test.get("by") == "host" and test.get("verdict") == "pass"
                   and test["mismatches"] == 0 and test["bytes_checked"] >= CHECKED_BYTES_MIN,
                   f"{name} is no proof: {test}")
        expect(proof["vf_mac"] == MAC, f"proved over {proof['vf_mac']}, not over {MAC}")
        # The peer of the host's queue pair; the GID of an IPv4 address ends in that address.
        gid = ipaddress.ip_address(int(proof["peer_gid"].replace(":", ""), 16))
        expect(str(gid.ipv4_mapped) == VM_ADDRESS, f"the peer's GID is that of {gid}")
        observed = {name: describe(test) for name, test in tests.items()}
        observed |= self.see_in_vm() | self.see_packets(packets_before, tests)
        observed["peer_gid"] = proof["peer_gid"]
        self.report.record("rdma_proved", began, observed, f"RDMA is proved from inside {VM}")

    def see_in_vm(self):
        """The VM's only NIC is the VF, with the requested address."""
        netdev = self.vm.netdev(MAC)
        expect(netdev, f"no network device in the VM has MAC {MAC}")
        shown = self.vm.run("ip -o -4 addr show scope global").stdout
        expect(f"{VM_ADDRESS}/24" in shown, f"the VM's addresses: {shown}")
        link = self.vm.run("rdma link").stdout.strip()
        expect(f"netdev {netdev}" in link, f"no RDMA device on {netdev}: {link}")
        return {"in_vm": f"{netdev} {VM_ADDRESS}/24, {link}"}

    def see_packets(self, before, tests):
        """The host's RDMA device must have counted the packets that carried the checked bytes."""
        sent, received = (now - then for now, then in zip(self.rdma_packets(), before))
        for what, packets, name in (("received", received, "rdma_write"),
                                    ("sent", sent, "rdma_read")):
            least = tests[name]["bytes_checked"] // RDMA_MTU_MAX
            expect(packets >= least, f"the host's RDMA device {what} {packets} packets, "
                   f"{name} needs at least {least}")
        return {"host_rdma_packets": f"{received} received, {sent} sent"}

    def detach(self):
        with self.report.step("vf_detached", "The VF is detached and clean") as observed:
            vf = self.attachment["vf_pci"]
            self.follow("DELETE", f"/v1/attachments/{self.attachment['id']}")
            for which in ("live", "config"):
                left = self.observe.hostdevs(VM, which)
                expect(not left, f"the VM's {which} XML still holds {left}")
            holders = self.observe.vfio_holders(vf)
            expect(not holders, f"the VF's VFIO group is still held by {holders}")
            shown = self.observe.ip_link_vf(self.pf, self.index())
            expect(ip_link(shown) == ip_link(self.untouched),
                   f"the VF was {ip_link(self.untouched)} and is {ip_link(shown)}")
            netdevs = self.vm.run("ls /sys/class/net").stdout.split()
            expect(netdevs == ["lo"], f"the VM still has {netdevs}")
            quarantine = self.api.get(f"/v1/pfs/{self.pci}/vfs/{self.index()}")["quarantine"]
            expect(quarantine is None, f"the VF is in quarantine: {quarantine}")
            observed.update(live_xml="no hostdev", persistent_xml="no hostdev",
                            vfio_group_held_by="nobody", ip_link=ip_link(shown),
                            netdevs_in_vm=netdevs)

    def attach_again(self):
        with self.report.step("attached_again", f"{VM} has a VF again, and has proved it") \
                as observed:
            self.follow("POST", "/v1/attachments", self.wanted())
            self.attachment, = self.api.get(f"/v1/attachments?vm={VM}")["items"]
            proof = self.attachment["verification"]
            expect(proof["verdict"] == "pass", f"the verdict is {proof['verdict']}")
            holders = self.observe.vfio_holders(self.attachment["vf_pci"])
            expect(holders, f"nobody holds the VFIO group of {self.attachment['vf_pci']}")
            observed.update(verdict=proof["verdict"],
                            vfio_group_held_by=f"{holders[0][1]} (pid {holders[0][0]})")

    # --- shared by the chapters ---

    def index(self):
        vf = self.attachment["vf"] if self.attachment else None
        if vf is None:
            attachments = self.api.get(f"/v1/attachments?vm={VM}")["items"]
            expect(attachments, f"{VM} has no attachment")
            vf = attachments[0]["vf"]
        return vf["index"]

    def follow(self, method, path, body=None, meanwhile=lambda: None):
        operation = self.api.start(method, path, body)
        return self.api.follow(operation, self.report.say, meanwhile)

    def rdma_packets(self):
        """(sent, received) by all RDMA devices of the host."""
        counters = "/sys/class/infiniband/*/ports/*/hw_counters/{}_pkts"
        return [sum(map(int, self.observe.lines(f"cat {counters.format(which)} 2>/dev/null || :")))
                for which in ("sent", "rcvd")]


def ip_link(shown):
    """MAC, VLAN and trust of a VF from `ip -j link`, whichever release of iproute2 wrote it."""
    shown = shown or {}
    vlans = shown.get("vlan_list") or [{}]
    return {"mac": shown.get("address", shown.get("mac")),
            "vlan": shown.get("vlan", vlans[0].get("vlan")) or 0, "trust": shown.get("trust")}


# The figures that a test's line shows; demo-report.json has every figure.
SHOWN = {"bandwidth_mbps": "{:.0f} Mbit/s", "p50_us": "p50 {:.0f} us", "p99_us": "p99 {:.0f} us",
         "lost": "{:.0f} lost", "mtu_bytes": "MTU {:.0f}"}


def describe(test):
    parts = [f"{test['verdict']} by {test['by']}"]
    parts += [form.format(test["figures"][name]) for name, form in SHOWN.items()
              if name in test["figures"]]
    if test["bytes_checked"]:
        parts.append(f"{test['bytes_checked']} bytes checked, {test['mismatches']} wrong")
    return ", ".join(parts)
