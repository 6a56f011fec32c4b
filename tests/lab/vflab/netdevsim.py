# SPDX-License-Identifier: Apache-2.0
"""netdevsim: a NIC of the kernel's own, with any number of VFs, that is no PCI device.

Debian's kernels don't have it. So it is built from Debian's source of the emulated host's kernel,
against that kernel's headers, when a scenario or benchmark first needs it.
"""

from vflab import kernel_module

# Its own Makefile leaves out parts that the kernel's configuration lacks. The configuration lacks
# netdevsim itself, so make gets it as a variable.
BUILD = """
cd /var/tmp
tar -xf /usr/src/{source}.tar.xz --strip-components=3 {source}/drivers/net/netdevsim
make -C /lib/modules/{release}/build M=/var/tmp/netdevsim CONFIG_NETDEVSIM=m -j$(nproc) modules
strip --strip-debug netdevsim/netdevsim.ko
"""
ID = 10
DEVICE = f"/sys/bus/netdevsim/devices/netdevsim{ID}"
MAX_VFS = f"/sys/kernel/debug/netdevsim/netdevsim{ID}/max_vfs"


def module(suite, kernel):
    """Returns netdevsim.ko for a kernel, (release, version of its package)."""
    release, version = kernel
    source = "linux-source-" + ".".join(release.split(".")[:2])
    return kernel_module.built("netdevsim", suite, kernel,
                               BUILD.format(source=source, release=release),
                               [f"{source}={version}"])


class Netdevsim:
    """One port with its VFs in the emulated host; remove() restores the host."""

    def __init__(self, lab, vfs):
        self.host, self.vfs = lab.host, vfs
        suite = lab.machine.settings["suite"]
        kernel_module.load(lab, "netdevsim", module(suite, kernel_module.kernel_of(lab)))
        lab.host.run(f"echo '{ID} 1' >/sys/bus/netdevsim/new_device && udevadm settle")
        self.netdev = lab.host.run(f"ls {DEVICE}/net").stdout.strip()
        self.resize(vfs)

    def resize(self, vfs):
        """Sets the number of VFs; all of them are new."""
        self.vfs = vfs
        self.host.run(f"echo 0 >{DEVICE}/sriov_numvfs; echo {vfs} >{MAX_VFS} && "
                      f"echo {vfs} >{DEVICE}/sriov_numvfs")

    def remove(self):
        self.host.run(f"echo {ID} >/sys/bus/netdevsim/del_device && rmmod netdevsim")
