# SPDX-License-Identifier: Apache-2.0
"""virtqemud in place of libvirtd: VMs get VFs, keep them over reboots; it is killed in a step.

The host has no libvirtd process, and no virtnetworkd either. virtqemud is killed while it waits for
a QEMU that is stopped, once in an attach and once in a detach: the operation ends in the state
before, in the state asked for, or in quarantine with the residue listed.
"""

from vflab import virtqemud
from vflab.crashes import Ends, unfinished
from vflab.held_step import underway
from vflab.product import Before, Product

BOOT = "own"
LONG = True
DEADLINE_SECONDS = 4000  # the first run builds virtqemud, mostly by unpacking what that needs
VM = "modular"
UNITS = "vfmgr-broker.service vfmgr-restore.service vfmgrd.service"
# The broker has the other end of a connection of virtqemud's socket.
CONNECTED = """broker=$(systemctl show -P MainPID vfmgr-broker)
for peer in $(ss -xH | awk '$5 ~ /virtqemud-sock$/ {print $8}'); do
  ls -l /proc/$broker/fd | grep -q "socket:.$peer.$" && exit 0; done; exit 1"""
# QEMU has not read what virtqemud has sent it.
UNREAD = "ss -xH | awk '/monitor.sock/ && $3 > 0 {found = 1} END {exit !found}'"
KILLED = "kill -KILL {virtqemud}; kill -CONT {qemu}"
ENDED_SECONDS = 400


def run(lab):
    lab.expect("virtqemud serves", "no libvirtd", "no virtnetworkd", "proved", "killed in a step",
               "served again", "detached", "restored before virtqemud")
    virtqemud.take_over(lab)
    lab.host.run(f"systemctl restart {UNITS}", timeout=180)
    product = Product(lab)
    product.manage(num_vfs=3, vf_driver="vfio-pci")
    before = Before(product)
    vm = lab.vm(VM).wait_ready()
    serves(lab)
    attachment = attached(lab, product)
    rebooted(lab, product, vm, attachment)
    detached(lab, product, before, attachment)
    ends = Ends(lab, product, before, VM)
    killed_attaching(lab, product, vm, ends)
    killed_detaching(lab, product, vm, ends)
    attachment = attached(lab, product)
    host_reboots(lab, product, vm, attachment)
    detached(lab, product, before, attachment)
    product.leave()
    vm.destroy()


def serves(lab):
    """By /proc, and by who is at the ends of libvirt's socket."""
    program = lab.host.run(f"readlink /proc/{virtqemud.pid(lab)}/exe").stdout.strip()
    if lab.check_equal(program, virtqemud.PROGRAM, "the program that serves qemu:///system"):
        lab.count("virtqemud serves")
    found = lab.host.run("pgrep -a -x 'libvirtd|virtnetworkd|virtproxyd'", check=False).stdout
    if lab.check_equal(found, "", "other daemons of libvirt"):
        lab.count("no libvirtd")
    networks = lab.host.run("virsh -q -c qemu:///system net-list", check=False)
    if lab.check(networks.status != 0, f"somebody serves networks: {networks}"):
        lab.count("no virtnetworkd")
    lab.host.wait_for("vfmgr-broker is connected to virtqemud", CONNECTED)
    lab.host.wait_for("vfmgrd has the VM", lambda: VM in [
        one["name"] for one in lab.api("GET", "/v1/vms").body["items"]])
    units = [one for one in lab.vfctl("doctor", "-o", "json", check=False).json()["findings"]
             if one["rule"] == "libvirt.unit"]
    lab.check_equal([(one["result"], one["detail"].split()[0]) for one in units],
                    [("ok", "virtqemud")], "doctor's libvirt.unit")


def attached(lab, product):
    lab.step("attached to the running VM, and proved")
    attachment = product.attach(VM, network="plain", verify="required", verify_profile="quick")
    has_it(lab, attachment)
    judged(lab, attachment["verification"], "attached")
    return attachment


def has_it(lab, attachment):
    pci = attachment["vf_pci"]
    for which in ("live", "config"):
        lab.check_equal([device["pci"] for device in lab.observe.hostdevs(VM, which)], [pci],
                        f"the VM's {which} devices")
    lab.check_equal(len(lab.observe.vfio_holders(pci)), 1, "QEMUs that have the VF")


def judged(lab, verification, text):
    if lab.check_equal(verification["verdict"], "pass", f"{text}: the verdict"):
        lab.count("proved")


def proved_again(lab, product, attachment, text):
    judged(lab, product.verify(attachment, profile="quick", timeout_seconds=180), text)


def rebooted(lab, product, vm, attachment):
    lab.step("the VM is rebooted from inside")
    vm.reboot_from_inside()
    vm.wait_booted(times=2)
    vm.wait_ready()
    has_it(lab, attachment)
    proved_again(lab, product, attachment, "rebooted")


def detached(lab, product, before, attachment):
    lab.step("detached")
    product.detach(attachment)
    before.check_again("detached")
    inside = [lab.observe.hostdevs(VM, which) for which in ("live", "config")]
    if lab.check_equal(inside, [[], []], "the VM's devices"):
        lab.count("detached")


def killed_attaching(lab, product, vm, ends):
    killed(lab, product, "attach_hostdev", "POST", "/v1/attachments",
           {"vm": VM, "pf": product.pci, "vf": 1, "network": "plain", "verify": "none"})
    restore(lab, product, vm, ends, "killed in an attach")


def killed_detaching(lab, product, vm, ends):
    attachment = product.attach(VM, vf=1, network="plain", verify="none")
    killed(lab, product, "detach_hostdev", "DELETE",
           f"/v1/attachments/{attachment['id']}")
    restore(lab, product, vm, ends, "killed in a detach")


def killed(lab, product, kind, method, path, body=None):
    """Kills virtqemud while it waits for the VM's QEMU, which is stopped for that."""
    lab.step(f"virtqemud is killed in {kind}")
    pids = {"virtqemud": virtqemud.pid(lab),
            "qemu": lab.host.read(f"/run/libvirt/qemu/{VM}.pid").strip()}
    lab.host.run(f"kill -STOP {pids['qemu']}")
    answer = lab.api(method, path, body)
    lab.check_equal(answer.status, 202, f"{method} {path}")
    lab.host.wait_for("virtqemud waits for QEMU", UNREAD, 120)
    found = underway(lab, answer.body["id"])
    lab.host.run(KILLED.format(**pids))
    if lab.check_equal((found["step"], found["state"]), (kind, "intended"), "the step underway"):
        lab.count("killed in a step")
    ended = product.ended(answer.body["id"])
    lab.step(f"{kind}: {ended['state']}, {(ended['problem'] or {}).get('detail', '')}")
    if lab.check(virtqemud.pid(lab) != pids["virtqemud"], "virtqemud was not started again"):
        lab.count("served again")


def restore(lab, product, vm, ends, text):
    lab.host.wait_for("nothing is underway", lambda: not unfinished(lab), ENDED_SECONDS)
    end = ends.judge()
    lab.step(f"{text}: {end}")
    lab.count(end)
    if end == "quarantined":
        # QEMU may have the VF as a device that no XML of libvirt has: only its end releases it.
        vm.shutdown()
        ends.restore(text)
        vm.start().wait_ready()
    else:
        ends.restore(text)


def host_reboots(lab, product, vm, attachment):
    lab.step("the host reboots")
    lab.host.run(f"virsh -q autostart {VM}")
    lab.reboot()
    lab.host.wait_for("vfmgrd serves", "systemctl is-active vfmgrd", 120)
    serves(lab)
    ended, started = (int(lab.host.run(command).stdout.strip() or 0) for command in (
        "systemctl show -P ExecMainExitTimestampMonotonic vfmgr-restore.service",
        "systemctl show -P ExecMainStartTimestampMonotonic virtqemud.service"))
    if lab.check(0 < ended < started,
                 f"restore ended at {ended} us, virtqemud started at {started} us"):
        lab.count("restored before virtqemud")
    lab.host.wait_for("the VM runs again", f"virsh -q domstate {VM} | grep running", 120)
    vm.wait_ready()
    has_it(lab, attachment)
    proved_again(lab, product, attachment, "after the host's reboot")
    lab.host.run(f"virsh -q autostart --disable {VM}")
