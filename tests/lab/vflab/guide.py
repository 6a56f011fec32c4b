# SPDX-License-Identifier: Apache-2.0
"""Types a page of the documentation as it is written, on the emulated host and in its VMs."""

import shlex

from vflab import packages

FOLDER = "/root/packages"  # where the blocks are typed, beside the packages that they name
SHELL = "bash --norc -euo pipefail -c"  # sshd's bash would read bashrc
BLOCK_SECONDS = 300


def put_packages(lab):
    folder, _ = packages.built(lab.machine.settings["suite"])
    lab.host.run(f"mkdir -p {FOLDER}")
    for deb in sorted(folder.glob("*.deb")):
        lab.host.copy_in(deb, f"{FOLDER}/{deb.name}")


def left_out(lab, block):
    """Returns whether the page says that the block is not run; prints why, and counts it."""
    if block.why:
        lab.step(f"{block.heading}: not run: {' '.join(block.why.split())}")
        lab.count("left out")
    return bool(block.why)


def typed(lab, block, machine=None, seconds=BLOCK_SECONDS):
    """Types a block as root of the host, or of the VM `machine`; returns whether it ended well."""
    lab.step(f"{block.heading}: {block.text.splitlines()[0]}")
    done = (machine or lab.host).run(f"cd {FOLDER} && {SHELL} {shlex.quote(block.text)}",
                                     check=False, timeout=seconds)
    lab.count("typed")
    return lab.check(done.status in block.ends, f"{block.heading}: {block.text} ended with "
                                                f"{done.status}: {done.stdout}{done.stderr}")
