# SPDX-License-Identifier: Apache-2.0
"""Profile quick, from a VF that has just appeared in its VM to the verdict.

The peer is ten pings of rping over the configured VF: it proves less, and its time excludes the
VF's configuration.
"""

from figures import Figures
from perftest import Rdma

ROUNDS = 5
SECONDS_MAX = 5
# Returns the VF to its initial state: down, without address, without RDMA device.
FORGET = ("rdma link delete $(rdma link | cut -d' ' -f2 | cut -d/ -f1); "
          "ip addr flush dev {netdev}; ip link set {netdev} down; rm -f /run/vf-guest/*")


def run(lab):
    lab.expect("rounds")
    rdma = Rdma(lab, command_line="vf-guest=off")
    netdev = rdma.netdev
    ours = "vf-guest verify --profile quick"
    figures = Figures(lab, "verify-quick", "s", ours, f"rping -c -C 10 -a {rdma.host_address}",
                      ours_max=SECONDS_MAX)
    for _ in range(ROUNDS):
        rdma.vm.run(FORGET.format(netdev=netdev))
        figures.round(rdma.seconds(ours), rdma.rping_seconds(10))
    figures.report()
    rdma.leave()
