# SPDX-License-Identifier: Apache-2.0
"""One greedy VM, three honest ones and one that dies: all honest ones verify, then and after."""

import json

from vflab.product import Product
from vflab.programs import built, send

LONG = True  # five VMs
DEADLINE_SECONDS = 2400
PROGRAM = "/run/hostile_tenant"
HONEST = ("honest1", "honest2", "honest3")
GREEDY, DEAD = "greedy", "dead"
FLOOD_SECONDS = 180
ROUNDS = 3
VERIFY_SECONDS = 240
CUT_SECONDS = 30


def run(lab):
    lab.expect("honest alone", "cut with its VM", "honest meanwhile", "flood turned away",
               "unprivileged turned away", "honest after")
    tenants = Tenants(lab)
    tenants.alone()
    tenants.die()
    tenants.flood()
    tenants.round("honest after", HONEST)
    tenants.unharmed()
    tenants.product.leave()


class Tenants:
    def __init__(self, lab):
        self.lab, self.product = lab, Product(lab)
        program = built(lab, "hostile_tenant").read_bytes()
        self.product.manage(num_vfs=5)
        self.vms = {name: lab.vm(name) for name in (*HONEST, GREEDY, DEAD)}
        self.attachments = {}
        for name, vm in self.vms.items():
            vm.wait_ready()
            self.attachments[name] = self.product.attach(name, network="train", verify="required",
                                                  verify_profile="quick")
        send(self.vms[GREEDY], program, PROGRAM)
        self.restarts = self.started_again()
        self.slowest = {}

    def started_again(self):
        return self.lab.host.run("systemctl show -P NRestarts vfmgrd vfmgr-guestd").stdout.split()

    def alone(self):
        self.lab.step("each honest VM verifies while nobody else does")
        for name in HONEST:
            self.round("honest alone", (name,))

    def round(self, count, names):
        """All of `names` begin at once; each must pass."""
        for name in names:
            self.vms[name].run(
                "rm -f /run/own.*; (cut -d' ' -f1 /proc/uptime >/run/own.begin; "
                "vf-guest verify --profile quick -o json >/run/own.json 2>/run/own.err; "
                "echo $? >/run/own.code; cut -d' ' -f1 /proc/uptime >/run/own.end) "
                "</dev/null >/dev/null 2>&1 &")
        for name in names:
            vm = self.vms[name]
            vm.wait_for("its verification has ended", "test -s /run/own.end", VERIFY_SECONDS)
            begin, end = (float(vm.run(f"cat /run/own.{which}").stdout) for which in
                          ("begin", "end"))
            said = verifications(vm.run("cat /run/own.json").stdout)
            verdicts = [one["verdict"] for one in said]
            if not self.lab.check_equal(verdicts, ["pass"], f"{count}, {name}"):
                self.lab.step(vm.run("cat /run/own.json /run/own.err").stdout[-1500:])
            else:
                self.lab.count(count)
            self.slowest[count] = max(self.slowest.get(count, 0), end - begin)
        self.lab.step(f"{count}: {', '.join(names)}, the slowest so far "
                      f"{self.slowest[count]:.1f} s")

    def die(self):
        """The power is cut in the middle of a session: nothing of it stays on the host."""
        self.lab.step("a VM dies in the middle of its session")
        self.vms[DEAD].run("(vf-guest verify --profile deep </dev/null >/dev/null 2>&1 &)")
        self.lab.host.wait_for("vfmgr-guestd has queue pairs for it", lambda: self.pairs() > 0, 60)
        self.lab.host.run(f"virsh -q destroy {DEAD}")
        self.lab.host.wait_for("vfmgr-guestd has none of them", lambda: self.pairs() == 0,
                               CUT_SECONDS)
        self.lab.count("cut with its VM")

    def pairs(self):
        """Returns the number of vfmgr-guestd's queue pairs, as the kernel counts them."""
        shown = self.lab.host.run("rdma -j resource show qp").json()
        return sum(one.get("comm") == "vfmgr-guestd" for one in shown)

    def flood(self):
        self.lab.step(f"a greedy VM floods the guest plane for {FLOOD_SECONDS} s")
        greedy = self.vms[GREEDY]
        greedy.run(f"({PROGRAM} {FLOOD_SECONDS} {self.attachments[GREEDY]['id']} >/run/greedy.json "
                   "2>/run/greedy.err; echo $? >/run/greedy.code) </dev/null >/dev/null 2>&1 &")
        for _ in range(ROUNDS):
            self.round("honest meanwhile", HONEST)
        greedy.wait_for("the flood has ended", "test -s /run/greedy.code", FLOOD_SECONDS + 120)
        done = json.loads(greedy.run("cat /run/greedy.json").stdout)
        self.lab.step(f"it did: {done}")
        self.lab.check_equal(done.get("unprivileged served", 0), 0, "served unprivileged ports")
        self.lab.count("unprivileged turned away", done.get("unprivileged connections", 0))
        self.lab.count("flood turned away", done.get("requests answered 503", 0))
        self.lab.check(done.get("requests answered 500", 0) == 0, f"the host failed: {done}")

    def unharmed(self):
        self.lab.check_equal(self.started_again(), self.restarts,
                             "restarts of vfmgrd and vfmgr-guestd")
        shown = ", ".join(f"{count} {seconds:.1f} s" for count, seconds in self.slowest.items())
        self.lab.step(f"slowest verifications: {shown}")


def verifications(text):
    """Returns the values of vf-guest's JSON; none if it printed no JSON."""
    try:
        return json.loads(text)
    except ValueError:
        return []
