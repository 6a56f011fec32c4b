# SPDX-License-Identifier: Apache-2.0
"""Tests of what the scenario `life` chooses and judges, without a boot."""

import random
import sys
from dataclasses import replace
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

from vflab import life_acts, life_host  # noqa: E402
from vflab.life import (ACTS, GONE, KINDS, LEAST, RUNNING, SHUT_OFF, Domain, Observed,  # noqa: E402
                        Tally, Vf, World, choose, faults, least_of, targets)

ZERO, MAC = "00:00:00:00:00:00", "02:76:66:00:00:01"
FREE = {"vf": 0, "mac": ZERO, "vlan": 0, "trust": False, "max_tx_rate": 0}
ATTACHMENT = {"id": "3f9c2b1d", "vf": {"index": 1}, "vf_pci": "0000:01:10.1", "vm_uuid": "u1",
              "driver": "vfio-pci", "settings": {"mac": MAC, "vlan": {"id": 100}, "trust": True},
              "address": "192.168.100.4", "spec": {"network": "train"}, "state": "attached",
              "live": True, "config": True}
DEVICE = ("0000:01:10.1", "ua-vfmgr-3f9c2b1d")
FIRST = {index: Vf(index, f"0000:01:10.{index}", "", "", FREE) for index in (0, 1)}
VF = Vf(1, "0000:01:10.1", "vfio-pci", "", {**FREE, "mac": MAC, "vlan": 100, "trust": True}, (41,))
VM = Domain("ada", "u1", True, (DEVICE,), (DEVICE,))
SOUND = Observed((FIRST[0], VF), (VM,), (ATTACHMENT,), frozenset(), True)


def attachment(**changed):
    return ({**ATTACHMENT, **changed},)


def vf(**changed):
    return (FIRST[0], replace(VF, **changed))


def free_vf(**changed):
    return (replace(FIRST[0], **changed), VF)


def test_a_host_that_is_as_its_attachments_say_is_sound():
    assert faults(SOUND, FIRST, {MAC}) == []
    assert SOUND.free() == [0]


@pytest.mark.parametrize("changed, said", [
    ({"attachments": ()}, "of no attachment"),
    ({"attachments": ATTACHMENT and (ATTACHMENT, ATTACHMENT)}, "two attachments have the MAC"),
    ({"attachments": attachment(state="detaching")}, "is detaching"),
    ({"attachments": attachment(config=False)}, "config XML"),
    ({"domains": (replace(VM, live=()),)}, "has [] in its live XML"),
    ({"domains": (VM, Domain("bea", "u2", True, (DEVICE,)))}, "VM bea has"),
    ({"vfs": vf(driver="igbvf")}, "has the driver 'igbvf'"),
    ({"vfs": vf(holders=())}, "no process holds it"),
    ({"vfs": vf(holders=(41, 42))}, "2 holders"),
    ({"vfs": vf(settings={**VF.settings, "trust": False})}, "has the trust False"),
    ({"domains": (replace(VM, active=False, live=()),)}, "shut off, and 41 holds it"),
    ({"vfs": free_vf(driver="vfio-pci")}, "before it was ''"),
    ({"vfs": free_vf(override="vfio-pci")}, "driver_override"),
    ({"vfs": free_vf(holders=(7,))}, "held by process 7"),
    ({"vfs": free_vf(settings={**FREE, "mac": MAC})}, f"has mac {MAC}"),
    ({"vfs": free_vf(settings={**FREE, "vlan": 100})}, "has vlan 100"),
])
def test_what_is_leaked_or_lost_is_named(changed, said):
    found = faults(replace(SOUND, **changed), FIRST, {MAC})
    assert any(said in line for line in found), found


def test_what_is_reported_is_no_fault():
    quarantined = replace(SOUND, attachments=(), domains=(replace(VM, live=(), config=()),),
                          quarantined=frozenset({1}))
    assert faults(quarantined, FIRST, {MAC}) == []
    gone = replace(SOUND, domains=(), vfs=vf(holders=()), attachments=attachment(state="detaching"))
    assert faults(gone, FIRST, {MAC}) == []


def test_a_network_driver_chooses_a_mac_that_no_vm_had():
    bound = {0: replace(FIRST[0], driver="igbvf"), 1: FIRST[1]}
    for mac, well in (("02:00:00:00:00:77", True), (MAC, False)):
        now = replace(SOUND, vfs=free_vf(driver="igbvf", settings={**FREE, "mac": mac}))
        assert (faults(now, bound, {MAC}) == []) == well


def test_each_act_has_what_it_needs():
    def possible(vms, free, pf_up=True):
        return {kind for kind, found in targets(World(vms, free, pf_up)).items() if found}

    assert possible(((GONE, ()),), (0, 1), False) == {"start"}
    assert possible(((GONE, (1,)),), (0,), False) == set()
    assert possible(((SHUT_OFF, (0, 1)),), ()) == {
        "change", "detach", "detach a set", "start", "rename", "undefine", "libvirtd killed",
        "vfmgrd killed", "PF down"}
    assert set(KINDS) - possible(((RUNNING, ()),), (0, 1, 2)) == {
        "change", "detach", "detach a set", "start", "rename"}


class Life:
    """A host that does what is asked for, with three VMs and seven VFs."""

    def __init__(self, seed, acts):
        self.seed, self.acts, self.tally = seed, acts, Tally()
        self.vms = [(SHUT_OFF, ()) for _ in range(3)]

    def world(self):
        taken = {each for _, vfs in self.vms for each in vfs}
        return World(tuple(self.vms), tuple(sorted(set(range(7)) - taken)), bool(taken))

    def run(self):
        return [self.act(number) for number in range(self.acts)]

    def act(self, number):
        world = self.world()
        kind, target = choose(random.Random(f"{self.seed} {number}"), world, self.tally,
                              self.acts - number, least_of(self.acts))
        assert target in targets(world)[kind]
        self.tally.add(kind, True)
        if kind in ("change", "detach"):
            slot = next(slot for slot, (_, vfs) in enumerate(self.vms) if target in vfs)
        else:
            slot = target
        if slot is not None:
            self.vms[slot] = self.after(kind, target, world, *self.vms[slot])
        return kind, target

    @staticmethod
    def after(kind, target, world, state, vfs):
        if kind in ("attach", "adopt", "attach a set"):
            return state, vfs + world.free[:2 if kind == "attach a set" else 1]
        if kind == "detach":
            return state, tuple(each for each in vfs if each != target)
        return {"detach a set": (state, ()), "start": (RUNNING, vfs), "destroy": (SHUT_OFF, vfs),
                "undefine": (GONE, ())}.get(kind, (state, vfs))


def test_the_seed_repeats_a_life_on_a_host_that_repeats_itself():
    assert Life(7, 60).run() == Life(7, 60).run()
    assert Life(7, 60).run() != Life(8, 60).run()


@pytest.mark.parametrize("seed", range(20))
def test_in_each_life_each_kind_comes_often_enough(seed):
    life = Life(seed, ACTS)
    life.run()
    assert life.tally.faults(LEAST) == []


def test_a_count_that_falls_short_is_a_fault():
    tally = Tally()
    for kind in KINDS:
        tally.add(kind, True)
        tally.add(kind, False)
    assert tally.faults(2) == [f"{len(KINDS)} of {2 * len(KINDS)} acts did what they are to do, "
                               "fewer than 60 %"]
    tally.add("attach", True)
    assert "'rename' was tried 2 times, at least 3 expected" in tally.faults(3)
    assert (least_of(500), least_of(49), least_of(0)) == (10, 0, 0)


def test_every_kind_has_its_act():
    for kind in KINDS:
        assert callable(getattr(life_acts.Acts, kind.replace(" ", "_").lower())), kind


PRINTED = """@vfs
0|0000:01:10.0|||(null)
1|0000:01:10.1|vfio-pci|14|
@held
/proc/41/fd|/dev/vfio/14
/proc/41/fd|/dev/vfio/14
@link
[{"ifname": "enp1s0", "flags": ["BROADCAST", "UP"], "vfinfo_list": [
  {"vf": 0, "mac": "00:00:00:00:00:00"}, {"vf": 1, "mac": "02:76:66:00:00:01", "vlan_list":
  [{"vlan": 100}]}]}]
@attachments
{"items": []}
@quarantine
{"items": [{"index": 0, "quarantine": null}, {"index": 1, "quarantine": {"reason": "kept"}}]}
@domains
<domain type='kvm' id='3'><name>ada</name><uuid>u1</uuid><devices>
  <hostdev mode='subsystem' type='pci' managed='no'><source><address domain='0x0000' bus='0x01'
    slot='0x10' function='0x1'/></source><alias name='ua-vfmgr-3f9c2b1d'/></hostdev>
</devices></domain>

<domain type='kvm'><name>ada</name><uuid>u1</uuid><devices/></domain>

<domain type='kvm'><name>bea</name><uuid>u2</uuid><devices/></domain>

<domain type='kvm'><name>bea</name><uuid>u2</uuid><devices/></domain>
"""


def test_what_the_host_prints_is_read():
    now = life_host.observed_of(PRINTED)
    assert [(vf.driver, vf.override, vf.holders) for vf in now.vfs] == [("", "", ()),
                                                                       ("vfio-pci", "", (41,))]
    assert now.vfs[1].settings["vlan"] == 100 and now.pf_up
    assert now.domains == (Domain("ada", "u1", True, (DEVICE,), ()), Domain("bea", "u2", False))
    assert (now.quarantined, now.free()) == ({1}, [0])
