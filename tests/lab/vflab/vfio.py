# SPDX-License-Identifier: Apache-2.0
"""A process in the emulated host that holds a VF as QEMU does, and ignores the kernel."""

from shlex import quote

# VFIO_GROUP_SET_CONTAINER, VFIO_SET_IOMMU (type 1), VFIO_GROUP_GET_DEVICE_FD of linux/vfio.h.
HOLD = """
import fcntl, os, signal, struct, sys
container = os.open("/dev/vfio/vfio", os.O_RDWR)
group = os.open("/dev/vfio/" + sys.argv[1], os.O_RDWR)
fcntl.ioctl(group, 0x3b68, struct.pack("i", container))
fcntl.ioctl(container, 0x3b66, 1)
device = fcntl.ioctl(group, 0x3b6a, sys.argv[2].encode() + bytes(1))
print("held", flush=True)
signal.pause()
"""

HOSTDEV = """<hostdev mode='subsystem' type='pci' managed='{}'><source><address domain='0x{}'
bus='0x{}' slot='0x{}' function='0x{}'/></source></hostdev>"""


def hostdev(pci, managed="no"):
    """Returns the XML by which `virsh attach-device` gives a VM the device; yes: libvirt binds."""
    return HOSTDEV.format(managed, *pci.replace(".", ":").split(":"))


class Holder:
    """Holds a VF that is bound to vfio-pci."""

    def __init__(self, lab, vf_pci):
        self.lab = lab
        group = lab.observe.iommu_group(vf_pci)
        lab.host.write("/run/hold.py", HOLD)
        self.process = lab.host.background(
            f"exec python3 /run/hold.py {group} {quote(vf_pci)} >/run/hold.out 2>&1")
        lab.host.wait_for("the VF is held", "grep held /run/hold.out", 30)

    def stop(self):
        self.process.stop("KILL")
        self.lab.host.run("rm -f /run/hold.py /run/hold.out")


def bind_by_hand(lab, vf_pci):
    """Binds it to vfio-pci, as an admin would without vfmgr."""
    folder = f"/sys/bus/pci/devices/{vf_pci}"
    lab.host.run(f"echo vfio-pci >{folder}/driver_override && "
                 f"echo {vf_pci} >/sys/bus/pci/drivers_probe && "
                 f"echo >{folder}/driver_override")
    lab.check_equal(lab.observe.vf_driver(vf_pci), "vfio-pci", "the VF's driver")
