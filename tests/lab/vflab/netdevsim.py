# SPDX-License-Identifier: Apache-2.0
"""netdevsim: a NIC of the kernel's own, with as many VFs as one likes, that is no PCI device.

Debian's kernels come without it. So it is built from Debian's source of the very kernel that the
emulated host runs, against that kernel's headers, when a scenario or bench first asks for it.
"""

import shutil

from vflab import apt
from vflab.parts import hash_of, part
from vflab.paths import LabError
from vflab.shell import call
from vflab.trees import HOST, base_tree, copy_tree

# Its own Makefile leaves out what the kernel's configuration has not. The configuration has not
# netdevsim itself, so make is told.
BUILD = """
cd /var/tmp
tar -xf /usr/src/{source}.tar.xz --strip-components=3 {source}/drivers/net/netdevsim
make -C /lib/modules/{release}/build M=/var/tmp/netdevsim CONFIG_NETDEVSIM=m -j$(nproc) modules
strip --strip-debug netdevsim/netdevsim.ko
"""
MODULE = "/root/netdevsim.ko"
LOAD = f"""
for needed in $(modinfo -F depends {MODULE} | tr , ' '); do modprobe $needed; done
insmod {MODULE} && rm {MODULE}
"""
ID = 10
DEVICE = f"/sys/bus/netdevsim/devices/netdevsim{ID}"
MAX_VFS = f"/sys/kernel/debug/netdevsim/netdevsim{ID}/max_vfs"


def module(suite, release, version):
    """netdevsim.ko for the kernel `release`, whose package has this version."""
    source = "linux-source-" + ".".join(release.split(".")[:2])
    wanted = ["make", f"linux-headers-{release}={version}", f"{source}={version}"]

    def build(folder):
        tree = folder / "tree"
        tree.mkdir()
        copy_tree(base_tree("host", suite, HOST), tree)
        try:
            apt.install_in_tree(tree, ["install", *wanted])
        except LabError as error:
            raise LabError(f"netdevsim needs {' '.join(wanted[1:])}; if Debian has a newer kernel "
                           f"by now, remove parts/host-base-{suite}-*, so that the emulated host "
                           f"gets it, too:\n{error}") from None
        apt.in_tree(tree, ["sh", "-ec", BUILD.format(source=source, release=release)])
        shutil.copy(tree / "var/tmp/netdevsim/netdevsim.ko", folder)
        call(["rm", "-rf", "--one-file-system", str(tree)])
    key = hash_of("1", suite, release, version, BUILD)
    return part(f"netdevsim-{suite}", key, build) / "netdevsim.ko"


class Netdevsim:
    """One port with its VFs in the emulated host; remove() leaves the host as it was."""

    def __init__(self, lab, vfs):
        self.host, self.vfs = lab.host, vfs
        release, version = lab.host.run(
            "uname -r; dpkg-query -W -f '${Version}' linux-image-$(uname -r)").lines()
        lab.host.copy_in(module(lab.machine.settings["suite"], release, version), MODULE)
        lab.host.run(LOAD)
        lab.host.run(f"echo '{ID} 1' >/sys/bus/netdevsim/new_device && udevadm settle")
        self.netdev = lab.host.run(f"ls {DEVICE}/net").stdout.strip()
        self.resize(vfs)

    def resize(self, vfs):
        """So many VFs, all of them new."""
        self.vfs = vfs
        self.host.run(f"echo 0 >{DEVICE}/sriov_numvfs; echo {vfs} >{MAX_VFS} && "
                      f"echo {vfs} >{DEVICE}/sriov_numvfs")

    def remove(self):
        self.host.run(f"echo {ID} >/sys/bus/netdevsim/del_device && rmmod netdevsim")
