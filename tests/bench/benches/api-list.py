# SPDX-License-Identifier: Apache-2.0
"""The list of 256 VFs, and one VF, beside a bare Beast server with a fixed body of the same size.

256 connections over TLS ask without a pause, while VFs are attached and detached and ten views a
second are published. Judged are the requests a second and their p99; a tenant's list, a filter and
a cursor are measured and printed only. The peer is measured while all of that goes on, too.
"""

import tempfile
from pathlib import Path

from api_load import VM, BareServer, LoadedDaemon, bearer, busy, command, fetch, load, pci_of
from figures import Figures
from vflab.programs import built_here

NEEDS_LAB = False
VFS = 256
ROUNDS = 5
SECONDS = 120  # of load, in total
RATE_MIN = 0.7
P99_MAX = 2.0
TENANT = {"vms": [VM], "pools": ["all"]}


class Measured:
    """A path of the API, and what is asked of it; without limits it is only printed."""

    def __init__(self, lab, name, daemon, bare, path, token, judged=False, **headers):
        self.daemon, self.bare, self.path, self.name = daemon, bare, path, name
        self.headers = bearer(token, **headers)
        status, answer, body = fetch(daemon, path, token, **headers)
        assert status == 200, body
        lab.step(f"{name}: {path} has {len(body)} bytes, {answer['Content-Encoding'] or 'plain'}")
        self.fixed = f"/{len(body)}"
        ours, peer = (command(server.port, of, 1) for server, of in
                      ((daemon, path), (bare, self.fixed)))
        self.rate = Figures(lab, f"{name}-rate", "requests/s", ours, peer, better="higher",
                            ratio_min=RATE_MIN if judged else None)
        self.p99 = Figures(lab, f"{name}-p99", "ms", ours, peer,
                           ratio_max=P99_MAX if judged else None)

    def round(self, lab, seconds):
        ours = load(self.daemon, self.path, seconds, self.headers)
        peer = load(self.bare, self.fixed, seconds, self.headers)
        self.rate.round(ours.per_second, peer.per_second)
        self.p99.round(ours.p99_ms, peer.p99_ms)
        lab.step(f"{self.name}: a request takes {ours.cpu_us:.0f} us of the daemon's processors, "
                 f"{peer.cpu_us:.0f} us of the peer's")

    def report(self):
        self.rate.report()
        self.p99.report()


def run(lab, seconds=SECONDS):
    lab.expect("rounds", "attached", "published")
    with tempfile.TemporaryDirectory() as folder:
        daemon = LoadedDaemon(Path(folder), 1, VFS)
        bare = BareServer(daemon, built_here("bare_server"))
        token = daemon.token("viewer")
        all_vfs, one = "/v1/vfs", f"/v1/pfs/{pci_of(0)}/vfs/3"
        after = daemon.ask("GET", f"{all_vfs}?limit=128")[1]["next"]
        measured = [
            Measured(lab, "list", daemon, bare, all_vfs, token, judged=True),
            Measured(lab, "one", daemon, bare, one, token, judged=True),
            Measured(lab, "tenant", daemon, bare, all_vfs, tenants_token(daemon)),
            Measured(lab, "filter", daemon, bare, f"{all_vfs}?state=free", token),
            Measured(lab, "cursor", daemon, bare, f"{all_vfs}?limit=128&cursor={after}", token)]
        # h2load measures whole seconds.
        each = max(1, round(seconds / ROUNDS / len(measured) / 2))
        with busy(lab, daemon):
            for _ in range(ROUNDS):
                for one in measured:
                    one.round(lab, each)
        lab.check(daemon.runs(), "the daemon is there")
        bare.end()
        daemon.end()  # fails unless the daemon exits with 0
        for one in measured:
            one.report()


def tenants_token(daemon):
    """Returns a token of a tenant that has a VF in its VM, and so a list of its own."""
    for path, body in (("/v1/pools/all", {"select": {"pfs": [pci_of(0)]}}),
                       ("/v1/tenants/blue", TENANT)):
        answer = daemon.call("PUT", path, body)
        assert answer.status == 200, answer
    daemon.do("POST", "/v1/attachments", {"vm": VM, "pf": pci_of(0)})
    answer, token = daemon.ask("POST", "/v1/tokens", {"role": "viewer", "tenant": "blue"})
    assert answer.status == 201, token
    return token["token"]
