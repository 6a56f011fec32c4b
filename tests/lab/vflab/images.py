# SPDX-License-Identifier: Apache-2.0
"""The VM images: `tiny`, an initial RAM disk, and `debian`, a disk with systemd."""

import os
import re
import shutil
import subprocess

from vflab import apt
from vflab.paths import LAB, LabError
from vflab.parts import hash_of, part
from vflab.shell import call
from vflab.trees import copy_tree, install_debs, kernel_version, vm_exec

LIB = "usr/lib/x86_64-linux-gnu"
PROGRAMS = ["busybox", "bash", "ip", "rdma", "ibv_devinfo", "ibv_rc_pingpong", "rping", "ping",
            "ib_write_bw", "ib_read_bw", "ib_send_bw", "ib_write_lat", "ib_send_lat", "ib_read_lat",
            "ethtool", "lspci"]
# rdma_rxe finds its checksum by name at run time, so its dependencies lack crc32_generic; without
# virtio_pci a vsock connect fails with "No such device"; with button and evdev the VM obeys `virsh
# shutdown`.
MODULES = ["crc32_generic", "igbvf", "rdma_rxe", "rdma_ucm", "ib_uverbs", "virtio_pci",
           "virtio_net", "vmw_vsock_virtio_transport", "8021q", "button", "evdev"]
OPTIONAL_MODULES = {"crc32_generic"}  # built in or removed in later kernels
DISK_BYTES = 3 << 30


def put(tree, root, path):
    """Copies a program of the tree and the libraries that it loads; path is as inside the tree."""
    real = call(["chroot", str(tree), "readlink", "-f", path]).strip()
    for file in [real, *libraries(tree, real)]:
        target = root / ("usr" + file.removeprefix("/usr"))
        if not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(tree / file[1:], target)
    expected = root / ("usr" + path.removeprefix("/usr"))
    if not expected.exists():
        expected.parent.mkdir(parents=True, exist_ok=True)
        expected.symlink_to(real)


def libraries(tree, program, binds=()):
    shown = apt.in_tree(tree, ["sh", "-c", 'ldd "$1" 2>&1 || true', "sh", program], binds)
    if "not found" in shown:
        raise LabError(f"{program} needs libraries that the tree has not:\n{shown}")
    return re.findall(r"(/\S+) \(0x", shown)


def add_modules(tree, root, version):
    files = set()
    for module in MODULES:
        shown = subprocess.run(["chroot", str(tree), "modprobe", "-S", version, "--show-depends",
                                module], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if shown.returncode and module not in OPTIONAL_MODULES:
            raise LabError(f"no kernel module {module}: {shown.stderr}")
        files |= {line.split()[1] for line in shown.stdout.splitlines()
                  if line.startswith("insmod ")}
    for file in files:
        target = root / ("usr" + file.removeprefix("/usr"))
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(tree / file[1:], target)
    for name in ("modules.builtin", "modules.order"):
        shutil.copy(tree / f"lib/modules/{version}/{name}", root / f"usr/lib/modules/{version}")
    call(["depmod", "-b", str(root), version])
    (root / "etc/modules").write_text("\n".join(MODULES) + "\n")


def pack(root, initrd):
    """Not compressed: a VM inside an emulated host reads faster than it decompresses."""
    call(["sh", "-c", 'cd "$1" && find . | cpio -o -H newc --quiet -R 0:0 >"$2"',
          "sh", str(root), str(initrd)])


def unpacked_kernel(packed):
    """Extracts the ELF image of a bzImage, which QEMU starts directly: saves 6 of 22 s per VM."""
    data = packed.read_bytes()
    for magic, program in ((b"\xfd7zXZ\0", "xz"), (b"(\xb5/\xfd", "zstd")):
        begin = data.find(magic)
        if begin > 0:
            # Data after the compressed part makes the program report an error when it is done.
            kernel = subprocess.run([program, "-dc"], input=data[begin:], stdout=subprocess.PIPE,
                                    stderr=subprocess.DEVNULL).stdout
            if kernel.startswith(b"\x7fELF"):
                return kernel
    return data


def tiny_base(suite, tree):
    """Packs everything except vf-guest; the kernel unpacks several archives one after the other."""
    def build(folder):
        root = folder / "root"
        for name in ("usr/bin", "usr/sbin", "usr/lib", "usr/lib64", "etc/libibverbs.d", "proc",
                     "sys", "dev", "tmp", "run", "root", "busybox", "etc/acpi/PWRF",
                     "var/log"):
            (root / name).mkdir(parents=True)
        for name in ("bin", "sbin", "lib", "lib64"):
            (root / name).symlink_to(f"usr/{name}")
        (root / "var/run").symlink_to("/run")
        for program in PROGRAMS:
            path = call(["chroot", str(tree), "sh", "-c", f"command -v {program}"]).strip()
            put(tree, root, path)
        for applet in call(["chroot", str(tree), "busybox", "--list"]).split():
            (root / "busybox" / applet).symlink_to("/usr/bin/busybox")
        (root / "usr/bin/sh").symlink_to("busybox")
        shutil.copy(tree / "etc/libibverbs.d/rxe.driver", root / "etc/libibverbs.d")
        (root / LIB / "libibverbs").mkdir(parents=True)
        for library in (tree / LIB / "libibverbs").glob("librxe-*.so"):
            shutil.copy(library, root / LIB / "libibverbs")
        # glibc loads this one by name when a thread ends.
        shutil.copy(tree / LIB / "libgcc_s.so.1", root / LIB)
        add_modules(tree, root, kernel_version(tree))
        shutil.copy(vm_exec(), root / "usr/bin/vm-exec")
        shutil.copy(LAB / "vm/tiny-init", root / "init")
        button = root / "etc/acpi/PWRF/00000080"
        button.write_text("#!/bin/sh\npoweroff -f\n")
        button.chmod(0o755)
        pack(root, folder / "initrd")
        call(["rm", "-rf", str(root)])
        kernel = unpacked_kernel(tree / f"boot/vmlinuz-{kernel_version(tree)}")
        (folder / "vmlinuz").write_bytes(kernel)
    key = hash_of("6", tree.name, PROGRAMS, MODULES, LAB / "vm/tiny-init", LAB / "vm-exec.c")
    return part(f"tinybase-{suite}", key, build)


def tiny(suite, tree, debs, packages_key):
    base = tiny_base(suite, tree)
    guest = [deb for deb in debs if deb.name.startswith("vfmgr-guest_")]

    def build(folder):
        shutil.copy(base / "vmlinuz", folder)
        archives = (base / "initrd").read_bytes()
        if guest:
            root = folder / "root"
            root.mkdir()
            add_guest(tree, root, guest[0], folder / "unpacked")
            pack(root, folder / "ours")
            archives += (folder / "ours").read_bytes()
        (folder / "initrd").write_bytes(archives)
        for name in ("root", "unpacked", "ours"):
            call(["rm", "-rf", str(folder / name)])
    return part(f"tiny-{suite}", hash_of("2", base.name, packages_key), build)


def add_guest(tree, root, deb, unpacked):
    """Packs vf-guest and its libraries, found in the host's tree, which has them all."""
    call(["dpkg-deb", "-x", str(deb), str(unpacked)])
    found = [path for path in unpacked.rglob("vf-guest") if path.is_file()]
    found = [path for path in found if os.access(path, os.X_OK)]
    if len(found) != 1:
        raise LabError(f"{deb.name} holds {len(found)} programs named vf-guest, not 1")
    inside = "/mnt/" + str(found[0].relative_to(unpacked))
    for file in libraries(tree, inside, [(unpacked, "/mnt")]):
        target = root / ("usr" + file.removeprefix("/usr"))
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(tree / file[1:], target)
    (root / "usr/bin").mkdir(parents=True, exist_ok=True)
    shutil.copy(found[0], root / "usr/bin/vf-guest")


def debian(suite, base, debs, packages_key):
    guest = [deb for deb in debs if deb.name.startswith("vfmgr-guest_")]

    def build(folder):
        tree = folder / "tree"
        tree.mkdir()
        copy_tree(base, tree)
        install_debs(tree, guest)
        shutil.copy(vm_exec(), tree / "usr/bin/vm-exec")
        shutil.copy(LAB / "vm/lab-agent.service", tree / "etc/systemd/system")
        (tree / "etc/hostname").write_text("debian\n")
        (tree / "etc/hosts").write_text("127.0.0.1 localhost\n127.0.1.1 debian\n")
        (tree / "etc/modules-load.d/lab.conf").write_text(
            "virtio_pci\nvmw_vsock_virtio_transport\nrdma_rxe\nrdma_ucm\n")
        apt.in_tree(tree, ["systemctl", "enable", "lab-agent.service"])
        version = kernel_version(tree)
        shutil.copy(tree / f"boot/vmlinuz-{version}", folder / "vmlinuz")
        shutil.copy(tree / f"boot/initrd.img-{version}", folder / "initrd")
        with open(folder / "disk.raw", "wb") as disk:
            disk.truncate(DISK_BYTES)
        call(["mke2fs", "-q", "-F", "-t", "ext4", "-d", str(tree), str(folder / "disk.raw")])
        call(["rm", "-rf", "--one-file-system", str(tree)])
    key = hash_of("2", base.name, packages_key, LAB / "vm/lab-agent.service", LAB / "vm-exec.c")
    return part(f"debian-{suite}", key, build)
