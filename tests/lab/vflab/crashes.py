# SPDX-License-Identifier: Apache-2.0
"""What a crash may leave: the state before, the state asked for, or quarantine with the residue."""


def unfinished(lab):
    """They are among the newest, which come first; the whole list grows with the scenario."""
    return [one["id"] for one in lab.api("GET", "/v1/operations?limit=100").body["items"]
            if one["state"] not in ("succeeded", "failed")]


def served_again(lab, pid):
    """Waits until another vfmgrd has finished what the killed one had begun."""
    lab.host.wait_for("vfmgrd serves again", "systemctl is-active vfmgrd && "
                      f"[ $(systemctl show -P MainPID vfmgrd) != {pid} ]", 120)
    lab.host.wait_for("vfmgrd has recovered", lambda: not unfinished(lab), 240)


class Ends:
    """Judges one VM's only attachment; those in `others` are of other VMs."""

    def __init__(self, lab, product, before, vm, others=()):
        self.lab, self.product, self.before, self.vm = lab, product, before, vm
        self.others = {one["id"] for one in others}

    def attachments(self):
        return [one for one in self.product.attachments() if one["id"] not in self.others]

    def judge(self):
        """Returns which of the three states it is; anything else is a violation."""
        lab, observe = self.lab, self.lab.observe
        lab.check_equal(unfinished(lab), [], "unfinished operations")
        inside = [[device["pci"] for device in observe.hostdevs(self.vm, which)]
                  for which in ("live", "config")]
        attachments, quarantined = self.attachments(), self.product.quarantined()
        if quarantined:
            lab.check(len(quarantined) == 1 and quarantined[0]["quarantine"]["residue"],
                      f"quarantine without residue: {quarantined}")
            return "quarantined"
        if attachments:
            lab.check_equal([one["state"] for one in attachments], ["attached"], "attachments")
            self.judge_attached(attachments[0], inside)
            return "attached"
        lab.check_equal(inside, [[], []], "the VM's devices without an attachment")
        self.before.check_again("not attached")
        return "not attached"

    def judge_attached(self, attachment, inside):
        """`inside`: the VM's live and persistent devices. An external holder has the node alone."""
        lab, observe, pci = self.lab, self.lab.observe, attachment["vf_pci"]
        devices = [] if "holder" in attachment else [pci]
        lab.check_equal(inside, [devices, devices], "the VM's live and persistent devices")
        lab.check_equal(observe.vf_driver(pci), "vfio-pci", "the VF's driver")
        lab.check_equal(len(observe.vfio_holders(pci)), len(devices), "holders of the VF")
        if "holder" in attachment:
            owner = lab.host.run(f"stat -c %u /dev/vfio/{observe.iommu_group(pci)}").stdout.strip()
            lab.check_equal(owner, str(attachment["holder"]["uid"]), "the owner of its node")

    def restore(self, text):
        """Restores the initial state by requests, as a user would."""
        product = self.product
        for vf in product.quarantined():
            product.must("DELETE", f"/v1/pfs/{product.pci}/vfs/{vf['index']}/quarantine")
        for attachment in self.attachments():
            product.detach(attachment)
        self.before.check_again(f"after {text} and a detach")
        self.lab.check_equal(product.quarantined(), [], "quarantined at the end")
