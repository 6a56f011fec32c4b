# SPDX-License-Identifier: Apache-2.0
"""A host of the size that vfmgr is made for: 8 PFs with 120 VFs each, all of them attached.

The PFs are the lab's own (vflab.lab_pf), half of them InfiniBand ones. VM n, which is shut off, has
VF n of each PF, as machines with 8 rails attach them; no emulator can run so many VMs. VFs are
created and those of the first VM are attached over the API. The other 952 would take an hour, so
their attachments are copied in the store, and VFs and VMs are configured directly to match. vfmgrd
must then find no drift.

QEMU can't have 968 functions behind an IOMMU (vflab.qemu), so scenarios set IOMMU = False, and a
module of the lab gives each VF its group (tests/lab/module/iommu.c).
"""

import copy
import json
import sqlite3
import tempfile
import time
from contextlib import closing
from pathlib import Path

from vflab import lab_pf
from vflab.product import SERVICES, STORE, Product
from vflab.vm import VM

KINDS = ("ethernet", "infiniband") * 4
PFS, VFS = len(KINDS), 120
SETTINGS = {"ethernet": {"vlan": {"id": 100}, "trust": True}, "infiniband": {}}
STOP, START = f"systemctl stop {SERVICES}", f"systemctl start {SERVICES}"
BIND = """cd {folder} && for vf in virtfn*; do
  [ -e $vf/vfio-dev ] && continue
  pci=$(readlink $vf); pci=${{pci##*/}}
  echo $pci >$vf/driver/unbind; echo vfio-pci >$vf/driver_override
  echo $pci >/sys/bus/pci/drivers_probe; echo >$vf/driver_override
done; ls -d virtfn*/vfio-dev | wc -l"""
HOSTDEV = """<hostdev mode='subsystem' type='pci' managed='no'><driver name='vfio'/><source>
<address domain='0x{}' bus='0x{}' slot='0x{}' function='0x{}'/></source>
<alias name='ua-vfmgr-{}'/></hostdev>"""
IP_WORDS = {"mac": "mac {}", "trust": "trust {}", "spoofchk": "spoofchk {}",
            "node_guid": "node_guid {}", "port_guid": "port_guid {}", "link_state": "state {}"}
# csplit makes a file of each domain; virsh handles all over one connection.
DEFINE = """mkdir /root/tenants; cd /root/tenants
csplit -sz -n 3 - '/^<domain/' '{*}'
for each in *; do echo define $PWD/$each; done | virsh -q >/dev/null
cd; rm -r /root/tenants
"""
UNDEFINE = """for vm in $(virsh -q list --all --name); do echo undefine $vm; done |
  virsh -q >/dev/null"""


class ManyVfs:
    def __init__(self, lab, nics):
        self.lab, self.host, self.nics = lab, lab.host, nics
        self.product = Product(lab, nics[0].netdev)
        self.addresses, self.known_uuids = {}, {}
        lab_pf.load(lab, "vfmgr_lab_iommu")

    def make(self, mode):
        began = time.monotonic()
        for nic in self.nics:
            # The kernel reports no change of VFs for a PF that is down.
            self.host.run(f"ip link set {nic.netdev} up")
            self.product.must("PUT", f"/v1/pfs/{nic.pci}/spec",
                              {"mode": mode, "num_vfs": VFS, "vf_driver": lab_pf.VF_DRIVER})
            self.lab.check_equal(nic.numvfs(), VFS, f"VFs of {nic.pci}")
        self.took(f"{VFS} VFs of each of {PFS} PFs made and bound", began)

    def attach(self):
        began = time.monotonic()
        self.addresses = {nic.pci: self.lab.observe.lines(
            f"for n in $(seq 0 {VFS - 1}); do basename $(readlink {nic.folder}/virtfn$n); done")
            for nic in self.nics}
        self.define(self.vm(0))
        first = []
        for nic in self.nics:
            _, operation = self.product.must("POST", "/v1/attachments", {
                "vm": "tenant-0", "pf": nic.pci, "vf": 0, "settings": SETTINGS[nic.kind]})
            first.append(self.product.attachment(operation["subject"].rsplit("/", 1)[1]))
        self.took(f"{PFS} VFs attached over the API", began)
        self.host.run(STOP)
        self.define("".join(self.vm(n) for n in range(1, VFS)))
        attachments = [self.copied(attachment, rail, n) for rail, attachment in enumerate(first)
                  for n in range(1, VFS)]
        self.write(attachments)
        self.make_so(attachments)
        self.host.run(START)
        self.lab.check_equal(self.attached(), PFS * VFS, "VFs attached")
        self.host.wait_for("vfmgrd finds that all is as it is wanted", self.product.calm, 120)
        self.took(f"{PFS * VFS} VFs attached", began)

    def make_so(self, attachments):
        netdevs = {nic.pci: nic.netdev for nic in self.nics}
        lines = [f"link set dev {netdevs[one['vf']['pf']]} vf {one['vf']['index']} {words}\n"
                 for one in attachments for words in ip_words(one["settings"])]
        self.host.write("/run/attachments", "".join(lines))
        self.host.run("ip -batch /run/attachments && rm /run/attachments", timeout=300)
        for nic in self.nics:
            bound = self.host.run(BIND.format(folder=nic.folder), timeout=300).stdout.strip()
            self.lab.check_equal(bound, str(VFS), f"VFs of {nic.pci} bound to vfio-pci")

    def vm(self, n):
        """Returns the XML; VM 0 gets its VFs later."""
        devices = [HOSTDEV.format(*self.addresses[nic.pci][n].replace(".", ":").split(":"),
                                  attachment_id(rail, n)) for rail, nic in enumerate(self.nics)]
        return VM(self.host, f"tenant-{n}", vsock=False, pcie_ports=PFS,
                  devices="".join(devices) if n else "").xml

    def define(self, xml):
        began = time.monotonic()
        self.host.run(DEFINE, timeout=600, input=xml)
        self.took("VMs defined", began)

    def copied(self, attachment, rail, n):
        """Returns that attachment of VM 0, changed into VM n's attachment of another VF."""
        other = copy.deepcopy(attachment)
        other.update(id=attachment_id(rail, n), vm=f"tenant-{n}", vm_uuid=self.uuids()[n])
        other["vf"]["index"] = other["spec"]["vf"] = n
        other["vf_pci"] = self.addresses[attachment["vf"]["pf"]][n]
        other["spec"]["vm"] = other["vm"]
        for name in {"mac", "node_guid", "port_guid"} & set(other["settings"]):
            parts = other["settings"][name].split(":")
            parts[-2:] = f"{int(parts[-2], 16) ^ 0x80:02x}", f"{n:02x}"
            other["settings"][name] = ":".join(parts)
        return other

    def uuids(self):
        """Returns VMs by their number."""
        if not self.known_uuids:
            for line in self.lab.observe.lines("virsh -q list --all --uuid --name"):
                if line.strip():
                    uuid, name = line.split()
                    self.known_uuids[int(name.rpartition("-")[2])] = uuid
        return self.known_uuids

    def write(self, attachments):
        with tempfile.TemporaryDirectory() as folder:
            here = Path(folder) / "vfmgr.db"
            self.host.copy_out(STORE, here)
            with closing(sqlite3.connect(here)) as store, store:
                store.executemany("INSERT INTO attachments VALUES (?, ?)",
                                  [(one["id"], json.dumps(one)) for one in attachments])
            self.host.copy_in(here, STORE)

    def took(self, what, began):
        self.lab.step(f"{what}: {time.monotonic() - began:.1f} s")

    def attached(self):
        """Counts hostdevs with vfmgr's alias in the VMs' persistent XML, as libvirt stores it."""
        return int(self.host.run("cat /etc/libvirt/qemu/*.xml | grep -c \"alias name='ua-vfmgr\""
                                 ).stdout)

    def settings(self, index):
        """Returns, by iproute2, the values of that VF of each PF that change_by_hand() changes."""
        found = {}
        for nic in self.nics:
            vf = self.lab.observe.ip_link_vf(nic.netdev, index)
            found[nic.pci] = (vf["trust"], vf["vlan"]) if nic.kind == "ethernet" else (
                vf.get("node guid"), vf.get("port guid"))
        return found

    def change_by_hand(self, index):
        """Changes that VF of each PF, and returns its old values."""
        before = self.settings(index)
        for nic in self.nics:
            self.host.run(f"ip link set {nic.netdev} vf {index} " + (
                "trust off" if nic.kind == "ethernet" else "node_guid 00:99:99:99:99:99:99:99"))
        after = self.settings(index)
        self.lab.check(all(before[pci] != after[pci] for pci in before),
                       f"nothing was changed by hand: {before}, {after}")
        return before

    def leave(self):
        """Restores the host without single detaches; afterwards vfmgr has no attachments."""
        self.host.run(f"{STOP}; rm -f {STORE}*; {START}", timeout=300)
        self.host.run(UNDEFINE, timeout=600)
        for nic in self.nics:
            self.host.run(f"echo 0 >{nic.folder}/sriov_numvfs", timeout=600)


def attachment_id(rail, n):
    return f"{0x10000 * (rail + 1) + n:08x}"


def ip_words(settings):
    """Returns what `ip link set vf` sets for them, one message for each."""
    words = []
    for name, value in settings.items():
        if name == "vlan":
            words.append("vlan {id} qos {qos}".format(**value))
        else:
            value = {True: "on", False: "off"}.get(value, value)
            words.append(IP_WORDS[name].format(value))
    return words
