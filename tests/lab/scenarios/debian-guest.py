# SPDX-License-Identifier: Apache-2.0
"""A Debian VM with the real vfmgr-guest package under systemd proves RDMA and is shut down."""

from vflab.product import Product

ANY_NIC = "[Match]\nName=en* eth*\n\n[Network]\nDHCP=yes\n"  # as distributions ship it
FILES = "/etc/systemd/network/05-vf-guest-*.network"
UNIT = "systemctl is-active vf-guest.service; systemctl show -P NRestarts vf-guest.service"


def kept_by_networkd(lab, vm, attachment):
    """Starts networkd as a boot without vf-guest would: after all of its state is removed."""
    ifname = vm.netdev(attachment["settings"]["mac"])
    used = f"grep 05-vf-guest- /run/systemd/netif/links/$(cat /sys/class/net/{ifname}/ifindex)"
    vm.wait_for("networkd uses vf-guest's file", used, 60)
    seen = (f"ip -4 -o addr show {ifname} | grep -F {attachment['address']}/24; "
            "ip rule | grep 30118:")
    before = vm.run(seen).lines()
    lab.check_equal(len(before), 2, f"address and rule beside networkd: {before}")
    # Its socket would start it again at the first change.
    vm.run("systemctl stop vf-guest systemd-networkd.socket systemd-networkd; "
           f"ip addr flush dev {ifname}; "
           f"ip rule del pref 30118; ! ip -4 -o addr show {ifname} | grep inet")
    vm.run("systemctl start systemd-networkd")
    vm.wait_for("networkd sets the VF up by itself", f"[ $({{ {seen}; }} | wc -l) = 2 ]", 60)
    lab.count("kept over a restart")
    vm.run("systemctl start vf-guest")


def run(lab):
    lab.expect("proved by the unit", "kept over a restart", "shut down in order")
    product = Product(lab)
    product.manage(num_vfs=2)
    vm = lab.vm("debian-vm", image="debian").wait_ready()
    verdict = vm.run("systemctl is-system-running --wait", check=False, timeout=400).stdout.strip()
    lab.check_equal(verdict, "running", "systemd's verdict in the VM")
    lab.check_equal(vm.run("findmnt -no SOURCE /").stdout.strip(), "/dev/vda", "the VM's root")
    lab.check_equal(vm.run(UNIT).lines(), ["active", "0"], "vf-guest.service before")

    vm.run(f"printf '{ANY_NIC}' >/etc/systemd/network/10-any.network; "
           "systemctl start systemd-networkd")

    lab.step("the hardened unit configures and proves the VF")
    attachment = product.attach("debian-vm", network="train", verify="required")
    lab.check_equal(attachment["verification"]["verdict"], "pass", "the verdict")
    in_vm = vm.run("ip -4 -o addr show; rdma link").stdout
    lab.check(f"{attachment['address']}/24" in in_vm and "rxe" in in_vm, f"in the VM: {in_vm}")
    lab.check_equal(vm.run(UNIT).lines(), ["active", "0"], "vf-guest.service after")
    lab.count("proved by the unit", sum(test["verdict"] == "pass"
                                        for test in attachment["verification"]["tests"]))

    lab.step("networkd keeps it, against a file for any NIC, and forgets it with the attachment")
    kept_by_networkd(lab, vm, attachment)
    product.detach(attachment)
    vm.wait_for("the file is removed", f"! ls {FILES}", 60)

    lab.step("the power button")
    vm.shutdown(deadline_seconds=240)
    lab.check_equal(vm.state(), "shut off", "the VM's state")
    lab.count("shut down in order")
    product.leave()
