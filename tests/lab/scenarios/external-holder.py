# SPDX-License-Identifier: Apache-2.0
"""A plain QEMU of an unprivileged user has a VF: while it runs, after it, and over a reboot."""

from vflab.product import Product
from vflab.vm import COMMAND_LINE, IMAGES

LONG = True

USER, UID = "lab-vmm", 2104
BOUNDS = "/etc/vfmgr/conf.d/external.toml"
ALLOWED = f'[bounds.external_holders]\nallowed = true\nuids = ["{UID}"]\n'
HOLDER = {"kind": "external", "name": "qm-104", "uid": UID}
UNIT = "external-vm.service"
FOLDER = "/run/external-vm"
CONSOLE = f"{FOLDER}/console.log"
# The guest's driver says which MAC the VF has, on a console that shows informational lines.
KERNEL = COMMAND_LINE.replace("quiet", "loglevel=7") + " vf-guest=off"
BOOT_SECONDS = 240


def run(lab):
    lab.expect("refused", "node of the user", "booted with the VF", "detaching, QEMU alive",
               "ended by itself", "restored with its node", "clean again")
    product = Product(lab)
    product.manage(num_vfs=3)
    lab.host.run(f"useradd --system --uid {UID} --no-create-home {USER}")
    not_without_root(lab, product)
    lab.host.write(BOUNDS, ALLOWED)
    lab.host.run("systemctl restart vfmgrd")
    attachment = attach(lab, product)
    while_it_runs(lab, product, attachment)
    after_it(lab, product, attachment)
    over_a_reboot(lab, product)
    lab.host.run(f"userdel {USER}; rm -r {BOUNDS} {FOLDER}; systemctl restart vfmgrd")
    product.leave()


def not_without_root(lab, product):
    answer, _ = product.ask("POST", "/v1/attachments", {"holder": HOLDER, "pf": product.pci})
    if lab.check_equal((answer.status, answer.body.get("code")), (403, "forbidden"),
                       "an external holder that root does not allow"):
        lab.count("refused")


def owner(lab, node):
    return int(lab.host.run(["stat", "-c", "%u", node]).stdout)


def attach(lab, product):
    attachment = product.attach("", holder=HOLDER, network="plain")
    node = attachment["access"]["group"]
    group = lab.observe.iommu_group(attachment["vf_pci"])
    lab.check_equal(node, f"/dev/vfio/{group}", "the node in the answer")
    lab.check_equal(lab.observe.vf_driver(attachment["vf_pci"]), "vfio-pci", "the VF's driver")
    if lab.check_equal(owner(lab, node), UID, f"the owner of {node}"):
        lab.count("node of the user")
    return attachment


def start_qemu(lab, attachment):
    """With the arguments of the answer; waits until the guest's driver has the VF."""
    lab.host.run(f"rm -rf {FOLDER}; install -d -o {USER} {FOLDER}")
    lab.host.run(
        f"systemd-run --quiet --unit={UNIT} --uid={USER} --property=SupplementaryGroups=kvm "
        f"--property=LimitMEMLOCK=infinity taskset -c {lab.host.vm_cpus} qemu-system-x86_64 "
        "-nodefaults -no-user-config -display none -machine q35,accel=kvm -cpu host -m 512 "
        f"-kernel {IMAGES}/tiny/vmlinuz -initrd {IMAGES}/tiny/initrd -append '{KERNEL}' "
        f"-serial file:{CONSOLE} {attachment['access']['qemu']}")
    mac = attachment["settings"]["mac"]
    lab.host.wait_for(f"the guest has the VF with {mac}",
                      f"grep -a -m1 -i 'Address: {mac}' {CONSOLE}", BOOT_SECONDS)
    lab.host.wait_for("the guest has booted", f"grep -a -m1 'init: done' {CONSOLE}", BOOT_SECONDS)
    lab.count("booted with the VF")
    return int(lab.host.run(f"systemctl show -P MainPID {UNIT}").stdout)


def while_it_runs(lab, product, attachment):
    pid = start_qemu(lab, attachment)
    lab.check_equal(lab.host.run(f"stat -c %u /proc/{pid}").stdout.strip(), str(UID),
                    "who runs QEMU")
    lab.step(f"the VF is detached while QEMU (pid {pid}) has it")
    path = f"/v1/attachments/{attachment['id']}"
    _, operation = product.ask("DELETE", path)
    problem = operation["problem"] or {}
    lab.check_equal((operation["state"], problem.get("code")), ("failed", "vf_in_use"), "the end")
    lab.check(f"qemu-system-x86 (pid {pid})" in problem.get("detail", ""),
              f"QEMU is not named: {problem}")
    lab.check_equal(product.attachment(attachment["id"])["state"], "detaching", "the state")
    lab.check_equal(owner(lab, attachment["access"]["group"]), 0, "the node's owner")
    lab.check(lab.observe.vfio_holders(attachment["vf_pci"]), "nobody holds the VF any more")
    alive = lab.host.run(f"systemctl show -P MainPID {UNIT}").stdout.strip()
    if lab.check_equal(alive, str(pid), "QEMU afterwards"):
        lab.count("detaching, QEMU alive")


def after_it(lab, product, attachment):
    lab.step("QEMU ends")
    before = lab.host.run(f"systemctl stop {UNIT}; systemctl reset-failed {UNIT}", check=False)
    lab.step(str(before))
    lab.host.wait_for("the attachment ends by itself",
                      lambda: product.attachment(attachment["id"]) is None, 60)
    certificate = lab.api("GET", f"/v1/attachments/{attachment['id']}/certificate").body
    lab.check_equal((certificate.get("vm"), certificate.get("attachment")),
                    ("qm-104", attachment["id"]), "the certificate")
    lab.check_equal(lab.observe.vf_driver(attachment["vf_pci"]), None, "the VF's driver")
    lab.check_equal(product.quarantined(), [], "VFs in quarantine")
    lab.count("ended by itself")


def over_a_reboot(lab, product):
    attachment = attach(lab, product)
    index = attachment["vf"]["index"]
    shown = lab.observe.ip_link_vf(product.pf, index)
    lab.reboot()
    lab.host.wait_for("vfmgrd serves", "systemctl is-active vfmgrd", 120)
    again = product.attachment(attachment["id"])
    lab.check_equal(again["state"], "attached", "the state after the reboot")
    lab.check_equal(lab.observe.ip_link_vf(product.pf, index), shown, "its settings")
    lab.check_equal(lab.observe.vf_driver(again["vf_pci"]), "vfio-pci", "its driver")
    if lab.check_equal(owner(lab, again["access"]["group"]), UID, "its node's owner"):
        lab.count("restored with its node")
    start_qemu(lab, again)
    lab.host.run(f"systemctl stop {UNIT}; systemctl reset-failed {UNIT}", check=False)
    _, operation = product.detach(again)
    if lab.check(operation["certificate"], f"no certificate: {operation}"):
        lab.count("clean again")
