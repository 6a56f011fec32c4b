# SPDX-License-Identifier: Apache-2.0
"""Builds everything that a boot needs, from nothing."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from vflab import apt, images, packages, trees
from vflab.parts import PartsInUse
from vflab.paths import state_dir


@dataclass
class Parts:
    suite: str
    packages_key: str  # "none" without vfmgr's packages
    qemu: Path         # QEMU's tree
    host: Path         # the emulated host's tree
    vm_disk: Path      # the debian VM's disk
    tiny: Path         # the tiny VM's kernel and initrd

    @property
    def debs(self):
        return state_dir() / f"parts/debs-{self.suite}-{self.packages_key}"

    @property
    def kernel(self):
        return self.host / f"boot/vmlinuz-{trees.kernel_version(self.host)}"

    @property
    def initrd(self):
        return self.host / f"boot/initrd.img-{trees.kernel_version(self.host)}"


def build(suite, with_packages=True):
    """Builds what is missing. The caller holds PartsInUse until it has made its disk."""
    apt.install_here(apt.NEEDED_HERE)
    trees.ssh_key()
    trees.vm_exec()
    # The trees wait for mirror and disk, vfmgr's packages for the CPU, so they are built in
    # parallel.
    with ThreadPoolExecutor(4) as pool:
        qemu = pool.submit(trees.qemu_tree)
        host_base = pool.submit(trees.base_tree, "host", suite, trees.HOST)
        vm_base = pool.submit(trees.base_tree, "vm", suite, trees.BASE)
        debs, key = [], "none"
        if with_packages:
            folder, key = packages.built(suite)
            debs = sorted(folder.glob("*.deb"))
        host_base, vm_base, qemu = host_base.result(), vm_base.result(), qemu.result()
    guest = [deb for deb in debs if deb.name.startswith("vfmgr-guest_")]
    # Cockpit's page is for hosts with Cockpit, which only one scenario installs. The fleet's daemon
    # is for machines that need be no hosts.
    elsewhere = ("vfmgr-guest_", "vfmgr-cockpit_", "vfmgr-fleet_")
    ours = [deb for deb in debs if not deb.name.startswith(elsewhere)]
    host_deps = trees.with_dependencies("host", suite, host_base, [*ours, *guest])
    vm_deps = trees.with_dependencies("vm", suite, vm_base, guest)
    tiny = images.tiny(suite, host_deps, debs, key)
    debian = images.debian(suite, vm_deps, debs, key)
    host = trees.host_tree(suite, host_deps, ours, key, tiny, debian)
    return Parts(suite, key, qemu, host, debian / "disk.raw", tiny)


def locked_build(suite, with_packages=True):
    with PartsInUse():
        return build(suite, with_packages)
