# SPDX-License-Identifier: Apache-2.0
"""A VM that sends its host frames of its own making, and the host's count of those that arrived.

The count is from a table of nftables behind all others: what it counts has passed every filter.
"""

from contextlib import contextmanager

from .product import PLAIN
from .programs import built, send

PROGRAM = "/run/knock"
ECHO, ROCE, INTEROP = 8472, 4791, 18515
RESPONDERS = (ECHO, ROCE, INTEROP)
FROM_PORT = 31337
VLAN = 300
ROUTER, BEYOND = "10.77.0.1", "10.88.0.9"
ROUTER_MAC = "02:77:00:00:00:01"
WITNESS = f"""
table inet witness {{
  counter last {{ }}
  counter input {{ }}
  counter forward {{ }}
  chain input {{
    type filter hook input priority 300
    ip daddr {PLAIN["host_address"]} udp sport {FROM_PORT} udp dport {ECHO} counter name last accept
    th sport {FROM_PORT} counter name input
  }}
  chain forward {{
    type filter hook forward priority 300
    th sport {FROM_PORT} counter name forward
  }}
}}
"""


class Knocks:
    def __init__(self, lab, product, vm):
        self.lab, self.host, self.product, self.vm = lab, lab.host, product, vm
        send(vm, built(lab, "knock").read_bytes(), PROGRAM)
        self.netdev = self.attachment = None

    @contextmanager
    def witness(self):
        """The host has addresses on the PF and on a VLAN device of it, and routes."""
        pf = self.product.pf
        self.host.write("/run/witness.nft", WITNESS, "600")
        # Without locktime the first claim counts; usually none does in the second after a change.
        self.host.run("nft -f /run/witness.nft; sysctl -qw net.ipv4.ip_forward=1 "
                      f"net.ipv6.conf.all.forwarding=1 net.ipv4.neigh.{pf}.locktime=0; "
                      f"ip link set {pf} up; ip link add beyond type dummy; ip link set beyond up; "
                      f"ip link add link {pf} name vlan{VLAN} type vlan id {VLAN}; "
                      f"ip link set vlan{VLAN} up; ip addr add 10.99.0.3/24 dev vlan{VLAN}; "
                      f"ip addr add 10.77.0.3/24 dev {pf}; "
                      f"ip addr add fd00:77::3/64 dev {pf} nodad; "
                      "ip addr add 10.88.0.1/24 dev beyond; "
                      f"ip neigh replace {BEYOND} lladdr 02:88:00:00:00:09 dev beyond")
        try:
            yield self
        finally:
            self.host.run("nft delete table inet witness; ip link del beyond; "
                          f"ip link del vlan{VLAN}; ip neigh del {ROUTER} dev {pf}; "
                          f"ip addr del 10.77.0.3/24 dev {pf}; ip addr del fd00:77::3/64 dev {pf}; "
                          "sysctl -qw net.ipv4.ip_forward=0 net.ipv6.conf.all.forwarding=0 "
                          f"net.ipv4.neigh.{pf}.locktime=100",
                          check=False)

    def begin(self, attachment):
        self.attachment = attachment
        self.netdev = self.vm.wait_netdev(attachment["settings"]["mac"])
        self.vm.run(f"ip link set {self.netdev} up")
        self.vm.wait_for("the VF's carrier", f"grep 1 /sys/class/net/{self.netdev}/carrier", 60)

    def at_all(self, besides=None):
        """Sends to every open port of every address, and to some closed ones. `besides`: the
        address at which the responder serves RoCE, echo and interop clients."""
        listening = self.host.run("ss -Hlntu | awk '{print $5}' | sed 's/.*://' | sort -un"
                                  ).stdout.split()
        ports = sorted({*map(int, listening), *RESPONDERS, 1, 65535})
        for address in self.addresses():
            for vlan in (0, VLAN):
                self.knock(address, vlan, [port for port in ports
                                           if address != besides or port not in RESPONDERS])

    def addresses(self):
        """Returns the host's addresses on all interfaces except loopback."""
        shown = self.host.run("ip -j addr").json()
        return [info["local"] for link in shown if link["ifname"] != "lo"
                for info in link["addr_info"]
                if info["scope"] == "global" or link["ifname"] == self.product.pf]

    def through(self):
        """Sends to a machine beyond the host."""
        self.knock(BEYOND, 0, [1, 22, ROCE])

    def claim(self):
        """Makes the VM claim to be the router that the host has used."""
        self.host.run(f"ip neigh replace {ROUTER} lladdr {ROUTER_MAC} dev {self.product.pf} "
                      "nud stale")
        self.vm.run(f"{PROGRAM} {self.netdev} {self.pf_mac()} claim {ROUTER}")

    def router(self):
        """Returns where the host sends packets for its router."""
        shown = self.host.run(f"ip -j neigh show {ROUTER} dev {self.product.pf}").json()
        return shown[0].get("lladdr")

    def knock(self, address, vlan, ports):
        own = self.attachment["address"] or "10.77.0.9"
        if ":" in address:
            own = "fe80::9" if address.startswith("fe80") else "fd00:77::9"
        self.vm.run(f"{PROGRAM} {self.netdev} {self.pf_mac()} {own} {address} {vlan} "
                    f"{' '.join(map(str, ports))}", timeout=120)

    def end(self):
        """Sends a frame that the filter lets in; returns when it and so all others arrived."""
        before = self.counted("last")
        self.knock(PLAIN["host_address"], 0, [ECHO])
        self.host.wait_for("the last knock", lambda: self.counted("last") > before)

    def pf_mac(self):
        return self.lab.observe.link(self.product.pf)["address"]

    def counted(self, name):
        shown = self.host.run(f"nft -j list counter inet witness {name}").json()
        return next(each["counter"]["packets"] for each in shown["nftables"] if "counter" in each)
