# SPDX-License-Identifier: Apache-2.0
"""deploy/INSTALL.md, typed as written: a bare host ends with a VM that has proved RDMA over a VF.

The host begins without vfmgr's packages, users and files, and without an IOMMU; its VM, somebody's
own, without vf-guest, vsock device and free port. The host's own tools judge the end.
"""

from vflab.guide import FOLDER, left_out, put_packages, typed
from vflab.pages import blocks_of
from vflab.product import Product
from vflab.vm import IMAGES

BOOT = "own"
DEADLINE_SECONDS = 2400
PAGE = "deploy/INSTALL.md"
NAME, USER, PF = "vm1", "alice", "enp1s0"
BLOCK_SECONDS = 600
MODULES = "/etc/modules-load.d/vfmgr-lab.conf"
# Debian's kernels use the IOMMU unless they are told otherwise.
BARE_HOST = f"""export DEBIAN_FRONTEND=noninteractive
dpkg --purge vfmgr vfmgr-cli
rm -rf /etc/vfmgr /var/lib/vfmgr /var/lib/vfmgr-broker /run/vfmgr
userdel vfmgrd
! getent group vfmgr || groupdel vfmgr
useradd --create-home {USER}
sed -i '/^kvm/!d' {MODULES}
sed -i 's/intel_iommu=on iommu=pt/intel_iommu=off/' /etc/default/grub
"""
BARE = (("IOMMU groups", "ls /sys/kernel/iommu_groups"),
        ("programs", "ls /usr/bin/vfctl /usr/libexec/vfmgr"),
        ("units", "systemctl list-unit-files -q 'vfmgr*'"),
        ("users and groups", "getent passwd vfmgrd; getent group vfmgr vfmgrd"),
        ("modules", "grep -E '^(vfio|rdma_rxe|vhost_vsock)' /proc/modules"))
# On the VM's disk, which no VM uses yet.
BARE_VM = f"""set -e
modprobe nbd
qemu-nbd --connect /dev/nbd0 {IMAGES}/{NAME}.qcow2
udevadm settle
mount /dev/nbd0 /mnt
chroot /mnt dpkg --purge vfmgr-guest
mkdir /mnt{FOLDER}
cp {FOLDER}/vfmgr-guest_*.deb /mnt{FOLDER}
umount /mnt
qemu-nbd --disconnect /dev/nbd0
"""


def run(lab):
    lab.expect("typed", "left out", "rebooted", "proved")
    make_bare(lab)
    put_packages(lab)
    vm = somebodys_vm(lab)
    blocks = blocks_of(PAGE)
    for block in blocks:
        if not left_out(lab, block):
            assert block.language == "sh" and block.where in PLACES, f"nobody types {block}"
            assert PLACES[block.where](lab, vm, block), f"stopped at: {block.heading}"
    lab.check_equal(lab.counts["typed"] + lab.counts["left out"], len(blocks), "the page's blocks")
    judge(lab, vm)
    product = Product(lab)
    product.leave()


def make_bare(lab):
    lab.step("a bare host: no package of vfmgr, no user, no state, no module, no IOMMU")
    lab.host.run(BARE_HOST, timeout=300)
    lab.reboot()
    lab.host.wait_booted()
    for what, command in BARE:
        found = lab.host.run(f"{command} 2>/dev/null", check=False).lines()
        assert lab.check_equal(found, [], f"{what} of the bare host")


def somebodys_vm(lab):
    vm = lab.vm(NAME, image="debian", vsock=False, pcie_ports=0, start=False)
    lab.host.run(BARE_VM, timeout=300)
    devices = lab.observe.domain(NAME, "config").find("devices")
    lab.check(devices.find("vsock") is None, "the VM has a vsock device already")
    vm.vsock = True  # the lab reaches its agent by it, once the page has the VM get one
    return vm


def on_host(lab, vm, block):
    return typed(lab, block, seconds=BLOCK_SECONDS)


def in_vm(lab, vm, block):
    vm.wait_ready()
    return typed(lab, block, vm, BLOCK_SECONDS)


def by_reboot(lab, vm, block):
    boot_id = "/proc/sys/kernel/random/boot_id"
    before = lab.host.read(boot_id)
    lab.step(f"{block.heading}: {block.text.strip()}")
    lab.reboot(command=block.text)
    lab.host.wait_booted()
    lab.count("typed")
    lab.count("rebooted", int(lab.host.read(boot_id) != before))
    return True


# Who types a block, by the word after its language.
PLACES = {"": on_host, "vm": in_vm, "reboot": by_reboot}


def judge(lab, vm):
    """The VM has a VF by the host's tools, it works in the VM, and vfmgr's host found it proved."""
    hostdevs = lab.observe.hostdevs(NAME)
    vfs = [lab.observe.vf_pci(PF, index) for index in range(lab.observe.numvfs(PF))]
    lab.check_equal(len(vfs), 4, "VFs")
    if lab.check_equal(len(hostdevs), 1, "devices in the VM's XML"):
        lab.check(hostdevs[0]["pci"] in vfs, f"{hostdevs} is none of {vfs}")
        holders = lab.observe.vfio_holders(hostdevs[0]["pci"])
        lab.check(len(holders) == 1 and "qemu" in holders[0][1], f"holders of the VF: {holders}")
    shown = lab.host.run("ps -o user= -C vfmgrd").lines()
    lab.check_equal(shown, ["vfmgrd"], "who vfmgrd runs as")
    attachment, = lab.api("GET", "/v1/attachments").body["items"]
    in_the_vm = vm.run("ip -4 -o addr show; rdma link").stdout
    lab.check(f"{attachment['address']}/24" in in_the_vm and "rxe" in in_the_vm, in_the_vm)
    verification = attachment["verification"]
    lab.check_equal(verification["verdict"], "pass", "the verdict")
    tests = {test["name"]: test for test in verification["tests"]}
    for name in ("rdma_write", "rdma_read"):
        test = tests[name]
        lab.check_equal((test["verdict"], test["by"], test["mismatches"]), ("pass", "host", 0),
                        name)
        lab.count("proved", int(test["bytes_checked"] > 0))
