# SPDX-License-Identifier: Apache-2.0
"""VFs that a VM holds are not removed, and a PF in a bond stays as the bond needs it.

A VF that virsh gives to a VM is in use from then on, even if libvirt's events are late.
"""

from vflab.product import Product, Refused
from vflab.programs import built
from vflab.vfio import hostdev

PROBE = "/root/libvirt_probe"
DEVICE = "/run/in-use-vf.xml"


def run(lab):
    lab.expect("refused", "VF still in the VM", "bond left alone", "seen without events")
    product, observe = Product(lab), lab.observe
    product.manage(num_vfs=7)
    vm = lab.vm("holder").wait_ready()
    attachment = product.attach("holder", network="plain", vf=2)
    name = vm.wait_for("the VF's netdev", "ls /sys/class/net | grep -v lo", 60)
    for count in (4, 0):
        answer, _ = product.ask("PUT", f"/v1/pfs/{product.pci}/spec",
                                {"mode": "manage", "num_vfs": count})
        refusals(lab, answer)
    lab.check_equal(observe.numvfs(product.pf), 7, "VFs in sysfs")
    lab.check(observe.vfio_holders(attachment["vf_pci"]), "nobody holds the VF any more")
    lab.check_equal(vm.run("ls /sys/class/net | grep -v lo").stdout.strip(), name, "the VM's NIC")
    lab.count("VF still in the VM", len(observe.hostdevs("holder")))
    try:
        product.detach(attachment)
        by_virsh(lab, product)
        in_a_bond(lab, product)
        product.leave()
    except Refused as refused:
        lab.check(False, f"could not be detached: {refused}")


def by_virsh(lab, product):
    """The VM's files were at rest for longer than this scenario's start: vfmgr knows them."""
    vf = lab.observe.vf_pci(product.pf, 6)
    lab.host.write(DEVICE, hostdev(vf, "yes"))
    lab.host.copy_in(built(lab, "libvirt_probe"), PROBE)
    for how in ("config", "live"):
        attach, detach = (f"virsh -q {verb}-device holder {DEVICE} --{how}"
                          for verb in ("attach", "detach"))
        found = lab.host.run([PROBE, attach + " >&2"]).json()
        lab.step(f"{attach}: " + ", ".join(f"{when} {found[when]['milliseconds']:.1f} ms"
                                           for when in ("first", "before", "after")))
        holds = {when: sorted(part for part, devices in found[when]["vms"]["holder"].items()
                              if vf in devices) for when in ("before", "after")}
        lab.check_equal(found["event"], False, "an event got through")
        if lab.check_equal(holds, {"before": [], "after": [how]}, f"{vf} in the XML, {how}"):
            lab.count("seen without events")
        answer, operation = product.ask("PUT", f"/v1/pfs/{product.pci}/spec",
                                        {"mode": "manage", "num_vfs": 0})
        problem = operation["problem"] if operation else answer.body
        lab.check_equal(problem["code"], "vf_in_use", f"the refusal, {how}")
        lab.check("holder" in problem["detail"], f"the VM is not named: {problem}")
        lab.host.run(detach)
        lab.host.wait_for("the VF has left the VM", lambda: not any(
            lab.observe.hostdevs("holder", which) for which in ("live", "config")), 60)
    lab.host.run(["rm", DEVICE, PROBE])


def in_a_bond(lab, product):
    """vfmgr set the PF up for its attachment; the bond needs it up after the attachment ends."""
    lab.check("UP" not in lab.observe.link(product.pf)["flags"],
              "the PF is up before the attachment: vfmgr would not take it down, bond or not")
    lab.step("the PF joins a bond while a VF of it is attached")
    attachment = product.attach("holder", vf=2)
    lab.host.run(f"ip link add bond0 type bond && ip link set {product.pf} down && "
                 f"ip link set {product.pf} master bond0 && ip link set bond0 up")
    problem = product.refused(vm="holder", network="plain")
    lab.check_equal(problem["code"], "conflict", "a network's code")
    lab.check("part of bond0" in problem["detail"], f"the bond is not named: {problem}")
    lab.check(problem["remedy"], f"no remedy: {problem}")
    product.detach(attachment)
    link = lab.observe.link(product.pf)
    if lab.check("UP" in link["flags"] and link.get("master") == "bond0",
                 f"the PF after the attachment: {link['flags']}, part of {link.get('master')}"):
        lab.count("bond left alone")
    lab.host.run(f"ip link del bond0; modprobe -r bonding; "
                 f"ip link set {product.pf} down; udevadm settle")


def refusals(lab, answer):
    body = answer.body
    lab.check_equal((answer.status, body.get("code")), (409, "vf_in_use"), "the refusal")
    lab.check("holder" in body.get("detail", ""), f"the VM is not named: {body}")
    lab.check(body.get("remedy"), f"no remedy: {body}")
    lab.count("refused")
