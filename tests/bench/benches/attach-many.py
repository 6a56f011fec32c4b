# SPDX-License-Identifier: Apache-2.0
"""A VF attached on a host with 120 VMs more, of 8 VFs each in their XML: as fast as without them.

Ours and the peer are the same command on the same VM. For ours libvirt has the descriptions of the
120 others, which are off; for the peer it has not. Each pair of figures follows an attachment that
is not measured, in which vfmgr learns which VMs there are.
"""

from figures import ROUNDS, Figures, seconds
from vflab.many_vfs import DEFINE, HOSTDEV
from vflab.product import Product
from vflab.vm import VM

DEADLINE_SECONDS = 2400
OTHERS, VFS_OF_EACH = 120, 8
RATIO_MAX = 1.2
ATTACH = "vfctl attach bench-vm --pf {pf} --vf 0 --mac 52:54:00:be:00:01 --vlan 100 --trust on"
DETACH = "vfctl detach bench-vm"
UNDEFINE = """for vm in $(virsh -q list --all --name | grep ^other-); do echo undefine $vm; done |
  virsh -q >/dev/null"""


def run(lab):
    lab.expect("rounds")
    product = Product(lab)
    product.manage(num_vfs=2)
    lab.vm("bench-vm", command_line="vf-guest=off").wait_ready()
    others = "".join(other(lab.host, n) for n in range(OTHERS))
    into = ATTACH.format(pf=product.pf)
    attached = Figures(lab, "attach-many", "s", f"{into}, {OTHERS} VMs more", f"{into}, no other",
                       ratio_max=RATIO_MAX)
    detached = Figures(lab, "detach-many", "s", f"{DETACH}, {OTHERS} VMs more",
                       f"{DETACH}, no other", ratio_max=RATIO_MAX)
    for _ in range(ROUNDS):
        lab.host.run(DEFINE, timeout=600, input=others)
        ours = times(lab, product, into, OTHERS)
        lab.host.run(UNDEFINE, timeout=600)
        peer = times(lab, product, into, 0)
        attached.round(ours[0], peer[0])
        detached.round(ours[1], peer[1])
    attached.report()
    detached.report()
    product.leave()


def other(host, n):
    """Returns the XML of a VM with VFs of a card that this host does not have."""
    devices = "".join(HOSTDEV.format("0000", f"{0x80 + rail:02x}", f"{n // 8:02x}", n % 8,
                                     f"{0x10000 * (rail + 1) + n:08x}")
                      for rail in range(VFS_OF_EACH))
    return VM(host, f"other-{n}", vsock=False, pcie_ports=VFS_OF_EACH, devices=devices).xml


def times(lab, product, into, others):
    """Returns what attaching and detaching take, the second time."""
    lab.host.wait_for(f"vfmgr knows {others} VMs more", lambda: len(
        lab.api("GET", "/v1/vms").body["items"]) == others + 1, 120)
    lab.host.run(f"{into} && {DETACH}", timeout=300)
    took = seconds(lab, into), seconds(lab, DETACH)
    lab.check_equal(lab.observe.hostdevs("bench-vm"), [], "left in the VM after a round")
    return took
