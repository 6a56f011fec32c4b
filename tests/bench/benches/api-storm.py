# SPDX-License-Identifier: Apache-2.0
"""The PFs of a host with 960 VFs while 10,000 slow connections storm the daemon.

Judged beside a bare Beast server with a fixed body of the same size: the p99 of GET /v1/pfs with
256 connections over TLS, while VFs are attached and detached and ten views a second are published.
That goes on while the peer is measured, too, but the slow clients rest then: nobody storms the
peer. In each round clients of new addresses come and are answered, and the daemon's memory does not
grow: --seconds 600 looks for ten minutes.
"""

import contextlib
import json
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from api_load import LIMITS, BareServer, LoadedDaemon, bearer, busy, command, fetch, load
from figures import Figures
from vflab.programs import built_here

NEEDS_LAB = False
PFS, VFS = 8, 120
SLOW = 10_000
ROUNDS_MIN = 6
SECONDS = 120  # of load, in total
EACH_SECONDS = 10
P99_MAX = 3.0
GROWTH_MAX = 1.05  # of the memory, from the first third of the rounds to the last third
NEWCOMERS = 5  # in each round
PATH = "/v1/pfs"


class SlowClients:
    def __init__(self, port, count):
        program = Path(__file__).resolve().parent.parent / "slow_clients.py"
        self.process = subprocess.Popen([sys.executable, program, str(port), str(count)],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def counts(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    @contextlib.contextmanager
    def resting(self):
        self.process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self.process.send_signal(signal.SIGCONT)

    def end(self):
        self.process.stdin.close()
        self.process.wait(60)


@contextlib.contextmanager

def storm(lab, daemon):
    clients = SlowClients(daemon.port, SLOW)
    try:
        began = time.monotonic()
        while (counts := clients.counts())["once"] < SLOW:
            assert time.monotonic() < began + 120, f"the storm does not come up: {counts}"
            time.sleep(0.2)  # what strangers do is no event that the daemon tells
        yield clients
    finally:
        clients.end()


class Door:
    """What newcomers find, each from an address that nobody has come from before."""

    def __init__(self, daemon, token):
        self.daemon, self.token, self.came = daemon, token, 0

    def knock(self, lab):
        took = []
        for _ in range(NEWCOMERS):
            self.came += 1
            source = f"127.2.{self.came // 250}.{self.came % 250 + 1}"
            began = time.monotonic()
            status, _, body = fetch(self.daemon, "/v1/networks", self.token, source)
            took.append(time.monotonic() - began)
            lab.check(status == 200, f"a newcomer from {source} is answered: {status} {body[:200]}")
        lab.count("newcomers", NEWCOMERS)
        lab.step(f"{NEWCOMERS} newcomers are answered within {max(took) * 1000:.0f} ms")


def run(lab, seconds=SECONDS):
    lab.expect("rounds", "attached", "published", "newcomers", "slow")
    with tempfile.TemporaryDirectory() as folder:
        daemon = LoadedDaemon(Path(folder), PFS, VFS, LIMITS)
        bare = BareServer(daemon, built_here("bare_server"))
        token = daemon.token("viewer")
        status, _, body = fetch(daemon, PATH, token)
        assert status == 200, body
        fixed = f"/{len(body)}"
        lab.step(f"{PATH} has {len(body)} bytes")
        p99, rate = (
            Figures(lab, name, unit, command(daemon.port, PATH, 1), command(bare.port, fixed, 1),
                    **limits)
            for name, unit, limits in
            (("storm-p99", "ms", {"ratio_max": P99_MAX}),
             ("storm-rate", "requests/s", {"better": "higher"})))
        door, memory = Door(daemon, token), []
        with busy(lab, daemon), storm(lab, daemon) as clients:
            opened = clients.counts()["opened"]
            began = time.monotonic()
            while time.monotonic() < began + seconds or len(memory) < ROUNDS_MIN:
                ours = load(daemon, PATH, EACH_SECONDS, bearer(token))
                with clients.resting():
                    peer = load(bare, fixed, EACH_SECONDS, bearer(token))
                p99.round(ours.p99_ms, peer.p99_ms)
                rate.round(ours.per_second, peer.per_second)
                door.knock(lab)
                memory.append(daemon.memory_mib())
                counts = clients.counts()
                lab.step(f"{counts['open']} slow connections are open, {counts['opened']} were "
                         f"opened; the daemon has {memory[-1]:.1f} MiB")
            lab.count("slow", counts["once"])
            lab.check(counts["opened"] > opened, "slow clients come again and again")
        lab.check(daemon.runs(), "the daemon is there")
        bare.end()
        daemon.end()  # fails unless the daemon exits with 0
        p99.report()
        rate.report()
        memory = memory[1:]  # the first round fills caches and the allocator's arenas
        third = len(memory) // 3
        growth = median(memory[-third:]) / median(memory[:third])
        lab.check(growth <= GROWTH_MAX,
                  f"memory grew to {growth:.3f} of what it was, at most {GROWTH_MAX} is allowed")
