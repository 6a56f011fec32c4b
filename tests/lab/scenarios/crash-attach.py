# SPDX-License-Identifier: Apache-2.0
"""vfmgrd is killed at every durable write of an attach and of a detach, and started again.

strace kills it as it enters the Nth fsync or fdatasync of the request, for N = 1, 2, … until the
request ends by itself; systemd starts it again. virsh, sysfs and iproute2 then judge the state: the
VF is in the VM, or free and as before, or in quarantine with the residue listed.

Then it is killed in the middle of a step: strace stops the worker of the PF after a write to sysfs,
vfmgrd is killed, and the worker continues or is killed as well. None of the values that a step
changes only while it runs may stay.
"""

from itertools import count

from vflab.crashes import Ends, served_again
from vflab.host import CommandFailed, NotInTime
from vflab.product import Before, Product

DEADLINE_SECONDS = 4000
SLICES = 7
SYNCS = "fsync,fdatasync"
TRACE = "/run/crash-attach.strace"
VM = "victim"
DEVICES = "/sys/bus/pci/devices"
# The files that a request writes in a step of its own; {pf} and {vf} are their folders.
WRITES = {
    "attach": ("{vf}/driver_override", "/sys/bus/pci/drivers_probe"),
    "detach": ("{vf}/reset_method", "{vf}/reset", "/sys/bus/pci/drivers/vfio-pci/unbind"),
    "resize": ("{pf}/sriov_drivers_autoprobe", "{pf}/sriov_numvfs"),
}


def run(lab):
    lab.expect("points of the attach", "points of the detach", "steps that a worker ended",
               "steps that nobody ended")
    if lab.slice is None:
        lab.expect("attached", "not attached")
    product = Product(lab)
    product.manage(num_vfs=2)
    lab.vm(VM).wait_ready()
    ends = Ends(lab, product, Before(product), VM)

    body = {"vm": VM, "pf": product.pci, "vf": 0, "network": "train", "settings": {"trust": True}}

    def attach():
        product.ask("POST", "/v1/attachments", body)

    def detach():
        product.ask("DELETE", f"/v1/attachments/{product.attachments()[0]['id']}")

    for name, prepare, request in (("attach", lambda: None, attach), ("detach", attach, detach)):
        for point in count(*((1,) if lab.slice is None else (1 + lab.slice, SLICES))):
            prepare()
            killed = killed_at(lab, point, request)
            end = ends.judge()
            lab.step(f"{name}, write {point}: {'killed' if killed else 'not reached'}, {end}")
            ends.restore(f"{name}, write {point}")
            if not killed:
                break
            lab.count(f"points of the {name}")
            lab.count(end)
    steps = lab.sliced([(name, path, worker_goes_on) for name, paths in WRITES.items()
                        for path in paths for worker_goes_on in (True, False)], SLICES)
    for name, *step in steps:
        if name != "resize":
            prepare, begin = requests(lab, product, body, attach)[name]
            prepare()
            step_killed(lab, product, ends, begin, step)
    resizes_killed(lab, product, [step for name, *step in steps if name == "resize"])
    lab.count("violations", len(lab.failures))
    product.leave()


def requests(lab, product, body, attach):
    """Returns, for each request, its preparation and the request itself."""
    def detach():
        return lab.api("DELETE", f"/v1/attachments/{product.attachments()[0]['id']}")

    return {"attach": (lambda: None, lambda: lab.api("POST", "/v1/attachments", body)),
            "detach": (attach, detach)}


def step_killed(lab, product, ends, begin, step):
    values = temporary_values(lab, product)
    text = killed_inside(lab, product, begin, *step)
    lab.check_equal(temporary_values(lab, product), values, text)
    end = ends.judge()
    lab.step(f"{text}: {end}")
    lab.count(end)
    ends.restore(text)


def resizes_killed(lab, product, steps):
    """VFs that are created anew are not compared with those before."""
    def begin():
        return lab.api("PUT", f"/v1/pfs/{product.pci}/spec", {"mode": "manage", "num_vfs": 3})

    product.manage(num_vfs=2, networks=())
    for step in steps:
        text = killed_inside(lab, product, begin, *step)
        autoprobe = lab.host.read(f"{DEVICES}/{product.pci}/sriov_drivers_autoprobe").strip()
        lab.check_equal(autoprobe, "1", f"{text}: sriov_drivers_autoprobe")
        spec = lab.api("GET", f"/v1/pfs/{product.pci}/spec").body
        lab.check_equal(lab.observe.numvfs(product.pf), spec["num_vfs"], f"{text}: VFs")
        lab.step(f"{text}: {spec['num_vfs']} VFs")
        product.manage(num_vfs=2, networks=())


def temporary_values(lab, product):
    """Returns the values that steps change only while they run."""
    return lab.observe.lines(f"cd {DEVICES}/{product.pci} && grep . sriov_drivers_autoprobe "
                             "virtfn*/driver_override virtfn*/reset_method")


def killed_inside(lab, product, begin, path, worker_goes_on):
    """Begins the request, and kills vfmgrd while the worker is stopped after a write to `path`."""
    host = lab.host
    path = path.format(pf=f"{DEVICES}/{product.pci}",
                       vf=f"{DEVICES}/{lab.observe.vf_pci(product.pf, 0)}")
    text = f"killed after a write to {path}, the worker {'goes on' if worker_goes_on else 'too'}"
    host.run("systemctl reset-failed vfmgrd; systemctl restart vfmgrd")
    pid = host.run("systemctl show -P MainPID vfmgrd").stdout.strip()
    lab.check_equal(lab.api("GET", "/v1/pfs").status, 200, "GET /v1/pfs")
    worker = host.wait_for("the PF has a worker",
                           f"pgrep -xf 'vfmgrd-worker {product.pci}'")
    tracer = host.background(f"strace -f -q -p {worker} -o {TRACE} -P {path} -e trace=write"
                             " -e inject=write:signal=STOP:when=1")
    host.wait_for("every thread of the worker is traced",
                  f"! grep -q '^TracerPid:.0$' /proc/{worker}/task/*/status")
    answer = begin()
    lab.check_equal(answer.status, 202, f"{text}: the request")
    host.wait_for(f"the worker is stopped after a write to {path}",
                  f"grep -q 'stopped by SIGSTOP' {TRACE}", 120)
    host.run(f"kill -KILL {pid}")
    if not worker_goes_on:
        host.run(f"kill -KILL {worker}")
    tracer.stop("INT")
    if worker_goes_on:
        host.run(f"kill -CONT {worker}")
    lab.count("steps that a worker ended" if worker_goes_on else "steps that nobody ended")
    served_again(lab, pid)
    if not worker_goes_on:
        lab.check(not running(lab, worker), f"{text}: process {worker} is still there")
    return text


def killed_at(lab, point, request):
    """Makes the request and kills vfmgrd at its Nth durable write; returns whether it did."""
    host = lab.host
    # After a clean stop SQLite starts with an empty write-ahead log, so each run has the same
    # writes.
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
    # One thread makes all durable writes, so the count is the request's, not a share of it.
    seen = [line for line in host.read(TRACE).splitlines() if "sync(" in line]
    lab.check(len(seen) == point if killed else 0 < len(seen) < point,
              f"write {point} {'killed' if killed else 'not reached'}, traced were {seen}")
    if not killed:
        return False
    served_again(lab, pid)
    return True


def running(lab, pid):
    return lab.host.run(f"ls -d /proc/{pid}", check=False).stdout
