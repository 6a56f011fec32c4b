# SPDX-License-Identifier: Apache-2.0
"""Reads 330 VFs completely and correctly, where `ip -d link show` ends with "Truncated VF list".

The list of all VFs is an attribute, whose length has 16 bits. iproute2 requests statistics, with
which 221 VFs fit; without them 334 fit.
"""

from figures import ROUNDS, Figures, seconds
from port import FOLDER, Port
from vflab.programs import built

NEEDS_PACKAGES = False
VFS = 330


def run(lab):
    lab.expect("rounds", "VFs read right")
    port = Port(lab, VFS)
    lab.host.copy_in(built(lab, "kernel_probe"), f"{FOLDER}/kernel_probe")
    port.seconds_of_ip(lab, 0)
    probe = f"echo vfs {port.netdev} | {FOLDER}/kernel_probe"
    show = f"ip -d link show dev {port.netdev}"
    figures = Figures(lab, "read-vfs", "s", probe, show)
    for _ in range(ROUNDS):
        figures.round(seconds(lab, probe), seconds(lab, show))
    found = {vf["index"]: vf["settings"] for vf in lab.host.run(probe).json()}
    right = [vf for vf in range(VFS) if found.get(vf, {}).items() >= expected(vf).items()]
    lab.check_equal((len(found), len(right)), (VFS, VFS), "VFs that we read, and read right")
    lab.count("VFs read right", len(right))
    said = lab.host.run(show, check=False)
    shown = said.stdout.count("\n    vf ")
    lab.step(f"of {VFS} VFs `{show}` shows {shown} and says: {said.stderr.strip()}")
    figures.report()
    port.remove()


def expected(vf):
    """Returns the values that round 0 sets, with netdevsim's initial ones."""
    return {"mac": f"02:00:00:00:{vf // 256:02x}:{vf % 256:02x}",
            "vlan": {"id": 100, "qos": 0, "proto": "802.1q"}, "spoofchk": True, "trust": True,
            "query_rss": True, "link_state": "auto", "min_tx_rate_mbps": 0, "max_tx_rate_mbps": 0}
