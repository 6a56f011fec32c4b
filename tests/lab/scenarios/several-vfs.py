# SPDX-License-Identifier: Apache-2.0
"""Two VFs of a VM are tested at once and reported later; one is verified again by schedule."""

import json
from datetime import datetime

from vflab.product import Product

VM = "vm1"
PERIOD = 60  # the shortest
PAYLOAD = 8 << 20  # of each VF: 4 MiB each way


def run(lab):
    lab.expect("proved at once", "reported", "measured", "by schedule", "in the VF's history")
    product = Product(lab)
    product.manage(num_vfs=3)
    vm = lab.vm(VM).wait_ready()
    attachments = [product.attach(VM, network="train", verify="required",
                                  verify_profile="quick", **more)
              for more in ({"verify_every_seconds": PERIOD}, {})]
    at_once(lab, vm, attachments)
    reported(lab, vm, attachments)
    by_schedule(lab, product, attachments)
    in_history(lab, product, attachments[0])
    product.leave()


def at(text):
    return datetime.fromisoformat(text.replace("Z", "+00:00"))


def carried(vm, netdev):
    """Returns the counters of the VM's kernel."""
    counted = "cat /sys/class/net/{0}/statistics/tx_bytes /sys/class/net/{0}/statistics/rx_bytes"
    return sum(int(line) for line in vm.run(counted.format(netdev)).lines())


def at_once(lab, vm, attachments):
    lab.step("both at once")
    netdevs = [vm.netdev(attachment["settings"]["mac"]) for attachment in attachments]
    before = [carried(vm, netdev) for netdev in netdevs]
    found = vm.run("vf-guest verify --at-once --profile quick -o json", timeout=300).json()
    lab.check_equal([one["attachment"] for one in found], sorted(one["id"] for one in attachments),
                    "who was tested")
    lab.check_equal([one["verdict"] for one in found], ["pass", "pass"], "the verdicts")
    lab.check_equal([one["at_once_with"] for one in found],
                    [[found[1]["attachment"]], [found[0]["attachment"]]], "with whom")
    lab.check(max(at(one["started_at"]) for one in found) <
              min(at(one["finished_at"]) for one in found), f"not at the same time: {found}")
    grown = [carried(vm, netdev) - old for netdev, old in zip(netdevs, before)]
    lab.step(f"the VM's kernel counted {grown} bytes on {netdevs}")
    if lab.check(min(grown) > PAYLOAD, f"{grown} bytes are too few"):
        lab.count("proved at once", len(found))


def reported(lab, vm, attachments):
    lab.step("what was found is reported, and written for Prometheus")
    shown = vm.run("vf-guest report -o json --metrics /run/vf_guest.prom").json()
    lab.check_equal({one["attachment"] for one in shown}, {one["id"] for one in attachments},
                    "reports")
    text = vm.run("vf-guest report").stdout
    lab.count("reported", sum(f"attachment {one['id']}: pass" in text for one in attachments))
    metrics = vm.run("cat /run/vf_guest.prom").lines()
    passed = [line for line in metrics if line.startswith("vf_guest_verification_pass{")]
    lab.check_equal([line.split()[-1] for line in passed], ["1", "1"], f"metrics: {passed}")
    lab.count("measured", len(passed))


def by_schedule(lab, product, attachments):
    """The VM started the run before; this long after its start the host requests another."""
    lab.step(f"one is verified again every {PERIOD} s")
    path = f"/v1/attachments/{attachments[0]['id']}/verifications"
    known = runs_of(product, path)
    others = runs_of(product, f"/v1/attachments/{attachments[1]['id']}/verifications")
    new = lab.host.wait_for("the scheduled run", lambda: [
        one for one in runs_of(product, path) if one not in known], PERIOD + 120)[0]
    runs = {one["run"]: one for one in history(product, path)}
    lab.check_equal(runs[new]["verdict"], "pass", f"the scheduled run: {runs[new]['detail']}")
    pause = at(runs[new]["started_at"]) - at(runs[known[0]]["started_at"])
    lab.check(pause.total_seconds() >= PERIOD, f"after {pause} already")
    lab.check_equal(runs_of(product, f"/v1/attachments/{attachments[1]['id']}/verifications"),
                    others,
                    "the other's runs")
    lab.count("by schedule")


def runs_of(product, path):
    """Returns the newest first."""
    return [one["run"] for one in history(product, path)]


def history(product, path):
    return product.must("GET", path)[0].body["items"]


def in_history(lab, product, attachment):
    """Returns the VF's own runs, which outlive the attachment."""
    before = runs_of(product, f"/v1/attachments/{attachment['id']}/verifications")
    product.detach(attachment)
    kept = history(product, f"/v1/pfs/{product.pci}/vfs/{attachment['vf']['index']}/verifications")
    lab.check_equal([one["run"] for one in kept][:len(before)], before, "the VF's runs")
    lab.check(all(one["tests"] for one in kept), "a run without its evidence")
    lab.step(json.dumps({name: kept[0][name] for name in ("run", "verdict", "warnings")}))
    lab.count("in the VF's history", len(kept))
