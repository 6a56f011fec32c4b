# SPDX-License-Identifier: Apache-2.0
"""Profile default beside the tools that an admin would run, one after the other."""

from figures import Figures
from perftest import IB_LISTENS, MTU, Rdma

ROUNDS = 5
SIZES = f"-F -m {MTU}"


def run(lab):
    lab.expect("rounds")
    rdma = Rdma(lab)
    ours = "vf-guest verify --profile default"
    steps = [f"ping -c 5 {rdma.host_address}", f"rping -c -C 10 -a {rdma.host_address}",
             f"ib_write_bw -n 1000 {SIZES}", f"ib_write_lat {SIZES}", f"ib_read_bw -n 1000 {SIZES}"]
    figures = Figures(lab, "verify-default", "s", ours, "; ".join(steps), ratio_max=1.0)
    for _ in range(ROUNDS):
        figures.round(rdma.seconds(ours), sum(peer(rdma, step) for step in steps))
    figures.report()
    rdma.leave()


def peer(rdma, step):
    """Returns one tool's time in the VM, excluding its server's start."""
    if step.startswith("ping"):
        return rdma.seconds(step)
    if step.startswith("rping"):
        return rdma.rping_seconds(10)
    server = rdma.server(f"{step} {rdma.on_host}", IB_LISTENS)
    took = rdma.seconds(f"{step} {rdma.on_vm} {rdma.host_address}", timeout=500)
    server.wait(30)
    return took
