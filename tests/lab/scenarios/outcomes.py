# SPDX-License-Identifier: Apache-2.0
"""Whatever happens to a VM, its attachments end or stay as deploy/OPERATIONS.md says.

Rebooted, reset, shut off, destroyed, renamed, undefined, saved, snapshotted, with a VF by virsh.
"""

from vflab.product import Before, Product
from vflab.vfio import hostdev

LONG = True
DEADLINE_SECONDS = 1800
VM = "lives"
DEVICE = "/run/outcomes-vf.xml"


def run(lab):
    lab.expect("stays", "ends", "refused by libvirt", "without VFs", "left alone")
    product = Product(lab)
    product.manage(num_vfs=4, vf_driver="vfio-pci")
    before = Before(product)
    vm = lab.vm(VM).wait_ready()
    attachment = product.attach(VM, network="plain", verify="required", verify_profile="quick")
    for event in (rebooted, reset, destroyed, renamed):
        event(lab, product, vm, attachment)
    attachment = saved(lab, product, vm, attachment)
    attachment = snapshotted(lab, product, vm, attachment)
    undefined(lab, product, vm, attachment)
    before.check_again("undefined")
    plugged_by_virsh(lab, product)
    product.leave()


def proved(lab, product, attachment, what):
    """The VM has the VF, and proves it once more."""
    _, operation = product.ask("POST", f"/v1/attachments/{attachment['id']}/verifications",
                               {"profile": "quick", "timeout_seconds": 180})
    lab.check_equal(operation["state"], "succeeded", f"{what}: {operation.get('problem')}")
    now = product.attachment(attachment["id"])
    lab.check_equal(now["state"], "attached", what)
    if lab.check_equal(now["verification"]["verdict"], "pass", f"{what}: the verdict"):
        lab.count("stays")


def booted(lab, vm, times):
    """Waits until the VM's init has come to its end so many times."""
    vm.wait_booted(times)
    vm.wait_ready()


def rebooted(lab, product, vm, attachment):
    lab.step("rebooted from inside")
    vm.reboot_from_inside()
    booted(lab, vm, times=2)
    proved(lab, product, attachment, "rebooted")


def reset(lab, product, vm, attachment):
    lab.step("reset")
    lab.host.run(f"virsh -q reset {VM}")
    booted(lab, vm, times=3)
    proved(lab, product, attachment, "reset")


def destroyed(lab, product, vm, attachment):
    lab.step("destroyed, and started again")
    lab.host.run(f"virsh -q destroy {VM}")
    lab.check_equal(product.attachment(attachment["id"])["state"], "attached", "while shut off")
    taken = product.refused(vm=VM, vf=attachment["vf"]["index"])
    lab.check_equal(taken["code"], "vf_in_use", "another request for its VF")
    vm.start().wait_ready()
    proved(lab, product, attachment, "destroyed")


def renamed(lab, product, vm, attachment):
    lab.step("renamed")
    vm.shutdown()
    lab.host.run(f"virsh -q domrename {VM} other")
    lab.host.wait_for("the attachment has the new name",
                      lambda: product.attachment(attachment["id"])["vm"] == "other", 60)
    lab.host.run(f"virsh -q domrename other {VM}")
    lab.host.wait_for("the attachment has the old name",
                      lambda: product.attachment(attachment["id"])["vm"] == VM, 60)
    vm.start().wait_ready()
    proved(lab, product, attachment, "renamed")


def refused_by_libvirt(lab, command):
    result = lab.host.run(command, check=False)
    lab.step(f"{command}: {result.stderr.strip()}")
    if lab.check(result.status != 0, f"libvirt did what it can't: {command}"):
        lab.count("refused by libvirt")


def without_vfs(lab, product, command, attachment):
    """Returns the attachment that the VM has afterwards."""
    lab.vfctl("vm", "without-vfs", VM, "--", "sh", "-c", command, timeout=400)
    again, = product.attachments()
    for what in ("mac", "address"):
        lab.check_equal(identity(again)[what], identity(attachment)[what], f"its {what}")
    lab.count("without VFs")
    return again


def identity(attachment):
    return {"mac": attachment["settings"]["mac"], "address": attachment["address"]}


def saved(lab, product, vm, attachment):
    lab.step("saved and restored")
    save = f"virsh -q save {VM} /var/tmp/{VM}.save"
    refused_by_libvirt(lab, save)
    again = without_vfs(lab, product, f"{save} && virsh -q restore /var/tmp/{VM}.save", attachment)
    lab.host.run(f"rm /var/tmp/{VM}.save")
    vm.known_cid = None
    proved(lab, product, again, "saved and restored")
    return again


def snapshotted(lab, product, vm, attachment):
    lab.step("snapshotted with its memory")
    snapshot = (f"virsh -q snapshot-create-as {VM} before --memspec /var/tmp/{VM}.memory "
                "--live")
    refused_by_libvirt(lab, snapshot)
    again = without_vfs(lab, product, snapshot, attachment)
    lab.host.run(f"virsh -q snapshot-delete {VM} before --metadata; rm /var/tmp/{VM}.memory")
    proved(lab, product, again, "snapshotted")
    return again


def undefined(lab, product, vm, attachment):
    lab.step("undefined, and defined again at once")
    xml = lab.host.run(f"virsh dumpxml --inactive {VM}").stdout
    vm.shutdown()
    lab.host.run(f"virsh -q undefine {VM}")
    lab.host.run("virsh -q define /dev/stdin", input=xml)
    vm.start().wait_ready()
    proved(lab, product, attachment, "defined again")
    lab.step("undefined")
    vm.destroy()
    lab.host.wait_for("its attachment ends", lambda: not product.attachments(), 150)
    lab.check_equal(product.quarantined(), [], "quarantine")
    lab.count("ends")


def plugged_by_virsh(lab, product):
    lab.step("a VF by virsh")
    vm = lab.vm("foreign").wait_ready()
    vf = lab.observe.vf_pci(product.pf, 2)
    lab.host.write(DEVICE, hostdev(vf))
    lab.host.run(f"virsh -q attach-device foreign {DEVICE} --live")
    taken = product.refused(vm=VM if VM in lab.observe.vms() else "foreign", vf=2)
    if lab.check_equal(taken["code"], "vf_in_use", "a request for it"):
        lab.count("left alone")
    lab.check_equal([device["pci"] for device in lab.observe.hostdevs("foreign")], [vf],
                    "the VM's devices")
    lab.host.run(f"virsh -q detach-device foreign {DEVICE} --live")
    lab.host.wait_for("the VM has released it",
                      lambda: not lab.observe.hostdevs("foreign"), 60)
    vm.destroy()
