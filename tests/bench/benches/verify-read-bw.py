# SPDX-License-Identifier: Apache-2.0
"""64 KiB RDMA reads of a VM from the host: vf-guest beside ib_read_bw."""

from perftest import bandwidth


def run(lab):
    bandwidth(lab, "verify-read-bw", "read_bandwidth", "ib_read_bw", 500)
