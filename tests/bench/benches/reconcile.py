# SPDX-License-Identifier: Apache-2.0
"""vfmgrd's start with 8 PFs, 960 VFs and as many attachments, until all are as desired.

While vfmgrd is stopped, another program changes a VF of each PF, which mode enforce repairs. The
measurement ends when GET /readyz reports no drift; iproute2 then confirms the repairs. The clock
starts before systemd starts vfmgrd; the stop of an earlier one is not included.

The peer is what an admin types to read the same, without comparing or repairing: `ip link show` of
each PF, and a readlink of each VF's driver. One readlink for all VFs is not faster in any step; its
time is shown separately.
"""

from figures import Figures, seconds
from vflab.lab_pf import LabPfs
from vflab.many_vfs import KINDS, PFS, VFS, ManyVfs
from vflab.product import STOP
from vflab.usage import VFMGR, memory

BOOT = "own"
IOMMU = False  # vflab.many_vfs
DEADLINE_SECONDS = 3600
ROUNDS = 5  # of a minute each, most of which is not measured
RATIO_MAX = 3
MEMORY_MIB_MAX = 64
OURS = """systemctl start --no-block vfmgrd
until curl -sf --unix-socket /run/vfmgr/vfmgr.sock http://localhost/readyz |
  grep -q '"drift":0[,}]'; do :; done"""
SHOW = "for pf in {netdevs}; do ip link show $pf; done"
EACH = "for vf in {folders}; do readlink $vf/driver; done"
ALL = "readlink {drivers}"


def run(lab):
    lab.expect("rounds", "repaired")
    with LabPfs(lab, *KINDS) as nics:
        many = ManyVfs(lab, nics)
        many.make("enforce")
        many.attach()
        measure(lab, many)
        many.leave()


def measure(lab, many):
    folders = [f"/sys/bus/pci/devices/{nic.pci}/virtfn*" for nic in many.nics]
    show = SHOW.format(netdevs=" ".join(nic.netdev for nic in many.nics))
    each = EACH.format(folders=" ".join(folders))
    at_once = ALL.format(drivers=" ".join(f"{folder}/driver" for folder in folders))
    usual = Figures(lab, "reconcile", "s", OURS, f"{{ {show}; {each}; }}", ratio_max=RATIO_MAX)
    one = Figures(lab, "reconcile-one-readlink", "s", OURS, f"{{ {show}; {at_once}; }}")
    resident = Figures(lab, "reconcile-memory", "MiB", "memory of vfmgrd and its workers (Pss)",
                       "memory of libvirtd (Pss)", ours_max=MEMORY_MIB_MAX)
    for number in range(ROUNDS):
        lab.host.run(STOP)
        changed = many.change_by_hand(number)
        took = seconds(lab, OURS)
        lab.check_equal(many.settings(number), changed, f"what was changed in round {number}")
        lab.count("repaired", len(changed))
        usual.round(took, seconds(lab, f"{{ {show}; {each}; }}"))
        one.round(took, seconds(lab, f"{{ {show}; {at_once}; }}"))
        resident.round(memory(lab, *VFMGR), memory(lab, "libvirtd"))
    for figures in (usual, one, resident):
        figures.report()
    lab.check_equal(many.attached(), PFS * VFS, "VFs attached at the end")
