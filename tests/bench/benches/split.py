# SPDX-License-Identifier: Apache-2.0
"""A VF attached to a running VM and detached: today's processes beside the one root daemon before.

The peer is vfmgrd of the commit before vfmgr-broker was split off: one process, as root. Its
packages are built once, and unpacked beside ours. Two daemons can't serve one host, so they take
turns: one is stopped and the other started, with a store of its own. Not measured are that, and the
first attachment after it.
"""

from figures import Figures, seconds
from vflab import trees, version_before
from vflab.added_packages import AddedPackages
from vflab.packages import packages_of
from vflab.product import BROKER, SERVICES, Product

DEADLINE_SECONDS = 3000
BEFORE = "ee4c7df7"
VM = "bench-vm"
RATIO_MAX = 1.1
TURNS, ROUNDS_OF_TURN = 6, 3
ROOT, UNIT, STATE = "/opt/before", "before", "/var/lib/before"
UNPACK = """cd {root} && for each in *.deb; do dpkg-deb -x $each . || exit; done
for kind in service socket; do
  sed 's|/usr/libexec|{root}/usr/libexec|; s|^StateDirectory=vfmgr|StateDirectory={unit}|
    s|vfmgrd.socket|{unit}.socket|; s|vfmgr/vfmgrd$|& --config {root}/vfmgr.toml|' \\
    usr/lib/systemd/system/vfmgrd.$kind >/run/systemd/system/{unit}.$kind || exit
done; systemctl daemon-reload"""


class Side:
    """One of the two: its services, and its vfctl."""

    def __init__(self, lab, product, services, vfctl):
        self.lab, self.product, self.services = lab, product, services
        self.attach = (f"{vfctl} attach {VM} --pf {product.pf} --vf 0 --mac 52:54:00:be:00:01 "
                       "--vlan 100 --trust on")
        self.detach = f"{vfctl} detach {VM}"

    def begin(self):
        self.lab.host.run(f"systemctl start {self.services}", timeout=180)
        self.product.manage(num_vfs=2, networks=())
        self.times()

    def end(self):
        self.lab.host.run(f"systemctl stop {self.services}", timeout=180)

    def times(self):
        took = seconds(self.lab, self.attach), seconds(self.lab, self.detach)
        self.lab.check_equal(self.lab.observe.hostdevs(VM), [], "left in the VM after a round")
        return took

    def print_timing(self):
        for kind in ("attach", "detach"):
            latest, = [one["id"] for one in self.lab.api("GET", "/v1/operations").body["items"]
                       if one["kind"] == kind][:1]
            print(self.lab.vfctl("op", "show", latest, "--timing").stdout, flush=True)


def run(lab):
    lab.expect("rounds")
    before = packages_of(BEFORE, lab.machine.settings["suite"])
    needed = [each.split()[0] for each in trees.dependencies(version_before.hosts(before))]
    with AddedPackages(lab, needed):
        measure(lab, before)


def measure(lab, before):
    product = Product(lab)
    unpack(lab, before)
    ours = Side(lab, product, f"{BROKER} {SERVICES}", "vfctl")
    peer = Side(lab, product, f"{UNIT}.socket {UNIT}.service", f"{ROOT}/usr/bin/vfctl")
    product.manage(num_vfs=2, networks=())
    lab.vm(VM, command_line="vf-guest=off").wait_ready()
    attached = Figures(lab, "split-attach", "s", ours.attach, f"{peer.attach}, commit {BEFORE}",
                       ratio_max=RATIO_MAX)
    detached = Figures(lab, "split-detach", "s", ours.detach, f"{peer.detach}, commit {BEFORE}",
                       ratio_max=RATIO_MAX)
    ours.end()
    for turn in range(TURNS):
        sides = (ours, peer) if turn % 2 == 0 else (peer, ours)
        took = {side: turn_of(side) for side in sides}
        for (ours_in, ours_out), (peer_in, peer_out) in zip(took[ours], took[peer]):
            attached.round(ours_in, peer_in)
            detached.round(ours_out, peer_out)
    attached.report()
    detached.report()
    lab.host.run(f"rm -rf {ROOT} {STATE} /run/systemd/system/{UNIT}.*; systemctl daemon-reload; "
                 f"systemctl start {ours.services}")
    product.leave()


def turn_of(side):
    side.begin()
    took = [side.times() for _ in range(ROUNDS_OF_TURN)]
    side.print_timing()
    side.end()
    return took


def unpack(lab, before):
    lab.host.write(f"{ROOT}/vfmgr.toml", f'state_dir = "{STATE}"\n')
    for deb in version_before.hosts(before):
        lab.host.copy_in(deb, f"{ROOT}/")
    lab.host.run(UNPACK.format(root=ROOT, unit=UNIT))
