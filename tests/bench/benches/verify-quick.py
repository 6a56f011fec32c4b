# SPDX-License-Identifier: Apache-2.0
"""From a VF that is visible in its VM, and no more, to the verdict: the profile quick.

The peer is ten pings of rping over the VF when it has been set up: it proves less, and that it is
set up is not in its time.
"""

from figures import Figures
from perftest import Rdma

ROUNDS = 5
SECONDS_MAX = 5
# As the VF was when it came: down, without address, without RDMA device.
FORGET = ("rdma link delete $(rdma link | cut -d' ' -f2 | cut -d/ -f1); "
          "ip addr flush dev {netdev}; ip link set {netdev} down; rm -f /run/vf-guest/*")
RPING = "rping -{side} -C 10 -a {address}"


def run(lab):
    lab.expect("rounds")
    rdma = Rdma(lab, command_line="vf-guest=off")
    netdev = rdma.netdev
    ours = "vf-guest verify --profile quick"
    rping = RPING.format(side="c", address=rdma.host_address)
    figures = Figures(lab, "verify-quick", "s", ours, rping, ours_max=SECONDS_MAX)
    for _ in range(ROUNDS):
        rdma.vm.run(FORGET.format(netdev=netdev))
        took = rdma.seconds(ours)
        server = rdma.server(RPING.format(side="s", address=rdma.host_address),
                             "rdma res show cm_id | grep LISTEN")
        figures.round(took, rdma.seconds(rping))
        server.wait(30)
    figures.report()
    rdma.leave()
