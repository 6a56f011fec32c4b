# SPDX-License-Identifier: Apache-2.0
"""A second emulated host, smaller, whose PF is on one wire with the first one's.

It has the same packages. CI never boots two hosts: scenarios with it have LONG = True.
"""

from vflab import panic, scenario
from vflab.evidence import gather
from vflab.hub import Hub
from vflab.machine import Machine
from vflab.observe import Observe
from vflab.paths import new_results_dir
from vflab.qemu import WIRE
from vflab.shell import call, say

CPUS, MEMORY = 2, "3G"
MACS = {"igb": "52:54:00:aa:00:02", "igb2": "52:54:00:b0:00:03"}
NAME = "vfmgr-lab-b"  # libvirt refuses to migrate between hosts of one name
NAMES = f"hostname {NAME}; echo {NAME} >/etc/hostname; sed -i s/vfmgr-lab/{NAME}/ /etc/hosts"
MANAGEMENT_MACS = ("52:54:00:d0:00:01", "52:54:00:d0:00:02")
MANAGEMENT = ("10.98.0.1", "10.98.0.2")  # of the first and the second host
NETWORK_FILE = "/etc/systemd/network/05-management.network"
NETWORK = """[Match]
MACAddress={}

[Network]
Address={}/24
LinkLocalAddressing=no
"""


class SecondHost:
    """`lab`: as the scenario's own, for the second host; both share failures and counts."""

    def __init__(self, first):
        self.first = first
        self.machine = Machine(f"{first.machine.name}-b")
        self.hub = Hub({"a": first.machine.folder / WIRE, "b": self.machine.folder / WIRE})
        self.lab = None

    def __enter__(self):
        settings = self.first.machine.settings
        self.machine.prepare(settings["suite"], CPUS, settings["packages"] != "none",
                             parts=self.first.machine.parts, memory=MEMORY, macs=MACS)
        try:
            self.boot()
        except BaseException:
            self.end(failed=True)
            raise
        return self

    def boot(self):
        self.machine.boot()
        self.lab = scenario.Lab(self.machine, f"{self.first.name}/b")
        self.lab.failures, self.lab.counts = self.first.failures, self.first.counts
        self.lab.host.wait_booted()
        self.lab.host.run(NAMES)
        self.hub.__enter__()
        self.clean = Observe(self.lab.host).clean_state()

    def add_vf_guest(self):
        """Puts vf-guest on the second host, as /usr/local/bin/vf-guest: the host's packages have
        none."""
        deb, = self.machine.parts.debs.glob("vfmgr-guest_*.deb")
        folder = self.machine.folder / "vfmgr-guest"
        call(["dpkg-deb", "-x", str(deb), str(folder)])
        self.lab.host.copy_in(folder / "usr/bin/vf-guest", "/usr/local/bin/vf-guest")

    def __exit__(self, failed, *_):
        if self.hub.thread.is_alive():
            self.hub.__exit__()
        if not failed and not self.first.failures:
            self.lab.remove_vms()
            left = Observe(self.lab.host).clean_state() ^ self.clean
            self.first.check(not left, f"the second host is not clean: {sorted(left)}")
        self.end(bool(failed or self.first.failures))

    def end(self, failed):
        """Its console is judged with the first host's: vflab.runner reads both."""
        console = self.machine.console_text()
        self.first.machine.consoles_beside.append(console)
        for complaint in panic.kernel_complaints(console)[:1]:
            self.first.check(False, f"the second host's kernel complains: {complaint}")
        if failed and self.machine.connection:
            say(f"  {self.first.name}: evidence of the second host in "
                f"{gather(self.machine, new_results_dir(f'{self.first.name}-b'))}")
        self.machine.stop()
        self.machine.remove()


class Management:
    """A network of both hosts beside the PFs' wire, for ssh, libvirt and vfmgr's API."""

    def __init__(self, second):
        self.labs = (second.first, second.lab)

    def __enter__(self):
        path = f"{self.labs[0].machine.folder}/management.sock"
        for lab, mac, address, server in zip(self.labs, MANAGEMENT_MACS, MANAGEMENT, (True, False)):
            lab.host.write(NETWORK_FILE, NETWORK.format(mac, address))
            lab.host.run("networkctl reload")
            lab.qmp("netdev_add", type="stream", id="management", server=server,
                    addr={"type": "unix", "path": path})
            lab.qmp("device_add", driver="virtio-net-pci", id="management", bus="port2", mac=mac,
                    netdev="management", romfile="")
        for lab, other in zip(self.labs, reversed(MANAGEMENT)):
            lab.host.wait_for(f"{other} answers", f"ping -c1 -W1 {other}", 60)
        return self

    def __exit__(self, failed, *_):
        if failed:
            return
        for lab, mac in zip(self.labs, MANAGEMENT_MACS):
            lab.host.run(f"rm {NETWORK_FILE}; networkctl reload")
            lab.qmp("device_del", id="management")
            lab.host.wait_for("the management NIC is gone",
                              f"! grep -l {mac} /sys/class/net/*/address", 60)
            lab.qmp("netdev_del", id="management")
