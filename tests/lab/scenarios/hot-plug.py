# SPDX-License-Identifier: Apache-2.0
"""A VM that has run for a minute gets a VF, proves it, and keeps nothing of it afterwards."""

from vflab.product import Product

SEEN_IN_VM = ("ls /sys/class/net; ip -o addr; ip route; rdma link; "
              "ls /run/vf-guest 2>/dev/null || true")


def run(lab):
    lab.expect("minute of uptime", "verified", "gone from the VM")
    product = Product(lab)
    product.manage(num_vfs=3, vf_driver="vfio-pci")
    vm = lab.vm("hot").wait_ready()
    vm.wait_for("a minute of uptime", "[ $(cut -d. -f1 /proc/uptime) -ge 60 ]", 120)
    lab.count("minute of uptime")
    before = vm.run(SEEN_IN_VM).stdout

    lab.step("plugged into the running VM")
    attachment = product.attach("hot", network="plain", verify="required")
    lab.check_equal(attachment["verification"]["verdict"], "pass", "the verdict")
    lab.count("verified")
    during = vm.run(SEEN_IN_VM).stdout
    lab.check(during != before and attachment["address"] in during, f"in the VM: {during}")

    lab.step("taken away")
    product.detach(attachment)
    after = vm.wait_for("the VM looks as before",
                        f"[ \"$( {SEEN_IN_VM} )\" = '{before.strip()}' ] && echo same || "
                        f"{{ {SEEN_IN_VM}; false; }}", 60)
    lab.check_equal(after, "same", "what stays in the VM")
    lab.count("gone from the VM")
    lab.check_equal(lab.observe.vf_drivers(product.pf), ["vfio-pci"] * 3, "the VFs' drivers")
    product.leave()
