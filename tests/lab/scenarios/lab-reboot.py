# SPDX-License-Identifier: Apache-2.0
"""The emulated host reboots, takes its command line from /etc/default/grub, and keeps its disk.

Also without notice: a power cut loses unwritten data only.
"""

BOOT = "own"
NEEDS_PACKAGES = False


def run(lab):
    lab.expect("reboots", "power cuts")
    host = lab.host
    first = host.read("/proc/sys/kernel/random/boot_id")

    lab.step("a remedy in /etc/default/grub takes effect at the next boot")
    host.run("sed -i 's/iommu=pt/iommu=pt vfmgr.remedy=1/' /etc/default/grub && update-grub")
    host.write("/root/kept", "written before the reboot\n")
    lab.check("vfmgr.remedy" not in host.read("/proc/cmdline"), "the remedy was there before")
    seconds = lab.reboot()
    lab.step(f"it was back after {seconds:.1f} s")
    second = host.read("/proc/sys/kernel/random/boot_id")
    if lab.check(second != first, "the boot id did not change"):
        lab.count("reboots")
    lab.check("vfmgr.remedy=1" in host.read("/proc/cmdline"),
              "the remedy is not on the command line")
    lab.check_equal(host.read("/root/kept"), "written before the reboot\n", "a file kept")

    lab.step("a power cut")
    host.run("echo durable >/root/durable && sync /root/durable /root")
    seconds = lab.power_cycle()
    lab.step(f"it was back after {seconds:.1f} s")
    third = host.read("/proc/sys/kernel/random/boot_id")
    if lab.check(third != second, "the boot id did not change"):
        lab.count("power cuts")
    lab.check_equal(host.read("/root/durable"), "durable\n", "a file that was synced")
    lab.check_equal(host.wait_booted(), "running", "systemd's verdict")
