# SPDX-License-Identifier: Apache-2.0
"""QEMU's NVMe controllers, which have many PCI VFs and no network device.

They stay until the emulated host ends: QEMU 10.0 aborts when a controller with SR-IOV is unplugged.
"""

from vflab.plugged import pci_address

SERIAL = "vfmgr-lab"
VFS_MAX = 120


def plug(lab, vfs, numbers=(1,)):
    """Plugs in these controllers, each at its own port; returns their PCI addresses."""
    there = {each["name"] for each in lab.qmp("qom-list", path="/machine/peripheral")}
    for number in numbers:
        if f"nvme{number}" in there:
            continue  # an earlier scenario of this boot has plugged it in
        # Each VF needs a flexible interrupt and two flexible queues, besides the PF's own.
        lab.qmp("device_add", driver="nvme", id=f"nvme{number}", bus=f"nvme-port{number}",
                subsys=f"nvme-subsys{number}", serial=f"{SERIAL}-{number}", sriov_max_vfs=vfs,
                sriov_vq_flexible=2 * vfs, sriov_vi_flexible=vfs, max_ioqpairs=2 * vfs + 2,
                msix_qsize=vfs + 1)
    addresses = [address(lab, number) for number in numbers]
    lab.host.run("udevadm settle")
    for pci in addresses:
        lab.keeps(f"VFs of {pci}", "0")
    return addresses


def address(lab, number):
    """Waits until the emulated host has given the device a bus, and found it."""
    def found():
        pci = pci_address(lab, f"nvme{number}")
        known = lab.host.run(f"[ -e /sys/bus/pci/devices/{pci}/sriov_totalvfs ]", check=False)
        return pci if known.status == 0 else None
    return lab.host.wait_for(f"NVMe controller {number}", found, 60)


class Nvme:
    """One controller, with the kernel's own driver."""

    def __init__(self, lab, vfs):
        self.pci, = plug(lab, vfs)
        lab.host.wait_for("the controller's driver",
                          f"grep {SERIAL} /sys/bus/pci/devices/{self.pci}/nvme/nvme*/serial", 60)
