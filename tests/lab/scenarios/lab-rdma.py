# SPDX-License-Identifier: Apache-2.0
"""Only with distribution tools: a VF hot-plugged into a VM carries RDMA (SoftRoCE) to the host.

This scenario does by hand what vfmgr does in the others, so that their failures can be told from
failures of the emulator, the kernel or libvirt.
"""

NEEDS_PACKAGES = False
HOST_ADDRESS, VM_ADDRESS = "192.168.100.3", "192.168.100.10"
HOSTDEV = """<hostdev mode='subsystem' type='pci' managed='no'><source><address domain='0x{}'
bus='0x{}' slot='0x{}' function='0x{}'/></source><alias name='ua-lab-vf'/></hostdev>"""


def run(lab):
    lab.expect("attached", "RDMA pings", "RDMA writes", "detached")
    host, observe = lab.host, lab.observe
    pf = observe.pf()
    device = f"/sys/class/net/{pf}/device"

    lab.step("one VF, clean, on vfio-pci; the PF is an RDMA device")
    host.run(f"echo 0 >{device}/sriov_drivers_autoprobe; echo 2 >{device}/sriov_numvfs; "
             f"ip addr add {HOST_ADDRESS}/24 dev {pf}; ip link set {pf} up; "
             f"ip link set {pf} vf 0 mac 52:54:00:11:22:33 trust on; "
             f"rdma link add rxe0 type rxe netdev {pf}")
    vf = observe.vf_pci(pf, 0)
    host.run(f"echo vfio-pci >/sys/bus/pci/devices/{vf}/driver_override; "
             f"echo {vf} >/sys/bus/pci/drivers_probe")
    lab.check_equal(observe.vf_driver(vf), "vfio-pci", f"the driver of {vf}")
    host.wait_for(f"{pf} has carrier", f"grep 1 /sys/class/net/{pf}/carrier", 30)

    lab.step("a VM, and the VF plugged into it")
    vm = lab.vm("rdma-vm").wait_ready()
    host.write("/run/vf.xml", HOSTDEV.format(*vf.replace(".", ":").split(":")))
    host.run("virsh -q attach-device rdma-vm /run/vf.xml --live --config")
    name = vm.wait_for("a network device besides lo", "ls /sys/class/net | grep -v lo", 60)
    lab.check_equal([dev["pci"] for dev in observe.hostdevs("rdma-vm")], [vf], "live XML")
    lab.check_equal([dev["pci"] for dev in observe.hostdevs("rdma-vm", "config")], [vf], "config")
    holders = observe.vfio_holders(vf)
    lab.check(len(holders) == 1 and "qemu" in holders[0][1], f"holders of the VF: {holders}")
    lab.count("attached", len(observe.hostdevs("rdma-vm")))

    lab.step(f"the VM's {name} becomes an RDMA device")
    vm.run(f"ip link set {name} up && ip addr add {VM_ADDRESS}/24 dev {name} && "
           f"rdma link add rxe0 type rxe netdev {name}")
    vm.wait_for("carrier", f"grep 1 /sys/class/net/{name}/carrier", 60)
    host.wait_for("the VM answers ping", f"ping -c1 -W1 {VM_ADDRESS}", 30)
    server = host.background(f"rping -s -v -C 5 -a {HOST_ADDRESS}")
    host.wait_for("rping listens", "rdma res show cm_id | grep LISTEN", 20)
    said = vm.run(f"rping -c -v -C 5 -a {HOST_ADDRESS}", timeout=60).stdout
    lab.count("RDMA pings", said.count("ping data:"))
    server.wait(30)
    # As few writes on their way as a slow emulator delivers before they count as lost.
    command = "ib_write_bw -d rxe0 -x 1 -s 65536 -n 200 -t 8 -u 20"
    server = host.background(command)
    host.wait_for("ib_write_bw listens", "ss -ltn | grep 18515", 20)
    said = vm.run(f"{command} --report_gbits {HOST_ADDRESS} 2>&1", timeout=90).lines()
    titles = [number for number, line in enumerate(said) if "#bytes" in line]
    assert titles and len(said) > titles[0] + 1, f"ib_write_bw measured nothing: {said}"
    figures = said[titles[0] + 1].split()
    lab.step(f"ib_write_bw: {figures}")
    lab.count("RDMA writes", int(figures[1]))
    server.wait(30)

    lab.step("unplugged, and everything restored")
    host.run("virsh -q detach-device rdma-vm /run/vf.xml --live --config")
    host.wait_for("nobody holds the VF", lambda: not observe.vfio_holders(vf), 30)
    lab.check_equal(observe.hostdevs("rdma-vm"), [], "live XML after the detach")
    lab.count("detached")
    host.run(f"rdma link delete rxe0; ip addr flush dev {pf}; echo 0 >{device}/sriov_numvfs; "
             f"echo 1 >{device}/sriov_drivers_autoprobe; ip link set {pf} down; rm /run/vf.xml")
