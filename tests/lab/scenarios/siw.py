# SPDX-License-Identifier: Apache-2.0
"""Software iWARP (siw): what rdma-links shows of SoftRoCE, and RDMA over TCP to another machine.

Debian's kernels have no siw; the module is built from Debian's source.
"""

from vflab import scenario, siw
from vflab.second_machine import SecondMachine

LONG = True
HOST, SECOND = "10.99.0.1", "10.99.0.2"
PINGS, BYTES = 10, 60000
LINK = "siw_pf"
NEEDED = ["iw_cm", "crc32c_generic", "libcrc32c"]  # kernel modules
PROVIDER = ["/etc/libibverbs.d/siw.driver", "/usr/lib/x86_64-linux-gnu/libibverbs/libsiw-*.so"]
# The small machine's image has SoftRoCE's provider alone.
SETUP = ("insmod /siw.ko && mv /siw.driver /etc/libibverbs.d/ && "
         "mv /libsiw-*.so /usr/lib/x86_64-linux-gnu/libibverbs/ && ip link set eth0 up && "
         f"ip addr add {SECOND}/24 dev eth0 && rdma link add siw0 type siw netdev eth0")
SERVE = f"(rping -s -v -a {SECOND} -C {PINGS} -S {BYTES} -V >/run/rping 2>&1 &)"


def run(lab):
    siw.load(lab)
    links = scenario.load("rdma-links")
    links.run(lab, "siw")
    lab.expect("bytes by iWARP")
    folder = lab.machine.folder / "siw"
    folder.mkdir(exist_ok=True)
    for path in lab.host.run(f"ls {' '.join(PROVIDER)}").lines():
        lab.host.copy_out(path, folder)
    module = siw.module(lab.machine.settings["suite"], siw.kernel_module.kernel_of(lab))
    with SecondMachine(lab, [*folder.iterdir(), module], NEEDED) as second:
        second.wait_ready().run(SETUP)
        over_the_wire(lab, links, second)
    siw.unload(lab)


def over_the_wire(lab, links, second):
    lab.step("rping over iWARP to another machine, every byte compared")
    pf = lab.observe.pf()
    lab.host.run(f"ip link set {pf} up && ip addr add {HOST}/24 dev {pf}")
    links.trust(lab, [pf])
    lab.vfctl("rdma", "link", "add", LINK, "type", "siw", "netdev", pf)
    lab.check_equal(lab.observe.rdma_links(), {LINK: pf}, "RDMA links")
    shown = lab.host.run("rdma link").stdout
    lab.check("state ACTIVE" in shown, f"as the guide of software RDMA shows it: {shown}")
    lab.check("iWARP" in lab.host.run(f"ibv_devinfo -d {LINK}").stdout, "ibv_devinfo's transport")
    lab.host.wait_for("the second machine answers", f"ping -c1 -W1 {SECOND}", 30)
    second.run(SERVE)
    second.wait_for("rdma res show cm_id | grep LISTEN", 30)
    before = int(second.run("cat /sys/class/net/eth0/statistics/rx_bytes"))
    done = lab.host.run(f"rping -c -v -a {SECOND} -C {PINGS} -S {BYTES} -V 2>&1")
    pings = done.stdout.count("ping data: rdma-ping")
    lab.check_equal(pings, PINGS, f"pings of {done}")
    came = int(second.run("cat /sys/class/net/eth0/statistics/rx_bytes")) - before
    if lab.check(came > PINGS * BYTES, f"{came} bytes came to the second machine"):
        lab.count("bytes by iWARP", came)
    lab.vfctl("rdma", "link", "delete", LINK)
    lab.host.run(f"rm {links.CONFIG} && systemctl restart vfmgrd && ip addr del {HOST}/24 dev {pf}"
                 f" && ip link set {pf} down")
