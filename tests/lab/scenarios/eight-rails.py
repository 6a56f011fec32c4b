# SPDX-License-Identifier: Apache-2.0
"""A VM gets one VF of each of eight PFs in one operation, or none: a driver refuses the last.

The PFs are the lab's own, which carry no traffic to prove. attach-set proves a set on two others.
"""

from errno import EIO

from vflab.lab_pf import LabPfs
from vflab.product import Before, Product

LONG = True
BOOT = "own"  # PFs of few VFs; those of other scenarios have many
RAILS = 8
VM = "eight"


def run(lab):
    lab.expect("eight at once", "none of eight")
    with LabPfs(lab, *["ethernet"] * RAILS, vfs=2) as pfs:
        products = [Product(lab, pf.netdev) for pf in pfs]
        for product in products:
            product.manage(num_vfs=1, networks=())
        vm = lab.vm(VM, pcie_ports=RAILS).wait_ready()
        before = [Before(product) for product in products]
        all_at_once(lab, pfs, products[0])
        nothing_left(lab, before)
        none(lab, pfs, products[0])
        if nothing_left(lab, before):
            lab.count("none of eight")
        vm.destroy()
        for product in products:
            product.must("PUT", f"/v1/pfs/{product.pci}/spec", {"mode": "manage", "num_vfs": 0})
            product.must("DELETE", f"/v1/pfs/{product.pci}/spec")


def in_vm(lab):
    return [[device["pci"] for device in lab.observe.hostdevs(VM, which)]
            for which in ("live", "config")]


def request(pfs):
    return {"attachments": [{"vm": VM, "pf": pf.pci} for pf in pfs]}


def all_at_once(lab, pfs, product):
    lab.step("one VF of each of eight PFs")
    _, operation = product.must("POST", "/v1/attachments", request(pfs))
    vfs = [product.attachment(each)["vf_pci"] for each in operation["attachments"]]
    lab.check_equal(len(set(vfs)), RAILS, "different VFs")
    if lab.check_equal(in_vm(lab), [vfs, vfs], "the VM's devices"):
        lab.count("eight at once")
    product.must("DELETE", "/v1/attachments?ids=" + ",".join(operation["attachments"]))


def none(lab, pfs, product):
    lab.step("the last PF's driver refuses, so there are none")
    pfs[-1].switch("netlink/errno", EIO)
    _, failed = product.ask("POST", "/v1/attachments", request(pfs))
    pfs[-1].well()
    lab.check_equal(failed["state"], "failed", "the operation")
    lab.check(pfs[-1].pci in str(failed["problem"]) or pfs[-1].netdev in str(failed["problem"]),
              f"the PF is not named: {failed['problem']}")


def nothing_left(lab, before):
    for each in before:
        each.check_again("none attached")
    nothing = lab.check_equal(in_vm(lab), [[], []], "the VM's devices")
    return lab.check_equal(before[0].product.attachments(), [], "attachments") and nothing
