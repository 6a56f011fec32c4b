# SPDX-License-Identifier: Apache-2.0
"""Sets five attributes of 1,000 VFs: perform() beside a program that only sends the messages."""

from statistics import median

from figures import ROUNDS, Figures
from port import REPEATS, Port

NEEDS_PACKAGES = False
VFS = 1000
RATIO_MAX = 1.3


def run(lab):
    lab.expect("rounds")
    port = Port(lab, VFS)
    figures = Figures(lab, "configure-1000-bare", "s",
                      f"configure_vfs perform {port.netdev} {VFS}, until it reads back",
                      f"bare_vfs {port.netdev} {VFS}", ratio_max=RATIO_MAX)
    read_back = []
    for number in range(0, ROUNDS * 2 * REPEATS, 2 * REPEATS):
        peer = port.program("bare_vfs", number)
        port.check(number + REPEATS - 1)
        ours = port.program("configure_vfs perform", number + REPEATS)
        port.check(number + 2 * REPEATS - 1)
        read_back.append(ours["read_back"])
        figures.round(ours["net"], peer["seconds"])
    lab.step(f"reading the VFs back and comparing takes {median(read_back):.4g} s more")
    figures.report()
    port.remove()
