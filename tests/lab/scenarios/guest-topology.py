# SPDX-License-Identifier: Apache-2.0
"""A VM finds its GPU and its VF below the NUMA node that they have on the host, and back again.

Judged by the VM's kernel, after boots. A display controller of QEMU's plays the GPU. Nothing shows
switches here: those of QEMU isolate no functions, so all below one would be in one IOMMU group.
"""

from vflab.plugged import pci_address
from vflab.product import Product
from vflab.vfio import hostdev

LONG = True
VM = "near"
GPU = "gpu"
NODE, NO_NODE = 0, -1  # the emulated host has one node, and says of no function that it is there
# The memory of the VM's one cell is bound to the node.
CELL = (f"<numatune><memory mode='strict' nodeset='{NODE}'/>"
        f"<memnode cellid='0' mode='strict' nodeset='{NODE}'/></numatune>")
CPU = "<numa><cell id='0' cpus='0' memory='512' unit='MiB'/></numa>"
MIB = 4  # of the display's memory: its port has 32 for it
# The path and NUMA node of the one function that the VM's kernel gives this class or netdev.
WHERE = "cd $(readlink -f {}) && pwd -P && cat numa_node"
DISPLAY = "$(dirname $(grep -l ^0x03 /sys/bus/pci/devices/*/class))"


def run(lab):
    lab.expect("placed", "near in the VM", "back")
    product, host = Product(lab), lab.host
    gpu = display(lab)
    on_node(lab, NODE, gpu, product.pci)
    product.manage(num_vfs=2)
    vm = lab.vm(VM, start=False)
    host.run("virsh -q define /dev/stdin", input=with_cell(
        host.run(f"virsh dumpxml --inactive {VM}").stdout))
    host.run(f"virsh -q attach-device {VM} /dev/stdin --config", input=hostdev(gpu, "yes"))
    attachment = product.attach(VM, network="plain", verify="background")
    try:
        placed_and_back(lab, product, vm, gpu, attachment)
    finally:
        on_node(lab, NO_NODE, product.pci)
        lab.qmp("device_del", id=GPU)
    product.leave()


def on_node(lab, node, *functions):
    for pci in functions:
        lab.host.run(f"echo {node} > /sys/bus/pci/devices/{pci}/numa_node")


def display(lab):
    """Returns its PCI address on the host."""
    lab.qmp("device_add", driver="bochs-display", id=GPU, bus="port2", vgamem=MIB << 20)
    lab.host.wait_for("the display", "grep -l ^0x03 /sys/bus/pci/devices/*/class", 60)
    return pci_address(lab, GPU)


def with_cell(xml):
    assert "<os>" in xml and "<cpu mode" in xml, xml
    head, cpu, tail = xml.partition("<cpu mode")
    inside, end, rest = tail.partition("/>")
    return head.replace("<os>", f"{CELL}<os>") + f"{cpu}{inside}>{CPU}</cpu>{rest}"


def placed_and_back(lab, product, vm, gpu, attachment):
    before = lab.host.run(f"virsh dumpxml --inactive {VM}").stdout
    old = topology(lab)
    lab.check_equal(old["placed"], False, "placed at first")
    found_at(lab, vm, attachment, old)

    lab.step("placed")
    vm.shutdown()
    product.must("POST", f"/v1/vms/{VM}/topology")
    new = topology(lab)
    lab.check_equal(new["placed"], True, "placed")
    lab.check_equal([one["in_guest"] for one in new["devices"]],
                    [one["proposed"] for one in old["devices"]], "where they are now")
    lab.check_equal(sorted(one["pci"] for one in new["devices"]),
                    sorted([gpu, attachment["vf_pci"]]), "the devices")
    lab.count("placed")
    if found_at(lab, vm, attachment, new, NODE):
        lab.count("near in the VM")
    proved(lab, product, attachment)

    lab.step("and back")
    vm.shutdown()
    product.must("DELETE", f"/v1/vms/{VM}/topology")
    after = lab.host.run(f"virsh dumpxml --inactive {VM}").stdout
    if lab.check_equal(after, before, "the VM's XML") and found_at(lab, vm, attachment, old):
        lab.count("back")
    proved(lab, product, attachment)
    vm.shutdown()
    product.detach(attachment)


def topology(lab):
    return lab.vfctl("topology", "--vm", VM, "-o", "json").json()


def found_at(lab, vm, attachment, expected, node=None):
    """Starts the VM and compares what its kernel finds with vfmgr's answer."""
    vm.start().wait_ready()
    nic = f"/sys/class/net/{vm.wait_netdev(attachment['settings']['mac'])}/device"
    held = True
    for kind, path in (("gpu", DISPLAY), ("nic", nic)):
        there, numa_node = vm.run(WHERE.format(path)).lines()
        one, = (one for one in expected["devices"] if one["kind"] == kind)
        held &= lab.check_equal(as_path(there), one["in_guest"], f"the {kind} in the VM")
        if node is not None:
            held &= lab.check_equal(int(numa_node), node, f"the {kind}'s NUMA node in the VM")
    return held


def as_path(folder):
    """/sys/devices/pci0000:40/0000:40:00.0/0000:41:00.0 as vfmgr writes it: 40/00.0/00.0."""
    root, *functions = folder.split("/")[3:]
    return "/".join([root[-2:], *(one[-4:] for one in functions)])


def proved(lab, product, attachment):
    verification = product.verify(attachment, profile="quick", timeout_seconds=180)
    lab.check_equal(verification["verdict"], "pass", "the verdict")
