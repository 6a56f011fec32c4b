# SPDX-License-Identifier: Apache-2.0
"""Eight VFs attached to a running VM: one request beside `virsh attach-device` eight times.

The peer's VFs are bound to vfio-pci before its time begins, and it configures, guards, journals and
verifies nothing: what remains is libvirt's and QEMU's own time for eight devices. For ours the VFs
are bound to their own driver, and get a MAC each.
"""

from figures import ROUNDS, Figures, seconds
from vflab.lab_pf import LabPfs
from vflab.product import Product
from vflab.vfio import bind_by_hand, hostdev

DEADLINE_SECONDS = 2400
VM = "bench-vm"
EIGHT = 8
RATIO_MAX = 1.2
PEER_IN = f"""set -e
for n in $(seq {EIGHT}); do
  virsh -q attach-device {VM} /run/eight-$n.xml --live --config
done
"""
PEER_OUT = f"""set -e
for n in $(seq {EIGHT}); do
  virsh -q detach-device {VM} /run/eight-$n.xml --live --config
done
until ! virsh dumpxml {VM} | grep -q '<hostdev'; do sleep 0.1; done
"""


def run(lab):
    lab.expect("rounds")
    with LabPfs(lab, "ethernet") as [pf]:
        product = Product(lab, pf.netdev)
        product.manage(num_vfs=2 * EIGHT, networks=())
        lab.vm(VM, pcie_ports=EIGHT, command_line="vf-guest=off").wait_ready()
        prepare_peer(lab, pf)
        measure(lab, f"vfctl attach {VM} --pf {pf.netdev} --count {EIGHT}")
        lab.host.run("rm /run/eight-*")
        product.leave()


def prepare_peer(lab, pf):
    for n in range(1, EIGHT + 1):
        vf_pci = pf.vf_pci(EIGHT + n - 1)
        bind_by_hand(lab, vf_pci)
        lab.host.write(f"/run/eight-{n}.xml", hostdev(vf_pci))
    lab.host.write("/run/eight-in", PEER_IN)
    lab.host.write("/run/eight-out", PEER_OUT)


def measure(lab, attach):
    figures = Figures(lab, "attach-eight", "s", attach,
                      f"virsh attach-device {VM} --live --config, {EIGHT} times",
                      ratio_max=RATIO_MAX)
    for number in range(ROUNDS + 1):
        ours = turn(lab, attach, f"vfctl detach {VM} --all")
        peer = turn(lab, "sh /run/eight-in", "sh /run/eight-out")
        if number:  # the kernel maps a VF's memory at its first use, which is nobody's time
            figures.round(ours, peer)
    latest = lab.api("GET", "/v1/operations").body["items"]
    attached = next(each["id"] for each in latest if each["kind"] == "attach")
    print(lab.vfctl("op", "show", attached, "--timing").stdout, flush=True)
    figures.report()


def turn(lab, attach, detach):
    took = seconds(lab, attach)
    lab.check_equal(len(lab.observe.hostdevs(VM)), EIGHT, f"devices of the VM after {attach}")
    lab.host.run(detach, timeout=300)
    lab.check_equal(lab.observe.hostdevs(VM), [], f"left in the VM after {detach}")
    return took
