# SPDX-License-Identifier: Apache-2.0
"""A full disk stops changes and nothing else; what was under way ends when there is room again."""

from vflab.product import Before, Product

LONG = True
STATE = "/var/lib/vfmgr"
IMAGE = "/run/vfmgr-state.img"
SERVICES = "vfmgrd.socket vfmgrd.service"
FILL = f"dd if=/dev/zero of={STATE}/filler bs=1k 2>/dev/null; sync; df --output=avail {STATE}"


def run(lab):
    lab.expect("refused while full", "read while full", "lent when there was room")
    lab.host.run(f"systemctl stop {SERVICES} && truncate -s 8M {IMAGE} && "
                 f"mkfs.ext4 -q -m 0 {IMAGE} && mount -o loop {IMAGE} {STATE} && "
                 f"systemctl start {SERVICES}")
    product = Product(lab)
    product.manage(num_vfs=3)
    lab.vm("full").wait_ready()
    before = Before(product)
    left = lab.host.run(FILL).lines()[-1].strip()
    lab.check_equal(left, "0", "KiB that are left")

    lab.step("the disk is full")
    # The journal's file may have room for a little more; what is accepted then ends, either way.
    for _ in range(50):
        answer = lab.api("POST", "/v1/attachments", {"vm": "full", "pf": product.pci})
        if answer.status != 202:
            break
        lab.host.run(f"rm {STATE}/filler")
        if product.ended(answer.body["id"])["state"] == "succeeded":
            product.take_back(product.attachments()[0])
        lab.host.run(FILL)
    lab.check_equal((answer.status, answer.body.get("code")), (503, "unavailable"), "the refusal")
    lab.check("full" in answer.body.get("detail", ""), f"it does not say why: {answer}")
    lab.check(answer.body.get("remedy"), f"no remedy: {answer}")
    lab.count("refused while full", int(answer.status == 503))
    for path in ("/v1/pfs", f"/v1/pfs/{product.pci}/vfs", "/v1/attachments", "/v1/operations"):
        shown = lab.api("GET", path)
        lab.check_equal(shown.status, 200, path)
        lab.count("read while full", int(shown.status == 200))
    before.check_again("while the disk is full")

    lab.step("there is room again")
    lab.host.run(f"rm {STATE}/filler")
    lease = product.lend("full", network="plain")
    lab.count("lent when there was room", len(lab.observe.vfio_holders(lease["vf_pci"])))
    product.take_back(lease)
    before.check_again("after the lease")
    product.leave()
    lab.host.run(f"systemctl stop {SERVICES}; umount {STATE} && rm {IMAGE} && "
                 f"systemctl start {SERVICES}")
