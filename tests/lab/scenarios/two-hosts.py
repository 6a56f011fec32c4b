# SPDX-License-Identifier: Apache-2.0
"""Two hosts on one wire: each proves its VM's VF, and RDMA between the VMs crosses the wire.

Each host runs its own vfmgrd. Neither knows of the other, so identities keep their VMs apart, and
whatever happens to one host's vfmgrd, the other goes on.
"""

import ipaddress

from vflab import responder
from vflab.second_host import MANAGEMENT, Management, SecondHost
from vflab.two_hosts import HOST_ADDRESSES, PARTS, leave, prepared

LONG = True
BOOT = "own"
DEADLINE_SECONDS = 2400
VM_MEMORY = 512
PINGS, BYTES = 10, 60000


def run(lab):
    lab.expect("proved", "own identities", "between the VMs", "verified by the other VM",
               "proved on the wire", "taken address refused", "taken MAC refused",
               "the other goes on")
    with SecondHost(lab) as second, Management(second):
        labs = (lab, second.lab)
        products = prepared(labs, num_vfs=4)
        vms, attachments = [], []
        for each, product, name, part in zip(labs, products, ("vm-a", "vm-b"), PARTS):
            vms.append(each.vm(name, memory=VM_MEMORY).wait_ready())
            attachments.append(attached(lab, product, name, part))
        between(lab, second.hub, vms, attachments)
        verified_by_the_other(lab, vms, attachments)
        on_the_wire(lab, second, products, attachments)
        identities(lab, products, attachments)
        independent(lab, products, vms, attachments)
        leave(products)


def attached(lab, product, vm, part):
    lab.step(f"{vm} on {product.lab.name}")
    attachment = product.attach(vm, network="train", verify="required", verify_profile="quick")
    proof = attachment["verification"]
    if lab.check_equal((proof["verdict"], proof["path"]), ("pass", "internal_switch"), vm):
        lab.count("proved")
    mac, address = attachment["settings"]["mac"], ipaddress.ip_address(attachment["address"])
    shown = product.lab.observe.ip_link_vf(product.pf, attachment["vf"]["index"])
    lab.check_equal((shown["mac"], shown["vlan"]), (mac, 100), f"the VF of {vm} by iproute2")
    own = part[0] <= mac <= part[1] and (
        ipaddress.ip_address(part[2]) <= address <= ipaddress.ip_address(part[3]))
    if lab.check(own, f"{mac} and {address} are not this host's part, {part}"):
        lab.count("own identities")
    return attachment


def between(lab, hub, vms, attachments):
    lab.step("ping and rping between the VMs, over the wire")
    addresses = [attachment["address"] for attachment in attachments]
    before = [hub.sent(attachment["settings"]["mac"], 100) for attachment in attachments]
    vms[0].wait_for("vm-b answers", f"ping -c1 -W2 {addresses[1]}", 60)
    vms[1].run(f"(rping -s -v -a {addresses[1]} -C {PINGS} -V -S {BYTES} >/run/rping 2>&1 &)")
    vms[1].wait_for("rping listens", "rdma res show cm_id | grep LISTEN", 30)
    client = vms[0].run(f"rping -c -v -a {addresses[1]} -C {PINGS} -V -S {BYTES} 2>&1")
    vms[1].wait_for("rping has ended", "! pidof rping", 30)
    server = vms[1].run("cat /run/rping")
    for end in (client, server):
        pings = sum("ping data: rdma-ping" in line for line in end.lines())
        lab.check_equal(pings, PINGS, f"pings of {end}")
    for name, attachment, then in zip("ab", attachments, before):
        mac = attachment["settings"]["mac"]
        now = hub.sent(mac, 100)
        lab.check_equal(list(now), [name], f"ports that {mac} sent from")
        grown = now[name] - then.get(name, 0)
        if lab.check(grown > PINGS * BYTES, f"{mac} sent {grown} bytes with VLAN 100"):
            lab.count("between the VMs")
        lab.step(f"{mac} sent {grown} bytes on the wire; frames lost by the hub: {hub.lost}")


def verified_by_the_other(lab, vms, attachments):
    lab.step("vm-b judges the RDMA of vm-a")
    there = responder.serve(responder.in_vm(vms[1]), attachments[1]["address"])
    if responder.proved(lab, vms[0], there, "vm-a with vm-b"):
        lab.count("verified by the other VM")
    vms[1].run(responder.STOP)


def on_the_wire(lab, second, products, attachments):
    """vfmgrd of one host asks a responder of the other host, at its interface into the network."""
    lab.step("host b judges the RDMA of vm-a")
    there = second.lab.host
    second.add_vf_guest()
    far = responder.serve(responder.in_vm(there), HOST_ADDRESSES[1], MANAGEMENT[1])
    mac = attachments[0]["settings"]["mac"]
    before = second.hub.sent(mac, 100)["a"]
    _, operation = products[0].ask("POST", f"/v1/attachments/{attachments[0]['id']}/verifications",
                                   {"profile": "quick", "responder": {
                                       "host": far.address, "port": far.port,
                                       "fingerprint": far.fingerprint, "token": far.token}})
    lab.check_equal(operation["state"], "succeeded", f"the proof: {operation['problem']}")
    proof = products[0].attachment(attachments[0]["id"])["verification"]
    lab.check_equal((proof["verdict"], proof["path"]), ("pass", "wire"), "the report")
    written = next(test["bytes_checked"] for test in proof["tests"] if test["name"] == "rdma_write")
    grown = second.hub.sent(mac, 100)["a"] - before
    if lab.check(grown > written > 1 << 20, f"{mac} sent {grown} bytes on the wire, {written} "
                                            "were checked"):
        lab.count("proved on the wire")
    there.run("kill $(pidof vf-guest)")


def identities(lab, products, attachments):
    lab.step("an address and a MAC that are taken")
    extra = [product.lab.vm(f"more-{name}", memory=VM_MEMORY).wait_ready()
             for product, name in zip(products, "ab")]
    for product, vm, own, other in zip(products, extra, attachments, reversed(attachments)):
        problem = product.refused(vm=vm.name, network="train", settings={
            "mac": own["settings"]["mac"]})
        if lab.check_equal(problem["code"], "conflict", "the MAC of another VM of this host"):
            lab.count("taken MAC refused")
        # This host can't know what the other gave; the VM asks on the wire, and its owner answers.
        problem = product.refused(vm=vm.name, network="train", address=other["address"],
                                  verify="required", verify_profile="quick")
        lab.step(f"{problem['code']}: {problem['detail']}")
        if lab.check(other["settings"]["mac"] in problem["detail"],
                     f"the owner of {other['address']} is not named: {problem}"):
            lab.count("taken address refused")
        vm.destroy()


def independent(lab, products, vms, attachments):
    lab.step("vfmgrd of one host is gone; the other host goes on")
    for gone, other, attachment in ((0, 1, attachments[1]), (1, 0, attachments[0])):
        there, here = products[gone].lab.host, products[other]
        there.run("systemctl stop vfmgrd.socket vfmgrd.service vfmgr-guestd.service "
                  "vfmgr-guestd.socket")
        _, operation = here.must("POST", f"/v1/attachments/{attachment['id']}/verifications",
                                 {"profile": "quick"})
        vms[gone].run(f"ping -c3 -W5 {attachment['address']}")
        there.run("systemctl start vfmgr-guestd.socket vfmgrd.socket vfmgrd.service")
        found = products[gone].attachments()
        lab.check_equal([one["id"] for one in found], [attachments[gone]["id"]],
                        "its attachments after the start")
        if lab.check_equal(operation["state"], "succeeded", "the other's proof"):
            lab.count("the other goes on")
