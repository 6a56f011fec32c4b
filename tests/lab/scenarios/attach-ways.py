# SPDX-License-Identifier: Apache-2.0
"""A VF gets into a VM in whatever state the VM is, and out of it whatever the guest does.

Live, persistent or both; before the first boot, shut off, paused, transient; at a chosen address;
without a free PCIe port; without a vsock device; 32 at once; guests that do not answer.
"""

from vflab.lab_pf import LabPfs
from vflab.product import Before, Product

LONG = True
DEADLINE_SECONDS = 2400
MANY = 32
# QEMU answers an unplug through ACPI or through PCIe; a kernel without both never does.
DEAF = "acpiphp.disable=1 pcie_ports=compat"


def run(lab):
    lab.expect("persistence", "before the first boot", "paused", "transient", "chosen address",
               "no free port", "no vsock", "a guest that does not answer", "32 at once")
    product = Product(lab)
    product.manage(num_vfs=4)
    before = Before(product)
    for way in (persistences, before_the_first_boot, paused, transient, chosen_address,
                without_ports, without_vsock):
        way(lab, product)
        before.check_again(way.__name__)
    for guest in (deaf, hung, in_its_firmware):
        unwilling(lab, product, guest)
        before.check_again(guest.__name__)
    product.leave()
    many(lab)


def where(lab, vm):
    """Where libvirt has a device of the persistent VM: "live", "config"."""
    runs = lab.host.run(f"virsh -q domstate {vm}").stdout.strip() != "shut off"
    return [which for which in (["live"] if runs else []) + ["config"]
            if lab.observe.hostdevs(vm, which)]


def persistences(lab, product):
    vm = lab.vm("ways").wait_ready()
    for persistence, expected in (("live", ["live"]), ("config", ["config"]),
                                  ("auto", ["live", "config"])):
        lab.step(f"persistence {persistence}")
        attachment = product.attach("ways", persistence=persistence)
        if lab.check_equal(where(lab, "ways"), expected, persistence):
            lab.count("persistence")
        product.detach(attachment)
        lab.check_equal(where(lab, "ways"), [], f"{persistence}, detached")
    vm.destroy()


def before_the_first_boot(lab, product):
    lab.step("before the first boot")
    vm = lab.vm("newborn", start=False)
    attachment = product.attach("newborn", network="plain", verify="background")
    lab.check_equal(attachment["live"], False, "live")
    vm.start().wait_ready()
    lab.host.wait_for("the VM proves its VF", lambda: (product.attachment(attachment["id"])
                                                       ["verification"] or {}).get("verdict")
                      == "pass", 120)
    lab.count("before the first boot")
    lab.step("shut off")
    vm.shutdown()
    product.detach(attachment)
    lab.check_equal(where(lab, "newborn"), [], "detached while shut off")
    vm.destroy()


def paused(lab, product):
    lab.step("paused")
    vm = lab.vm("paused").wait_ready()
    lab.host.run("virsh -q suspend paused")
    attachment = product.attach("paused", network="plain")
    lab.host.run("virsh -q resume paused")
    vm.wait_netdev(attachment["settings"]["mac"])
    lab.count("paused")
    product.detach(attachment)
    vm.destroy()


def transient(lab, product):
    lab.step("transient")
    vm = lab.vm("passing", start=False)
    lab.host.run("virsh -q undefine passing; virsh -q create /dev/stdin", input=vm.xml)
    vm.wait_ready()
    product.attach("passing", network="plain")
    lab.check_equal([device["alias"][:9] for device in lab.observe.hostdevs("passing")],
                    ["ua-vfmgr-"], "the transient VM's devices")
    vm.destroy()
    lab.host.wait_for("the attachment ends with its VM", lambda: not product.attachments(), 150)
    lab.count("transient")


def chosen_address(lab, product):
    lab.step("at a chosen address")
    vm = lab.vm("placed").wait_ready()
    free = lab.api("GET", "/v1/vms/placed").body["free_live"]
    attachment = product.attach("placed", guest_address=free[-1])
    for which in ("live", "config"):
        bus = int(free[-1].split(":")[1], 16)
        address = lab.observe.domain("placed", which).find("devices/hostdev/address")
        lab.check_equal(int(address.get("bus"), 16), bus, f"its bus in the {which} XML")
    taken = product.refused(vm="placed", guest_address=free[-1])
    lab.check_equal(taken["code"], "conflict", "a second one there")
    lab.count("chosen address")
    product.detach(attachment)
    vm.destroy()


def without_ports(lab, product):
    lab.step("no free port")
    vm = lab.vm("full", pcie_ports=0).wait_ready()
    refused = product.refused(vm="full")
    lab.check("pcie-root-port" in refused["remedy"], f"the remedy: {refused}")
    attachment = product.attach("full", network="plain", add_ports=True)
    lab.check_equal(where(lab, "full"), ["config"], "in the VM")
    vm.shutdown()
    vm.start().wait_ready()
    vm.wait_netdev(attachment["settings"]["mac"])
    lab.count("no free port")
    product.detach(attachment)
    vm.destroy()


def without_vsock(lab, product):
    lab.step("no vsock")
    vm = lab.vm("mute", vsock=False).wait_ready()
    refused = product.refused(vm="mute", network="plain", verify="required")
    lab.check("<vsock" in refused["remedy"], f"the remedy: {refused}")
    attachment = product.attach("mute", network="plain", verify="required", add_vsock=True)
    if lab.check_equal(attachment["verification"]["verdict"], "pass", "the verdict"):
        lab.count("no vsock")
    for which in ("live", "config"):
        lab.check(lab.observe.domain("mute", which).find("devices/vsock") is not None,
                  f"no vsock device in the {which} XML")
    product.detach(attachment)
    vm.destroy()


def deaf(lab):
    return lab.vm("deaf", command_line=DEAF).wait_ready()


def hung(lab):
    vm = lab.vm("hung").wait_ready()
    vm.run("echo 0 >/proc/sys/kernel/panic; echo 1 >/proc/sys/kernel/unknown_nmi_panic")
    return vm


def in_its_firmware(lab):
    vm = lab.vm("bios", start=False)
    begin, rest = vm.xml.split("<kernel>")
    vm.xml = begin + rest.split("</cmdline>")[1]
    lab.host.run("virsh -q undefine bios")  # libvirt chose its UUID
    vm.define()
    return vm.start()


def unwilling(lab, product, guest):
    lab.step(f"a guest that does not answer: {guest.__name__}")
    vm = guest(lab)
    attachment = product.attach(vm.name)
    if guest is hung:
        lab.host.run(f"virsh -q inject-nmi {vm.name}")
        vm.wait_console("Kernel panic")
    _, failed = product.ask("DELETE", f"/v1/attachments/{attachment['id']}")
    lab.check_equal(failed["state"], "failed", "the detach")
    lab.check(vm.name in failed["problem"]["detail"], f"the VM is not named: {failed['problem']}")
    kept = product.attachment(attachment["id"])
    lab.check_equal(kept["state"], "detaching", "the attachment")
    lab.check_equal(where(lab, vm.name), ["live"], "in the VM")
    lab.check(lab.observe.vfio_holders(attachment["vf_pci"]), "the VF was taken from the VM")
    lab.host.run(f"virsh -q destroy {vm.name}")
    lab.host.wait_for("the VF is clean", lambda: not product.attachments(), 120)
    lab.check_equal(product.quarantined(), [], "quarantine")
    lab.count("a guest that does not answer")
    vm.destroy()


def many(lab):
    lab.step(f"{MANY} at once")
    with LabPfs(lab, "ethernet") as [pf]:
        product = Product(lab, pf.netdev)
        product.manage(num_vfs=MANY, networks=())
        vm = lab.vm("many", pcie_ports=MANY).wait_ready()
        spec = {"vm": "many", "pf": product.pci}
        _, operation = product.must("POST", "/v1/attachments", {"attachments": [spec] * MANY})
        found = len(lab.observe.hostdevs("many"))
        if lab.check_equal(found, MANY, "devices of the VM"):
            lab.count("32 at once")
        product.must("DELETE", f"/v1/attachments?ids={','.join(operation['attachments'])}")
        lab.check_equal(where(lab, "many"), [], "the VM's devices")
        vm.destroy()
        product.leave()
