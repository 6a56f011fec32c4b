# SPDX-License-Identifier: Apache-2.0
"""A person does the demo's story in the console: VFs, attach, proof, drift, detach, certificate."""

import os
import shutil
from contextlib import contextmanager

from vflab.browser import UPDATE_PICTURES, Person
from vflab.paths import REPO, new_results_dir
from vflab.product import TRAIN, Product

# The package's own configuration does not serve the API on the network.
CONFIGURATION = "/etc/vfmgr/conf.d/console.toml"
SERVED = '[listen.tls]\nenabled = true\naddress = "0.0.0.0"\n'
VM = "vm1"
VFS = 4
CHECKED_BYTES_MIN = 1 << 20
RDMA_MTU_MAX = 4096  # bytes: no RDMA packet carries more
STRANGE_VLAN = 300
PICTURES = ("host", "verification", "drift", "certificate")
KEPT = REPO / "service/web/pictures"
DEADLINE_SECONDS = 1500


def run(lab):
    lab.expect("VFs made", "proved", "drift seen", "drift over", "certified", "pictures")
    product = Product(lab)
    with served(lab) as token:
        folder = new_results_dir("console")
        url = f"https://127.0.0.1:{lab.machine.settings['api_port']}"
        with Person("console.cjs", url, folder) as person:
            person.does("signIn", token=token)
            make_vfs(lab, product, person)
            vm = lab.vm(VM).wait_ready()
            attachment = attach(lab, product, person, vm)
            break_by_hand(lab, product, person, attachment["vf"]["index"])
            detach(lab, product, person, attachment)
            lab.check_equal(person.does("leave"), [], "violations of the content policy, errors")
        keep(lab, folder)
    product.leave()


@contextmanager
def served(lab):
    """The API on the network, and a token for it, for that long."""
    lab.host.write(CONFIGURATION, SERVED)
    lab.host.run("systemctl restart vfmgrd.service")
    made = lab.vfctl("-j", "token", "create", "--name", "console", "--role", "admin").json()
    try:
        yield made["token"]
    finally:
        lab.vfctl("token", "revoke", made["id"], check=False)
        lab.host.run(f"rm {CONFIGURATION}; systemctl restart vfmgrd.service")


def make_vfs(lab, product, person):
    lab.step("a person makes VFs and a network")
    plan = person.does("makeVfs", pf=product.pci, ifname=product.pf, count=VFS)
    lab.check(str(VFS) in plan, f"the plan does not say {VFS} VFs: {plan}")
    lab.check_equal(lab.observe.numvfs(product.pf), VFS, "VFs in sysfs")
    network = {key: value for key, value in TRAIN.items() if key not in ("name", "host_address")}
    person.does("makeNetwork", name=TRAIN["name"], document={
        **network, "pfs": [{"pf": product.pci, "host_address": TRAIN["host_address"]}]})
    lab.count("VFs made")


def attach(lab, product, person, vm):
    lab.step("attaches a VF, and watches the proof")
    before = rdma_packets(lab)
    seen = person.does("attach", vm=VM, network=TRAIN["name"])
    lab.check("Affected" in seen["plan"] and seen["steps"] >= 3, f"plan and progress: {seen}")
    attachment, = product.attachments()
    index, proof = attachment["vf"]["index"], attachment["verification"]
    lab.check_equal([one["pci"] for one in lab.observe.hostdevs(VM)], [attachment["vf_pci"]],
                    "the VM's live XML")
    lab.check(lab.observe.vfio_holders(attachment["vf_pci"]), "nobody holds the VF")
    lab.check(vm.netdev(attachment["settings"]["mac"]), "the VM has no device with that MAC")
    received = rdma_packets(lab) - before
    lab.check(received >= CHECKED_BYTES_MIN // RDMA_MTU_MAX,
              f"the host's RDMA device received only {received} packets")
    said = person.does("cell", pf=product.pci, index=index, state="proved")
    lab.check(VM in said and attachment["address"] in said, f"the cell says: {said}")
    person.does("picture", name="host")
    run_ = person.does("verification", pf=product.pci, index=index)
    for test in proof["tests"]:
        lab.check(test["name"].replace("_", " ") in run_, f"{test['name']} is not on the page")
    person.does("picture", name="verification")
    lab.count("proved")
    return attachment


def rdma_packets(lab):
    """Received by all RDMA devices of the host."""
    return sum(map(int, lab.observe.lines(
        "cat /sys/class/infiniband/*/ports/*/hw_counters/rcvd_pkts 2>/dev/null || :")))


def break_by_hand(lab, product, person, index):
    lab.step("somebody changes the VF by hand, and the page shows it")
    person.does("cell", pf=product.pci, index=index, state="proved")
    ip = f"ip link set {product.pf} vf {index} vlan"
    lab.host.run(f"{ip} {STRANGE_VLAN}")
    lab.check_equal(lab.observe.ip_link_vf(product.pf, index)["vlan"], STRANGE_VLAN, "ip link")
    said = person.does("cell", pf=product.pci, index=index, state="drifted")
    lab.check(f"vlan {STRANGE_VLAN}" in said, f"the cell says: {said}")
    person.does("picture", name="drift")
    lab.count("drift seen")
    lab.host.run(f"{ip} {TRAIN['vlan']}")
    person.does("cell", pf=product.pci, index=index, state="proved")
    events = person.does("events", words="drift")
    lab.check(f"vlan {STRANGE_VLAN}" in events, f"the timeline says: {events}")
    lab.count("drift over")


def detach(lab, product, person, attachment):
    lab.step("detaches it, and reads the certificate")
    index = attachment["vf"]["index"]
    certificate = person.does("detach", vm=VM, index=index)
    person.does("picture", name="certificate")
    for words in (f"VF {index} of {product.pci} is clean", attachment["vf_pci"], attachment["id"],
                  VM):
        lab.check(words in certificate, f"{words} is not on the certificate: {certificate}")
    for which in ("live", "config"):
        lab.check_equal(lab.observe.hostdevs(VM, which), [], f"{which} XML after the detach")
    lab.check_equal(lab.observe.vfio_holders(attachment["vf_pci"]), [], "holders of the VF")
    shown = lab.observe.ip_link_vf(product.pf, index)
    lab.check(shown["mac"] != attachment["settings"]["mac"], f"the VF has its MAC: {shown}")
    lab.count("certified")


def keep(lab, folder):
    """The pictures that the READMEs show are taken here; only on request, since each differs."""
    taken = [folder / f"{name}.png" for name in PICTURES]
    lab.check(all(one.stat().st_size > 0 for one in taken), "a picture is empty")
    if os.environ.get(UPDATE_PICTURES) == "1":
        KEPT.mkdir(exist_ok=True)
        for one in taken:
            shutil.copy(one, KEPT / one.name)
    lab.count("pictures", len(taken))
