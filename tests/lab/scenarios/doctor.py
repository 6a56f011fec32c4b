# SPDX-License-Identifier: Apache-2.0
"""doctor reports first what was broken on the host; its remedy, run as printed, repairs it.

The host's own tools show that each thing is really broken, and then really repaired.
"""

import tempfile
from pathlib import Path

from vflab import apt
from vflab.doctor import Doctor
from vflab.product import Product

OWNER = """[Unit]
Description=Somebody else's VFs
[Service]
Type=oneshot
ExecStart=/bin/sh -c 'echo 4 >/sys/class/net/{pf}/device/sriov_numvfs'
[Install]
WantedBy=multi-user.target
"""
LIBVIRT = "libvirtd.socket libvirtd-ro.socket libvirtd-admin.socket libvirtd.service"
# What is broken: (name, rule, how, the host's check that it is broken, and that it is well again).
BROKEN = (
    ("vfio-pci taken out", "vfio.modules", "modprobe -r vfio_pci",
     "! grep -q ^vfio_pci /proc/modules", "grep -q ^vfio_pci /proc/modules"),
    ("libvirtd masked", "libvirt.unit",
     f"systemctl mask --now {LIBVIRT} 2>&1", "! virsh list", "virsh list"),
    ("PF down", "port.pf_down", "ip link set {pf} down",
     "! ip link show {pf} | grep -q '[<,]UP[,>]'", "ip link show {pf} | grep -q '[<,]UP[,>]'"),
    ("somebody else's VFs", "sriov.owner",
     "systemctl daemon-reload && systemctl enable other-vfs 2>&1",
     "systemctl is-enabled other-vfs", "! systemctl is-enabled other-vfs"),
    ("MTU mismatch", "port.mtu",
     "ip link set {vf} up mtu 9000",
     "grep -q 1500 /sys/class/net/{pf}/mtu", "grep -q 9000 /sys/class/net/{pf}/mtu"),
)
SOURCE = "/var/tmp/kernel-package"
SLICES = 3
# Like OFED's own, whose stop unloads the drivers of all NICs.
OPENIBD = """#!/bin/sh
echo $1 >>/run/openibd.log
"""
OPENIBD_UNIT = """[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/etc/init.d/openibd start
ExecStop=/etc/init.d/openibd stop
"""


def holds(lab, name, command):
    shown = lab.host.run(command, check=False)
    return lab.check(shown.status == 0, f"{name}: {command} does not hold: {shown}")


def broken(lab, doctor, what, names):
    name, rule, how, is_broken, is_well = what
    lab.step(name)
    lab.host.run(how.format(**names))
    holds(lab, name, is_broken.format(**names))
    finding = doctor.first(name, rule)
    if finding:
        doctor.remedy(name, finding)
        holds(lab, name, is_well.format(**names))


def package_source(lab):
    """Gives the emulated host a source with the one remedying package, not the mirrors."""
    release, version = lab.host.run(
        "uname -r; dpkg-query -W -f '${Version}' linux-image-$(uname -r)").lines()
    with tempfile.TemporaryDirectory() as folder:
        apt.download(folder, lab.machine.settings["suite"], f"linux-image-{release}", version)
        apt.index(folder)
        lab.host.run(f"mkdir {SOURCE} {SOURCE}.was && mv /etc/apt/sources.list* {SOURCE}.was")
        for path in Path(folder).iterdir():
            lab.host.copy_in(path, f"{SOURCE}/{path.name}")
    lab.host.write("/etc/apt/sources.list", f"deb [trusted=yes] file:{SOURCE} ./\n")
    lab.host.run("apt-get update -q")


def without_modules(lab, doctor):
    """Two modules are missing; one package has both."""
    package_source(lab)
    lab.step("rdma_rxe is missing")
    lab.host.run("modprobe -r rdma_rxe; rm $(modinfo -n rdma_rxe) && depmod")
    holds(lab, "no rxe", "! modinfo rdma_rxe")
    lacking = doctor.first("no rxe", "soft_rdma.module")
    lab.step("vfio-pci is missing")
    lab.host.run("modprobe -r vfio_pci; rm $(modinfo -n vfio-pci) && depmod")
    holds(lab, "no vfio-pci", "! modinfo vfio-pci")
    finding = doctor.first("no vfio-pci", "vfio.modules")
    if finding and lacking:
        lab.check(lacking["remedy"]["commands"][0] in finding["remedy"]["commands"],
                  f"two remedies of one package: {lacking['remedy']} and {finding['remedy']}")
        doctor.remedy("missing modules", finding)
        holds(lab, "missing modules", "modprobe rdma_rxe && grep -q ^vfio_pci /proc/modules")
    lab.host.run(f"rm -r /etc/apt/sources.list {SOURCE}; mv {SOURCE}.was/* /etc/apt/; "
                 f"rmdir {SOURCE}.was; apt-get clean")


def without_iommu(lab, doctor):
    """The kernel's command line disables the IOMMU; the remedy needs a reboot and gets it.

    Only omitting the option would provoke nothing: Debian's kernels use Intel's IOMMU by default.
    """
    lab.step("the IOMMU is off")
    lab.host.run("sed -i 's/intel_iommu=on iommu=pt/intel_iommu=off/' /etc/default/grub")
    doctor.reboot()
    holds(lab, "IOMMU off", "! ls /sys/kernel/iommu_groups/0")
    finding = doctor.first("IOMMU off", "iommu.enabled")
    if finding:
        lab.check_equal(finding["remedy"]["blast_radius"], "reboot", "the IOMMU's blast radius")
        doctor.remedy("IOMMU off", finding)
        holds(lab, "IOMMU on", "ls /sys/kernel/iommu_groups/0")


def verdicts_of(report):
    return {(one["rule"], one["subject"], one["result"]) for one in report["findings"]}


def alone(lab, doctor, vf):
    """Runs without the daemon, as user nobody, and from a bundle."""
    # A new MTU of its PF takes the VF's link down for a moment.
    lab.host.wait_for("the VF's link", f"grep 1 /sys/class/net/{vf}/carrier", 30)
    bundle = "/run/host-bundle.json"
    lab.vfctl("support-bundle", bundle)
    verdicts = verdicts_of(doctor.report())
    lab.check_equal(verdicts_of(doctor.report("--from", bundle)) ^ verdicts, set(),
                    "where the verdicts from a bundle differ")
    shown = lab.host.run("setpriv --reuid=65534 --regid=65534 --clear-groups "
                         "vfctl doctor -o json", check=False).json()
    unknown = [one for one in shown["findings"] if one["result"] == "unknown"]
    lab.check(unknown, "an ordinary user sees everything")
    lab.check_equal(sorted({one["rule"] for one in shown["findings"]}),
                    sorted({rule for rule, _, _ in verdicts}), "the rules for an ordinary user")
    lab.count("alone", len(unknown))
    lab.host.run(f"rm {bundle}")


def restarted(lab):
    """Returns what a restart of openibd did with the drivers."""
    lab.host.run("rm -f /run/openibd.log; systemctl restart openibd", check=False)
    return lab.host.run("cat /run/openibd.log", check=False).lines()


def guarded(lab, product):
    lab.step("a reload of drivers is refused while a VM has a VF")
    lab.host.write("/etc/init.d/openibd", OPENIBD, mode="0755")
    lab.host.write("/etc/systemd/system/openibd.service", OPENIBD_UNIT)
    lab.host.run("systemctl daemon-reload; systemctl start openibd")
    lab.check_equal(lab.vfctl("drained", check=False).status, 0, "drained, with no VF attached")
    lab.vm("holder").wait_ready()
    attachment = product.attach("holder", network="plain", vf=1)
    refused = lab.vfctl("drained", check=False)
    lab.check(refused.status == 4 and "holder" in refused.stderr, f"drained: {refused}")
    lab.check_equal(restarted(lab), [], "what openibd did under a VM")
    lab.check(lab.observe.vfio_holders(attachment["vf_pci"]), "the VM lost its VF")
    product.detach(attachment)
    lab.check_equal(lab.vfctl("drained", check=False).status, 0, "drained, detached")
    lab.host.run("systemctl reset-failed openibd; systemctl start openibd", check=False)
    lab.check_equal(restarted(lab), ["stop", "start"], "what openibd did with no VF attached")
    lab.count("drained")
    lab.host.run("systemctl stop openibd; rm /etc/init.d/openibd /run/openibd.log "
                 "/etc/systemd/system/openibd.service; systemctl daemon-reload; "
                 "systemctl reset-failed")


def run(lab):
    product = Product(lab)
    product.manage(num_vfs=2, vf_driver="igbvf")
    pf_up = f"ip link set {product.pf} up"
    lab.host.run(pf_up)
    doctor = Doctor(lab, pf_up)
    lab.check_equal([one for one in doctor.well if one["result"] == "failed"], [],
                    "what fails on a host that is well")
    for part in lab.sliced([lacking_modules, lacking_iommu, breakages], SLICES):
        part(lab, product, doctor)
    lab.host.run(f"ip link set {product.pf} down")
    product.leave()


def lacking_modules(lab, product, doctor):
    lab.expect("remedied", "drained")
    without_modules(lab, doctor)
    guarded(lab, product)


def lacking_iommu(lab, _, doctor):
    lab.expect("remedied")
    without_iommu(lab, doctor)


def breakages(lab, product, _):
    lab.expect("remedied", "alone")
    vf_pci = lab.observe.vf_pci(product.pf, 0)
    vf = lab.host.wait_for("the VF's netdev", f"ls /sys/bus/pci/devices/{vf_pci}/net")
    names = {"pf": product.pf, "vf": vf}
    lab.host.write("/etc/systemd/system/other-vfs.service", OWNER.format(**names))
    lab.host.run(f"rdma link add rxe_vf type rxe netdev {vf}")
    doctor = Doctor(lab, f"ip link set {product.pf} up")
    for what in BROKEN:
        broken(lab, doctor, what, names)
    alone(lab, doctor, vf)

    # The VF stays up: the PF's new MTU has igbvf reset it soon, and igbvf_close() meanwhile has its
    # reset_task disable NAPI twice, which never ends [seen: WARNING in igbvf_close(), then
    # igbvf_remove() waited for it]. Removing the VF is safe: that ends the task first.
    lab.host.run(f"rdma link delete rxe_vf; ip link set {product.pf} mtu 1500; "
                 "rm /etc/systemd/system/other-vfs.service; systemctl daemon-reload")
