# SPDX-License-Identifier: Apache-2.0
"""One of 1,000 hosts of 8 PFs and 8 GPUs for 8 VFs, each on its own rail and near a GPU.

The peer stops at the first host that suits, and says nothing about any: what a reason for each of
1,000 hosts and the best of them cost is the difference. Both are one C++ program; hosts are values,
so no network is measured.
"""

import subprocess

from figures import ROUNDS, Figures
from vflab.programs import built_here

NEEDS_LAB = False
SECONDS = 14
MILLISECONDS_MAX = 20
HOSTS = 1000
PEER_TIMES = 1000


def milliseconds(program, what, times):
    """Returns the median and the 99th percentile."""
    shown = subprocess.run([program, what, str(HOSTS), str(times)], check=True, text=True,
                           stdout=subprocess.PIPE).stdout
    return [float(one) for one in shown.split()]


def run(lab, seconds=SECONDS):
    lab.expect("rounds")
    program = built_here("fleet_schedule")
    median, _ = milliseconds(program, "ours", 10)
    times = max(1, round(seconds / ROUNDS * 1000 / median))
    figures = [Figures(lab, f"fleet-schedule-{HOSTS}-{name}", "ms",
                       f"fleet_schedule ours {HOSTS} {times}",
                       f"fleet_schedule peer {HOSTS} {PEER_TIMES}", ours_max=MILLISECONDS_MAX)
               for name in ("median", "p99")]
    for _ in range(ROUNDS):
        ours = milliseconds(program, "ours", times)
        peer = milliseconds(program, "peer", PEER_TIMES)
        for one, mine, other in zip(figures, ours, peer):
            one.round(mine, other)
    for one in figures:
        one.report()
