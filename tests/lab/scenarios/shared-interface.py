# SPDX-License-Identifier: Apache-2.0
"""Two VMs share the host's VLAN interface with MTU 9000; one's detach does not break the other."""

from vflab.product import Product


def run(lab):
    lab.expect("interface shared", "second verified after the first left", "interface removed")
    product, observe = Product(lab), lab.observe
    product.manage(num_vfs=4)
    links_before = sorted(link["ifname"] for link in observe.links())
    first_vm, second_vm = lab.vm("one").wait_ready(), lab.vm("two").wait_ready()
    lab.step("both are attached a VF of network train")
    first = product.attach(first_vm.name, network="train", verify="required")
    second = product.attach(second_vm.name, network="train", verify="required")
    interface = [name for name in (link["ifname"] for link in observe.links())
           if name not in links_before]
    lab.check_equal(len(interface), 1, f"VLAN devices made: {interface}")
    lab.check_equal(observe.link(interface[0])["mtu"], 9000, "the interface's MTU")
    routes = str(observe.routes(interface[0]))
    lab.check(first["address"] in routes and second["address"] in routes, f"routes: {routes}")
    lab.count("interface shared", len(observe.addresses(interface[0])))

    lab.step("the first gives its VF back; the second proves RDMA again")
    product.detach(first)
    lab.check(interface[0] in [link["ifname"] for link in observe.links()],
              "the interface is still there")
    lab.check(first["address"] not in str(observe.routes(interface[0])),
              "the first one's route is gone")
    _, operation = product.must("POST", f"/v1/attachments/{second['id']}/verifications", {})
    again = product.attachment(second["id"])["verification"]
    lab.check_equal((operation["state"], again["verdict"]), ("succeeded", "pass"), "verified again")
    lab.check(again["run"] != second["verification"]["run"], "it is another run")
    lab.count("second verified after the first left")

    product.detach(second)
    lab.check_equal(sorted(link["ifname"] for link in observe.links()), links_before, "links")
    lab.check_equal(observe.rdma_links(), {}, "RDMA links")
    lab.count("interface removed")
    product.leave()
