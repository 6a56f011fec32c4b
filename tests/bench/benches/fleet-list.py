# SPDX-License-Identifier: Apache-2.0
"""Pages of the VFs of 1,000 hosts from one of two replicas, while the other is dead.

200 VFs change in a second. Clients go from page to page of 64 VFs by the cursors. The peer are
hosts that answer their own 64 VFs: about the same bytes, by the same HTTP stack and TLS, without
1,000 hosts to choose from. Before each round the other replica is killed, after it it starts from
nothing. Judged are the page's p99, the memory of both, and how long the start takes.
"""

import json
import tempfile
from pathlib import Path

from figures import Figures
from large_fleet import HOSTS, Clients, LargeFleet, percentile

NEEDS_LAB = False
ROUNDS = 5
SECONDS = 60  # of load, in total
CLIENTS = 4
PAGE = 64
P99_MS_MAX = 100
VFS = f"/v1/vfs?limit={PAGE}"


def next_page(_, body):
    """Goes on where the last page ended, or begins again."""
    cursor = body and json.loads(body)["next"]
    return f"{VFS}&cursor={cursor}" if cursor else VFS


def run(lab, seconds=SECONDS):
    lab.expect("rounds", "pages")
    with tempfile.TemporaryDirectory() as folder, LargeFleet(lab, Path(folder)) as large:
        large.join_all()
        large.busy()
        lives, dies = large.replicas
        hosts = list(large.simulation.hosts.values())[:CLIENTS]
        ours = Clients(CLIENTS, lambda _: large.connect(lives.url), next_page)
        peer = Clients(CLIENTS, lambda number: large.connect(hosts[number].url),
                       lambda *_: "/v1/vfs")
        commands = (f"{CLIENTS} clients: GET {VFS}, page by page, of {HOSTS} hosts",
                    f"{CLIENTS} clients: GET /v1/vfs of a simulated host each")
        median = Figures(lab, "fleet-list-median", "ms", *commands)
        p99 = Figures(lab, "fleet-list-p99", "ms", *commands, ours_max=P99_MS_MAX)
        each = seconds / ROUNDS / 2
        for _ in range(ROUNDS):
            large.kill(dies)
            mine, others = ours.load(each), peer.load(each)
            large.start(dies)
            median.round(percentile(mine, 50), percentile(others, 50))
            p99.round(percentile(mine, 99), percentile(others, 99))
            lab.count("pages", len(mine))
        large.check()
        median.report()
        p99.report()
