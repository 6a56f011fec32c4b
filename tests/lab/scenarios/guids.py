# SPDX-License-Identifier: Apache-2.0
"""GUIDs of InfiniBand VFs: each attachment has its own, which no later one gets.

The NIC is the lab's own (vflab.lab_pf), with mlx5's quirk: it keeps what was set when VFs are
removed, and applies it to new ones. iproute2, the driver's own list and a VF's driver judge.
"""

from vflab.lab_pf import LabPfs
from vflab.product import Product


NODE, PORT = "02:11:22:33:44:55:66:01", "02:11:22:33:44:55:66:02"
NONE = ("00:00:00:00:00:00:00:00",) * 2
VFS = 4


def run(lab):
    lab.expect("set", "seen by the VF's driver", "cleaned", "rotated", "given again by the driver",
               "quarantined", "refused whole", "certified")
    with LabPfs(lab, "infiniband") as [nic]:
        Guids(lab, nic).run()


class Guids:
    def __init__(self, lab, nic):
        self.lab, self.nic = lab, nic
        self.product = Product(lab, nic.netdev)
        self.had = [NODE, PORT]  # by earlier tenants of VF 0
        for name in ("first", "second", "third", "fourth"):
            lab.vm(name, start=False)

    def run(self):
        self.product.manage(num_vfs=VFS, networks=())
        self.lab.check_equal(self.nic.ip_guids(), dict.fromkeys(range(VFS), NONE),
                             "GUIDs of new VFs, of which the driver tells those that were set")
        factory = self.nic.seen(0)
        self.had += [factory["node_guid"], factory["port_guid"]]
        self.given()
        self.refused()
        self.chosen()
        self.made_anew_meanwhile()
        self.gone_at_the_end()
        self.product.leave()

    def given(self):
        self.lab.step("an attachment with GUIDs of its own, one for the node and one for the port")
        attachment = self.attach("first", settings={"node_guid": NODE, "port_guid": PORT})
        self.holds((NODE, PORT), "set")
        self.lab.check_equal([self.nic.ip_guids()[other] for other in range(1, VFS)],
                             [NONE] * (VFS - 1), "the GUIDs of the other VFs")
        self.returned(attachment)

    def refused(self):
        self.lab.step("an attachment that asks for a MAC, which InfiniBand has not, besides")
        problem = self.product.refused(vm="first", vf=0, persistence="config", verify="none",
                                       settings={"node_guid": NODE, "mac": "52:54:00:00:00:01"})
        said = f"{problem['detail']} [{problem.get('remedy')}]"
        self.lab.check("mac" in said and "InfiniBand" in said, f"the reason is not said: {said}")
        self.lab.check_equal(self.nic.ip_guids()[0], NONE, "the GUIDs after a refusal")
        self.lab.check_equal(self.lab.observe.hostdevs("first", "config"), [], "the VM's devices")
        if self.lab.check_equal(self.product.quarantined(), [], "quarantine after a refusal"):
            self.lab.count("refused whole")

    def chosen(self):
        self.lab.step("the next attachment of that VF, which leaves them to vfmgr")
        self.second = self.attach("second")
        self.is_new(self.second)

    def made_anew_meanwhile(self):
        self.lab.step("an admin makes the VFs anew by hand: they have the attachment's GUIDs")
        guids = guids_of(self.second)
        self.by_hand(0, VFS)
        if self.lab.check_equal(self.nic.ip_guids()[0], guids, "what the driver gave again"):
            self.lab.count("given again by the driver")
        self.returned(self.second)
        self.third = self.attach("third")
        self.is_new(self.third)

    def gone_at_the_end(self):
        self.lab.step("an attachment ends while its VF is gone: the VF made next has its GUIDs")
        guids = guids_of(self.third)
        self.by_hand(0)
        answer, operation = self.product.ask("DELETE", f"/v1/attachments/{self.third['id']}")
        problem = operation["problem"] if operation else answer.body
        self.lab.check(problem and "GUID" in problem["detail"],
                       f"the GUIDs are not said: {problem}")
        self.product.manage(num_vfs=VFS, networks=())
        self.lab.check_equal(self.nic.ip_guids()[0], guids, "what the driver gave again")
        self.product.refused(vm="fourth", vf=0, persistence="config", verify="none")
        vf, = self.product.quarantined()
        if self.lab.check_equal(vf["index"], 0, "the VF in quarantine"):
            self.lab.count("quarantined")
        self.product.must("DELETE", f"/v1/pfs/{self.nic.pci}/vfs/0/quarantine")
        self.clean()
        fourth = self.attach("fourth")
        self.is_new(fourth)
        self.returned(fourth)

    # --- parts ---

    def attach(self, vm, **members):
        return self.product.attach(vm, vf=0, persistence="config", verify="none", **members)

    def by_hand(self, *counts):
        for count in counts:
            self.lab.host.run(f"echo {count} >{self.nic.folder}/sriov_numvfs")

    def holds(self, guids, counted):
        """VF 0 has these GUIDs by every source."""
        same = [self.lab.check_equal(self.nic.ip_guids()[0], guids, "GUIDs that ip shows"),
                self.lab.check_equal(self.nic.kept_guids()[0], guids, "GUIDs that the driver has")]
        if all(same):
            self.lab.count(counted)
        seen = self.nic.seen(0)
        if self.lab.check_equal((seen["node_guid"], seen["port_guid"]), guids,
                                "GUIDs that the VF's driver sees"):
            self.lab.count("seen by the VF's driver")

    def is_new(self, attachment):
        guids = guids_of(attachment)
        self.holds(guids, "rotated")
        for guid in guids:
            self.lab.check(guid not in self.had and guid not in NONE,
                           f"{guid} was given, which is nobody's or an earlier tenant's: "
                           f"{self.had}")
        self.had += guids

    def returned(self, attachment):
        had, counted = self.nic.ip_guids()[0], self.nic.ip_counters(0)
        self.product.detach(attachment)
        self.clean()
        certificate = self.lab.api("GET", f"/v1/attachments/{attachment['id']}/certificate").body
        rotated = certificate["rotated"]
        same = [self.lab.check_equal([rotated[name][when] for name in ("node_guid", "port_guid")],
                                     list(guids), f"GUIDs that the certificate says {when}")
                for when, guids in (("was", had), ("is", self.nic.ip_guids()[0]))]
        # The PF has a MAC of its own, but its VFs have none.
        same.append(self.lab.check_equal(rotated["mac"], None, "a MAC in the certificate"))
        if all([*same, self.lab.check_equal(certificate["counters"], counted, "counters")]):
            self.lab.count("certified")

    def clean(self):
        if self.lab.check_equal(self.nic.kept_guids()[0], NONE, "GUIDs that the driver keeps"):
            self.lab.count("cleaned")


def guids_of(attachment):
    return attachment["settings"]["node_guid"], attachment["settings"]["port_guid"]
