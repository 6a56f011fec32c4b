# SPDX-License-Identifier: Apache-2.0
"""vfmgrd is killed at every durable write of an attach and of a detach, and started again.

strace kills it as it enters the Nth fsync or fdatasync of the request, for N = 1, 2, … until the
request ends by itself; systemd starts it again. What is then so is judged by virsh, sysfs and
iproute2: the VF is in the VM, or free and as before, or in quarantine with the residue listed.
"""

from vflab.host import CommandFailed, NotInTime
from vflab.product import Before, Product

DEADLINE_SECONDS = 3000
SYNCS = "fsync,fdatasync"
TRACE = "/run/crash-attach.strace"
VM = "victim"


def run(lab):
    lab.expect("points of the attach", "points of the detach", "attached", "not attached")
    product = Product(lab)
    product.manage(num_vfs=2)
    lab.vm(VM).wait_ready()
    before = Before(product)

    def attach():
        product.ask("POST", "/v1/attachments",
                    {"vm": VM, "pf": product.pci, "network": "train", "settings": {"trust": True}})

    def detach():
        product.ask("DELETE", f"/v1/attachments/{product.attachments()[0]['id']}")

    for name, prepare, request in (("attach", lambda: None, attach), ("detach", attach, detach)):
        point = 1
        while True:
            prepare()
            killed = killed_at(lab, point, request)
            end = judge(lab, product, before)
            lab.step(f"{name}, write {point}: {'killed' if killed else 'not reached'}, {end}")
            restore(lab, product, before, f"{name}, write {point}")
            if not killed:
                break
            lab.count(f"points of the {name}")
            lab.count(end)
            point += 1
    lab.count("violations", len(lab.failures))
    product.leave()


def killed_at(lab, point, request):
    """Makes the request with vfmgrd to be killed at its Nth durable write; whether it was."""
    host = lab.host
    # Stopped in order, SQLite leaves an empty write-ahead log: each run then has the same writes.
    host.run("systemctl reset-failed vfmgrd; systemctl restart vfmgrd")
    pid = host.run("systemctl show -P MainPID vfmgrd").stdout.strip()
    tracer = host.background(f"strace -f -q -p {pid} -o {TRACE} -e trace={SYNCS}"
                             f" -e inject={SYNCS}:signal=KILL:when={point}")
    host.wait_for("every thread of vfmgrd is traced",
                  f"! grep -q '^TracerPid:.0$' /proc/{pid}/task/*/status")
    try:
        request()
    except (CommandFailed, NotInTime) as cut_off:
        lab.check(not running(lab, pid), f"write {point}: {cut_off}")
    killed = not running(lab, pid)
    tracer.wait() if killed else tracer.stop("INT")
    # All durable writes are one thread's: the count is of the request, not of a thread's share.
    seen = [line for line in host.read(TRACE).splitlines() if "sync(" in line]
    lab.check(len(seen) == point if killed else 0 < len(seen) < point,
              f"write {point} {'killed' if killed else 'not reached'}, traced were {seen}")
    if not killed:
        return False
    host.wait_for("vfmgrd has recovered and serves", "systemctl is-active vfmgrd && "
                  f"[ $(systemctl show -P MainPID vfmgrd) != {pid} ]", 120)
    return True


def running(lab, pid):
    return lab.host.run(f"ls -d /proc/{pid}", check=False).stdout


def judge(lab, product, before):
    """Which of the three ends it is; anything else is a violation."""
    observe = lab.observe
    operations = lab.api("GET", "/v1/operations").body["items"]
    lab.check_equal([one["id"] for one in operations
                     if one["state"] not in ("succeeded", "failed")], [], "unfinished operations")
    inside = [[device["pci"] for device in observe.hostdevs(VM, which)]
              for which in ("live", "config")]
    leases, quarantined = product.attachments(), product.quarantined()
    if quarantined:
        lab.check(len(quarantined) == 1 and quarantined[0]["quarantine"]["residue"],
                  f"quarantine without residue: {quarantined}")
        return "quarantined"
    if leases:
        lab.check_equal([lease["state"] for lease in leases], ["attached"], "leases")
        pci = leases[0]["vf_pci"]
        lab.check_equal(inside, [[pci], [pci]], "the VM's live and persistent devices")
        lab.check_equal(observe.vf_driver(pci), "vfio-pci", "the VF's driver")
        lab.check_equal(len(observe.vfio_holders(pci)), 1, "holders of the VF")
        return "attached"
    lab.check_equal(inside, [[], []], "the VM's devices without a lease")
    before.check_again("not attached")
    return "not attached"


def restore(lab, product, before, text):
    """Back to the beginning, by what a user would do."""
    for vf in product.quarantined():
        product.must("DELETE", f"/v1/pfs/{product.pci}/vfs/{vf['index']}/quarantine")
    for lease in product.attachments():
        product.take_back(lease)
    before.check_again(f"after {text} and a detach")
    lab.check_equal(product.quarantined(), [], "quarantined at the end")
