# SPDX-License-Identifier: Apache-2.0
"""The Debian trees that disks are made of: those of QEMU, the emulated host, and a VM."""

import shutil
from pathlib import Path

from vflab import apt
from vflab.paths import LAB, state_dir
from vflab.parts import hash_of, part
from vflab.shell import call

# igb needs QEMU 8 or later. 10.0.2 (Debian 12's backports) keeps the VF's link down in the VM;
# Debian 13's works. So QEMU always runs from a small Debian 13 tree.
QEMU_SUITE = "trixie"

BASE = ["systemd-sysv", "udev", "dbus", "kmod", "iproute2", "iputils-ping", "pciutils", "ethtool",
        "procps", "zstd", "linux-image-amd64", "rdma-core", "ibverbs-utils", "ibverbs-providers",
        "rdmacm-utils", "perftest"]
HOST = BASE + ["strace", "python3-minimal", "busybox", "qemu-system-x86", "qemu-utils",
               "libvirt-daemon-system", "libvirt-clients", "infiniband-diags", "mstflint",
               "openssh-server", "openssl", "ca-certificates", "tcpdump", "jq", "curl",
               "nftables", "sqlite3"]
MASKED = ["serial-getty@ttyS0.service", "getty@tty1.service", "apt-daily.timer",
          "apt-daily-upgrade.timer", "e2scrub_all.timer", "e2scrub_reap.service", "fstrim.timer",
          "dpkg-db-backup.timer", "logrotate.timer", "systemd-networkd-wait-online.service"]

# The initial RAM disk only has to find /dev/vda; unpacking all of Debian's drivers takes an
# emulated CPU many seconds at each boot.
SMALL_INITRD = [
    "--setup-hook=mkdir -p \"$1/etc/initramfs-tools/conf.d\" "
    "\"$1/usr/share/initramfs-tools/modules.d\"",
    "--setup-hook=printf 'MODULES=list\\nCOMPRESS=zstd\\nCOMPRESSLEVEL=3\\n' "
    ">\"$1/etc/initramfs-tools/conf.d/lab\"",
    "--setup-hook=printf 'virtio_pci\\nvirtio_blk\\next4\\n' "
    ">\"$1/usr/share/initramfs-tools/modules.d/lab\"",
]


def qemu_tree():
    def build(folder):
        apt.make_tree(folder, QEMU_SUITE, ["qemu-system-x86"])
    return part("qemu", hash_of("1", QEMU_SUITE), build)


def base_tree(kind, suite, packages):
    def build(folder):
        apt.make_tree(folder, suite, packages, SMALL_INITRD)
        for unit in MASKED:
            (folder / "etc/systemd/system" / unit).symlink_to("/dev/null")
    key = hash_of("1", suite, packages, MASKED, SMALL_INITRD)
    return part(f"{kind}-base-{suite}", key, build)


def copy_tree(source, target):
    """Makes a copy that shares the files below /usr and /boot as hard links.

    dpkg replaces files there by rename, which leaves the source unchanged. Packages' scripts change
    files in place in /etc and /var, so those are really copied.
    """
    shared = [name for name in ("usr", "boot") if (source / name).is_dir()]
    others = [entry.name for entry in source.iterdir() if entry.name not in shared]
    call(["cp", "-al", *[str(source / name) for name in shared], str(target)])
    call(["cp", "-a", *[str(source / name) for name in others], str(target)])


def dependencies(debs):
    """Returns what the packages depend on besides each other, as their control files say it."""
    names = {deb.name.split("_")[0] for deb in debs}
    found = []
    for deb in debs:
        for dependency in call(["dpkg-deb", "-f", str(deb), "Depends"]).split(","):
            dependency = dependency.strip()
            if dependency and dependency.split()[0] not in names and dependency not in found:
                found.append(dependency)
    return found


def with_dependencies(kind, suite, base, debs):
    """The base tree plus the dependencies of vfmgr's packages: they install offline."""
    expected = dependencies(debs)
    if not expected:
        return base

    def build(folder):
        copy_tree(base, folder)
        apt.install_in_tree(folder, ["satisfy", ", ".join(sorted(expected))])
    return part(f"{kind}-deps-{suite}", hash_of("1", base.name, sorted(expected)), build)


def install_debs(tree, debs):
    if not debs:
        return
    inside = tree / "var/tmp/lab-debs"
    inside.mkdir()
    for deb in debs:
        shutil.copy(deb, inside)
    apt.install_in_tree(tree, ["install", *[f"/var/tmp/lab-debs/{deb.name}" for deb in debs]])
    shutil.rmtree(inside)


def host_tree(suite, base, debs, packages_key, tiny, vm_image):
    """The emulated host: Debian, vfmgr's packages, the lab's files, the VM images' kernels."""
    public_key = ssh_key().with_suffix(".pub")

    def build(folder):
        copy_tree(base, folder)
        install_debs(folder, debs)
        call(["cp", "-a", "--no-preserve=ownership", f"{LAB}/host/.", str(folder)])
        shutil.copy(vm_exec(), folder / "usr/bin/vm-exec")
        (folder / "etc/hostname").write_text("vfmgr-lab\n")
        (folder / "etc/hosts").write_text("127.0.0.1 localhost\n127.0.1.1 vfmgr-lab\n")
        for name in ("var/log/journal", "var/log/vfmgr-lab", "root/.ssh"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        (folder / "root/.ssh").chmod(0o700)
        shutil.copy(public_key, folder / "root/.ssh/authorized_keys")
        for image in (tiny, vm_image):
            images = folder / "var/lib/vfmgr-lab" / image.name.split("-")[0]
            images.mkdir(parents=True)
            for name in ("vmlinuz", "initrd"):
                shutil.copy(image / name, images)
        apt.in_tree(folder, ["systemctl", "enable", "systemd-networkd", "lab-ready.service"])
    key = hash_of("3", base.name, packages_key, tiny.name, vm_image.name, public_key, LAB / "host",
                  LAB / "vm-exec.c")
    return part(f"host-{suite}", key, build)


def ssh_key():
    """Returns the one key for all labs of this state folder."""
    path = state_dir() / "ssh-key"
    if not path.with_suffix(".pub").exists():
        path.unlink(missing_ok=True)
        call(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "vfmgr-lab", "-f", str(path)])
    return path


def vm_exec():
    """Builds the lab's agent, linked statically: one file for the host and all VM images."""
    def build(folder):
        call(["gcc", "-static", "-O2", "-Wall", "-Wextra", "-Werror", "-s",
              "-o", str(folder / "vm-exec"), str(LAB / "vm-exec.c")])
    return part("agent", hash_of("1", LAB / "vm-exec.c"), build) / "vm-exec"


def kernel_version(tree):
    versions = sorted(Path(tree / "lib/modules").resolve().iterdir())
    return versions[-1].name
