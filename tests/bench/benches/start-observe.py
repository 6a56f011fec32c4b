# SPDX-License-Identifier: Apache-2.0
"""vfmgrd's start with 8 PFs, 960 VFs and as many attachments, beside a program that reads the same.

Nothing has drifted. The peer makes the same netlink dumps, reads the same files of sysfs once, and
the XML of all VMs over one libvirt connection; it parses, compares and checks nothing. vfmgrd also
opens its store, starts a worker for each PF, and looks for processes that hold a VF in /proc.

Both are measured from the start of the process: systemd records when it started vfmgrd and when
vfmgrd reported READY, after its first observation. What `systemctl start` takes in all, and what
repairing a VF of each PF takes after READY, is printed apart.
"""

from figures import Figures, seconds
from vflab.lab_pf import LabPfs
from vflab.many_vfs import KINDS, PFS, VFS, ManyVfs
from vflab.product import STOP
from vflab.programs import built

BOOT = "own"
IOMMU = False  # vflab.many_vfs
DEADLINE_SECONDS = 3600
ROUNDS, REPAIRS = 7, 3
RATIO_MAX = 2
PEER = "/root/bare_start"
START = "systemctl start vfmgrd"
BEGAN, READY = "ExecMainStartTimestampMonotonic", "ActiveEnterTimestampMonotonic"
SETTLED = """until curl -sf --unix-socket /run/vfmgr/vfmgr.sock http://localhost/readyz |
  grep -q '"drift":0[,}]'; do :; done"""


def run(lab):
    lab.expect("rounds", "repaired")
    lab.host.copy_in(built(lab, "bare_start"), PEER)
    with LabPfs(lab, *KINDS) as nics:
        many = ManyVfs(lab, nics)
        many.make("enforce")
        many.attach()
        measure(lab, many)
        repair(lab, many)
        many.leave()
    lab.host.run(["rm", PEER])


def measure(lab, many):
    figures = Figures(lab, "start-observe", "s", f"{START}, from the start of its process to READY",
                      PEER, ratio_max=RATIO_MAX)
    for _ in range(ROUNDS):
        lab.host.run(STOP)
        in_all = seconds(lab, START)
        marks = dict(line.split("=") for line in lab.observe.lines(
            f"systemctl show vfmgrd -p {BEGAN} -p {READY}"))
        took = (int(marks[READY]) - int(marks[BEGAN])) / 1e6
        lab.check(many.product.calm(), "something has drifted")
        figures.round(took, seconds(lab, PEER))
        read = lab.host.run(PEER).json()
        lab.check_equal((read["vfs"], read["vms"]), (PFS * VFS, VFS), "VFs and VMs the peer reads")
        lab.step(f"{START} in all: {in_all:.2f} s; the peer again: {read}")
    figures.report()


def repair(lab, many):
    """Another program changes a VF of each PF while vfmgrd is stopped."""
    for number in range(REPAIRS):
        lab.host.run(STOP)
        changed = many.change_by_hand(number)
        lab.host.run(START, timeout=300)
        lab.step(f"repairing {len(changed)} PFs after READY: {seconds(lab, SETTLED):.2f} s")
        lab.check_equal(many.settings(number), changed, f"what was changed in round {number}")
        lab.count("repaired", len(changed))
