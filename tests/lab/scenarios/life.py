# SPDX-License-Identifier: Apache-2.0
"""The life of a host: 500 random acts over three VMs, after which nothing is leaked.

Users attach, detach, change and adopt VFs, alone and in sets; VMs start, are destroyed, rebooted,
saved, renamed and undefined; libvirtd and vfmgrd are killed amid an operation; the PF goes down.
After each act virsh, sysfs, iproute2 and /proc say what vfmgr's attachments say (vflab.life); every
50 acts the networks' addresses, RDMA links and filters do, too. At the end each VM proves its VFs.

VFMGR_LIFE_SEED repeats a run, as far as the host repeats itself, and VFMGR_LIFE_ACTS shortens it;
tests/unit/vfmgr/engine/life_test.cpp lives such a life on the fakes.
"""

import os
import random
import time

from vflab.crashes import unfinished
from vflab.host import NotInTime
from vflab.life import ACTS, RUNNING, SHUT_OFF, Tally, choose, faults, least_of
from vflab.life_acts import BOOT_SECONDS, OPERATION_SECONDS, Acts, Slot
from vflab.life_host import faults_of_networks, observe, world_of
from vflab.product import PLAIN, TRAIN, Before, Product

LONG = True
BOOT = "own"
DEADLINE_SECONDS = 10800
VMS = ("ada", "bea", "cyd")
NUM_VFS = 7
WHOLE_EVERY = 50     # acts
SOUND_SECONDS = 60   # sysfs, libvirt and vfmgrd are read one after the other
ENDED_SECONDS = 240  # a VM that is undefined has its attachments for a minute
CALM_SECONDS = 120


def run(lab):
    acts = int(os.environ.get("VFMGR_LIFE_ACTS", ACTS))
    seed = os.environ.get("VFMGR_LIFE_SEED") or str(random.SystemRandom().randrange(1, 1 << 30))
    again = f"VFMGR_LIFE_SEED={seed} VFMGR_LIFE_ACTS={acts}"
    lab.step(again)
    least = least_of(acts)
    lab.expect("proved", "whole host checked", "address free again")
    if least:
        lab.expect("libvirtd killed amid an operation", "vfmgrd killed amid an operation",
                   "PF down")
    life = Life(lab, seed, acts, least)
    try:
        for number in range(acts):
            life.act(number)
        life.end()
    except AssertionError as error:
        raise AssertionError(f"{again}: {life.last}: {error}") from error
    finally:
        for line in life.tally.lines():
            lab.step(line)
    for fault in life.tally.faults(least):
        lab.check(False, f"{again}: {fault}")


class Life:
    def __init__(self, lab, seed, acts, least):
        self.lab, self.seed, self.number_of_acts, self.least = lab, seed, acts, least
        self.product = Product(lab)
        self.product.manage(num_vfs=NUM_VFS)
        self.before = Before(self.product)
        self.slots = [Slot(lab, name) for name in VMS]
        self.acts = Acts(lab, self.product, self.slots)
        self.tally, self.last = Tally(), "before the first act"
        self.identities = {}  # {attachment's id: (MAC, address, network)}
        self.now = observe(lab, self.product)
        self.first = {vf.index: vf for vf in self.now.vfs}

    def act(self, number):
        """The seed and what the host is now choose it: a run that differs once may meet again."""
        drawn = random.Random(f"{self.seed} {number}")
        kind, target = choose(drawn, world_of(self.now, self.slots), self.tally,
                              self.number_of_acts - number, self.least)
        self.last = f"act {number}, {kind} {'' if target is None else target}".rstrip()
        began = time.monotonic()
        outcome = self.acts.act(kind, target, number, drawn, self.now)
        self.sound()
        took = time.monotonic() - began
        self.tally.add(kind, outcome.done, took)
        self.lab.step(f"{self.last}: {outcome.text}, {took:.1f} s")
        if number % WHOLE_EVERY == WHOLE_EVERY - 1:
            self.whole()

    # --- what must hold ---

    def observe(self):
        self.now = observe(self.lab, self.product)
        for one in self.now.attachments:
            self.identities[one["id"]] = (one["settings"].get("mac"), one["address"],
                                          one["spec"].get("network"))
        return faults(self.now, self.first, {mac for mac, _, _ in self.identities.values()})

    def sound(self):
        """What is wrong once may be underway; what stays wrong is a fault."""
        found = self.observe()
        if (found or self.now.quarantined) and self.acts.repair(self.now):
            self.lab.step(f"{self.last}: repaired by the remedies: VFs in quarantine "
                          f"{sorted(self.now.quarantined)}, {found}")
            self.lab.count("repaired")
            found = self.observe()
        if found:
            def well():
                found[:] = self.observe()
                return not found
            self.within(SOUND_SECONDS, well, lambda: "; ".join(found))
        for slot in self.slots:
            left = self.now.indexes_of(slot.uuid) if slot.gone_since else []
            if left and time.monotonic() - slot.gone_since > ENDED_SECONDS:
                raise AssertionError(f"VM {slot.name} was undefined {ENDED_SECONDS} s ago, and VFs "
                                     f"{left} are attached to it")

    def within(self, seconds, probe, told):
        try:
            self.lab.host.wait_for("the host is sound", probe, seconds)
        except NotInTime:
            raise AssertionError(told()) from None

    def gone_have_ended(self):
        def ended():
            self.observe()
            return not any(self.now.indexes_of(slot.uuid) for slot in self.slots
                           if slot.gone_since)
        self.within(ENDED_SECONDS, ended, lambda: "VFs are attached to VMs that were undefined")

    def whole(self):
        """Leaks that take more than one command to find, and that desired equals host."""
        began = time.monotonic()
        self.gone_have_ended()
        self.within(OPERATION_SECONDS, lambda: not unfinished(self.lab),
                    lambda: f"operations have not ended: {unfinished(self.lab)}")
        self.within(CALM_SECONDS, self.product.calm,
                    lambda: f"drift: {self.lab.api('GET', '/readyz')}")
        found = []

        def networks():
            found[:] = self.observe() + faults_of_networks(self.lab, self.now, (TRAIN, PLAIN))
            return not found
        self.within(SOUND_SECONDS, networks, lambda: "; ".join(found))
        self.lab.check_equal(self.product.quarantined(), [], f"{self.last}: quarantine")
        self.lab.count("whole host checked")
        self.lab.step(f"the whole host is sound, {time.monotonic() - began:.1f} s")

    # --- the end ---

    def end(self):
        self.last = "at the end"
        self.whole()
        self.prove()
        self.leave()

    def prove(self):
        for slot in self.slots:
            if slot.gone_since:
                slot.define_again()
        self.observe()
        if not any(one["spec"].get("network") for one in self.now.attachments):
            self.acts.must("attach", self.slots[0].name, "--pf", self.product.pf,
                           "--network", "train")
            self.observe()
        world = world_of(self.now, self.slots)
        with_vfs = [(number, state) for number, (state, vfs) in enumerate(world.vms) if vfs]
        for number, state in with_vfs:
            # A PF that goes down resets its VFs, which the VM's driver may not notice.
            again = "start" if state == SHUT_OFF else "reboot"
            if state == SHUT_OFF or self.slots[number].lost_link:
                self.lab.step(f"VM {self.slots[number].name}: {again}")
                self.acts.act(again, number, self.number_of_acts, random, self.now)
        for number, _ in with_vfs:
            self.slots[number].ready()
        self.sound()
        lacking = [self.slots[number].name for number, (state, vfs) in
                   enumerate(world_of(self.now, self.slots).vms) if vfs and state != RUNNING]
        self.lab.check_equal(lacking, [], "VMs with VFs that do not run")
        for attachment in self.now.attachments:
            self.prove_one(attachment)

    def prove_one(self, attachment):
        index, mac = attachment["vf"]["index"], attachment["settings"]["mac"]
        slot = next(slot for slot in self.slots if slot.uuid == attachment["vm_uuid"])
        slot.vm.wait_netdev(mac, BOOT_SECONDS)
        if not attachment["spec"].get("network"):  # adopted: nothing says which network it is in
            return self.lab.count("adopted VFs in their VMs")
        result = self.lab.vfctl("verify", self.acts.vf(index), "--profile", "quick",
                                "--verify-timeout", "180", check=False, timeout=400)
        if self.lab.check(result.status == 0, f"VF {index} in VM {slot.name}: {result}"):
            self.lab.count("proved")

    def leave(self):
        """Everything is detached, and every address may be had again."""
        for slot in self.slots:
            if self.now.indexes_of(slot.uuid):
                self.acts.must("detach", slot.name, "--all")
        self.whole()
        self.lab.check_equal(list(self.now.attachments), [], "attachments at the end")
        self.lab.check_equal(len(self.now.free()), NUM_VFS, "free VFs at the end")
        self.before.check_again("after its life")
        for mac, address, network in [one for one in self.identities.values() if one[2]][-5:]:
            result = self.lab.vfctl(
                "--dry-run", "attach", self.slots[0].name, "--pf", self.product.pf, "--network",
                network, "--mac", mac, "--address", address, check=False)
            if self.lab.check(result.status == 0, f"{mac} and {address} are not free: {result}"):
                self.lab.count("address free again")
        for slot in self.slots:
            slot.vm.destroy()
        self.product.leave()
