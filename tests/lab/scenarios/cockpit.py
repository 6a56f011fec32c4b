# SPDX-License-Identifier: Apache-2.0
"""Cockpit has a page of vfmgr, on which a person acts as themselves, and as root only on request.

Debian's Cockpit is installed in the host and reached through a tunnel. A member of group vfmgr
signs in to it, sees the host's picture and attaches a VF; is refused a change of the PF, and makes
it with Cockpit's administrative access. The audit, read by vfctl, says whose act each was.
"""

import secrets
from contextlib import contextmanager

from vflab import ssh
from vflab.added_packages import AddedPackages
from vflab.browser import Person
from vflab.machine import free_port
from vflab.paths import new_results_dir
from vflab.product import PLAIN, Product
from vflab.shell import call

BOOT = "own"
DEADLINE_SECONDS = 2400
COCKPIT = ["cockpit-ws", "cockpit-bridge", "cockpit-system", "sudo"]
PAGE = "vfmgr-cockpit"
PORT = 9090
USER, VM = "alice", "vm1"
VFS, MORE_VFS = 2, 4


def run(lab):
    lab.expect("page", "limited", "attached", "refused", "elevated", "audited", "given up")
    product = Product(lab)
    product.manage(num_vfs=VFS, networks=(PLAIN,))
    lab.vm(VM).wait_ready()
    lab.step("Debian's Cockpit, and our page for it")
    with AddedPackages(lab, COCKPIT):
        install_page(lab)
        password = make_user(lab)
        with tunnel(lab) as url:
            without_administrative_access(lab, product, url, password)
            person_acts(lab, product, url, password)
        audited(lab, product)
    product.leave()


def install_page(lab):
    deb, = lab.machine.parts.debs.glob(f"{PAGE}_*.deb")
    lab.host.copy_in(deb, f"/run/{deb.name}")
    lab.host.run(f"dpkg --install /run/{deb.name}", timeout=300)
    lab.host.wait_for("Cockpit listens", "systemctl is-active cockpit.socket")


def make_user(lab):
    password = secrets.token_urlsafe(12)
    lab.host.run(f"useradd --create-home --shell /bin/bash --groups vfmgr,sudo {USER}")
    lab.host.run("chpasswd", input=f"{USER}:{password}\n")
    return password


@contextmanager
def tunnel(lab):
    """As an admin's: from a port of this machine over the lab's ssh connection."""
    port = free_port()
    way = ["-L", f"127.0.0.1:{port}:127.0.0.1:{PORT}", "host"]
    call(ssh.command(lab.machine.folder, "-O", "forward", *way))
    yield f"https://127.0.0.1:{port}"
    call(ssh.command(lab.machine.folder, "-O", "cancel", *way))


def without_administrative_access(lab, product, url, password):
    lab.step("a session with Cockpit's limited access")
    with Person("cockpit.cjs", url, new_results_dir("cockpit-limited")) as person:
        said = person.does("signIn", user=USER, password=password, superuser="none")
        lab.check_equal(said.strip(), "vfmgr", "the entry of Cockpit's menu")
        seen = person.does("picture", name="host")
        if lab.check_equal(len(seen), VFS, f"cells of the picture: {seen}"):
            lab.count("page")
        refusal = person.does("tryVfs", pf=product.pci, count=MORE_VFS)
        lab.check("admin" in refusal and USER in refusal, f"the refusal: {refusal}")
        answer = person.does("elevate")
        if lab.check("limited" in answer or "Turn on" in answer, f"what it says: {answer}"):
            lab.count("limited")
        lab.check_equal(person.does("leave"), [], "violations of the content policy, errors")


def person_acts(lab, product, url, password):
    lab.step("attaches a VF as themselves")
    with Person("cockpit.cjs", url, new_results_dir("cockpit")) as person:
        person.does("signIn", user=USER, password=password, superuser="any")
        person.does("attach", vm=VM, network=PLAIN["name"])
        attachment, = product.attachments()
        held = lab.observe.vfio_holders(attachment["vf_pci"])
        lab.check(len(held) == 1 and "qemu" in held[0][1], f"holders of the VF: {held}")
        lab.count("attached", len(lab.observe.hostdevs(VM)))

        lab.step("may not change the PF, and does it with administrative access")
        person.does("tryVfs", pf=product.pci, count=MORE_VFS)
        lab.count("refused", int(lab.observe.numvfs(product.pf) == VFS))
        lab.check_equal(person.does("elevate"), f"{USER}, as root", "who acts then")
        product.detach(attachment)  # the number of VFs can't change while a VM has one
        person.does("makeVfs", ifname=product.pf)
        lab.check_equal(lab.observe.numvfs(product.pf), MORE_VFS, "VFs in sysfs")
        lab.count("elevated")
        if lab.check_equal(person.does("giveUp", user=USER), 0, "marks of somebody else's rights"):
            lab.count("given up")
        lab.check_equal(person.does("leave"), [], "violations of the content policy, errors")


def audited(lab, product):
    """Attaching was the person's act, by their own uid; the PF's change was root's."""
    uid = lab.host.run(f"id -u {USER}").stdout.strip()
    entries = lab.vfctl("audit", "-o", "json").json()["items"]
    changes = [(one["who"], one["from"], one["refused"]) for one in entries
               if one["action"].startswith("PUT ") and product.pci in one["action"]
               and "dry_run" not in one["action"]]
    attaches = [(one["who"], one["from"], one["refused"]) for one in entries
                if one["action"] == "POST /v1/attachments"]
    person, root = (f"uid:{uid}", f"uid:{uid}", False), ("uid:0", "uid:0", False)
    lab.check_equal(attaches, [person], "who attached")
    lab.check_equal(set(changes), {root}, "who changed the PF")
    refused = [one["who"] for one in entries if one["refused"]]
    lab.check_equal(set(refused), {f"uid:{uid}"}, "who was refused")
    lab.count("audited", len(attaches))
