# SPDX-License-Identifier: Apache-2.0
"""Observes the emulated host by sysfs, iproute2, virsh and /proc, never by vfmgr."""

import xml.etree.ElementTree as ElementTree
from shlex import quote

CLEAN_STATE = """
for f in /sys/bus/pci/devices/*/sriov_numvfs; do
  d=${f%/sriov_numvfs}; echo "VFs of $(basename $d)|$(ls -d $d/virtfn* 2>/dev/null | wc -l)"; done
for n in /sys/class/net/*; do echo "netdev|$(basename $n)"; done
ip -br -4 addr show | awk '{for (i = 3; i <= NF; i++) print "address|" $1 " " $i}'
ip -br -6 addr show scope global | awk '{for (i = 3; i <= NF; i++) print "address|" $1 " " $i}'
rdma link | awk '{print "rdma link|" $2}'
virsh -q list --all --name | awk 'NF {print "VM|" $1}'
for f in /sys/bus/pci/devices/*; do o=$(cat $f/driver_override 2>/dev/null)
  [ "$o" = "(null)" ] || [ -z "$o" ] || echo "driver override|${f##*/} $o"; done
if [ -S /run/vfmgr/vfmgr.sock ]; then
  curl -s --max-time 20 --unix-socket /run/vfmgr/vfmgr.sock http://localhost/v1/attachments |
    jq -r '.items[] | "attachment|" + .id' || exit; fi
true
"""


class Observe:
    def __init__(self, host):
        self.host = host

    def lines(self, command):
        return self.host.run(command).lines()

    def clean_state(self):
        """Returns everything that a scenario must leave as it found it, as a set of lines."""
        return {tuple(line.split("|", 1)) for line in self.lines(CLEAN_STATE) if "|" in line}

    # --- PFs and VFs ---

    def pf(self):
        """Returns the network device of the igb PF, for example enp1s0."""
        return self.lines("for n in /sys/class/net/*; do [ -e $n/device/sriov_totalvfs ] && "
                          "basename $n; done | head -1")[0]

    def pf_pci(self, pf=None):
        return self.lines(f"basename $(readlink /sys/class/net/{quote(pf or self.pf())}/device)")[0]

    def totalvfs(self, pf):
        return int(self.host.read(f"/sys/class/net/{pf}/device/sriov_totalvfs"))

    def numvfs(self, pf):
        """Counts links, because a read of sriov_numvfs hangs while a resize hangs."""
        return len(self.lines(f"ls -d /sys/class/net/{quote(pf)}/device/virtfn* 2>/dev/null || :"))

    def vf_pci(self, pf, index):
        """Returns the PCI address that the kernel links as virtfnN, or None."""
        link = f"/sys/class/net/{quote(pf)}/device/virtfn{int(index)}"
        shown = self.host.run(f"readlink {link}", check=False).stdout.strip()
        return shown.rpartition("/")[2] or None

    def vf_driver(self, pci):
        """Returns the name of the driver that a PCI function is bound to, or None."""
        shown = self.host.run(f"readlink /sys/bus/pci/devices/{quote(pci)}/driver", check=False)
        return shown.stdout.strip().rpartition("/")[2] or None

    def vf_drivers(self, pf):
        """Returns vf_driver's answer for each VF, by index."""
        return [self.vf_driver(self.vf_pci(pf, index)) for index in range(self.numvfs(pf))]

    def driver_override(self, pci):
        shown = self.host.read(f"/sys/bus/pci/devices/{pci}/driver_override").strip()
        return None if shown in ("", "(null)") else shown

    def ip_link_vf(self, pf, index):
        """Returns one VF as iproute2 shows it, for example {'vf': 0, 'mac': ..., 'vlan': 100,
        'qos': 0, 'proto': '802.1q', 'max_tx_rate': 500, 'min_tx_rate': 0, 'spoofchk': True,
        'link_state': 'auto', 'trust': False}, with `vlan` 0 where there is none.
        """
        for vf in self.link(pf).get("vfinfo_list", []):
            if vf["vf"] == index:
                return flat_vf(vf)
        return None

    def iommu_group(self, pci):
        shown = self.host.run(f"readlink /sys/bus/pci/devices/{quote(pci)}/iommu_group")
        return int(shown.stdout.strip().rpartition("/")[2])

    def vfio_holders(self, pci):
        """Returns (pid, name) of each process that has the VFIO group of a PCI function open."""
        group = self.iommu_group(pci)
        found = self.lines(f"find /proc/[0-9]*/fd -maxdepth 1 -lname /dev/vfio/{group} "
                           "2>/dev/null | cut -d / -f 3 | sort -nu | "
                           "while read pid; do echo $pid $(cat /proc/$pid/comm); done")
        return [(int(pid), name) for pid, name in (line.split(" ", 1) for line in found)]

    # --- libvirt ---

    def vms(self):
        return [line for line in self.lines("virsh -q list --all --name") if line]

    def domain(self, vm, which="live"):
        """Returns the domain's XML tree; which: live (running now) or config (its next start)."""
        option = "--inactive" if which == "config" else ""
        return ElementTree.fromstring(self.host.run(f"virsh dumpxml {option} {quote(vm)}").stdout)

    def hostdevs(self, vm, which="live"):
        """Returns [{pci, alias, managed}] of the PCI host devices in a domain's XML."""
        found = []
        for device in self.domain(vm, which).findall("./devices/hostdev[@type='pci']"):
            address = device.find("./source/address")
            part = {key: int(address.get(key), 16)
                    for key in ("domain", "bus", "slot", "function")}
            alias = device.find("./alias")
            found.append({"pci": "{domain:04x}:{bus:02x}:{slot:02x}.{function}".format(**part),
                          "alias": None if alias is None else alias.get("name"),
                          "managed": device.get("managed")})
        return found

    # --- network and RDMA ---

    def link(self, ifname):
        return self.host.run(f"ip -j -d link show dev {quote(ifname)}").json()[0]

    def links(self):
        """Returns all network devices, as iproute2's JSON objects."""
        return self.host.run("ip -j link show").json()

    def addresses(self, ifname):
        """Returns for example ['192.168.100.3/24'], without IPv6 link-local addresses."""
        return global_addresses(self.host.run(f"ip -j addr show dev {quote(ifname)}").json())

    def routes(self, ifname=None):
        where = f"dev {quote(ifname)}" if ifname else ""
        return self.host.run(f"ip -j route show table all {where}").json()

    def neighbours(self, ifname):
        return self.host.run(f"ip -j neigh show dev {quote(ifname)}").json()

    def rdma_links(self):
        """Returns {rdma device: network device}."""
        return {link["ifname"]: link.get("netdev")
                for link in self.host.run("rdma -j link").json()}


def global_addresses(shown):
    """Of the first interface in iproute2's JSON."""
    return [f"{entry['local']}/{entry['prefixlen']}" for entry in shown[0]["addr_info"]
            if entry["scope"] != "link"]


def flat_vf(vf):
    """Depending on its release, iproute2 nests VLAN and rates, and calls the MAC `address`."""
    vlan = (vf.get("vlan_list") or [{}])[0]
    rate = vf.get("rate") or {}
    return {**vf, "mac": vf.get("mac", vf.get("address")),
            "vlan": vlan.get("vlan", vf.get("vlan", 0)),
            "qos": vlan.get("qos", vf.get("qos", 0)),
            "proto": vlan.get("protocol", "802.1q").lower(),
            "max_tx_rate": rate.get("max_tx", vf.get("max_tx_rate", 0)),
            "min_tx_rate": rate.get("min_tx", vf.get("min_tx_rate", 0))}
