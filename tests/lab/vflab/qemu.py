# SPDX-License-Identifier: Apache-2.0
"""The commands that run the emulated host, and other machines beside it."""

# The mounts are in their own namespace and vanish with it; a killed unshare kills QEMU. The state
# folder has the same path inside and outside QEMU's tree.
IN_NAMESPACE = """set -e
tree=$1 state=$2; shift 2
mkdir -p "$tree$state"
mount --bind "$state" "$tree$state"
mount --rbind /dev "$tree/dev"
mount -t proc proc "$tree/proc"
exec chroot "$tree" qemu-system-x86_64 "$@"
"""
MEMORY = "6G"
# The model of the Intel IOMMU works with the CPU, an AMD one, and gives every VF its own group. No
# caching-mode, since no outside device is assigned. Each PCI function behind the IOMMU has an
# address space, and each change of the memory map rebuilds all of them: with 968 functions the
# emulated host no longer answered.
IOMMU = ("-device", "intel-iommu,intremap=on,device-iotlb=on")
PF_MAC = "52:54:00:aa:00:01"
SECOND_MAC = "52:54:00:b0:00:02"
# The igb NICs, by QEMU's id, with netdev and MAC; and the slots of those that are present at boot,
# unless a scenario moves them.
NICS = {"igb": ("wire", PF_MAC), "igb2": ("wire2", SECOND_MAC)}
SLOTS = {"igb": "port1"}
WIRE = "wire.sock"  # in the run's folder
NVMES = 8


def command(settings, command_line):
    return in_namespace(settings, arguments(settings, command_line))


def in_namespace(settings, machine):
    """Returns QEMU's command with these arguments, from the lab's own tree."""
    return ["unshare", "--mount", "--propagation", "private", "--fork", "--kill-child=SIGKILL",
            "--", "sh", "-c", IN_NAMESPACE, "sh", settings["qemu"], settings["state"], *machine]


def arguments(settings, command_line):
    run = settings["run"]
    forwards = "".join(f",hostfwd=tcp:127.0.0.1:{settings[port]}-:{inside}"
                       for port, inside in (("ssh_port", 22), ("api_port", 8470)))
    return [
        "-name", settings["name"], "-nodefaults", "-display", "none", "-no-reboot",
        "-chardev", "stdio,id=console,signal=off", "-serial", "chardev:console",
        "-chardev", f"socket,id=qmp,path={run}/qmp.sock,server=off",
        "-mon", "chardev=qmp,mode=control",
        # TCG's "max" CPU is an AMD one with nested SVM, so VMs inside run under KVM.
        "-machine", "q35,kernel-irqchip=split", "-accel", "tcg,thread=multi", "-cpu", "max",
        "-smp", str(settings["cpus"]), "-m", settings.get("memory", MEMORY),
        *(IOMMU if settings["iommu"] else ()),
        "-drive", f"if=none,id=disk,file={run}/disk.raw,format=raw,cache=unsafe",
        "-device", "virtio-blk-pci,drive=disk",
        "-drive", f"if=none,id=vmdisk,file={run}/vm-disk.raw,format=raw,readonly=on",
        "-device", "virtio-blk-pci,drive=vmdisk,serial=vm-debian",
        # igb is an SR-IOV NIC with 7 VFs. Its wire ends at a socket, which drops all frames until
        # another machine is connected there (vflab.second_machine).
        "-device", "pcie-root-port,id=port1,slot=1",
        "-netdev", f"stream,id=wire,server=on,addr.type=unix,addr.path={run}/{WIRE}",
        # The lab's own access; restrict: programs inside can't reach the network outside.
        "-netdev", f"user,id=way-in,restrict=on{forwards}",
        "-device", "virtio-net-pci,netdev=way-in,romfile=",
        "-device", "virtio-rng-pci",
        # For a second PF that a scenario plugs in (vflab.second_pf).
        "-device", "pcie-root-port,id=port2,slot=2,mem-reserve=32M,bus-reserve=2",
        "-netdev", "user,id=wire2,restrict=on",
        *[word for name, port in settings.get("slots", SLOTS).items()
          for word in nic(name, port, settings.get("macs", {}))],
        *[word for number in range(1, NVMES + 1) for word in nvme_port(number)],
        "-kernel", f"{run}/vmlinuz", "-initrd", f"{run}/initrd", "-append", command_line,
    ]


def nic(name, port, macs):
    """`macs`: of a host beside another one, instead of those here."""
    netdev, mac = NICS[name]
    mac = macs.get(name, mac)
    return ["-device", f"igb,id={name},bus={port},netdev={netdev},mac={mac}"]


def nvme_port(number):
    """A port for an NVMe controller with 120 VFs that is plugged in later (vflab.nvme).

    Its subsystem can't be added later. The VFs are on its own bus, with 16 KiB of registers each.
    """
    return ["-device", f"nvme-subsys,id=nvme-subsys{number}",
            "-device", f"pcie-root-port,id=nvme-port{number},slot={10 + number},mem-reserve=8M,"
                       "io-reserve=0"]
