# SPDX-License-Identifier: Apache-2.0
"""Both ends of the proof over one SoftRoCE device, without HTTP: an honest guest passes, lies fail.

It runs only the proof's engine, so that its failures can be told from those of the guest plane.
"""

from vflab.programs import built

SLICES = 1
NEEDS_PACKAGES = False
PROBE = "/root/verify_probe"
ADDRESS = "192.168.100.3"
HONEST, LIES = 2, 4  # cases of the probe


def run(lab):
    lab.expect("honest passes", "lies refused")
    host, pf = lab.host, lab.observe.pf()
    host.copy_in(built(lab, "verify_probe"), PROBE)
    lab.step("the PF is an RDMA device, and both ends of the test are on it")
    host.run(f"ip addr add {ADDRESS}/24 dev {pf}; ip link set {pf} up; "
             f"rdma link add rxe0 type rxe netdev {pf}")
    host.wait_for(f"{pf} has carrier", f"grep 1 /sys/class/net/{pf}/carrier", 30)
    mtu = host.read(f"/sys/class/net/{pf}/mtu").strip()
    shown = host.run([PROBE, ADDRESS, mtu], check=False, timeout=300)
    lab.check_equal(shown.status, 0, f"the probe's end: {shown}")
    for line in shown.lines():
        lab.step(line)
        if line.startswith("ok  "):
            lab.count("honest passes" if "honest guest" in line else "lies refused")
    lab.check_equal((lab.counts.get("honest passes"), lab.counts.get("lies refused")),
                    (HONEST, LIES), "cases as they must be")
    lab.step("everything restored")
    host.run(f"rm {PROBE}; rdma link delete rxe0; ip addr del {ADDRESS}/24 dev {pf}; "
             f"ip link set {pf} down")
