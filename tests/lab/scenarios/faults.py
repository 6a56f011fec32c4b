# SPDX-License-Identifier: Apache-2.0
"""Faults on the path of RDMA are provoked, one after the other, and named."""

import json

from vflab.product import Product
from vflab.programs import built, send

VM = "faulty"
PROGRAM = "/run/hostile_guest"


def run(lab):
    lab.expect("well before", "damage named", "path faults named", "address faults named",
               "limits named", "well again")
    program = built(lab, "hostile_guest").read_bytes()
    faults = Faults(lab)
    send(faults.vm, program, PROGRAM)
    faults.well("well before")
    faults.damage()
    faults.path()
    faults.addresses()
    faults.limits()
    faults.well("well again")
    faults.product.leave()


class Faults:
    def __init__(self, lab):
        self.lab, self.product = lab, Product(lab)
        self.product.manage(num_vfs=2)
        self.vm = lab.vm(VM).wait_ready()
        self.attachment = self.product.attach(VM, network="train", verify="required")
        self.ident, self.address = self.attachment["id"], self.attachment["address"]
        self.netdev = self.vm.netdev(self.attachment["settings"]["mac"])
        self.interface = lab.host.run("ip -o link show type vlan | cut -d: -f2 | cut -d@ -f1"
                                ).stdout.strip()

    def verify(self, prefix=""):
        shown = self.vm.run(f"{prefix} vf-guest verify --profile quick -o json", check=False,
                            timeout=300)
        return json.loads(shown.stdout)[0]

    def well(self, count):
        verdict = self.verify()
        if self.lab.check_equal(verdict["verdict"], "pass", f"{count}: {verdict['detail']}"):
            self.lab.count(count)

    def named(self, count, what, said, *words):
        """The verdict must be fail, with these words."""
        missing = [word for word in words if word not in said]
        self.lab.step(f"{what}: {said}")
        if self.lab.check(not missing, f"{what}: {missing} not said in: {said}"):
            self.lab.count(count)

    def fault(self, count, what, begin, end, *words, on=None):
        """`begin` and `end` are commands of the host, or of the machine `on`."""
        machine = on or self.lab.host
        machine.run(begin)
        try:
            verdict = self.verify()
        finally:
            machine.run(end)
        self.lab.check_equal(verdict["verdict"], "fail", what)
        self.named(count, what, f"{verdict['detail']} [{verdict['remedy']}]", *words)

    def damage(self):
        self.lab.step("bytes that arrive other than they were sent")
        for how, words in (("flip", ["1 of 4194304 bytes written differ", "chunk 1562"]),
                           ("swap", ["chunk 18 landed at chunk 17"]),
                           ("short", ["chunk 65472 was never written"])):
            said = self.vm.run(f"{PROGRAM} {how} {self.ident} {self.netdev}", check=False,
                               timeout=120).stdout.splitlines()[-1]
            write = [test for test in json.loads(said)["tests"] if test["name"] == "rdma_write"]
            self.lab.check_equal((write[0]["verdict"], write[0]["by"]), ("fail", "host"), how)
            self.named("damage named", how, write[0]["detail"], *words)

    def path(self):
        self.lab.step("a path that does not carry it")
        self.fault("path faults named", "a hop of 1500 bytes",
                   f"ip link set {self.interface} mtu 1500",
                   f"ip link set {self.interface} mtu 9000", "path_mtu", "an MTU of about 1",
                   f"the host can't send 8972 bytes on {self.interface}")
        police = (f"tc qdisc add dev {self.interface} handle ffff: ingress; "
                  f"tc filter add dev {self.interface} parent ffff: matchall "
                  "action police rate 1mbit burst 32k conform-exceed drop")
        self.fault("path faults named", "a policed rate", police,
                   f"tc qdisc del dev {self.interface} ingress", "on the host, tc dropped",
                   f"packets on {self.interface}",
                   f"tc -s filter show dev {self.interface} ingress")
        where = f"ip link set {self.product.pf} vf {self.attachment['vf']['index']} vlan"
        self.fault("path faults named", "another VLAN", f"{where} 200", f"{where} 100",
                   "reachability", "has vlan 200", "was attached with vlan 100")

    def addresses(self):
        self.lab.step("addresses that are not there, there twice, or another's")
        own = f"{self.address}/24 dev {self.netdev}"
        self.fault("address faults named", "a missing address", f"ip addr del {own}",
                   f"ip addr add {own}", f"no longer has the address {self.address}",
                   f"ip address add {own}", on=self.vm)
        twice = f"{self.address}/32 dev {self.interface}"
        mac = self.lab.host.read(f"/sys/class/net/{self.interface}/address").strip()
        self.fault("address faults named", "an address that another has, too",
                   f"ip addr add {twice}", f"ip addr del {twice}",
                   f"another machine also has the address {self.address}", f"MAC {mac}")
        said = self.vm.run(f"{PROGRAM} gid {self.ident} {self.netdev}", check=False).stdout
        self.named("address faults named", "another GID", said, "the queue pair's GID",
                   f"the GID of the VF's address {self.address}")

    def limits(self):
        self.lab.step("too little, and nobody there")
        verdict = self.verify(f"{PROGRAM} poor")
        self.lab.check_equal(verdict["verdict"], "fail", "little locked memory")
        self.named("limits named", "little locked memory",
                   f"{verdict['detail']} [{verdict['remedy']}]", "ENOMEM", "locked memory")
        self.full_neighbour_table()
        self.lab.host.run("systemctl stop vfmgrd")
        try:
            shown = self.vm.run("vf-guest verify --profile quick", check=False, timeout=120)
        finally:
            self.lab.host.run("systemctl start vfmgrd")
        self.lab.check(shown.status != 0, "a verification without a responder succeeded")
        self.named("limits named", "a dead responder", shown.stderr, "vfmgrd", "remedy")
        self.lab.host.wait_for("vfmgrd answers", "vfctl pf list", 60)

    def full_neighbour_table(self):
        """The verdict contains what the VM's kernel logged. Entries from the last five seconds are
        not dropped in favour of others."""
        def limit(*entries):
            return "; ".join(f"sysctl -q -w net.ipv4.neigh.default.gc_thresh{i}={n}"
                             for i, n in enumerate(entries, 1))
        fill = (f"ip neigh flush dev {self.netdev}; {limit(1, 1, 1)}; "
                f"ip neigh replace 192.168.100.201 lladdr 02:00:00:00:02:01 dev {self.netdev} "
                "nud reachable;")
        try:
            verdict = self.verify(fill)
        finally:
            self.vm.run(f"{limit(128, 512, 1024)}; ip neigh flush dev {self.netdev}")
        self.lab.check_equal(verdict["verdict"], "fail", "a full neighbour table")
        self.named("limits named", "a full neighbour table",
                   f"{verdict['detail']} [{verdict['remedy']}]", "neighbor table overflow",
                   "gc_thresh3")
