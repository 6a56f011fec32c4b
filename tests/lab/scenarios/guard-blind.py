# SPDX-License-Identifier: Apache-2.0
"""The in-use guard reads every source under the real unit; a source it can't read means in use."""

from vflab.product import Product
from vflab.vfio import Holder, bind_by_hand

DROP_IN = "/run/systemd/system/vfmgr-broker.service.d/blind.conf"
# What the unit is deprived of, and what the refusal must then contain.
BLINDED = {
    "without CAP_SYS_PTRACE": ("CapabilityBoundingSet=~CAP_SYS_PTRACE", "can't be read"),
    "without the VFIO nodes": ("DevicePolicy=closed",
                               "can't be opened"),
}


def run(lab):
    lab.expect("sources that refused", "refused blind", "allowed when all is seen")
    product = Product(lab)
    product.manage(num_vfs=7)
    vf = lab.observe.vf_pci(product.pf, 1)
    bind_by_hand(lab, vf)

    lab.step("a process that libvirt knows nothing of")
    holder = Holder(lab, vf)
    refused(lab, product, "python3", "sources that refused")
    holder.stop()
    lab.step("a VM that is not running, by its persistent XML")
    vm = lab.vm("sleeper", start=False)
    address = dict(zip(("domain", "bus", "slot", "function"),
                       vf.replace(".", ":").split(":"), strict=True))
    source = " ".join(f"{name}='0x{value}'" for name, value in address.items())
    lab.host.run("virsh -q attach-device sleeper /dev/stdin --config",
                 input="<hostdev mode='subsystem' type='pci' managed='no'><source>"
                       f"<address {source}/></source></hostdev>")
    lab.check_equal(len(lab.observe.hostdevs("sleeper", "config")), 1, "the VM's hostdevs")
    refused(lab, product, "sleeper", "sources that refused")
    vm.destroy()

    for name, (setting, words) in BLINDED.items():
        lab.step(name)
        lab.host.write(DROP_IN, f"[Service]\n{setting}\n")
        restart(lab)
        refused(lab, product, words, "refused blind")
    lab.host.run(f"rm {DROP_IN}")
    restart(lab)
    lab.step("without libvirt")
    lab.host.run("systemctl stop libvirtd.socket libvirtd-ro.socket libvirtd-admin.socket "
                 "libvirtd.service")
    refused(lab, product, "libvirt", "refused blind")
    lab.host.run("systemctl start libvirtd.socket")
    lab.host.wait_for("libvirt is asked again", lambda: lab.api("GET", "/readyz").status == 200, 60)

    lab.step("everything can be read, and nobody uses a VF")
    product.manage(num_vfs=3)
    lab.check_equal(lab.observe.numvfs(product.pf), 3, "VFs in sysfs")
    lab.count("allowed when all is seen")
    product.leave()


def restart(lab):
    lab.host.run("systemctl daemon-reload && systemctl restart vfmgr-broker vfmgrd")


def refused(lab, product, words, what):
    """Removing all VFs must fail with a reason; sysfs shows whether they are still there."""
    answer, operation = product.ask("PUT", f"/v1/pfs/{product.pci}/spec",
                                    {"mode": "manage", "num_vfs": 0})
    problem = operation["problem"] if operation else answer.body
    text = f"{problem.get('detail')} {problem.get('cause')}"
    said = lab.check(words in text, f"{words!r} is not said: {problem}")
    kept = lab.check_equal(lab.observe.numvfs(product.pf), 7, "VFs in sysfs")
    if said and kept and lab.check(problem.get("remedy"), f"no remedy: {problem}"):
        lab.count(what)
