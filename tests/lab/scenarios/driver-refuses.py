# SPDX-License-Identifier: Apache-2.0
"""A NIC's driver refuses, or creates fewer VFs than requested: reported clearly, and undone."""

import errno

from vflab.lab_pf import LabPfs
from vflab.product import Product


# Errors that drivers return, from drivers/net of the kernel.
COUNT_ERRORS = ("EPERM", "EIO", "ENOMEM", "EBUSY", "ENODEV", "EINVAL", "ENOSPC", "EOPNOTSUPP",
                "ENETDOWN", "ETIMEDOUT", "EAGAIN")
VF_ERRORS = ("EPERM", "EIO", "ENOMEM", "EBUSY", "EINVAL", "EOPNOTSUPP", "ENETDOWN", "ETIMEDOUT")
ASKED, MADE = 5, 3
SETTINGS = {"mac": "52:54:00:00:10:02", "vlan": {"id": 7}, "trust": True}


def run(lab):
    lab.expect("creation refused", "removal refused", "fewer made", "setting refused",
               "done afterwards")
    lab.vm("idle", start=False)
    with LabPfs(lab, "ethernet") as [nic]:
        refusals = Refusals(lab, nic)
        refusals.creation()
        refusals.fewer()
        refusals.removal()
        refusals.setting()
        refusals.product.leave()


class Refusals:
    def __init__(self, lab, nic):
        self.lab, self.nic, self.product = lab, nic, Product(lab, nic.netdev)
        self.path = f"/v1/pfs/{nic.pci}/spec"

    def creation(self):
        self.lab.step(f"creation fails with {' '.join(COUNT_ERRORS)}")
        before = self.lab.host.wait_for("vfmgrd knows the new PF", self.spec, 30)
        for name in COUNT_ERRORS:
            self.nic.switch("enable/errno", getattr(errno, name))
            self.said("creation refused", name, self.ask(ASKED), f"{ASKED} VFs")
            self.so_is(0)
            self.lab.check_equal(self.spec(), before, f"the spec kept after {name}")
        self.nic.well()

    def fewer(self):
        self.lab.step(f"of {ASKED} VFs {MADE} are made")
        self.nic.switch("vfs_max", MADE)
        self.said("fewer made", None, self.ask(ASKED), f"{ASKED} VFs were requested",
                  f"{MADE} appeared")
        self.so_is(0)
        self.nic.well()
        self.product.manage(num_vfs=ASKED, networks=())
        self.so_is(ASKED)
        self.lab.count("done afterwards")

    def removal(self):
        self.lab.step(f"removal fails with {' '.join(COUNT_ERRORS)}")
        for name in COUNT_ERRORS:
            self.nic.switch("disable/errno", getattr(errno, name))
            self.said("removal refused", name, self.ask(0))
            self.so_is(ASKED)
            self.lab.check_equal(self.spec()["num_vfs"], ASKED, f"the spec kept after {name}")
        self.nic.well()

    def setting(self):
        self.lab.step(f"settings fail with {' '.join(VF_ERRORS)}")
        before = self.lab.observe.ip_link_vf(self.nic.netdev, 0)
        for name in VF_ERRORS:
            self.nic.switch("netlink/errno", getattr(errno, name))
            problem = self.product.refused(vm="idle", vf=0, persistence="config", verify="none",
                                           settings=SETTINGS)
            self.said("setting refused", name, problem, "VF 0", self.nic.netdev)
            self.lab.check_equal(self.lab.observe.ip_link_vf(self.nic.netdev, 0), before,
                                 f"VF 0 after {name}")
            self.lab.check_equal(self.lab.observe.hostdevs("idle", "config"), [],
                                 "the VM's devices")
        self.nic.well()
        self.lab.check_equal(self.product.quarantined(), [], "quarantine")
        attachment = self.product.attach("idle", vf=0, persistence="config", verify="none",
                                         settings=SETTINGS)
        shown = self.lab.observe.ip_link_vf(self.nic.netdev, 0)
        self.lab.check_equal((shown["mac"], shown["vlan"], shown["trust"]),
                             (SETTINGS["mac"], SETTINGS["vlan"]["id"], True), "VF 0 as attached")
        self.product.detach(attachment)
        self.lab.check_equal(self.lab.observe.ip_link_vf(self.nic.netdev, 0), before,
                             "VF 0 as returned")

    # --- parts ---

    def ask(self, num_vfs):
        answer, operation = self.product.ask("PUT", self.path,
                                             {"mode": "manage", "num_vfs": num_vfs})
        return (operation["problem"] if operation else answer.body) or {}

    def said(self, counted, name, problem, *parts):
        """The problem is kernel_refused, with the errno, these words and a remedy."""
        detail = problem.get("detail", "")
        missing = [part for part in parts if part not in detail]
        codes = [cause["code"] for cause in problem.get("cause", [])]
        good = [self.lab.check_equal(problem.get("code"), "kernel_refused", f"{name}: {problem}"),
                self.lab.check(not missing, f"{name}: {missing} not said: {problem}"),
                self.lab.check(problem.get("remedy"), f"{name}: no remedy: {problem}"),
                self.lab.check(name is None or name in codes, f"{name} not among {codes}"),
                self.lab.check("left behind" not in detail, f"{name}: {problem}")]
        if all(good):
            self.lab.count(counted)

    def so_is(self, count):
        """sysfs shows this number of VFs, and an unchanged setting for the next ones."""
        self.lab.check_equal(self.nic.numvfs(), count, "VFs")
        self.lab.check_equal(self.lab.host.read(f"{self.nic.folder}/sriov_numvfs").strip(),
                             str(count), "sriov_numvfs")
        self.lab.check_equal(self.lab.host.read(f"{self.nic.folder}/sriov_drivers_autoprobe")
                             .strip(), "0", "sriov_drivers_autoprobe")

    def spec(self):
        answer = self.lab.api("GET", self.path)
        return answer.body if answer.status == 200 else {}
