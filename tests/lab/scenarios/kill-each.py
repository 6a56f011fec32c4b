# SPDX-License-Identifier: Apache-2.0
"""Each process is killed at each kind of step: nothing is lost, and the others go on.

Who performs the step is held in it (vflab.held_step), once when it has read the request and once
when the step is done but not answered; the store says that the step is underway. Then `kill -9`
hits one of our processes, who performs the step or another. The operation must end in the state
before, the state asked for, or quarantine with the residue listed, judged by sysfs, iproute2 and
virsh. Another VM keeps its VF, the other processes run on, and vfmgrd answers if it lives.
vfmgr-guestd has no part in a step: it is killed in the same operation as vfmgrd, before it.

The step that waits for a guest is performed by nobody: it is hit while the guest does not answer,
and while its test runs.
"""

import re
import time

from vflab.crashes import Ends, served_again, unfinished
from vflab.held_step import HeldStep, awaits_guest, underway
from vflab.lab_pf import LabPfs
from vflab.paths import REPO
from vflab.product import Before, Product

DEADLINE_SECONDS = 12000
SLICES = 40
LONG = True
WORKER = "vfmgrd-worker"
# Units, and the worker whose step it is.
PROCESSES = ("vfmgrd", "vfmgr-broker", "vfmgr-guestd", WORKER)
# Those killed in one operation, one after the other.
TOGETHER = (("vfmgr-guestd", "vfmgrd"), ("vfmgr-broker",), (WORKER,))
MOMENTS = ("begun", "unanswered")
# The request whose plan has a step of that kind, or whose undo has.
ATTACH = ("add_vlan_interface", "set_link", "await_carrier", "add_address", "add_rdma_link",
          "configure_vfs", "bind_vfs", "add_peer", "attach_hostdev", "await_verification")
DETACH = ("detach_hostdev", "reset_vf", "remove_peer", "remove_rdma_link", "remove_address",
          "remove_vlan_interface")
KINDS = {**dict.fromkeys(ATTACH, "Attach"), **dict.fromkeys(DETACH, "Detach"),
         "attach_external": "AttachExternal", "detach_external": "DetachExternal",
         "set_num_vfs": "Resize", "set_pci_values": "FailingResize",
         "add_soft_rdma_link": "AddLink", "remove_soft_rdma_link": "RemoveLink"}
NOT_HERE = {"set_firmware": "no card of the lab has firmware to set",
            "mark_hostdev": "it touches no VF, and libvirt replaces the VM's file or nothing",
            "add_vsock": "it touches no VF, and no undo takes it away",
            "place_hostdevs": "it touches no VF, and the lab's host has no GPU"}
OF_VMS = ("attach_hostdev", "detach_hostdev")
VICTIM, BYSTANDER = "victim", "bystander"
LINK, NETDEV, CONFIG = "rxe_kill", "labkill", "/etc/vfmgr/conf.d/kill-each.toml"
UID = 2104  # of an external holder; no user of the host
RULES = (f'[rdma_links]\ntrusted_netdevs = ["{NETDEV}"]\n'
         f'[bounds.external_holders]\nallowed = true\nuids = ["{UID}"]\n')
ANSWER_SECONDS = 10
TESTED_SECONDS = 120


def run(lab):
    header = (REPO / "vfmgr/plan/step.hpp").read_text()
    lab.check_equal(set(re.findall(r'step_name = "(\w+)"', header)), {*KINDS, *NOT_HERE},
                    "kinds of steps")
    for kind, reason in NOT_HERE.items():
        lab.step(f"{kind} is not tried: {reason}")
    lab.expect("kills", "answered meanwhile", "another VM kept its VF")
    points = lab.sliced([(processes, kind, moment) for kind in KINDS for processes in TOGETHER
                         for moment in MOMENTS], SLICES)
    make_netdev(lab)
    with LabPfs(lab, "ethernet") as [resized]:
        kills = Kills(lab, resized)
        for processes, kind, moment in points:
            kills.kill(processes, kind, moment)
        kills.leave()
    lab.host.run(f"ip link del {NETDEV}; modprobe -r dummy; rm {CONFIG}; systemctl restart vfmgrd")
    lab.check_equal(sorted(kills.hits), sorted((process, kind, moment)
                                               for processes, kind, moment in points
                                               for process in processes),
                    "kills that hit their step")


def make_netdev(lab):
    lab.host.run(f"ip link add {NETDEV} type dummy && ip link set {NETDEV} up && "
                 f"ip addr add 192.168.77.1/24 dev {NETDEV}")
    lab.host.write(CONFIG, RULES)
    lab.host.run("systemctl restart vfmgrd")


class Kills:
    def __init__(self, lab, resized):
        self.lab, self.hits = lab, []
        self.product = Product(lab)
        self.product.manage(num_vfs=2)
        self.victim = lab.vm(VICTIM)
        self.bystander = lab.vm(BYSTANDER, command_line="vf-guest=off")
        for vm in (self.victim, self.bystander):
            vm.wait_ready()
        kept = self.product.attach(BYSTANDER, vf=0, verify="none")
        self.kept_pci = kept["vf_pci"]
        ends = Ends(lab, self.product, Before(self.product), VICTIM, [kept])
        attachment = lab, self.product, self.victim, ends
        self.requests = {"Attach": Attach(*attachment), "Detach": Detach(*attachment),
                         "AttachExternal": AttachExternal(*attachment),
                         "DetachExternal": DetachExternal(*attachment),
                         "Resize": Resize(lab, resized), "AddLink": AddLink(lab),
                         "FailingResize": FailingResize(lab, resized),
                         "RemoveLink": RemoveLink(lab)}
        self.others_vf = self.of_the_other_vm()

    def of_the_other_vm(self):
        inside = [self.lab.observe.hostdevs(BYSTANDER, which) for which in ("live", "config")]
        return (inside, self.lab.observe.vf_driver(self.kept_pci),
                self.lab.observe.vfio_holders(self.kept_pci), self.bystander.state(),
                self.lab.observe.ip_link_vf(self.product.pf, 0))

    def pids(self, word):
        """Waits until all of them run."""
        units = [name for name in PROCESSES if name != WORKER]
        probes = [f"systemctl show -P MainPID {name} | grep -vx 0" for name in units]
        probes.append(f"pgrep -xf '{WORKER} {word}'")
        found = self.lab.host.wait_for(f"{', '.join(units)} and the worker of {word} run",
                                       " && ".join(probes), 120).split()
        return dict(zip([*units, WORKER], map(int, found), strict=True))

    def kill(self, processes, kind, moment):
        lab, request = self.lab, self.requests[KINDS[kind]]
        text = f"{' and '.join(processes)} at {kind}, {moment}"
        lab.host.run("systemctl reset-failed " + " ".join(p for p in PROCESSES if p != WORKER))
        request.prepare(kind)
        pids = self.pids(request.worker)
        held = request.hold(kind)
        operation = request.begin()
        held.begun()
        if moment == "unanswered":
            held.unanswered()
        for process in processes:
            if self.is_underway(operation, kind, text):
                self.hits.append((process, kind, moment))
                lab.count("kills")
            lab.host.run(f"kill -KILL {pids[process]}")
            if process == WORKER:
                held.release()  # its tracer keeps what is left of it
            if process != "vfmgrd":
                self.answers(text)
        held.release()
        self.others_run_on(processes, pids, request.worker, text)
        lab.step(f"{text}: {request.judge(text)}")
        if lab.check_equal(self.of_the_other_vm(), self.others_vf, f"{text}: the other VM's VF"):
            lab.count("another VM kept its VF")
        request.restore(text)

    def is_underway(self, operation, kind, text):
        if kind == "await_verification":
            return self.lab.check(awaits_guest(self.lab, operation),
                                  f"{text}: no guest is waited for in the store")
        found = underway(self.lab, operation)
        # The undo is not journaled by itself: it belongs to the step that failed.
        named = kind == "set_pci_values" and f'"{kind}"' in found["undo"] or found["step"] == kind
        return self.lab.check(named and found["state"] == "intended",
                              f"{text}: the store has {found}")

    def answers(self, text):
        began = time.monotonic()
        answer = self.lab.api("GET", "/v1/pfs", timeout=ANSWER_SECONDS)
        if self.lab.check(answer.status == 200, f"{text}: GET /v1/pfs: {answer}"):
            self.lab.count("answered meanwhile")
        took = time.monotonic() - began
        self.lab.check(took < ANSWER_SECONDS, f"{text}: GET /v1/pfs took {took:.1f} s")

    def others_run_on(self, killed, before, word, text):
        """The killed unit is started again. The workers end with their broker, after their step."""
        served_again(self.lab, before[killed[-1]])
        after = self.pids(word)
        for name in PROCESSES:
            if name in killed:
                self.lab.check(after[name] != before[name], f"{text}: {name} was not started again")
            elif name != WORKER:
                self.lab.check_equal(after[name], before[name], f"{text}: the process {name}")

    def leave(self):
        for request in self.requests.values():
            request.leave()
        self.product.leave()


class Attach:
    """Of a VF to the running VM: the bystander's has no network, so this one's begins with it."""

    def __init__(self, lab, product, vm, ends):
        self.lab, self.product, self.vm, self.ends = lab, product, vm, ends
        self.worker = product.pci
        self.body = {"vm": VICTIM, "pf": product.pci, "vf": 1, "network": "train",
                     "settings": {"trust": True}, "verify": "none"}

    def prepare(self, kind):
        waits = kind == "await_verification"
        self.body["verify"] = "required" if waits else "none"

    def hold(self, kind):
        if kind == "await_verification":
            return HeldGuest(self.lab, self.vm)
        return HeldStep(self.lab, kind, None if kind in OF_VMS else self.worker)

    def begin(self):
        return accepted(self.lab, "POST", "/v1/attachments", self.body)

    def judge(self, text):
        return self.ends.judge()

    def restore(self, text):
        self.ends.restore(text)

    def leave(self):
        pass


class Detach(Attach):
    def prepare(self, kind):
        self.product.must("POST", "/v1/attachments", self.body)

    def begin(self):
        attachment, = self.ends.attachments()
        return accepted(self.lab, "DELETE", f"/v1/attachments/{attachment['id']}")


class AttachExternal(Attach):
    """To no VM of libvirt; nobody opens the VF."""

    def __init__(self, *parts):
        super().__init__(*parts)
        del self.body["vm"]
        self.body["holder"] = {"kind": "external", "name": "qm-104", "uid": UID}

    def prepare(self, kind):
        pass


class DetachExternal(AttachExternal, Detach):
    def prepare(self, kind):
        Detach.prepare(self, kind)


class HeldGuest:
    """The step in which the guest is waited for, with its vf-guest stopped; then with its test."""

    def __init__(self, lab, vm):
        self.lab, self.vm = lab, vm
        vm.run("kill -STOP $(pidof vf-guest)")

    def begun(self):
        self.lab.host.wait_for("the guest is waited for", lambda: any(
            awaits_guest(self.lab, one) for one in unfinished(self.lab)), TESTED_SECONDS)

    def unanswered(self):
        self.vm.run("kill -CONT $(pidof vf-guest)")
        self.lab.host.wait_for("the responder has a queue pair of the test",
                               "rdma res show qp | grep -E 'type RC .*comm vfmgr'", TESTED_SECONDS)

    def release(self):
        self.vm.run("kill -CONT $(pidof vf-guest)")


class Resize:
    """From no VFs to two, of a PF of the lab's own."""

    def __init__(self, lab, pf):
        self.lab, self.pf = lab, pf
        self.worker = pf.pci
        self.product = Product(lab, pf.netdev)
        self.product.manage(num_vfs=0, networks=())
        self.autoprobe = self.drivers_autoprobe()

    def drivers_autoprobe(self):
        return self.lab.host.read(f"{self.pf.folder}/sriov_drivers_autoprobe").strip()

    def prepare(self, kind):
        pass

    def hold(self, kind):
        return HeldStep(self.lab, kind, self.worker)

    def begin(self):
        return accepted(self.lab, "PUT", f"/v1/pfs/{self.pf.pci}/spec",
                        {"mode": "manage", "num_vfs": 2})

    def judge(self, text):
        spec = self.lab.api("GET", f"/v1/pfs/{self.pf.pci}/spec").body
        self.lab.check_equal(self.pf.numvfs(), spec["num_vfs"], f"{text}: VFs")
        self.lab.check_equal(self.drivers_autoprobe(), self.autoprobe, f"{text}: autoprobe")
        return f"{spec['num_vfs']} VFs"

    def restore(self, text):
        self.product.manage(num_vfs=0, networks=())
        self.lab.check_equal(self.pf.numvfs(), 0, f"{text}, and removed: VFs")

    def leave(self):
        self.product.must("DELETE", f"/v1/pfs/{self.pf.pci}/spec")


class FailingResize(Resize):
    def prepare(self, kind):
        self.pf.switch("enable/errno", 28)

    def judge(self, text):
        self.pf.switch("enable/errno", 0)
        return super().judge(text)

    def leave(self):
        pass  # the PF is the other's, too


class AddLink:
    path, worker = f"/v1/rdma-links/{LINK}", "host"

    def __init__(self, lab):
        self.lab = lab

    def prepare(self, kind):
        pass

    def hold(self, kind):
        return HeldStep(self.lab, kind, self.worker)

    def begin(self):
        return accepted(self.lab, "PUT", self.path, {"type": "rxe", "ifname": NETDEV})

    def judge(self, text):
        wanted = {LINK: NETDEV} if self.lab.api("GET", self.path).status == 200 else {}
        made = {name: netdev for name, netdev in self.lab.observe.rdma_links().items()
                if name == LINK}
        self.lab.check_equal(made, wanted, f"{text}: RDMA links")
        return "a link" if made else "no link"

    def restore(self, text):
        self.lab.vfctl("rdma", "link", "delete", LINK, check=False)
        self.lab.check_equal(self.judge(text), "no link", f"{text}, and deleted")

    def leave(self):
        pass


class RemoveLink(AddLink):
    def prepare(self, kind):
        self.lab.vfctl("rdma", "link", "add", LINK, "type", "rxe", "netdev", NETDEV)

    def begin(self):
        return accepted(self.lab, "DELETE", self.path)


def accepted(lab, method, path, body=None):
    answer = lab.api(method, path, body)
    lab.check_equal(answer.status, 202, f"{method} {path}")
    return answer.body["id"]
