# SPDX-License-Identifier: Apache-2.0
"""Changing the number of VFs while a VM holds one is refused; the VM keeps its NIC."""

from vflab.product import PLAIN, TRAIN, Product, Refused


def run(lab):
    lab.expect("refused", "VF still in the VM")
    product, observe = Product(lab), lab.observe
    product.manage(num_vfs=7)
    vm = lab.vm("holder").wait_ready()
    lease = product.lend("holder", network="plain", vf=2)
    name = vm.wait_for("the VF's netdev", "ls /sys/class/net | grep -v lo", 60)
    for count in (4, 0):
        answer, _ = product.ask("PUT", f"/v1/pfs/{product.pci}/spec",
                                {"mode": "manage", "num_vfs": count,
                                 "networks": [TRAIN, PLAIN]})
        refusals(lab, answer)
    lab.check_equal(observe.numvfs(product.pf), 7, "VFs in sysfs")
    lab.check(observe.vfio_holders(lease["vf_pci"]), "nobody holds the VF any more")
    lab.check_equal(vm.run("ls /sys/class/net | grep -v lo").stdout.strip(), name, "the VM's NIC")
    lab.count("VF still in the VM", len(observe.hostdevs("holder")))
    try:
        product.leave()
    except Refused as refused:
        lab.check(False, f"could not be given back: {refused}")


def refusals(lab, answer):
    body = answer.body
    lab.check_equal((answer.status, body.get("code")), (409, "vf_in_use"), "the refusal")
    lab.check("holder" in body.get("detail", ""), f"the VM is not named: {body}")
    lab.check(body.get("remedy"), f"no remedy: {body}")
    lab.count("refused")
