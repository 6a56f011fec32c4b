# SPDX-License-Identifier: Apache-2.0
"""The lab's own NIC, for what no emulator has: VF GUIDs, and faults on demand (tests/lab/module).

The module drives NVMe controllers of QEMU as PFs, either Ethernet ones or like IPoIB's on mlx5. Its
switches in debugfs make creation ("enable"), removal ("disable") and configuration of VFs
("netlink"), or the PF's unbinding ("remove"), slow, hang for good, or fail.
"""

from vflab import kernel_module, nvme
from vflab.paths import LAB

MODULE = "vfmgr_lab_pf"
PF_DRIVER, VF_DRIVER = "vfmgr_lab_pf", "vfmgr_lab_vf"
SOURCES = LAB / "module"
DEBUG = "/sys/kernel/debug/vfmgr_lab"
DEVICES = "/sys/bus/pci/devices"
CALLS = ("enable", "disable", "remove", "netlink")
BUILD = """
cd /var/tmp/{module}
make -C /lib/modules/{release}/build M=$PWD KCFLAGS=-Werror -j$(nproc) modules
strip --strip-debug {module}.ko
"""


class LabPfs:
    """`with LabPfs(lab, "infiniband", "ethernet") as [one, other]:`; the PFs are removed at its
    end.

    Up to 8, each with up to `vfs` VFs. QEMU plugs in 8 PFs of 120 only without an IOMMU.
    """

    def __init__(self, lab, *kinds, vfs=nvme.VFS_MAX):
        self.lab, self.kinds, self.vfs, self.pfs = lab, kinds, vfs, []

    def __enter__(self):
        load(self.lab, MODULE)
        addresses = nvme.plug(self.lab, self.vfs, range(1, len(self.kinds) + 1))
        self.pfs = [LabPf(self.lab, pci, kind) for pci, kind in zip(addresses, self.kinds)]
        return self.pfs

    def __exit__(self, failed, *_):
        for pf in self.pfs:
            pf.well()
        if failed:
            return  # the boot ends anyway, and its state is evidence
        for pf in self.pfs:
            self.lab.host.run(f"echo {pf.pci} >/sys/bus/pci/drivers/{PF_DRIVER}/unbind; "
                              f"cd {DEVICES}/{pf.pci}; echo >driver_override; "
                              "echo 1 >sriov_drivers_autoprobe")
        self.lab.host.run(f"rmmod {MODULE}")


def load(lab, module):
    kernel = kernel_module.kernel_of(lab)
    script = BUILD.format(module=module, release=kernel[0])
    kernel_module.load(lab, module, kernel_module.built(
        module, lab.machine.settings["suite"], kernel, script, sources=SOURCES))


class LabPf:
    def __init__(self, lab, pci, kind):
        self.lab, self.host, self.pci = lab, lab.host, pci
        self.folder, self.debug = f"{DEVICES}/{pci}", f"{DEBUG}/{pci}"
        self.kind = kind
        # Otherwise the kernel's nvme driver would bind the VFs and wait for each in vain.
        self.host.run(f"echo 0 >{self.folder}/sriov_drivers_autoprobe")
        self.bind()

    def bind(self):
        """Binds the PF to the module's driver, which forgets all earlier settings."""
        self.host.run(f"echo {int(self.kind == 'infiniband')} >{DEBUG}/infiniband")
        bind(self.lab, self.pci, PF_DRIVER)
        self.host.run("udevadm settle")
        self.netdev = self.host.run(f"ls {self.folder}/net").stdout.strip()

    # --- faults ---

    def switch(self, what, value):
        """For example "enable/errno", 28, or "vfs_max", 3."""
        self.host.run(f"echo {value} >{self.debug}/{what}")

    def well(self):
        """Ends all faults: hanging calls continue. An unbind then removes the debugfs folder."""
        self.host.run(f"cd {self.debug} && for each in vfs_max */errno */delay_ms */hang; do "
                      "echo 0 >$each; done", check=False)

    def wait_hanging(self, call, deadline_seconds=60):
        self.host.wait_for(f"{call} of {self.pci} hangs",
                           f"grep -qx 1 {self.debug}/{call}/hanging", deadline_seconds)

    # --- state, by the module and by iproute2 ---

    def kept_guids(self):
        """Returns the driver's values, also of VFs that are gone: {index: (node, port)}."""
        rows = [line.split() for line in self.lab.observe.lines(f"cat {self.debug}/kept_guids")]
        return {int(index): (spelled(node), spelled(port)) for index, node, port in rows}

    def ip_guids(self):
        """Returns the values that iproute2 shows: {index: (node, port)}."""
        found = self.lab.observe.link(self.netdev).get("vfinfo_list", [])
        return {vf["vf"]: (vf.get("node guid"), vf.get("port guid")) for vf in found}

    def ip_counters(self, index):
        """Returns a VF's traffic as iproute2 shows it: {"rx_packets": …, …, "multicast": …, …}."""
        link, = self.host.run(f"ip -s -j link show dev {self.netdev}").json()
        stats = next(vf["stats"] for vf in link["vfinfo_list"] if vf["vf"] == index)
        # iproute2's names are bytes in "rx" and tx_bytes in "tx".
        flat = stats["tx"] | {f"rx_{what}": value for what, value in stats["rx"].items()}
        return {"tx_dropped": flat.pop("dropped"), "multicast": flat.pop("rx_multicast"),
                "broadcast": flat.pop("rx_broadcast"), **flat}

    def numvfs(self):
        return len(self.lab.observe.lines(f"ls -d {self.folder}/virtfn* 2>/dev/null || :"))

    def vf_pci(self, index):
        return self.lab.observe.vf_pci(self.netdev, index)

    def seen(self, index):
        """Returns what the VF's driver read when it probed: its mac, node_guid and port_guid.

        A VF that is not bound to that driver is bound for the read, and then gets its driver back.
        """
        pci = self.vf_pci(index)
        before = self.lab.observe.vf_driver(pci)
        if before != VF_DRIVER:
            bind(self.lab, pci, VF_DRIVER)
        shown = dict(line.split() for line in self.lab.observe.lines(f"cat {DEBUG}/{pci}"))
        if before != VF_DRIVER:
            bind(self.lab, pci, before)
        return {name: value if name == "mac" else spelled(value) for name, value in shown.items()}


def bind(lab, pci, driver):
    """Binds by driver_override, in place of the current driver; None: to no driver."""
    folder = f"{DEVICES}/{pci}"
    lab.host.run(f"if [ -e {folder}/driver ]; then echo {pci} >{folder}/driver/unbind; fi")
    if driver:
        # vfmgr clears the override of the VFs that it bound; the PF's stays, which keeps nvme away.
        lab.host.run(f"echo {driver} >{folder}/driver_override; "
                     f"echo {pci} >/sys/bus/pci/drivers_probe")
        lab.check_equal(lab.observe.vf_driver(pci), driver, f"the driver of {pci}")
        if driver != PF_DRIVER:
            lab.host.run(f"echo >{folder}/driver_override")


def spelled(digits):
    """Formats a GUID as iproute2 does."""
    return ":".join(digits[at:at + 2] for at in range(0, 16, 2))
