# SPDX-License-Identifier: Apache-2.0
"""8-byte sends answered by sends, VM and host: vf-guest beside ib_send_lat."""

from perftest import latency


def run(lab):
    latency(lab, "verify-send-lat", "send_latency", "ib_send_lat", 500, ("", "-e"))
