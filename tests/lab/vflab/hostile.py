# SPDX-License-Identifier: Apache-2.0
"""Writes to a PF and its VFs as if they were unused, and reports what libvirt notices."""

import threading
from datetime import datetime, timezone

DEVICES = "/sys/bus/pci/devices"
EVENTS = "/run/vflab-device-removed"


class Attacker:
    """Performs one act at a time; `last_act` is the host's time at the end of the last one."""

    def __init__(self, lab, product, devices, chance):
        """`devices`: pairs of a VM and the alias of a hostdev in it."""
        self.host, self.product = lab.host, product
        self.devices, self.chance = devices, chance
        self.folder = f"{DEVICES}/{product.pci}"
        self.lock = threading.Lock()
        self.acts, self.last_act, self.counts = 0, 0.0, {}

    def strike(self):
        acts = ((self.remove_all, 3), (self.make_others, 2), (self.configure, 8), (self.unbind, 3),
                (self.rename, 1), (self.reset, 1), (self.detach, 1))
        act, = self.chance.choices([one for one, _ in acts], [weight for _, weight in acts])
        with self.lock:
            # A refused act does not count: the kernel reports EBUSY, or the VF is missing.
            done = self.host.run(f"{act()} 2>/dev/null; s=$?; date +%s.%N; exit $s", check=False,
                                 timeout=180)
            self.last_act = float(done.lines()[-1])
        if done.status == 0:
            self.acts += 1
            self.counts[act.__name__] = self.counts.get(act.__name__, 0) + 1

    def netdev(self):
        return self.host.run(f"ls {self.folder}/net").stdout.strip()

    def told(self):
        return ", ".join(f"{name} {count}" for name, count in sorted(self.counts.items()))

    def vf(self):
        return self.chance.randrange(7)

    # --- acts, as commands for the host's shell ---

    def remove_all(self):
        return f"echo 0 >{self.folder}/sriov_numvfs"

    def make_others(self):
        return (f"echo 0 >{self.folder}/sriov_numvfs && "
                f"echo {self.chance.randint(1, 7)} >{self.folder}/sriov_numvfs")

    def configure(self):
        value = self.chance.choice((f"mac 02:66:00:00:00:{self.chance.randrange(256):02x}",
                                    f"vlan {self.chance.randint(1, 4094)}", "trust off",
                                    "spoofchk off", "max_tx_rate 100"))
        return f"ip link set $(ls {self.folder}/net) vf {self.vf()} {value}"

    def unbind(self):
        vf = f"{self.folder}/virtfn{self.vf()}"
        return f"basename $(readlink {vf}) >{vf}/driver/unbind"

    def rename(self):
        name = f"evil{self.chance.randrange(1000)}"
        return (f"n=$(ls {self.folder}/net) && ip link set $n down && "
                f"ip link set $n name {name} && ip link set {name} up")

    def reset(self):
        return f"echo 1 >{self.folder}/virtfn{self.vf()}/reset"

    def detach(self):
        """Detaches by libvirt, as an admin would."""
        vm, alias = self.chance.choice(self.devices)
        return f"virsh -q detach-device-alias {vm} {alias} --live"

    def make_peace(self):
        """Renames the PF back; udev had made its old name an alternative name."""
        own = self.product.pf
        with self.lock:
            now = self.netdev()
            if now != own:
                self.host.run(f"ip link property del dev {now} altname {own}; "
                              f"ip link set {now} down && ip link set {now} name {own} && "
                              f"ip link set {own} up")


class Losses:
    """libvirt's count, from now on, of the host devices that left some VMs."""

    def __init__(self, lab, vms):
        self.host, self.vms = lab.host, vms
        self.watch = lab.host.background(
            f"exec virsh event --event device-removed --loop --timestamp >{EVENTS}")

    def end(self):
        """Returns by VM the times at which it lost one, in seconds of the host's clock."""
        self.watch.stop()
        lost = {vm: [] for vm in self.vms}
        for line in self.host.run(f"cat {EVENTS}; rm {EVENTS}").lines():
            # 2026-01-31 12:00:00.123+0000: event 'device-removed' for domain 'a': ua-vfmgr-…
            when, _, rest = line.partition(": event 'device-removed' for domain ")
            vm = rest.split(":")[0].strip("'")
            if vm in lost and "ua-vfmgr-" in rest:
                at = datetime.strptime(when, "%Y-%m-%d %H:%M:%S.%f%z").astimezone(timezone.utc)
                lost[vm].append(at.timestamp())
        return lost
