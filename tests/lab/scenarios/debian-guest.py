# SPDX-License-Identifier: Apache-2.0
"""A Debian VM with the real vfmgr-guest package under systemd proves RDMA, and is shut down."""

from vflab.product import Product

UNIT = "systemctl is-active vf-guest.service; systemctl show -P NRestarts vf-guest.service"


def run(lab):
    lab.expect("proved by the unit", "shut down in order")
    product = Product(lab)
    product.manage(num_vfs=2)
    vm = lab.vm("debian-vm", image="debian").wait_ready()
    verdict = vm.run("systemctl is-system-running --wait", check=False, timeout=400).stdout.strip()
    lab.check_equal(verdict, "running", "systemd's verdict in the VM")
    lab.check_equal(vm.run("findmnt -no SOURCE /").stdout.strip(), "/dev/vda", "the VM's root")
    lab.check_equal(vm.run(UNIT).lines(), ["active", "0"], "vf-guest.service before")

    lab.step("the hardened unit configures and proves the VF")
    lease = product.lend("debian-vm", network="train", verify="required")
    lab.check_equal(lease["verification"]["verdict"], "pass", "the verdict")
    in_vm = vm.run("ip -4 -o addr show; rdma link").stdout
    lab.check(f"{lease['address']}/24" in in_vm and "rxe" in in_vm, f"in the VM: {in_vm}")
    lab.check_equal(vm.run(UNIT).lines(), ["active", "0"], "vf-guest.service after")
    lab.count("proved by the unit", sum(test["verdict"] == "pass"
                                        for test in lease["verification"]["tests"]))
    product.take_back(lease)

    lab.step("the power button")
    vm.shutdown(deadline_seconds=240)
    lab.check_equal(vm.state(), "shut off", "the VM's state")
    lab.count("shut down in order")
    product.leave()
