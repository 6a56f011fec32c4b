# SPDX-License-Identifier: Apache-2.0
"""A VF attached to a running VM and detached: vfctl beside a script of iproute2, sysfs and virsh.

The peer is a script as an admin writes it: it configures the VF, binds it, attaches it, and on
detach waits until libvirt's live XML no longer has it. It keeps no journal, guards, resets and
checks nothing, so vfmgr may take longer; the benchmark shows how much longer.
"""

from figures import ROUNDS, Figures, seconds
from vflab.product import Product

VM = "bench-vm"
MAC = "52:54:00:be:00:01"
# A different MAC: vfmgr observes others' changes every 5 s, and would refuse one in recent use.
PEER_MAC = "52:54:00:be:00:02"
HOSTDEV = """<hostdev mode='subsystem' type='pci' managed='no'><source><address domain='0x{}'
bus='0x{}' slot='0x{}' function='0x{}'/></source></hostdev>"""
PEER_IN = """set -e
ip link set {pf} vf 1 mac {mac} vlan 100 trust on
echo vfio-pci >/sys/bus/pci/devices/{vf}/driver_override
echo {vf} >/sys/bus/pci/drivers_probe
virsh -q attach-device {vm} /run/bench-vf.xml --live --config
"""
PEER_OUT = """set -e
virsh -q detach-device {vm} /run/bench-vf.xml --live --config
until ! virsh dumpxml {vm} | grep -q '<hostdev'; do sleep 0.1; done
echo {vf} >/sys/bus/pci/drivers/vfio-pci/unbind
echo >/sys/bus/pci/devices/{vf}/driver_override
ip link set {pf} vf 1 mac 00:00:00:00:00:00 vlan 0 trust off
"""


def run(lab):
    lab.expect("rounds")
    product = Product(lab)
    product.manage(num_vfs=2)
    lab.vm(VM, command_line="vf-guest=off").wait_ready()
    names = {"pf": product.pf, "vm": VM, "mac": PEER_MAC, "vf": lab.observe.vf_pci(product.pf, 1)}
    lab.host.write("/run/bench-vf.xml", HOSTDEV.format(*names["vf"].replace(".", ":").split(":")))
    lab.host.write("/run/bench-in", PEER_IN.format(**names))
    lab.host.write("/run/bench-out", PEER_OUT.format(**names))
    into = f"vfctl attach {VM} --pf {product.pf} --vf 0 --mac {MAC} --vlan 100 --trust on"
    attached = Figures(lab, "attach", "s", into,
                       "bench-in: ip link set vf, drivers_probe, virsh attach")
    detached = Figures(lab, "detach", "s", f"vfctl detach {VM}",
                       "bench-out: virsh detach, wait for the live XML, unbind, ip link set vf")
    for _ in range(ROUNDS):
        ours_in, ours_out = seconds(lab, into), seconds(lab, f"vfctl detach {VM}")
        peer_in, peer_out = seconds(lab, "sh /run/bench-in"), seconds(lab, "sh /run/bench-out")
        attached.round(ours_in, peer_in)
        detached.round(ours_out, peer_out)
        lab.check_equal(lab.observe.hostdevs(VM), [], "left in the VM after a round")
    attached.report()
    detached.report()
    lab.host.run("rm /run/bench-vf.xml /run/bench-in /run/bench-out")
    product.leave()
