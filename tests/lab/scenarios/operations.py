# SPDX-License-Identifier: Apache-2.0
"""deploy/OPERATIONS.md, typed as written: upgrade, backup, restore, certificates, drain, alerts.

A VM has a VF all the time until the page drains the host, and the host's own tools say whether it
kept it.
"""

from vflab import packages
from vflab.pages import blocks_of
from vflab.product import PLAIN, STATE, Product

PAGE = "deploy/OPERATIONS.md"
FOLDER = "/root/packages"
VM = "vm1"
BLOCK_SECONDS = 300
SHELL = "bash -euo pipefail"


def run(lab):
    lab.expect("typed", "left out", "kept over", "restored", "drained")
    product = Product(lab)
    lab.check_equal(product.pf, "enp1s0", "the page's PF")
    product.manage(num_vfs=2, networks=(PLAIN,))
    lab.vm(VM, command_line="vf-guest=off").wait_ready()
    product.attach(VM, vf=0, network="plain")
    put_packages(lab)
    has = lab.observe.hostdevs(VM)
    for block in blocks_of(PAGE):
        if block.why:
            lab.step(f"{block.heading}: not run: {block.why}")
            lab.count("left out")
            continue
        typed(lab, block)
        judge(lab, product, block, has)
    product.leave()
    lab.host.run(f"rm -r {FOLDER} /var/backups/vfmgr* {STATE}-replaced-*")


def put_packages(lab):
    folder, _ = packages.built(lab.machine.settings["suite"])
    lab.host.run(f"mkdir -p {FOLDER}")
    for deb in sorted(folder.glob("*.deb")):
        lab.host.copy_in(deb, f"{FOLDER}/{deb.name}")


def typed(lab, block):
    lab.step(f"{block.heading}: {block.text.splitlines()[0]}")
    done = lab.host.run(f"cd {FOLDER} && {SHELL}", input=block.text, check=False,
                        timeout=BLOCK_SECONDS)
    lab.check(done.status in block.ends, f"{block.heading}: {block.text} ended with {done.status}: "
                                         f"{done.stdout}{done.stderr}")
    lab.count("typed")


def judge(lab, product, block, has):
    if block.heading == "Drain a host":
        lab.check_equal(lab.observe.hostdevs(VM), [], "what the drained host's VM has")
        lab.check_equal(product.attachments(), [], "attachments of the drained host")
        lab.count("drained")
    elif product.attachments():
        lab.check_equal(lab.observe.hostdevs(VM), has, f"what the VM has after {block.heading}")
        lab.count("kept over")
    if block.heading == "Restore" and "cp -a" in block.text:
        lab.check_equal([one["vm"] for one in product.attachments()], [VM],
                        "attachments of the restored store")
        lab.host.wait_for("the restored daemon finds no drift", product.calm)
        lab.count("restored")
