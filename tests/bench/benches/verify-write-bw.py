# SPDX-License-Identifier: Apache-2.0
"""64 KiB RDMA writes from a VM to the host: vf-guest beside ib_write_bw."""

from perftest import bandwidth


def run(lab):
    bandwidth(lab, "verify-write-bw", "write_bandwidth", "ib_write_bw", 500)
