# SPDX-License-Identifier: Apache-2.0
"""The emulated host has what the other scenarios need: SR-IOV, IOMMU, KVM, an agent in the VM.

No part of vfmgr takes part. If this fails, the lab is broken and no other verdict counts.
"""

NEEDS_PACKAGES = False


def run(lab):
    lab.expect("VFs", "VM commands")
    host, observe = lab.host, lab.observe

    lab.step("the host has started, and its PF is there")
    verdict = host.wait_booted()
    lab.check_equal(verdict, "running", "systemd's verdict")
    pf = observe.pf()
    lab.check_equal(observe.totalvfs(pf), 7, f"VFs that {pf} allows")
    lab.check_equal(observe.numvfs(pf), 0, f"VFs of {pf} at the start")
    command_line = host.read("/proc/cmdline")
    lab.check("intel_iommu=on" in command_line, f"no IOMMU on the command line: {command_line}")

    lab.step("seven VFs, each in an IOMMU group of its own")
    device = f"/sys/class/net/{pf}/device"
    host.run(f"echo 0 >{device}/sriov_drivers_autoprobe; echo 7 >{device}/sriov_numvfs")
    lab.count("VFs", observe.numvfs(pf))
    addresses = [observe.vf_pci(pf, index) for index in range(7)]
    groups = {observe.iommu_group(address) for address in addresses}
    lab.check_equal(len(groups), 7, "IOMMU groups of the 7 VFs")
    lab.check_equal([observe.vf_driver(address) for address in addresses], [None] * 7,
                    "drivers of the new VFs")
    host.run(f"ip link set {pf} up && ip link set {pf} vf 2 mac 52:54:00:11:22:33 vlan 7")
    vf = observe.ip_link_vf(pf, 2)
    lab.check(vf and (vf["mac"], vf["vlan"]) == ("52:54:00:11:22:33", 7), f"VF 2 is {vf}")

    lab.step("a VM runs under KVM and obeys the agent")
    vm = lab.vm("boot-vm")
    vm.wait_ready()
    said = vm.run("cat /proc/uptime; echo oops >&2; exit 7", check=False)
    lab.check_equal((said.status, said.stderr), (7, "oops\n"), "the agent's answer")
    lab.check(float(said.stdout.split()[0]) > 0, f"the VM's clock: {said.stdout}")
    lab.count("VM commands")
    for program in ("ip", "rdma", "rping", "ib_write_bw", "ping", "ethtool"):
        vm.run(f"command -v {program}")
        lab.count("VM commands")
    vm.run("rdma link add rxe_lo type rxe netdev lo || rdma link")
    lab.check_equal(observe.vms(), ["boot-vm"], "VMs that libvirt knows")
    lab.check("ready" in vm.console(), "nothing of the agent on the VM's console")

    lab.step("the power button works, and everything is restored")
    vm.shutdown()
    host.run(f"echo 0 >{device}/sriov_numvfs; echo 1 >{device}/sriov_drivers_autoprobe; "
             f"ip link set {pf} down")
    lab.check_equal(observe.numvfs(pf), 0, f"VFs of {pf} at the end")
