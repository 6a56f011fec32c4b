# SPDX-License-Identifier: Apache-2.0
"""A NIC's driver hangs in VF creation, in the PF's unbinding, in netlink; other PFs keep working.

The hang is in the lab's own module (vflab.lab_pf): no signal ends it, only its switch.
"""

import time

from vflab.doctor import keep_bundle
from vflab.lab_pf import PF_DRIVER, LabPfs
from vflab.product import Product

DEADLINE_SECONDS = 1800
ANSWER_SECONDS = 10
MAC = "52:54:00:00:10:01"


def run(lab):
    lab.expect("creation hung", "unbinding hung", "netlink hung", "the others went on",
               "the reason is said", "refused at once", "well again")
    lab.vm("idle", start=False)
    with LabPfs(lab, "ethernet", "ethernet") as [sick, sound]:
        hangs = Hangs(lab, sick, sound)
        hangs.creation()
        hangs.unbinding()
        hangs.netlink()
        for product in (hangs.sick_product, hangs.product):
            product.leave()


class Hangs:
    def __init__(self, lab, sick, sound):
        self.lab, self.sick, self.sound = lab, sick, sound
        self.product, self.sick_product = Product(lab, sound.netdev), Product(lab, sick.netdev)
        self.product.manage(num_vfs=2, networks=())

    def creation(self):
        self.lab.step("creation of VFs hangs in the driver")
        self.sick.switch("enable/hang", 1)
        operation = self.begin(self.sick, 4)
        self.hung("creation hung", "enable")
        self.others_go_on()
        self.said_when_ended(operation, "lab_hang")
        keep_bundle(self.lab, "creation hangs")
        self.refused(self.sick, 3, "pf_stuck")
        self.refused(self.sound, 4, "pci_busy")
        self.released(self.sick)

    def unbinding(self):
        self.lab.step("an admin unbinds the PF from its driver, and that hangs")
        self.sick_product.manage(num_vfs=2, networks=())
        self.sick.switch("remove/hang", 1)
        unbinding = self.lab.host.background(
            f"echo {self.sick.pci} >/sys/bus/pci/drivers/{PF_DRIVER}/unbind")
        self.hung("unbinding hung", "remove")
        self.others_go_on()
        operation = self.begin(self.sick, 0)
        self.said_when_ended(operation, "sriov_numvfs_store")  # which waits for the unbinding
        keep_bundle(self.lab, "unbinding hangs")
        self.refused(self.sick, 3, "pf_stuck")
        self.sick.well()
        self.lab.check_equal(unbinding.wait(120).status, 0, "the unbinding's end")
        self.sick.bind()
        self.wait_well()

    def netlink(self):
        self.lab.step("setting a VF hangs in the driver, and with it all of the host's netlink")
        self.sick_product.manage(num_vfs=2, networks=())
        self.sick.switch("netlink/hang", 1)
        answer = self.lab.api("POST", "/v1/attachments", {
            "vm": "idle", "pf": self.sick.pci, "persistence": "config", "verify": "none",
            "settings": {"mac": MAC}})
        self.lab.check_equal(answer.status, 202, "an attachment of the sick PF")
        self.hung("netlink hung", "netlink")
        self.said_when_ended(answer.body["id"], "lab_hang")
        self.refused(self.sick, 0, "pf_stuck")
        self.answers()
        self.sick.well()
        self.wait_taking_orders()
        for vf in self.sick_product.quarantined():  # the attachment could not be undone either
            self.product.must("DELETE", f"/v1/pfs/{self.sick.pci}/vfs/{vf['index']}/quarantine")
        attachment = self.sick_product.attach("idle", persistence="config", verify="none",
                                       settings={"mac": MAC})
        shown = self.lab.observe.ip_link_vf(self.sick.netdev, attachment["vf"]["index"])
        self.lab.check_equal(shown["mac"], MAC, "the MAC that ip shows once all is well")
        self.sick_product.detach(attachment)
        self.wait_well()

    # --- parts ---

    def begin(self, pf, num_vfs):
        """Requests this number of VFs, without waiting for the end; returns the operation."""
        answer = self.lab.api("PUT", f"/v1/pfs/{pf.pci}/spec",
                              {"mode": "manage", "num_vfs": num_vfs})
        self.lab.check_equal(answer.status, 202, f"{num_vfs} VFs of {pf.pci}")
        return answer.body["id"]

    def hung(self, counted, call):
        self.sick.wait_hanging(call)
        self.lab.count(counted)

    def others_go_on(self):
        """The API answers, and a VF of the other PF is attached, as iproute2 confirms."""
        self.answers()
        attachment = self.product.attach("idle", persistence="config", verify="none",
                                  settings={"mac": MAC})
        shown = self.lab.observe.ip_link_vf(self.sound.netdev, attachment["vf"]["index"])
        if self.lab.check_equal(shown["mac"], MAC, "the MAC of a VF of the other PF"):
            self.lab.count("the others went on")
        self.product.detach(attachment)

    def answers(self):
        began = time.monotonic()
        answer = self.lab.api("GET", "/v1/pfs", timeout=ANSWER_SECONDS)
        self.lab.check(answer.status == 200 and time.monotonic() - began < ANSWER_SECONDS,
                       f"GET /v1/pfs took {time.monotonic() - began:.1f} s")

    def said_when_ended(self, operation, where):
        """The operation fails, and both it and the PF report where the worker hangs."""
        problem = self.product.ended(operation)["problem"]
        self.lab.check_equal(problem["code"], "pf_stuck", "the operation's end")
        stuck = self.lab.host.wait_for(f"{self.sick.pci} is stuck",
                                       lambda: self.stuck(self.sick), 60)
        self.lab.step(f"stuck: {stuck}")
        for said in (stuck, problem["detail"]):
            for part in (self.sick.pci, "hangs in the kernel"):
                self.lab.check(part in said, f"{part!r} is not in: {said}")
        pid = stuck.split("pid ")[1].split(")")[0]
        hang = self.lab.observe.lines(f"grep -l {where} /proc/{pid}/task/*/stack || :")
        self.lab.check(hang, f"no task of process {pid} is in {where}")
        if self.lab.check(f" in {where}" in stuck, f"{where!r} is not in: {stuck}"):
            self.lab.count("the reason is said")

    def refused(self, pf, num_vfs, code):
        began = time.monotonic()
        answer, operation = self.product.ask("PUT", f"/v1/pfs/{pf.pci}/spec",
                                             {"mode": "manage", "num_vfs": num_vfs})
        problem = (operation["problem"] if operation else answer.body) or {}
        self.lab.check_equal(problem.get("code"), code, f"{num_vfs} VFs of {pf.pci}")
        self.lab.check(self.sick.pci in problem.get("detail", ""), f"who is it? {problem}")
        took = time.monotonic() - began
        if self.lab.check(took < ANSWER_SECONDS, f"the refusal took {took:.1f} s"):
            self.lab.count("refused at once")

    def stuck(self, pf):
        return self.lab.api("GET", f"/v1/pfs/{pf.pci}").body["stuck"]

    def released(self, pf):
        pf.well()
        self.wait_well()

    def wait_taking_orders(self):
        for pf in (self.sick, self.sound):
            self.lab.host.wait_for(f"{pf.pci} is not stuck", lambda: not self.stuck(pf), 90)

    def wait_well(self):
        """Both PFs accept changes again, and the changes take effect."""
        self.wait_taking_orders()
        for product, pf, count in ((self.sick_product, self.sick, 3),
                                   (self.product, self.sound, 2)):
            product.manage(num_vfs=count, networks=())
            if self.lab.check_equal(pf.numvfs(), count, f"VFs of {pf.pci}"):
                self.lab.count("well again")
