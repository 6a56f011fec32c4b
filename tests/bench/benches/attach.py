# SPDX-License-Identifier: Apache-2.0
"""A VF attached to a running VM and detached: vfctl beside a script of iproute2, sysfs and virsh.

Two cases: the PF is up already (attach, detach), and it is down before the first attachment and
after the last (attach-first, detach-last), where both sides bring its link up and down.

The peer is a script as an admin writes it: it configures the VF, binds it, attaches it, and on
detach waits until libvirt's live XML no longer has it. It keeps no journal, guards, resets and
checks nothing, so vfmgr may take longer, within the limits. What vfmgr's time went to is printed.
"""

from figures import Figures, seconds
from vflab.product import Product
from vflab.vfio import hostdev

VM = "bench-vm"
MAC = "52:54:00:be:00:01"
# A different MAC: vfmgr observes others' changes every 5 s, and would refuse one in recent use.
PEER_MAC = "52:54:00:be:00:02"
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


ATTACH_MAX, DETACH_MAX = 1.2, 1.3
ROUNDS = 15  # what libvirt and QEMU take differs by a third from one attachment to the next


def run(lab):
    lab.expect("rounds")
    product = Product(lab)
    product.manage(num_vfs=2)
    lab.vm(VM, command_line="vf-guest=off").wait_ready()
    names = {"pf": product.pf, "vm": VM, "mac": PEER_MAC, "vf": lab.observe.vf_pci(product.pf, 1)}
    lab.host.write("/run/bench-vf.xml", hostdev(names["vf"]))
    up, down = (f"ip link set {product.pf} {way}\n" for way in ("up", "down"))
    for name, into, out in (("bench", "", ""), ("bench-link", up, down)):
        lab.host.write(f"/run/{name}-in", PEER_IN.format(**names).replace("\n", "\n" + into, 1))
        lab.host.write(f"/run/{name}-out", PEER_OUT.format(**names) + out)
    lab.host.run(up)
    # The kernel maps all of a VM's memory for its first device, which takes seconds: not measured,
    # since it is nobody's.
    lab.host.run("sh /run/bench-in && sh /run/bench-out", timeout=300)
    case(lab, product, "bench", "attach", "detach")
    lab.host.run(down)
    case(lab, product, "bench-link", "attach-first", "detach-last")
    lab.host.run("rm /run/bench-vf.xml /run/bench*-in /run/bench*-out")
    product.leave()


def case(lab, product, script, attach, detach):
    into = f"vfctl attach {VM} --pf {product.pf} --vf 0 --mac {MAC} --vlan 100 --trust on"
    attached = Figures(lab, attach, "s", into, f"{script}-in: ip link set vf, drivers_probe, virsh "
                       "attach", ratio_max=ATTACH_MAX)
    detached = Figures(lab, detach, "s", f"vfctl detach {VM}", f"{script}-out: virsh detach, wait "
                       "for the live XML, unbind, ip link set vf", ratio_max=DETACH_MAX)
    for _ in range(ROUNDS):
        ours_in, ours_out = seconds(lab, into), seconds(lab, f"vfctl detach {VM}")
        peer_in, peer_out = (seconds(lab, f"sh /run/{script}-{way}") for way in ("in", "out"))
        attached.round(ours_in, peer_in)
        detached.round(ours_out, peer_out)
        lab.check_equal(lab.observe.hostdevs(VM), [], "left in the VM after a round")
    for kind in ("attach", "detach"):
        latest = lab.host.run(f"vfctl op list -o json | jq -r 'first(.items[] | select(.kind == "
                              f"\"{kind}\")).id'").stdout.strip()
        print(lab.host.run(f"vfctl op show {latest} --timing").stdout, flush=True)
    attached.report()
    detached.report()
