# SPDX-License-Identifier: Apache-2.0
"""QEMU's NVMe controller, which has many PCI VFs and no network device.

It stays until the emulated host ends: QEMU 10.0 aborts when one with SR-IOV is unplugged.
"""

SERIAL = "vfmgr-bench"


class Nvme:
    def __init__(self, lab, vfs):
        # Each VF needs a flexible interrupt and two flexible queues, besides the PF's own.
        lab.qmp("device_add", driver="nvme", id="nvme", bus="port2", subsys="nvmes", serial=SERIAL,
                sriov_max_vfs=vfs, sriov_vq_flexible=2 * vfs, sriov_vi_flexible=vfs,
                max_ioqpairs=2 * vfs + 2, msix_qsize=vfs + 1)
        self.pci = lab.host.wait_for(
            "the controller's driver", f"grep -l {SERIAL} /sys/class/nvme/*/serial | head -1 | "
            "xargs -r dirname | xargs -r -I{} readlink {}/device | xargs -r basename | grep .",
            60).strip()
        lab.host.run("udevadm settle")
        lab.keeps(f"VFs of {self.pci}", "0")
