# SPDX-License-Identifier: Apache-2.0
"""NetworkManager, .link files, networkd, netplan change VFs: doctor names each before, drift after.

Each is Debian's own, installed here, configured as its manual says, and strikes by its own means
while a VM has a VF. Only Kubernetes' SR-IOV network operator is a stand-in, because Debian has no
package of it. Its configuration and its unit are as in its sources (pkg/systemd, bindata); the
program that the unit starts is the lab's own, reads that configuration, and writes to sysfs what
the operator does (SetSriovNumVfs: 0, then the number).
"""

from dataclasses import dataclass, field

from vflab.added_packages import AddedPackages
from vflab.doctor import keep_bundle
from vflab.product import Product

BOOT = "own"
DEADLINE_SECONDS = 2400
EVENT_SECONDS = 60
STRIKE_SECONDS = 300  # the kernel waits until the VM has let go

LINK_FILE = """# Somebody else's VFs
[Match]
Path=pci-{pci}
[Link]
NamePolicy=keep kernel database onboard slot path
SR-IOVVirtualFunctions=3
"""
NETWORK_FILE = """[Match]
Name={pf}
[Network]
LinkLocalAddressing=no
IPv6AcceptRA=no
KeepConfiguration=yes

[SR-IOV]
VirtualFunction=0
VLANId=300
"""
NETPLAN = """network:
  version: 2
  renderer: networkd
  ethernets:
    {pf}:
      link-local: []
      virtual-function-count: 3
"""
CONNECTION = """[connection]
id=storage net
type=ethernet
interface-name={pf}
autoconnect=false

[ethernet]

[sriov]
total-vfs=3

[ipv4]
method=disabled

[ipv6]
method=disabled
"""
# NetworkManager leaves the lab's own network, the VFs and vfmgr's devices alone.
ONLY_THE_PF = """[main]
no-auto-default=*
[keyfile]
unmanaged-devices=*,except:interface-name:{pf}
"""
OPERATOR_CONFIG = """spec:
    interfaces:
        - pciaddress: {pci}
          numvfs: 3
          mtu: 0
          name: {pf}
          linktype: ""
          eswitchmode: legacy
          vfgroups:
            - resourcename: lab
              devicetype: netdevice
              vfrange: 0-2
              policyname: lab
              isrdma: false
          externallymanaged: false
unsupportedNics: true
platformType: 0
"""
OPERATOR_UNIT = """[Unit]
Description=The SR-IOV network operator's, before the network is set up
DefaultDependencies=no
[Service]
Type=oneshot
ExecStart=/var/lib/sriov/sriov-network-config-daemon service --phase pre
[Install]
WantedBy=multi-user.target
"""
OPERATOR_STAND_IN = """#!/bin/sh -e
value() { awk -v key="$1:" '{ sub(/^ *- /, "") } $1 == key { print $2; exit }' $config; }
config=/etc/sriov-operator/sriov-interface-config.yaml
file=/sys/bus/pci/devices/$(value pciaddress)/sriov_numvfs
echo 0 >$file
value numvfs >$file
"""


@dataclass
class Owner:
    name: str
    files: dict         # path: text
    told: str           # what doctor and the drift event say of it
    strike: str         # its own event
    prepare: str = ":"  # runs once its files are installed; no strike yet
    undo: str = ":"     # runs once its files are removed
    drift: str = "has 3 VFs, 2 are configured"
    modes: dict = field(default_factory=dict)


LINK = Owner(
    "systemd .link", {"/etc/systemd/network/20-vfs.link": LINK_FILE},
    "/etc/systemd/network/20-vfs.link:6 makes 3 VFs",
    "udevadm trigger --action=add --settle /sys/class/net/{pf}",
    prepare="udevadm control --reload", undo="udevadm control --reload")
NETWORKD = Owner(
    "systemd-networkd", {"/etc/systemd/network/20-vfs.network": NETWORK_FILE},
    "/etc/systemd/network/20-vfs.network:8 sets VFs up",
    "networkctl reload", undo="networkctl reload", drift="has vlan 300")
OPERATOR = Owner(
    "SR-IOV network operator (stand-in)",
    {"/etc/sriov-operator/sriov-interface-config.yaml": OPERATOR_CONFIG,
     "/etc/systemd/system/sriov-config.service": OPERATOR_UNIT,
     "/var/lib/sriov/sriov-network-config-daemon": OPERATOR_STAND_IN},
    "/etc/sriov-operator/sriov-interface-config.yaml:4 makes 3 VFs",
    "systemctl start sriov-config",
    prepare="systemctl daemon-reload && systemctl enable sriov-config 2>&1",
    undo="systemctl daemon-reload; rmdir /etc/sriov-operator /var/lib/sriov; "
         "rm /etc/systemd/system/multi-user.target.wants/sriov-config.service",
    modes={"/var/lib/sriov/sriov-network-config-daemon": "0755"})
NETPLAN_IO = Owner(
    "netplan", {"/etc/netplan/50-vfs.yaml": NETPLAN},
    "/etc/netplan/50-vfs.yaml:7 makes 3 VFs", "netplan apply", undo="netplan apply",
    modes={"/etc/netplan/50-vfs.yaml": "0600"})
PROFILE = "/etc/NetworkManager/system-connections/storage.nmconnection"
NETWORK_MANAGER = Owner(
    "NetworkManager", {PROFILE: CONNECTION},
    f"NetworkManager's connection storage net ({PROFILE}:10) makes 3 VFs",
    "nmcli connection up 'storage net'", prepare="nmcli connection reload",
    undo="nmcli connection reload", modes={PROFILE: "0600"})


class Host:
    """The PF, its VM, and the check that a strike happened."""

    def __init__(self, lab):
        self.lab, self.product = lab, Product(lab)
        self.pf, self.pci = self.product.pf, self.product.pci
        self.product.manage(num_vfs=2)
        self.vm = lab.vm("victim", start=False)

    def attach(self):
        """The VM starts anew for each owner, so nothing of the last strike is left in it."""
        self.vm.start().wait_ready()
        attachment = self.product.attach("victim", network="train", vf=0)
        self.vm.wait_for("the VF's netdev", f"grep {attachment['settings']['mac']} "
                         "/sys/class/net/*/address")
        return attachment

    def detach(self, attachment):
        # A VM that lost its VF while its driver ran may no longer answer.
        self.lab.host.run("virsh -q destroy victim")
        self.product.detach(attachment)

    def said_by_doctor(self):
        report = self.lab.vfctl("doctor", "-o", "json", check=False).json()
        return [one for one in report["findings"]
                if one["rule"] == "sriov.owner" and one["subject"] == self.pci]

    def history(self):
        return self.lab.api("GET", f"/v1/pfs/{self.pci}/vfs/0/history").body["items"]

    def drift_after(self, last, words):
        def found():
            for one in self.history():
                if one["number"] > last and one["kind"] == "drift" and words in one["detail"]:
                    return one
            return None
        return self.lab.host.wait_for(f"drift: {words}", found, EVENT_SECONDS)

    def write(self, owner):
        for path, text in owner.files.items():
            # Not format(): awk uses braces, too.
            text = text.replace("{pf}", self.pf).replace("{pci}", self.pci)
            self.lab.host.write(path, text, mode=owner.modes.get(path, "0644"))
        self.lab.host.run(owner.prepare)

    def as_seen(self):
        vf = self.lab.observe.ip_link_vf(self.pf, 0)
        return self.lab.observe.numvfs(self.pf), vf and vf["vlan"]

    def named_before(self, owner):
        before = self.as_seen()
        findings = [one for one in self.said_by_doctor() if owner.told in one["detail"]]
        keep_bundle(self.lab, f"owner {owner.name}")
        if self.lab.check(findings, f"{owner.name}: doctor says {self.said_by_doctor()}"):
            self.lab.step(f"doctor: {findings[0]['detail']}")
        self.lab.check_equal(before, (2, 100), f"{owner.name}: VFs, VLAN of VF 0 before the strike")
        return bool(findings) and before == (2, 100)

    def struck(self, owner):
        took_vfs = "VFs" in owner.drift
        expected = (3, 0) if took_vfs else (2, 300)
        self.lab.host.run(owner.strike.format(pf=self.pf), timeout=STRIKE_SECONDS)
        return self.lab.host.wait_for(f"{owner.name} strikes", lambda: self.as_seen() == expected,
                                      EVENT_SECONDS)

    def remedy(self, owner):
        self.lab.host.run(f"rm {' '.join(owner.files)}; {owner.undo}")
        self.lab.check_equal(self.said_by_doctor(), [], f"{owner.name}: after it is gone")


def tried(lab, host, owner):
    """Runs one owner beside a VM that has a VF, from its configuration to its removal."""
    lab.step(f"{owner.name} is configured")
    attachment = host.attach()
    last = host.history()[0]["number"]
    host.write(owner)
    seen = {"named_before": host.named_before(owner)}
    lab.step(f"{owner.name} strikes: {owner.strike.format(pf=host.pf)}")
    seen["struck"] = host.struck(owner)
    event = host.drift_after(last, owner.drift)
    lab.step(f"drift: {event['detail']}")
    seen["drift_event"] = lab.check(owner.told in event["detail"],
                                    f"{owner.name} is not named: {event['detail']}")
    lab.step(f"{owner.name}: " + " ".join(f"{name}={int(so)}" for name, so in seen.items()))
    for name, so in seen.items():
        lab.count(name, int(so))
    if owner is OPERATOR:
        lab.count("stand_ins")
    if "VFs" in owner.drift:
        stolen = host.drift_after(last, "attached to VM victim")
        lab.check(owner.told in stolen["detail"], f"nobody is named: {stolen['detail']}")
        lab.check_equal(lab.observe.hostdevs("victim", "live"), [], "what the VM has of the host")
        lab.count("thefts")
    host.detach(attachment)
    host.remedy(owner)
    host.product.manage(num_vfs=2)


def struck_at_boot(lab, host):
    """A .link file is applied before any part of vfmgr runs; the daemon reports it at its start."""
    lab.step("systemd .link strikes at boot")
    host.vm.destroy()
    host.write(LINK)
    last = host.history()[0]["number"]
    lab.reboot()
    lab.host.wait_for("vfmgrd serves", "systemctl is-active vfmgrd", 120)
    lab.check_equal(lab.observe.numvfs(host.pf), 3, "VFs after a boot")
    event = host.drift_after(last, LINK.drift)
    lab.check(LINK.told in event["detail"], f"at boot: {event['detail']}")
    lab.step(f"drift: {event['detail']}")
    lab.count("at_boot")
    host.remedy(LINK)


def remedied_by_nmcli(lab, host):
    """doctor's command removes the setting from the connection, as printed."""
    host.write(NETWORK_MANAGER)
    [finding] = host.said_by_doctor()
    for command in finding["remedy"]["commands"]:
        lab.step(f"remedy: {command}")
        lab.host.run(command)
    lab.check_equal(host.said_by_doctor(), [], "NetworkManager: after its remedy")
    lab.check("sriov" not in lab.host.read(PROFILE), "the connection still has VFs")
    lab.count("remedied")
    host.remedy(NETWORK_MANAGER)


def run(lab):
    lab.expect("named_before", "struck", "drift_event", "thefts", "remedied", "at_boot")
    host = Host(lab)
    lab.host.write("/etc/NetworkManager/conf.d/lab.conf", ONLY_THE_PF.format(pf=host.pf))
    for owner in (LINK, NETWORKD, OPERATOR):
        tried(lab, host, owner)
    lab.step("NetworkManager and netplan are installed")
    with AddedPackages(lab, ["network-manager", "netplan.io"]):
        lab.step(", ".join(lab.host.run("dpkg-query -W network-manager netplan.io systemd "
                                        "| tr '\\t' ' '").lines()))
        for owner in (NETPLAN_IO, NETWORK_MANAGER):
            tried(lab, host, owner)
        remedied_by_nmcli(lab, host)
    lab.host.run("rm -r /etc/NetworkManager")
    struck_at_boot(lab, host)
    for what in ("named_before", "struck", "drift_event"):
        lab.check_equal(lab.counts.get(what), 5, f"owners {what}")
    host.product.leave()
    lab.host.run(f"ip link set {host.pf} down")
