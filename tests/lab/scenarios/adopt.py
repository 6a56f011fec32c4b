# SPDX-License-Identifier: Apache-2.0
"""What somebody plugged into a VM by virsh becomes an attachment as it is, and ends like any other.

The XML is the one that people's notes have, with managed='yes'. The VM keeps the device: the same
netdev in the same boot, held by the same QEMU. It is proved, belongs to vfmgr from the VM's next
start, and is detached clean, also while libvirt still manages it. VFs of a PF that vfmgr only
observes are refused, and a store that is older than the VMs takes up what they have.
"""

from vflab.product import PLAIN, SERVICES, STATE, Before, Product
from vflab.vfio import hostdev

LONG = True
VM, VF = "keeper", 1
MAC = "02:ad:09:7e:d0:01"
DEVICE, OLDER = "/run/adopt-vf.xml", "/root/adopt-older-store"
STOP = f"systemctl stop {SERVICES}"
START = f"systemctl start {SERVICES}"


def run(lab):
    lab.expect("kept", "proved", "after a restart", "detached clean", "refused", "older store")
    product = Product(lab)
    product.manage(num_vfs=3, networks=[PLAIN])
    # An igb VF whose driver is loaded while its PF is down chooses a MAC for itself.
    lab.host.run(f"ip link set {product.pf} up")
    before = Before(product)
    vm = lab.vm(VM).wait_ready()
    for way in (through_a_restart, while_it_runs):
        by_hand(lab, product, vm)
        attachment = adopted(lab, product, vm)
        way(lab, product, vm, attachment)
        gone(lab, product, before, way.__name__)
    older_store(lab, product, vm)
    gone(lab, product, before, "older_store")
    product.leave()
    only_observed(lab, product, vm)
    vm.destroy()
    lab.host.run(f"rm {DEVICE}; ip link set {product.pf} down; udevadm settle")


def devices(lab):
    return [lab.observe.hostdevs(VM, which) for which in ("live", "config")]


def by_hand(lab, product, vm):
    lab.step("plugged in by hand")
    pci = lab.observe.vf_pci(product.pf, VF)
    lab.host.write(DEVICE, hostdev(pci, "yes"))
    lab.host.run(f"ip link set {product.pf} vf {VF} mac {MAC} && "
                 f"virsh -q attach-device {VM} {DEVICE} --persistent")
    vm.wait_netdev(MAC)
    lab.check_equal([[one["managed"] for one in part] for part in devices(lab)],
                    [["yes"], ["yes"]], "managed, running and persistent")


def what_the_vm_has(lab, product, vm):
    """A device that was unplugged and plugged in again would have other numbers."""
    name = vm.netdev(MAC)
    inside = vm.run(f"cat /proc/sys/kernel/random/boot_id /sys/class/net/{name}/ifindex").stdout
    pci = lab.observe.vf_pci(product.pf, VF)
    return name, inside, lab.observe.vfio_holders(pci), lab.observe.hostdevs(VM)


def adopted(lab, product, vm):
    lab.step("adopted")
    had, setting = what_the_vm_has(lab, product, vm), lab.observe.ip_link_vf(product.pf, VF)
    [attachment] = lab.host.run(f"vfctl -j attachment adopt {VM} --network plain --verify").json()
    if lab.check_equal(what_the_vm_has(lab, product, vm), had, "what the VM has"):
        lab.count("kept")
    lab.check_equal(lab.observe.ip_link_vf(product.pf, VF), setting, "the VF's settings")
    proved(lab, attachment)
    lab.check_equal((attachment["settings"]["mac"], attachment["baseline"]), (MAC, {}),
                    "its MAC and its baseline")
    [live], [config] = devices(lab)
    lab.check_equal((live["managed"], live["alias"]), ("yes", "hostdev0"), "in the running VM")
    ours = "ua-vfmgr-" + attachment["id"]
    lab.check_equal((config["managed"], config["alias"]), ("no", ours), "in its persistent XML")
    again = lab.api("POST", f"/v1/vms/{VM}/adoptions", {"pci": attachment["vf_pci"]})
    lab.check_equal((again.status, again.body["code"]), (409, "conflict"), "a second time")
    return attachment


def proved(lab, attachment):
    verdict = (attachment["verification"] or {}).get("verdict")
    if lab.check_equal(verdict, "pass", "the verdict"):
        lab.count("proved")


def through_a_restart(lab, product, vm, attachment):
    lab.step("the VM is shut off and started")
    vm.shutdown()
    lab.host.wait_for("the VF is bound again", lambda: lab.observe.vf_driver(
        attachment["vf_pci"]) == "vfio-pci", 60)
    vm.start().wait_ready()
    [live], [config] = devices(lab)
    if lab.check_equal((live["alias"], live["managed"]), (config["alias"], "no"),
                       "in the running VM"):
        lab.count("after a restart")
    lab.host.run(f"vfctl verify {attachment['id']}")
    proved(lab, product.attachment(attachment["id"]))
    product.detach(attachment)


def while_it_runs(lab, product, vm, attachment):
    """libvirt binds the VF to the host's driver as soon as the VM has released it."""
    lab.step("detached from the VM that runs since before")
    product.detach(attachment)
    lab.check_equal(vm.netdev(MAC), "", "the VF's netdev in the VM")


def gone(lab, product, before, way):
    lab.check_equal(devices(lab), [[], []], f"{way}: devices of the VM")
    pci = lab.observe.vf_pci(product.pf, VF)
    lab.check_equal(lab.observe.vfio_holders(pci), [], f"{way}: holders")
    lab.check_equal(product.quarantined(), [], f"{way}: quarantine")
    lab.check_equal(product.attachments(), [], f"{way}: attachments")
    before.check_again(way)
    lab.count("detached clean")


def older_store(lab, product, vm):
    lab.step("the store is older than the VM")
    lab.host.run(f"{STOP}; cp -a {STATE} {OLDER}; {START}")
    attachment = product.attach(VM, network="plain", vf=VF)
    mac = attachment["settings"]["mac"]
    vm.wait_netdev(mac)
    lab.host.run(f"{STOP}; find {STATE} -mindepth 1 -delete; cp -a {OLDER}/. {STATE}; "
                 f"rm -r {OLDER}; {START}")
    lab.host.wait_for("vfmgrd answers", lambda: lab.api("GET", "/readyz").status == 200, 60)
    lab.check_equal(product.attachments(), [], "what the older store knows")
    [taken_up] = lab.host.run(f"vfctl -j attachment adopt {VM} --network plain --verify").json()
    same = [taken_up["id"], taken_up["settings"]["mac"]]
    if lab.check_equal(same, [attachment["id"], mac], "its id and MAC"):
        lab.count("older store")
    proved(lab, taken_up)
    product.detach(taken_up)


def only_observed(lab, product, vm):
    lab.step("a VF of a PF that vfmgr only observes")
    numvfs = f"/sys/class/net/{product.pf}/device/sriov_numvfs"
    lab.host.run(f"echo 2 >{numvfs}")
    by_hand(lab, product, vm)
    pci = lab.observe.vf_pci(product.pf, VF)
    lab.host.wait_for("vfmgrd has observed it", lambda: pci in str(
        lab.api("GET", f"/v1/vms/{VM}").body["live"]), 60)
    had = what_the_vm_has(lab, product, vm)
    refused = lab.api("POST", f"/v1/vms/{VM}/adoptions", {"pci": pci})
    lab.check_equal((refused.status, refused.body["code"]), (409, "conflict"), "the refusal")
    if lab.check("--mode manage" in refused.body["remedy"], f"the remedy: {refused}"):
        lab.count("refused")
    lab.check_equal(what_the_vm_has(lab, product, vm), had, "what the VM has")
    lab.host.run(f"virsh -q detach-device {VM} {DEVICE} --persistent")
    lab.host.wait_for("the VF has left the VM", lambda: devices(lab) == [[], []], 60)
    lab.host.wait_for("nobody holds it", lambda: not lab.observe.vfio_holders(pci), 60)
    lab.host.run(f"echo 0 >{numvfs}")
