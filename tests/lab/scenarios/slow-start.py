# SPDX-License-Identifier: Apache-2.0
"""vfmgrd starts while five VMs do not let go of their VFs: it serves, and finishes one by one.

The VMs are paused, so no guest answers the unplug: vfmgrd waits two minutes for each.
"""

from vflab.product import Product
from vflab.second_pf import SecondPf

DEADLINE_SECONDS = 2400  # five guests, one after the other
NAMES = [f"deaf{number}" for number in range(5)]
GUEST_SECONDS = 150  # for each, with the steps before and after it
RESTART_SECONDS = 90  # 20 s for operations to end, and the start
READY, ANSWERED, ENDED = "ready ", "GET /v1/pfs is answered", "an operation that was cut short"


def run(lab):
    lab.expect("detaches that wait", "answered before the first end", "refused in recovery",
               "served beside", "ended by recovery", "detached")
    product, other = Product(lab), SecondPf(lab)
    product.manage(num_vfs=len(NAMES), networks=())
    for name in NAMES:  # they never run, so they need no CPU and little memory
        lab.vm(name, memory=128, start=False)
        lab.host.run(f"virsh -q start --paused {name}")
        product.attach(name, verify="none")
    attachments = product.attachments()
    operations = begin_detaches(lab, attachments)

    lab.step("restarted while the first is waited for")
    cursor = lab.host.journal_cursor()
    lab.host.run("systemctl restart vfmgrd", timeout=RESTART_SECONDS)
    # By the host's own curl and logger, so that both are in one journal.
    lab.host.run("curl -sf --unix-socket /run/vfmgr/vfmgr.sock http://localhost/v1/pfs >/dev/null "
                 f"&& logger -t slow-start '{ANSWERED}'")
    meanwhile(lab, product, other, attachments)
    lab.host.wait_for("all have ended", lambda: not under_way(lab, operations),
                      GUEST_SECONDS * len(NAMES))
    in_order(lab, cursor)
    for name, operation in zip(NAMES, operations):
        shown = lab.api("GET", f"/v1/operations/{operation}").body
        said = (shown["problem"] or {}).get("detail", "")
        lab.check_equal(shown["state"], "failed", f"the detach of {name}")
        if lab.check("is paused" in said, f"the detach of {name} ended with: {said}"):
            lab.count("ended by recovery")
        lab.check_equal(len(lab.observe.hostdevs(name, "live")), 1, f"devices of {name}")

    lab.step("the VMs are switched off, and give everything back")
    for name in NAMES:
        lab.host.run(f"virsh -q destroy {name}")
    for attachment in attachments:
        product.detach(attachment)
        lab.count("detached")
    for pci in (product.pci, other.pci):
        product.must("PUT", f"/v1/pfs/{pci}/spec", {"mode": "manage", "num_vfs": 0})
        product.must("DELETE", f"/v1/pfs/{pci}/spec")
    other.unplug()


def begin_detaches(lab, attachments):
    """The detaches are in the order of NAMES; returns when the first guest is waited for."""
    attachments.sort(key=lambda attachment: attachment["vm"])
    operations = []
    for attachment in attachments:
        answer = lab.api("DELETE", f"/v1/attachments/{attachment['id']}")
        lab.check_equal(answer.status, 202, f"the detach of {attachment['vm']}")
        operations.append(answer.body["id"])
        lab.count("detaches that wait")
    lab.host.wait_for("a guest is waited for", lambda: any(
        one["state"] == "detaching" for one in lab.api("GET", "/v1/attachments").body["items"]))
    return operations


def meanwhile(lab, product, other, attachments):
    """PFs in recovery are read-only, the others are served."""
    for method, path, body in (
            ("PUT", f"/v1/pfs/{product.pci}/spec", {"mode": "manage", "num_vfs": 6}),
            ("DELETE", f"/v1/attachments/{attachments[-1]['id']}", None)):
        answer = lab.api(method, path, body)
        said = f"{answer.body.get('detail')} {answer.body.get('remedy')}"
        lab.check_equal((answer.status, answer.body.get("code")), (503, "unavailable"), path)
        if lab.check("in recovery" in said and "vfctl op wait" in said, f"{path}: {answer}"):
            lab.count("refused in recovery")
    product.must("PUT", f"/v1/pfs/{other.pci}/spec", {"mode": "manage", "num_vfs": 1})
    if lab.check_equal(lab.observe.numvfs(other.netdev), 1, "VFs of the other PF"):
        lab.count("served beside")


def under_way(lab, operations):
    return [one for one in operations
            if lab.api("GET", f"/v1/operations/{one}").body["state"] not in ("succeeded", "failed")]


def in_order(lab, cursor):
    """The host's journal shows READY, an answer, and then the ends."""
    lines = lab.observe.lines(f"journalctl -o cat --no-pager --after-cursor='{cursor}' "
                              "_SYSTEMD_UNIT=vfmgrd.service + SYSLOG_IDENTIFIER=slow-start")
    order = [what for line in lines for what in (READY, ANSWERED, ENDED) if line.startswith(what)]
    if lab.check_equal(order, [READY, ANSWERED] + [ENDED] * len(NAMES), "the journal's order"):
        lab.count("answered before the first end")
