# SPDX-License-Identifier: Apache-2.0
"""A full disk stops changes and nothing else; a store at its own limit makes room by itself."""

from vflab.product import SERVICES, STATE, STORE, Before, Product

IMAGE = "/run/vfmgr-state.img"
STORE_BYTES_MAX = 1 << 30
DRY_RUNS = 60
# As after years of requests: audit rows of 1 MiB each, to the last page.
OLD_AUDIT = """PRAGMA journal_mode = DELETE; PRAGMA synchronous = OFF;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 1022)
INSERT INTO audit (at_ms, who, request_id, action, subject, outcome)
SELECT unixepoch() * 1000, 'uid:0', '0', 'POST /v1/tokens', '', printf('%.*c', 1048576, 'x') FROM n;
PRAGMA journal_mode = WAL;"""
FILL = f"dd if=/dev/zero of={STATE}/filler bs=1k 2>/dev/null; sync; df --output=avail {STATE}"


def run(lab):
    lab.expect("refused while full", "read while full", "attached when there was room",
               "attached at the store's limit")
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
    # The journal's file may have a little room left; what is accepted then ends in either way.
    for _ in range(50):
        answer = lab.api("POST", "/v1/attachments", {"vm": "full", "pf": product.pci})
        if answer.status != 202:
            break
        lab.host.run(f"rm {STATE}/filler")
        if product.ended(answer.body["id"])["state"] == "succeeded":
            product.detach(product.attachments()[0])
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
    attachment = product.attach("full", network="plain")
    lab.count("attached when there was room", len(lab.observe.vfio_holders(attachment["vf_pci"])))
    product.detach(attachment)
    before.check_again("after the attachment")
    product.leave()
    lab.host.run(f"systemctl stop {SERVICES}; umount {STATE} && rm {IMAGE} && "
                 f"systemctl start {SERVICES}")
    at_the_stores_limit(lab)


def bytes_used(lab):
    """Returns the bytes in use in the store's file, read while no process has it open."""
    lab.host.run(f"systemctl stop {SERVICES}")
    pages, free, size = (int(line) for line in lab.host.run(
        f"sqlite3 {STORE} 'PRAGMA page_count; PRAGMA freelist_count; PRAGMA page_size'").lines())
    return (pages - free) * size


def at_the_stores_limit(lab):
    lab.step("the store is at its own limit, full of what can be forgotten")
    before = bytes_used(lab)
    lab.host.write("/run/old-audit.sql", OLD_AUDIT)
    lab.host.run(f"sqlite3 {STORE} </run/old-audit.sql && rm /run/old-audit.sql", timeout=300)
    full = bytes_used(lab)
    lab.check(full > 0.99 * STORE_BYTES_MAX, f"{full} bytes are not the store's limit")
    lab.host.run(f"systemctl start {SERVICES}", timeout=180)
    product = Product(lab)
    pid = lab.host.run("systemctl show -P MainPID vfmgrd").stdout
    product.manage(num_vfs=1)
    # The first rows fit into pages that are not full; the audit of these requests needs new pages.
    for _ in range(DRY_RUNS):
        lab.api("POST", "/v1/attachments?dry_run=true", {"vm": "full", "pf": product.pci})
    attachment = product.attach("full", network="plain")
    lab.count("attached at the store's limit", len(lab.observe.vfio_holders(attachment["vf_pci"])))
    product.detach(attachment)
    product.leave()
    same = lab.host.run("systemctl show -P MainPID vfmgrd").stdout
    lab.check_equal(same, pid, "vfmgrd's process")
    after = bytes_used(lab)
    lab.check(before < after < 0.8 * STORE_BYTES_MAX, f"{after} bytes are used after {full}")
    lab.step(f"used: {before >> 20} MiB, {full >> 20} at the limit, "
             f"{after >> 20} after an attachment")
    lab.host.run(f"sqlite3 {STORE} \"DELETE FROM audit WHERE request_id = '0'; VACUUM\" && "
                 f"systemctl start {SERVICES}", timeout=300)
