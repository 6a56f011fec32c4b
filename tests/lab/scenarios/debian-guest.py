# SPDX-License-Identifier: Apache-2.0
"""The debian VM image starts systemd, answers the agent, and is shut down in order."""

NEEDS_PACKAGES = False


def run(lab):
    lab.expect("VM commands")
    vm = lab.vm("debian-vm", image="debian")
    vm.wait_ready()
    lab.step("the agent answers")
    verdict = vm.run("systemctl is-system-running --wait", check=False, timeout=400).stdout.strip()
    lab.check_equal(verdict, "running", "systemd's verdict in the VM")
    lab.check_equal(vm.run("findmnt -no SOURCE /").stdout.strip(), "/dev/vda", "the VM's root")
    lab.count("VM commands", 2)
    lab.step("the power button")
    vm.shutdown(deadline_seconds=240)
    lab.check_equal(vm.state(), "shut off", "the VM's state")
