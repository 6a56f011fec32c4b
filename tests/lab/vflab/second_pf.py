# SPDX-License-Identifier: Apache-2.0
"""A second igb PF, plugged into the running emulated host and removed again."""

from vflab.qemu import SECOND_MAC as MAC


class SecondPf:
    def __init__(self, lab):
        self.lab = lab
        lab.qmp("device_add", driver="igb", id="igb2", bus="port2", netdev="wire2", mac=MAC)
        self.netdev = lab.host.wait_for(
            "the second PF's netdev",
            f"grep -l {MAC} /sys/class/net/*/address | cut -d/ -f5 | grep .", 60).strip()
        lab.host.run("udevadm settle")
        self.netdev = lab.host.run(
            f"grep -l {MAC} /sys/class/net/*/address | cut -d/ -f5").stdout.strip()
        self.pci = lab.observe.pf_pci(self.netdev)

    def unplug(self, deadline_seconds=60):
        self.lab.qmp("device_del", id="igb2")
        self.lab.host.wait_for("the second PF is gone",
                               f"[ ! -e /sys/bus/pci/devices/{self.pci} ]", deadline_seconds)
