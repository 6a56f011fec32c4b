# SPDX-License-Identifier: Apache-2.0
"""A removal of VFs hangs in the kernel: its PF is stuck with the reason, all others work."""

import time

from vflab.doctor import keep_bundle
from vflab.product import PLAIN, Product
from vflab.second_pf import SecondPf
from vflab.vfio import Holder, bind_by_hand

REQUESTS = 1000
OTHER = {**PLAIN, "name": "other", "prefix": "192.168.60.0/24", "host_address": "192.168.60.1"}


def run(lab):
    lab.expect("hang in the kernel", "answers in time", "verified on the other PF",
               "creation refused", "well again")
    product, other = Product(lab), SecondPf(lab)
    product.manage(num_vfs=7)
    second = Product(lab, other.netdev)
    second.manage(num_vfs=2, networks=(OTHER,))
    spec = {"mode": "manage", "num_vfs": 2}
    lab.vm("other-vm").wait_ready()
    vf = lab.observe.vf_pci(product.pf, 0)
    bind_by_hand(lab, vf)
    before = p99_milliseconds(lab)

    lab.step("a process holds VF 0, and an admin removes the VFs by hand, past the guard")
    holder = Holder(lab, vf)
    removal = lab.host.background(f"echo 0 >/sys/bus/pci/devices/{product.pci}/sriov_numvfs")
    where = lab.host.wait_for("the removal hangs in the kernel",
                              f"grep -x vfio_unregister_group_dev /proc/{removal.pid}/wchan", 60)
    lab.count("hang in the kernel")
    reason = stuck_reason(lab, product.pci)
    lab.step(f"stuck: {reason}")
    for part in (f"pid {removal.pid}", where.strip(), product.pci):
        lab.check(part in reason, f"{part!r} is not in the reason: {reason}")

    during = p99_milliseconds(lab)
    lab.step(f"GET /v1/pfs, p99 of {REQUESTS}: {before:.2f} ms before, {during:.2f} ms during")
    if lab.check(during <= 2 * before, f"p99 {during:.2f} ms is more than twice {before:.2f} ms"):
        lab.count("answers in time")
    refused(lab, product, f"/v1/pfs/{product.pci}/spec", "pf_stuck",
            {"mode": "manage", "num_vfs": 3})
    refused(lab, product, f"/v1/pfs/{other.pci}/spec", "pci_busy", {**spec, "num_vfs": 4})
    answer, operation = product.ask("POST", "/v1/attachments", {
        "vm": "other-vm", "pf": other.pci, "network": "other", "verify": "required"})
    if lab.check(operation and operation["state"] == "succeeded",
                 f"no VF of the other PF could be attached: {operation or answer}"):
        attachment = product.attachment(operation["subject"].rsplit("/", 1)[1])
        lab.check_equal(attachment["verification"]["verdict"], "pass", "the verdict")
        lab.count("verified on the other PF")
        product.detach(attachment)

    keep_bundle(lab, "removal hangs")
    lab.step("the holder goes")
    holder.stop()
    lab.check_equal(removal.wait(120).status, 0, "the removal's end")
    lab.check_equal(lab.observe.numvfs(product.pf), 0, "VFs that are left")
    lab.host.wait_for("the PF is not stuck any more", lambda: not pf_of(lab, product.pci)["stuck"],
                      60)
    product.must("PUT", f"/v1/pfs/{other.pci}/spec", {**spec, "num_vfs": 4})
    product.manage(num_vfs=3)
    lab.check_equal(lab.observe.numvfs(product.pf), 3, "VFs made afterwards")
    lab.count("well again")
    for pci in (product.pci, other.pci):
        product.must("PUT", f"/v1/pfs/{pci}/spec", {"mode": "manage", "num_vfs": 0})
        product.must("DELETE", f"/v1/pfs/{pci}/spec")
    other.unplug()


def pf_of(lab, pci):
    return lab.api("GET", f"/v1/pfs/{pci}").body


def stuck_reason(lab, pci):
    lab.host.wait_for("the PF is stuck", lambda: pf_of(lab, pci)["stuck"], 90)
    return pf_of(lab, pci)["stuck"]


def refused(lab, product, path, code, spec):
    began = time.monotonic()
    answer, operation = product.ask("PUT", path, spec)
    problem = operation["problem"] if operation else answer.body
    lab.check_equal(problem.get("code"), code, f"PUT {path}")
    lab.check(product.pci in problem.get("detail", ""), f"the culprit is not named: {problem}")
    lab.check(problem.get("remedy"), f"no remedy: {problem}")
    lab.check(time.monotonic() - began < 10, "the refusal took longer than 10 s")
    lab.count("creation refused")


def p99_milliseconds(lab):
    """Times consecutive requests on one connection, by curl."""
    url = "url = http://localhost/v1/pfs\noutput = /dev/null\n"
    lab.host.write("/run/p99.curl", url * REQUESTS)
    shown = lab.host.run("curl -s --unix-socket /run/vfmgr/vfmgr.sock -K /run/p99.curl "
                         "-w '%{time_total}\\n'; rm /run/p99.curl", timeout=300)
    times = sorted(float(line) for line in shown.lines())
    lab.check_equal(len(times), REQUESTS, "requests that were answered")
    return times[int(len(times) * 0.99)] * 1000
