# SPDX-License-Identifier: Apache-2.0
"""Creates 7 igb and 120 nvme VFs and binds them to vfio-pci: vfmgr beside a shell loop.

The loop is as an admin writes it: it keeps the host's drivers off, creates, binds. Its time outside
its own process's code is the kernel's (the writes and the waits inside them). vfmgr also checks
that nothing uses the VFs, waits for the links and clears every override.
"""

import json

from figures import ROUNDS, Figures
from vflab.nvme import Nvme
from vflab.programs import built

NEEDS_PACKAGES = False
BOOT = "own"
KERNEL_RATIO_MAX = 1.1
LOOP_RATIO_MAX = 1.0
PROBE = "/root/kernel_probe"
LOOP = """
cd /sys/bus/pci/devices/$1
echo 0 >sriov_drivers_autoprobe
echo $2 >sriov_numvfs
for vf in virtfn*; do
  echo vfio-pci >$vf/driver_override
  address=$(readlink $vf)
  echo ${address##*/} >/sys/bus/pci/drivers_probe
done
echo 1 >sriov_drivers_autoprobe
"""
# Elapsed time, and the shell's own time in user mode, in seconds.
TIMED = "TIMEFORMAT='%R %U'; time COMMAND"


def run(lab):
    lab.expect("rounds", "VFs bound")
    lab.host.copy_in(built(lab, "kernel_probe"), PROBE)
    lab.host.write("/run/create-loop", LOOP)
    sets = {"igb": (lab.observe.pf_pci(), 7), "nvme": (Nvme(lab, 120).pci, 120)}
    for name, (pci, count) in sets.items():
        steps = [{"step": "set_num_vfs", "pf": pci, "count": count},
                 {"step": "bind_vfs", "pf": pci, "vfs": list(range(count)), "driver": "vfio-pci"}]
        lab.host.write(f"/run/{name}", "".join(json.dumps(step) + "\n" for step in steps))
    ours, loop = f"{PROBE} </run/NAME", "bash /run/create-loop PCI COUNT"
    kernel = {name: Figures(lab, f"create-vfs-{name}", "s", ours.replace("NAME", name),
                            f"what the kernel needs of: {loop}", ratio_max=KERNEL_RATIO_MAX)
              for name in sets}
    whole = Figures(lab, "create-vfs-loop", "s", f"{ours}, both", f"{loop}, both",
                    ratio_max=LOOP_RATIO_MAX)
    for number in range(ROUNDS + 1):
        sums = [0, 0]
        for name, (pci, count) in sets.items():
            command = loop.replace("PCI", pci).replace("COUNT", str(count))
            peer, user = timed(lab, command, pci, count)
            took, _ = timed(lab, ours.replace("NAME", name), pci, count)
            sums = [sums[0] + took, sums[1] + peer]
            if number:  # the first round loads modules
                kernel[name].round(took, peer - user)
        if number:
            whole.round(*sums)
    for figures in (*kernel.values(), whole):
        figures.report()
    lab.host.run(f"rm {PROBE} /run/create-loop /run/igb /run/nvme")


def timed(lab, command, pci, count):
    """Runs the command and returns its times, then removes the VFs."""
    shown = lab.host.run(["bash", "-c", TIMED.replace("COMMAND", f"{command} >/dev/null")],
                         timeout=300)
    folder = f"/sys/bus/pci/devices/{pci}"
    bound = lab.host.run(f"ls -d {folder}/virtfn*/vfio-dev | wc -l").stdout.strip()
    lab.check_equal(bound, str(count), f"VFs bound by {command}")
    lab.count("VFs bound", count)
    lab.host.run(f"echo 0 >{folder}/sriov_numvfs; udevadm settle", timeout=300)
    return [float(part) for part in shown.stderr.split()[-2:]]
