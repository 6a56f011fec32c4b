# SPDX-License-Identifier: Apache-2.0
"""Observes the host between the acts of vflab.life: everything in one command, because an emulated
host takes as long for each of them."""

import json
import re
import xml.etree.ElementTree as ElementTree

from vflab.life import GONE, RUNNING, SHUT_OFF, Domain, Observed, Vf, World
from vflab.observe import flat_vf
from vflab.scenario import SOCKET

# virsh prints each domain's live XML, and then its persistent XML.
OBSERVE = r"""cd /sys/bus/pci/devices/PCI || exit
echo @vfs; for v in virtfn*; do p=$(readlink $v); d=$(readlink $v/driver)
  g=$(readlink $v/iommu_group); o=$(cat $v/driver_override)
  echo "${v#virtfn}|${p##*/}|${d##*/}|${g##*/}|$o"
done
echo @held; find /proc/[0-9]*/fd -maxdepth 1 -lname '/dev/vfio/[0-9]*' -printf '%h|%l\n' 2>/dev/null
echo @link; ip -j -d link show dev PF
get() { curl -sS --fail-with-body --max-time 60 --unix-socket SOCKET "http://localhost$1" && echo; }
echo @attachments; get /v1/attachments || exit
echo @quarantine; get /v1/pfs/PCI/vfs || exit
echo @domains; names=$(virsh -q list --all --name) || exit
for n in $names; do echo "dumpxml $n; dumpxml --inactive $n;"; done | tr '\n' ' ' >/run/life.virsh
[ -z "$names" ] || virsh -q "$(cat /run/life.virsh)"
"""

# Shows what the networks have on the host. It takes too long to run after every act.
NETWORKS = r"""ip -br -4 addr show; echo @rdma; rdma -j link; echo @inet; nft list table inet vfmgr
echo @netdev; nft list table netdev vfmgr"""
MAC = re.compile(r"\b[0-9a-f]{2}(?::[0-9a-f]{2}){5}\b")


def parts_of(text):
    """Returns {name: lines} of what the script printed after each "@name"."""
    parts, lines = {}, []
    for line in text.splitlines():
        if re.fullmatch("@[a-z]+", line):
            lines = parts.setdefault(line[1:], [])
        else:
            lines.append(line)
    return parts


def domains_of(text):
    trees = [ElementTree.fromstring(one)
             for one in re.findall(r"<domain [^>]*>.*?</domain>", text, re.S)]
    return tuple(Domain(now.findtext("name"), now.findtext("uuid"), now.get("id") is not None,
                        hostdevs_of(now) if now.get("id") is not None else (), hostdevs_of(later))
                 for now, later in zip(trees[::2], trees[1::2]))


def hostdevs_of(tree):
    found = []
    for device in tree.findall("./devices/hostdev[@type='pci']"):
        address, alias = device.find("./source/address"), device.find("./alias")
        part = {key: int(address.get(key), 16) for key in ("domain", "bus", "slot", "function")}
        found.append(("{domain:04x}:{bus:02x}:{slot:02x}.{function}".format(**part),
                      None if alias is None else alias.get("name")))
    return tuple(found)


def observed_of(text):
    """Reads what OBSERVE printed."""
    parts = parts_of(text)
    holders = {}
    for line in parts["held"]:
        folder, _, group = line.rpartition("|")
        holders.setdefault(group.rpartition("/")[2], set()).add(int(folder.split("/")[2]))
    link = json.loads("\n".join(parts["link"]))[0]
    settings = {vf["vf"]: flat_vf(vf) for vf in link.get("vfinfo_list", [])}
    vfs = []
    for line in parts["vfs"]:
        index, pci, driver, group, override = line.split("|")
        vfs.append(Vf(int(index), pci, driver, "" if override == "(null)" else override,
                      settings.get(int(index), {}), tuple(sorted(holders.get(group, ())))))
    quarantined = [vf["index"] for vf in json.loads("\n".join(parts["quarantine"]))["items"]
                   if vf["quarantine"]]
    return Observed(tuple(sorted(vfs, key=lambda vf: vf.index)),
                    domains_of("\n".join(parts["domains"])),
                    tuple(json.loads("\n".join(parts["attachments"]))["items"]),
                    frozenset(quarantined), "UP" in link["flags"])


def observe(lab, product):
    script = OBSERVE.replace("PCI", product.pci).replace("SOCKET", SOCKET)
    result = lab.host.run(script.replace("dev PF", f"dev {product.pf}"))
    return observed_of(result.stdout)


def world_of(now, slots):
    """Returns what the choice depends on. A slot's VM that is gone has VFs until they end."""
    vms = []
    for slot in slots:
        domain = now.domain(slot.name)
        state = GONE if domain is None else RUNNING if domain.active else SHUT_OFF
        vms.append((state, tuple(now.indexes_of(slot.uuid))))
    return World(tuple(vms), tuple(now.free()), now.pf_up)


def faults_of_networks(lab, now, networks):
    """The host has the address and the filter of each network that is used, and of no other, and
    one SoftRoCE link of the PF for all of them."""
    text = lab.host.run(NETWORKS, check=False).stdout
    begin, _, rest = text.partition("@rdma\n")
    parts = parts_of("@rdma\n" + rest)
    used = {one["spec"].get("network") for one in now.attachments}
    of_vms = {one["settings"].get("mac") for one in now.attachments}
    filters = "\n".join(parts.get("inet", []) + parts.get("netdev", []))
    found = []
    for network in networks:
        address = network["host_address"]
        for what, there in (("the host's address", re.search(rf" {re.escape(address)}/", begin)),
                            ("a filter", re.search(rf"\b{re.escape(address)}\b", filters))):
            if bool(there) != (network["name"] in used):
                found.append(f"network {network['name']} is "
                             f"{'used' if network['name'] in used else 'not used'}, and {what} is "
                             f"{'there' if there else 'not there'}")
    links = json.loads("\n".join(parts["rdma"]) or "[]")
    expected = any(one["name"] in used for one in networks)
    if len(links) != expected:
        found.append(f"{len(links)} RDMA links for the networks {used}: {links}")
    return found + [f"the filter has {mac}, the MAC of no attachment"
                    for mac in sorted(set(MAC.findall(filters)) - of_vms)]
