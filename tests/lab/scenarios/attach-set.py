# SPDX-License-Identifier: Apache-2.0
"""A VM gets VFs of two PFs in one operation, proved at the same time; both of them, or none."""

from datetime import datetime

from vflab.product import TRAIN, Before, Product
from vflab.second_pf import SecondPf

VM = "rails"
SECOND = {**TRAIN, "name": "second", "vlan": 101, "prefix": "192.168.101.0/24",
          "host_address": "192.168.101.3"}
REFUSED_SECONDS = 20  # that a guest which does not answer is waited for


def run(lab):
    lab.expect("proved at once", "none without the proof")
    two_proved(lab)


def ids(operation):
    return ",".join(operation["attachments"])


def in_vm(lab, vm):
    return [[device["pci"] for device in lab.observe.hostdevs(vm, which)]
            for which in ("live", "config")]


def two_proved(lab):
    first, second_pf = Product(lab), SecondPf(lab)
    second = Product(lab, second_pf.netdev)
    first.manage(num_vfs=2, networks=[TRAIN])
    second.manage(num_vfs=2, networks=[SECOND])
    vm = lab.vm(VM).wait_ready()
    before = [Before(product) for product in (first, second)]
    specs = [{"vm": VM, "pf": product.pci, "network": network["name"], "verify": "required",
              "verify_profile": "quick"}
             for product, network in ((first, TRAIN), (second, SECOND))]

    lab.step("two VFs of two PFs, proved at once")
    _, operation = first.must("POST", "/v1/attachments", {"attachments": specs})
    attached = [first.attachment(each) for each in operation["attachments"]]
    proofs = [one["verification"] for one in attached]
    lab.check_equal([proof["verdict"] for proof in proofs], ["pass", "pass"], "verdicts")
    starts, ends = ([datetime.fromisoformat(proof[key].replace("Z", "+00:00")) for proof in proofs]
                    for key in ("started_at", "finished_at"))
    vfs = [one["vf_pci"] for one in attached]
    lab.check_equal(in_vm(lab, VM), [vfs, vfs], "the VM's devices")
    if lab.check(max(starts) < min(ends), f"one after the other: {proofs}"):
        lab.count("proved at once", len(proofs))
    first.must("DELETE", f"/v1/attachments?ids={ids(operation)}")
    gone(lab, VM, first, before)

    lab.step("a guest that proves nothing gets none")
    vm.run("kill -STOP $(pidof vf-guest)")
    _, failed = first.ask("POST", "/v1/attachments", {"attachments": [
        {**spec, "verify_timeout_seconds": REFUSED_SECONDS} for spec in specs]})
    vm.run("kill -CONT $(pidof vf-guest)")
    lab.check_equal(failed["state"], "failed", "the operation")
    if gone(lab, VM, first, before):
        lab.count("none without the proof")
    vm.destroy()
    second.must("PUT", f"/v1/pfs/{second.pci}/spec", {"mode": "manage", "num_vfs": 0})
    first.leave()
    first.must("DELETE", f"/v1/pfs/{second.pci}/spec")
    second_pf.unplug()


def gone(lab, vm, product, before):
    for each in before:
        each.check_again("none attached")
    nothing = lab.check_equal(in_vm(lab, vm), [[], []], "the VM's devices")
    return lab.check_equal(product.attachments(), [], "attachments") and nothing
