# SPDX-License-Identifier: Apache-2.0
"""doctor beside the three commands that show an admin a part of what it checks.

vfctl reads the machine itself, so the benchmark measures its reads and not the daemon's. It exits
with 1 for warnings and with 2 when a check fails, which does not matter here.
"""

from figures import ROUNDS, Figures, seconds

OURS = "vfctl -q doctor --local || [ $? -le 2 ]"
PEER = "virsh nodedev-list && lspci -vv && ibv_devinfo"


def run(lab):
    lab.expect("rounds", "checks")
    pf = lab.observe.pf()
    # Without an RDMA device ibv_devinfo fails.
    lab.host.run(f"ip link set {pf} up && rdma link add rxe0 type rxe netdev {pf}")
    lab.host.run(f"{PEER}; {OURS}")  # by then libvirtd runs, and files are cached
    lab.count("checks", len(lab.vfctl("doctor", "--local", "-o", "json",
                                      check=False).json()["findings"]))
    figures = Figures(lab, "doctor", "s", OURS, PEER, ratio_max=1.0)
    for _ in range(ROUNDS):
        figures.round(seconds(lab, f"{{ {OURS}; }} 2>&1"), seconds(lab, f"{{ {PEER}; }} 2>&1"))
    figures.report()
    lab.host.run(f"rdma link delete rxe0; ip link set {pf} down")
