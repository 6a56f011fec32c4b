# SPDX-License-Identifier: Apache-2.0
"""A NIC leaves the bus while a VM holds a VF of it, and comes back; two NICs swap their slots.

No attachment ends because a device was not found: an admin has to confirm it. Until the guest lets
go, the PF is stuck, and the others are served. What is bound for a VM at a boot is its own device,
or nothing.
"""

from vflab.doctor import keep_bundle
from vflab.product import PLAIN, Product
from vflab.qemu import PF_MAC, SECOND_MAC, SLOTS
from vflab.second_pf import SecondPf

BOOT = "own"
DEADLINE_SECONDS = 2400
LONG = True
OTHER = {**PLAIN, "name": "other", "prefix": "192.168.60.0/24", "host_address": "192.168.60.1"}
MACS = {"first": "52:54:00:00:23:01", "second": "52:54:00:00:23:02"}
SWAPPED = {"igb2": "port1", "igb": "port2"}


def run(lab):
    lab.expect("gone", "a look ends nothing", "ended by a command", "reserved", "back and clean",
               "stuck", "the others serve", "let go at last", "forgotten", "swapped",
               "no VM got another's device", "re-keyed", "verified again")
    product = Product(lab)
    product.manage(num_vfs=3, networks=(PLAIN,))
    lets_go(lab, product)
    clings(lab, product)
    swap(lab, product)


def lets_go(lab, product):
    lab.step("the second NIC leaves the bus, and the guest lets go of its VF")
    card = SecondPf(lab)
    second = Product(lab, card.netdev)
    second.manage(num_vfs=2, networks=(OTHER,))
    lab.vm("lets-go").wait_ready()
    attachment = second.attach("lets-go", network="other", settings={"mac": MACS["second"]},
                        verify="required")
    card.unplug(deadline_seconds=180)
    wait_standing(lab, second.pci, "gone")
    lab.count("gone")
    keep_bundle(lab, "pf gone")
    kept = second.attachment(attachment["id"])
    if lab.check(kept and kept["state"] == "attached", f"the attachment is now {kept}"):
        lab.count("a look ends nothing")
    lab.check_equal([device["pci"] for device in lab.observe.hostdevs("lets-go", "config")],
                    [attachment["vf_pci"]], "what the VM's XML names")
    problem = lab.api("DELETE", f"/v1/attachments/{attachment['id']}").body
    lab.check_equal(problem["code"], "pf_gone", "detaching a VF that is not there")

    lab.vfctl("pf", "gone", second.pci)
    for which in ("live", "config"):
        lab.check_equal(lab.observe.hostdevs("lets-go", which), [], f"devices in the {which} XML")
    lab.check_equal(second.attachments(), [], "attachments")
    lab.count("ended by a command")
    problem = product.refused(vm="lets-go", network="plain", persistence="config", verify="none",
                              settings={"mac": MACS["second"]})
    if lab.check_equal(problem["code"], "conflict", "a MAC that is reserved"):
        lab.count("reserved")

    lab.step("it comes back")
    card = SecondPf(lab)
    lab.check_equal(card.pci, second.pci, "its address")
    wait_standing(lab, second.pci, "here")
    second = Product(lab, card.netdev)
    second.manage(num_vfs=2, networks=(OTHER,))
    for vf in second.quarantined():
        second.must("DELETE", f"/v1/pfs/{second.pci}/vfs/{vf['index']}/quarantine")
    lab.check_equal(second.quarantined(), [], "VFs in quarantine")
    again = second.attach("lets-go", network="other", settings={"mac": MACS["second"]},
                        verify="required")
    if lab.check_equal(again["verification"]["verdict"], "pass", "the verdict"):
        lab.count("back and clean")
    second.detach(again)


def clings(lab, product):
    lab.step("the second NIC is to leave the bus, and a guest that answers nobody keeps its VF")
    second = Product(lab, netdev_of(lab, SECOND_MAC))
    lab.vm("clings").wait_ready()
    attachment = second.attach("clings", network="other", settings={"mac": MACS["second"]},
                        verify="required")
    lab.host.run("virsh -q suspend clings")
    removal = lab.host.background(f"echo 1 >/sys/bus/pci/devices/{second.pci}/remove")
    lab.host.wait_for("the removal hangs in the kernel",
                      f"grep -x vfio_unregister_group_dev /proc/{removal.pid}/wchan", 60)
    lab.host.wait_for("the PF is stuck", lambda: pf_of(lab, second.pci)["stuck"], 120)
    stuck = pf_of(lab, second.pci)["stuck"]
    lab.step(f"stuck: {stuck}")
    for part in (second.pci, f"VF {attachment['vf']['index']}", "qemu"):
        lab.check(part in stuck, f"{part!r} is not in: {stuck}")
    lab.count("stuck")
    problem = lab.api("POST", f"/v1/pfs/{second.pci}/gone").body
    lab.check_equal(problem["code"], "unavailable", "ending what is not gone yet")
    lab.check(second.attachment(attachment["id"]), "the attachment has ended by itself")

    other = product.attach("lets-go", network="plain", settings={"mac": MACS["first"]},
                         verify="required")
    if lab.check_equal(other["verification"]["verdict"], "pass", "the verdict on the first NIC"):
        lab.count("the others serve")
    product.detach(other)

    lab.step("the guest answers again")
    lab.host.run("virsh -q resume clings")
    lab.check_equal(removal.wait(180).status, 0, "the removal's end")
    wait_standing(lab, second.pci, "gone")
    lab.count("let go at last")
    lab.vfctl("pf", "gone", second.pci)
    lab.vfctl("pf", "confirm-gone", second.pci)
    if lab.check_equal(lab.api("GET", f"/v1/pfs/{second.pci}").status, 404, "what is kept of it"):
        lab.count("forgotten")
    lab.host.run("virsh -q destroy clings; echo 1 >/sys/bus/pci/rescan")
    wait_standing(lab, second.pci, "here")


def swap(lab, product):
    lab.step("both NICs are attached, and swap their slots between two boots")
    second = Product(lab, netdev_of(lab, SECOND_MAC))
    second.manage(num_vfs=2, networks=(OTHER,))
    lab.host.run("virsh -q destroy lets-go")
    lab.vm("clings-not", start=False)
    attachments = [
        product.attach("lets-go", network="plain", persistence="config", verify="none",
                     settings={"mac": MACS["first"]}),
        second.attach("clings-not", network="other", persistence="config", verify="none",
                    settings={"mac": MACS["second"]})]
    lab.host.run("sync")  # swapping cards includes a shutdown, so libvirt's files are on the disk
    lab.power_cycle(slots=SWAPPED)
    lab.host.wait_for("vfmgrd serves", "systemctl is-active vfmgrd", 120)
    for vm, mac in (("first", PF_MAC), ("second", SECOND_MAC)):
        lab.step(f"the {vm} NIC is {netdev_of(lab, mac)}, at "
                 f"{lab.observe.pf_pci(netdev_of(lab, mac))}")
    if lab.check_equal(lab.observe.pf_pci(netdev_of(lab, SECOND_MAC)), product.pci,
                       "the second NIC's address"):
        lab.count("swapped")
    for pci in (product.pci, second.pci):
        wait_standing(lab, pci, "renumbered")
    for vm in ("lets-go", "clings-not"):
        started = lab.host.run(f"virsh -q start {vm}", check=False)
        if lab.check(started.status != 0, f"{vm} runs with another NIC's VF"):
            lab.count("no VM got another's device")

    lab.vfctl("pf", "rekey", product.pci, second.pci, timeout=400)
    lab.count("re-keyed")
    for attachment, vm, mac in zip(attachments, ("lets-go", "clings-not"), (PF_MAC, SECOND_MAC)):
        here = lab.observe.pf_pci(netdev_of(lab, mac))
        now = product.attachment(attachment["id"])
        lab.check_equal(now["vf"]["pf"], here, f"where the VF of {vm} is")
        lab.check_equal([device["pci"] for device in lab.observe.hostdevs(vm, "config")],
                        [lab.observe.vf_pci(netdev_of(lab, mac), now["vf"]["index"])],
                        f"what the XML of {vm} names")
        lab.host.run(f"virsh -q start {vm}")
        next(known for known in lab.vms if known.name == vm).wait_ready()
        if lab.check_equal(product.verify(attachment)["verdict"], "pass", f"the verdict of {vm}"):
            lab.count("verified again")
    for attachment in attachments:
        product.detach(attachment)
    for mac in (PF_MAC, SECOND_MAC):
        Product(lab, netdev_of(lab, mac)).leave()
    lab.host.run("sync")
    lab.power_cycle(slots=SLOTS)


def netdev_of(lab, mac):
    return lab.host.wait_for(f"the netdev of {mac}",
                             f"grep -l {mac} /sys/class/net/*/address | cut -d/ -f5 | grep .",
                             60).strip().splitlines()[0]


def pf_of(lab, pci):
    return lab.api("GET", f"/v1/pfs/{pci}").body


def wait_standing(lab, pci, standing):
    def stands():
        answer = lab.api("GET", f"/v1/pfs/{pci}")
        return answer.status == 200 and answer.body["standing"]["is"] == standing
    lab.host.wait_for(f"{pci} is {standing}", stands, 90)
