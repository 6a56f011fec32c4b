# SPDX-License-Identifier: Apache-2.0
"""Sets five attributes of 1,000 VFs: execute() with its journal on disk beside `ip -batch`.

execute() observes the host before, to be able to undo, and after, and reads the VFs back. The peer
reads nothing, so the figure excludes these reads, whose time is shown separately.
"""

from statistics import median

from figures import ROUNDS, Figures
from port import REPEATS, Port

NEEDS_PACKAGES = False
VFS = 1000
RATIO_MAX = 1 / 50


def run(lab):
    lab.expect("rounds")
    port = Port(lab, VFS)
    figures = Figures(lab, "configure-1000", "s",
                      f"configure_vfs execute {port.netdev} {VFS}, without what it reads",
                      f"ip -batch, a line with the same five attributes for each of {VFS} VFs",
                      ratio_max=RATIO_MAX)
    rounds = []
    for number in range(0, ROUNDS * (REPEATS + 1), REPEATS + 1):
        peer = port.seconds_of_ip(lab, number)
        rounds.append(port.program("configure_vfs execute", number + 1))
        port.check(number + REPEATS)
        figures.round(rounds[-1]["net"], peer)
    whole, looks, read_back = (median(each[part] for each in rounds)
                               for part in ("seconds", "looks", "read_back"))
    lab.step(f"execute() takes {whole:.4g} s: {looks:.4g} s to observe the host before and after, "
             f"{read_back:.4g} s to read the VFs back and compare")
    figures.report()
    port.remove()
