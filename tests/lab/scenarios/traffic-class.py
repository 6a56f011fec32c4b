# SPDX-License-Identifier: Apache-2.0
"""RDMA tests have the network's DSCP on the wire, from either end, as reported."""

from vflab.product import TRAIN, Product

VM = "vm1"
CAPTURE = "/run/roce.pcap"
DSCPS = (26, 46, None)  # one after the other, while the VF is attached
PACKETS_MIN = 50  # from each end: 4 MiB were written and 4 MiB read, besides pings
DATA_PACKETS_MIN = 1000  # from both ends together
# RoCE version 2, except what RDMA CM and other parts of the kernel send between queue pairs 1.
ROCE = "udp dst port 4791 and udp[12:4] & 0xffffff != 1"


def run(lab):
    lab.expect("packets of the host", "packets of the VM", "reports that name it",
               "datagrams and pings by RDMA CM")
    product = Product(lab)
    product.manage(num_vfs=1, networks=[{**TRAIN, "dscp": DSCPS[0]}])
    vm = lab.vm(VM).wait_ready()
    attachment = product.attach(VM, network="train", verify="required", verify_profile="quick")
    lab.check_equal(attachment["verification"].get("dscp"), DSCPS[0], "the first report's DSCP")
    interface = next(link["ifname"] for link in lab.observe.links()
               if TRAIN["host_address"] in str(lab.observe.addresses(link["ifname"])))
    for dscp in DSCPS:
        if dscp != DSCPS[0]:
            lab.vfctl("network", "set", "train", "--dscp", "none" if dscp is None else dscp)
        proved(lab, product, attachment, interface, dscp)
    other_ways(lab, product, vm, interface)
    product.leave()


class Capture:
    """Captures with tcpdump on a network device of the host, independently of vfmgr."""

    def __init__(self, lab, device):
        self.lab = lab
        self.command = (f"tcpdump -Z root -i {device} -nn -s 96 -B 16384 -U -w {CAPTURE} "
                        "'udp port 4791'")

    def __enter__(self):
        self.lab.host.run(f"rm -f {CAPTURE}")
        self.running = self.lab.host.background(self.command)
        # The file's header is written once packets are captured.
        self.lab.host.wait_for("tcpdump listens", f"test -s {CAPTURE}", 30)
        return self

    def __exit__(self, *_):
        said = self.running.stop().stdout
        self.lab.step("; ".join(line for line in said.splitlines() if "packets" in line))

    def count(self, expected):
        shown = self.lab.host.run(f"tcpdump -r {CAPTURE} -nn '{expected}' 2>/dev/null | wc -l")
        return int(shown.stdout)


def proved(lab, product, attachment, interface, dscp):
    """The host requests the run; counts the packets of each end, and their DSCP."""
    lab.step(f"DSCP {dscp}")
    with Capture(lab, interface) as capture:
        report = product.verify(attachment, profile="quick")
    if lab.check_equal((report["verdict"], report.get("dscp"), report["warnings"]),
                       ("pass", dscp, []), "the report"):
        lab.count("reports that name it", dscp is not None)
    total = 0
    for who, address in (("host", TRAIN["host_address"]), ("VM", attachment["address"])):
        found = judge_packets(lab, capture, f"{ROCE} and src host {address}", dscp or 0, who)
        if lab.check(found >= PACKETS_MIN, f"only {found} RoCE packets of the {who}"):
            lab.count(f"packets of the {who}", found)
        total += found
    lab.check(total >= DATA_PACKETS_MIN, f"only {total} RoCE packets for 8 MiB")


def judge_packets(lab, capture, which, dscp, who):
    """Returns the number of packets; each must have that DSCP."""
    found = capture.count(which)
    strangers = capture.count(f"{which} and ip[1] & 0xfc != {dscp << 2}")
    lab.check_equal(strangers, 0, f"of {found} packets of the {who}, those without DSCP {dscp}")
    return found


def other_ways(lab, product, vm, interface):
    """Datagrams have their own address handle, and RDMA CM creates its own queue pairs."""
    dscp = DSCPS[0]
    lab.vfctl("network", "set", "train", "--dscp", dscp)
    for test in ("ud_ping", "cm_ping"):
        with Capture(lab, interface) as capture:
            report = vm.run(f"vf-guest verify -o json {test}", timeout=240).json()[0]
        made = next(one for one in report["tests"] if one["name"] == test)
        lab.check_equal((made["verdict"], report["dscp"]), ("pass", dscp), f"{test}: {made}")
        found = judge_packets(lab, capture, ROCE, dscp, f"run with {test}")
        if lab.check(found >= DATA_PACKETS_MIN, f"only {found} RoCE packets with {test}"):
            lab.count("datagrams and pings by RDMA CM", found)
