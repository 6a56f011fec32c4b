# SPDX-License-Identifier: Apache-2.0
"""The main scenario: a VF with VLAN and MTU 9000 is attached, proves RDMA, and is detached."""

import json

from vflab.product import Before, Product

MAC = "52:54:00:11:22:33"


def run(lab):
    lab.expect("attached", "RDMA proved", "more proved", "changed", "detached",
               "certified")
    product, observe = Product(lab), lab.observe
    product.manage(num_vfs=7)
    lab.check_equal(observe.numvfs(product.pf), 7, "VFs in sysfs")
    before = Before(product)
    vm = lab.vm("vm1").wait_ready()

    lab.step("a VF is asked for, with verification required")
    attachment = product.attach("vm1", network="train", address="192.168.100.10", verify="required",
                         settings={"mac": MAC, "trust": True, "spoofchk": False,
                                   "max_tx_rate_mbps": 500})
    judge_attached(lab, product, attachment)
    judge_proof(lab, attachment["verification"])
    in_vm = vm.run("ip -4 -o addr show; cat /sys/class/net/e*/mtu; rdma link").stdout
    lab.check("192.168.100.10/24" in in_vm and "9000" in in_vm, f"in the VM: {in_vm}")

    prove_more(lab, vm)
    change(lab, product, vm, attachment)

    lab.step("and detached")
    _, operation = product.detach(attachment)
    judge_certificate(lab, product, attachment, operation["certificate"])
    lab.check_equal(observe.hostdevs("vm1"), [], "live XML after the detach")
    lab.check_equal(observe.hostdevs("vm1", "config"), [], "persistent XML after the detach")
    lab.check_equal(observe.vfio_holders(attachment["vf_pci"]), [], "holders of the VF")
    before.check_again("after the detach")
    lab.count("detached")
    product.leave()


def prove_more(lab, vm):
    """Runs the tests that the deep profile adds."""
    tests = {}
    # A test refuses an option that it does not heed.
    for option, some in (("", ["ud_ping", "memory_regions"]),
                         ("--seconds 0.5", ["bidirectional_bandwidth", "many_pairs_bandwidth",
                                            "transfer"])):
        said = vm.run(f"vf-guest verify -o json {option} {' '.join(some)}").json()[0]
        tests |= {test["name"]: test for test in said["tests"] if test["name"] in some}
    names = list(tests)
    for name in names:
        lab.step(f"{name}: {tests[name]['figures']} {tests[name].get('detail', '')}")
        lab.check_equal(tests[name]["verdict"], "pass", name)
    pings, both = tests["ud_ping"]["figures"], tests["bidirectional_bandwidth"]["figures"]
    lab.check_equal(pings["samples"] + pings["lost"], pings["sent"], "datagrams")
    lab.check(min(both["written_mbps"], both["read_mbps"]) > 0, f"one way only: {both}")
    lab.check(tests["memory_regions"]["figures"]["largest_bytes"] >= 64 << 20, "memory regions")
    # This VM has no GPU.
    nothing = vm.run("vf-guest verify -o json gpudirect").json()[0]["tests"][-1]
    lab.check_equal((nothing["name"], nothing["verdict"]), ("gpudirect", "not_applicable"), nothing)
    orders = tests["transfer"]["figures"]
    lab.check_equal(orders["orders"], 4 * orders["rounds"], "orders that the host obeyed")
    device = vm.run("ls /sys/class/infiniband").lines()[0]
    lab.check_equal(tests["transfer"]["detail"],
                    f"over RC: {device} has no DC: it is not an mlx5 device", "transport")
    lab.count("more proved", len(names))


def change(lab, product, vm, attachment):
    """Settings change while the VM has the VF, which it keeps and proves RDMA over again."""
    netdev, hostdevs = vm.netdev(MAC), lab.observe.hostdevs("vm1")
    changed = json.loads(lab.vfctl("-j", "attachment", "set", "vm1", "--max-tx-rate", "300",
                                   "--spoofchk", "on", "--verify", "--verify-profile",
                                   "quick").stdout)
    shown = lab.observe.ip_link_vf(product.pf, attachment["vf"]["index"])
    lab.check_equal((shown["max_tx_rate"], shown["spoofchk"], shown["mac"], shown["trust"]),
                    (300, True, MAC, True), "ip link's rate, spoof check, MAC and trust")
    lab.check_equal((vm.netdev(MAC), lab.observe.hostdevs("vm1")), (netdev, hostdevs),
                    "the VM's netdev and devices")
    if lab.check_equal(changed["verification"]["verdict"], "pass", "the proof of the change"):
        lab.count("changed")


def judge_attached(lab, product, attachment):
    observe = lab.observe
    pci = observe.vf_pci(product.pf, attachment["vf"]["index"])
    shown = observe.ip_link_vf(product.pf, attachment["vf"]["index"])
    lab.check_equal(shown["mac"], MAC, "ip link's MAC")
    lab.check_equal(shown["vlan"], 100, "ip link's VLAN")
    lab.check_equal(shown["trust"], True, "ip link's trust")
    lab.check_equal(shown["spoofchk"], False, "ip link's spoof check")
    lab.check_equal(shown["max_tx_rate"], 500, "ip link's max rate")
    lab.check_equal(observe.vf_driver(pci), "vfio-pci", "the VF's driver")
    lab.check_equal(observe.driver_override(pci), None, "driver_override after binding")
    for which in ("live", "config"):
        lab.check_equal([dev["pci"] for dev in observe.hostdevs("vm1", which)], [pci],
                        f"{which} XML")
    holders = observe.vfio_holders(pci)
    lab.check(len(holders) == 1 and "qemu" in holders[0][1], f"holders of the VF: {holders}")
    lab.count("attached", len(holders))


def judge_certificate(lab, product, attachment, certificate):
    """The certificate says of the VF what iproute2 and sysfs show."""
    lab.check_equal((certificate["attachment"], certificate["vf_pci"]),
                    (attachment["id"], attachment["vf_pci"]), "the certificate's attachment and VF")
    shown = lab.observe.ip_link_vf(product.pf, attachment["vf"]["index"])
    settings = certificate["settings"]
    said = (settings["mac"], settings["vlan"]["id"], settings["trust"], settings["spoofchk"],
            settings["max_tx_rate_mbps"], certificate["driver"])
    seen = (shown["mac"], shown["vlan"], shown["trust"], shown["spoofchk"], shown["max_tx_rate"],
            lab.observe.vf_driver(attachment["vf_pci"]))
    if lab.check_equal(said, seen, "the certificate's settings and driver"):
        lab.count("certified")


def judge_proof(lab, verification):
    lab.check_equal(verification["verdict"], "pass", "the verdict")
    tests = {test["name"]: test for test in verification["tests"]}
    for name in ("reachability", "path_mtu", "rc_ping", "rdma_write", "rdma_read"):
        test = tests[name]
        lab.check_equal((test["verdict"], test["by"], test["mismatches"]), ("pass", "host", 0),
                        name)
        lab.step(f"{name}: {test['bytes_checked']} bytes checked, {test['figures']}")
    for name in ("ud_ping", "cm_ping", "write_bandwidth", "read_bandwidth", "send_bandwidth",
                 "write_latency", "read_latency", "send_latency"):
        lab.check_equal((tests[name]["verdict"], tests[name]["by"]), ("pass", "guest"), name)
        lab.step(f"{name}: {tests[name]['figures']}")
    for name in ("rdma_write", "rdma_read"):
        lab.check(tests[name]["bytes_checked"] >= 1 << 20, f"{name} checked too little")
    lab.check_equal(verification["vf_mac"], MAC, "the proof's MAC")
    lab.count("RDMA proved", sum(test["verdict"] == "pass" for test in tests.values()))
