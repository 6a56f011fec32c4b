# SPDX-License-Identifier: Apache-2.0
"""Bad input is refused with a remedy and changes nothing, not even in part."""

from vflab.product import Before, Product

NO_PF = "0000:7f:00.0"


def run(lab):
    lab.expect("refused by vfmgr", "refused by the driver", "silent VM", "restored")
    product = Product(lab)
    product.manage(num_vfs=7)
    # One after another: when three boot at once, one may hang (README.md, nested SVM).
    lab.vm("plain-vm").wait_ready()
    lab.vm("no-port", pcie_ports=0).wait_ready()
    lab.vm("no-vsock", vsock=False).wait_ready()
    before = Before(product)

    def refuse(code, word, **request):
        request = {"network": "plain", **request}
        problem = product.refused(**{name: value for name, value in request.items()
                                     if value is not None})
        lab.check_equal(problem["code"], code, f"code for {request}")
        lab.check(word in problem["detail"], f"{request}: '{word}' is not in: {problem['detail']}")
        lab.check(problem["remedy"], f"{request}: no remedy in {problem}")
        before.check_again(f"after {request}")
        lab.count("restored")
        lab.step(f"{code}: {problem['detail']}")
        return problem

    refuse("not_found", "nobody", vm="nobody")
    refuse("not_found", NO_PF, vm="plain-vm", pf=NO_PF)
    refuse("not_found", "elsewhere", vm="plain-vm", network="elsewhere")
    refuse("invalid_request", "multicast", vm="plain-vm", settings={"mac": "01:00:5e:00:00:01"})
    refuse("unsupported", "PCIe port", vm="no-port")
    refuse("unsupported", "vsock", vm="no-vsock", verify="required")
    refuse("not_found", "has no VF 9", vm="plain-vm", vf=9)
    lab.count("refused by vfmgr", 7)

    answer, _ = product.ask("PUT", f"/v1/pfs/{product.pci}/spec", {"mode": "manage", "num_vfs": 9})
    lab.check_equal((answer.status, answer.body["code"]), (422, "limit_exceeded"), "9 VFs")
    before.check_again("after 9 VFs were asked for")

    lab.step("igb refuses 802.1ad: everything is undone")
    problem = refuse("kernel_refused", "802.1ad", vm="plain-vm", network=None,
                     settings={"vlan": {"id": 7, "proto": "802.1ad"}})
    lab.check(problem.get("cause"), f"no cause in {problem}")
    lab.count("refused by the driver")

    lab.step("a VM that never reports loses the VF again")
    silent = lab.vm("silent", command_line="vf-guest=off").wait_ready()
    lab.check("vf-guest" not in silent.run("ps").stdout, "vf-guest runs in the silent VM")
    refuse("timed_out", "silent did not report within 20 s", vm="silent", verify="required",
           verify_timeout_seconds=20)
    lab.check_equal(lab.observe.hostdevs("silent"), [], "the silent VM's devices")
    lab.count("silent VM")
    product.leave()
