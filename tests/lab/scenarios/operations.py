# SPDX-License-Identifier: Apache-2.0
"""deploy/OPERATIONS.md, typed as written: upgrade, backup, restore, certificates, drain, alerts.

A VM has a VF all the time until the page drains the host, and the host's own tools say whether it
kept it.
"""

from vflab.guide import FOLDER, left_out, put_packages, typed
from vflab.pages import blocks_of
from vflab.product import PLAIN, STATE, Product

PAGE = "deploy/OPERATIONS.md"
VM = "vm1"


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
        if not left_out(lab, block):
            typed(lab, block)
            judge(lab, product, block, has)
    product.leave()
    lab.host.run(f"rm -r {FOLDER} /var/backups/vfmgr* {STATE}-replaced-*")


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
