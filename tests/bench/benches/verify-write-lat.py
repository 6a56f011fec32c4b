# SPDX-License-Identifier: Apache-2.0
"""8-byte RDMA writes answered by writes, VM and host: vf-guest beside ib_write_lat."""

from perftest import latency


def run(lab):
    latency(lab, "verify-write-lat", "write_latency", "ib_write_lat", 500, ("",))
