# SPDX-License-Identifier: Apache-2.0
"""The life of a host: which act comes next, what must hold after each of them, and the count.

Nothing here touches the host: vflab.life_host observes it, vflab.life_acts acts.
"""

from dataclasses import dataclass, field

VFS_OF_VM_MAX = 3   # a VM of the scenario has one more free PCIe port
ACTS = 500
LEAST = 10          # of each kind, in so many acts
DONE_PERCENT = 60
ALIAS = "ua-vfmgr-"
RUNNING, SHUT_OFF, GONE = "running", "shut off", "gone"

# How often each is drawn. A boot takes longest, so what ends in one is drawn less.
KINDS = {"attach": 5, "attach a set": 3, "change": 4, "detach": 4, "detach a set": 3, "adopt": 2,
         "start": 4, "destroy": 2, "reboot": 0.8, "undefine": 0.7, "rename": 2, "save": 0.6,
         "libvirtd killed": 0.8, "vfmgrd killed": 0.8, "PF down": 0.8}


# --- the host, as others than vfmgr show it ---

@dataclass(frozen=True)
class Vf:
    index: int
    pci: str
    driver: str     # empty: none
    override: str   # empty: none
    settings: dict  # as iproute2 shows them, by observe.flat_vf
    holders: tuple = ()  # pids that have its VFIO group open


@dataclass(frozen=True)
class Domain:
    name: str
    uuid: str
    active: bool
    live: tuple = ()    # (PCI address, alias or None) of its host devices; none if not active
    config: tuple = ()


@dataclass(frozen=True)
class Observed:
    """Attachments and quarantine are vfmgr's own words: they are compared with the rest."""
    vfs: tuple
    domains: tuple
    attachments: tuple
    quarantined: frozenset  # indexes of VFs
    pf_up: bool

    def domain(self, name):
        return next((one for one in self.domains if one.name == name), None)

    def attachment_of(self, index):
        return next((one for one in self.attachments if one["vf"]["index"] == index), None)

    def indexes_of(self, uuid):
        return sorted(one["vf"]["index"] for one in self.attachments if one["vm_uuid"] == uuid)

    def free(self):
        """Returns the indexes of the VFs that anybody may have."""
        inside = {pci for one in self.domains for pci, _ in one.live + one.config}
        return [vf.index for vf in self.vfs if vf.pci not in inside and not vf.holders
                and vf.index not in self.quarantined and not self.attachment_of(vf.index)]


# --- what must hold ---

def faults(now, first, given):
    """Returns what is wrong, a line each. `first`: {index: Vf} before the first act. `given`: the
    MACs of all attachments so far."""
    lines = [*faults_of_attachments(now), *faults_of_domains(now)]
    for vf in now.vfs:
        if vf.index in now.quarantined:
            continue
        attachment = now.attachment_of(vf.index)
        if attachment is None:
            lines += faults_of_free_vf(vf, first[vf.index], given)
        elif attachment["state"] == "attached":
            lines += faults_of_attached_vf(now, vf, attachment)
    return lines


def faults_of_attachments(now):
    found = []
    for what, values in (
            ("VF", [one["vf"]["index"] for one in now.attachments]),
            ("MAC", [one["settings"].get("mac") for one in now.attachments]),
            ("address", [one["address"] for one in now.attachments])):
        twice = {value for value in values if value is not None and values.count(value) > 1}
        found += [f"two attachments have the {what} {value}" for value in sorted(twice)]
    known = {one.uuid for one in now.domains}
    return found + [f"attachment {one['id']} of VF {one['vf']['index']} is {one['state']}"
                    for one in now.attachments
                    if one["state"] != "attached" and one["vm_uuid"] in known]


def faults_of_domains(now):
    """A VM has what its attachments say and nothing else, where vfmgr says it."""
    found = []
    ids = {one["id"] for one in now.attachments}
    ours = {vf.pci for vf in now.vfs if vf.index not in now.quarantined}
    for domain in now.domains:
        own = [one for one in now.attachments if one["vm_uuid"] == domain.uuid]
        parts = [("config", domain.config, {one["vf_pci"] for one in own if one["config"]})]
        if domain.active:
            parts.append(("live", domain.live, {one["vf_pci"] for one in own}))
        for which, devices, expected in parts:
            has = {pci for pci, _ in devices if pci in ours}
            if has != expected & ours:
                found.append(f"VM {domain.name} has {sorted(has)} in its {which} XML, its "
                             f"attachments say {sorted(expected & ours)}")
            found += [f"VM {domain.name} has the device {alias} of no attachment in its {which} XML"
                      for pci, alias in devices if pci in ours and (alias or "").startswith(ALIAS)
                      and alias.removeprefix(ALIAS) not in ids]
    return found


def faults_of_free_vf(vf, before, given):
    name = f"VF {vf.index}, which has no attachment,"
    if vf.holders:
        yield f"{name} is held by process {vf.holders[0]}"
    for what, has, had in (("driver", vf.driver, before.driver),
                           ("driver_override", vf.override, before.override)):
        if has != had:
            yield f"{name} has the {what} '{has}', before it was '{had}'"
    mac = vf.settings.get("mac")
    for key, had in before.settings.items():
        # A network driver of the host may choose a MAC for its VF, but none that a VM had.
        chosen = key in ("mac", "address") and vf.driver and mac not in given
        if vf.settings.get(key) != had and not chosen:
            yield f"{name} has {key} {vf.settings.get(key)}, before it was {had}"


def faults_of_attached_vf(now, vf, attachment):
    name = f"VF {vf.index}"
    if vf.pci != attachment["vf_pci"]:
        yield f"{name} is {vf.pci}, its attachment says {attachment['vf_pci']}"
    if vf.driver != attachment["driver"]:
        yield f"{name} has the driver '{vf.driver}', its attachment says {attachment['driver']}"
    if len(vf.holders) > 1:
        yield f"{name} has {len(vf.holders)} holders: {vf.holders}"
    domain = next((one for one in now.domains if one.uuid == attachment["vm_uuid"]), None)
    if domain and domain.active and not vf.holders:
        yield f"{name} is in running VM {domain.name}, and no process holds it"
    if domain and not domain.active and vf.holders:
        yield f"{name} is of VM {domain.name}, which is shut off, and {vf.holders[0]} holds it"
    settings = attachment["settings"]
    for what, shown, said in (("MAC", "mac", settings.get("mac")),
                              ("trust", "trust", settings.get("trust")),
                              ("VLAN", "vlan", (settings.get("vlan") or {}).get("id")),
                              ("rate", "max_tx_rate", settings.get("max_tx_rate_mbps"))):
        if said is not None and vf.settings.get(shown) != said:
            yield f"{name} has the {what} {vf.settings.get(shown)}, its attachment says {said}"


# --- which act comes next ---

@dataclass(frozen=True)
class World:
    """What the choice depends on. It names VFs by index: ids of attachments are random."""
    vms: tuple    # (state, indexes of its VFs) of each slot
    free: tuple   # indexes
    pf_up: bool


def targets(world):
    """Returns {kind: what it can be done to}: slots of VMs, or indexes of VFs."""
    slots = list(enumerate(world.vms))
    there = [(slot, vfs) for slot, (state, vfs) in slots if state != GONE]
    running = [slot for slot, (state, _) in slots if state == RUNNING]
    off = [slot for slot, (state, _) in slots if state == SHUT_OFF]

    def with_room(count):
        return [slot for slot, vfs in there
                if len(world.free) >= count and len(vfs) + count <= VFS_OF_VM_MAX]

    attached = [vf for _, vfs in there for vf in vfs]
    killed = sorted({*with_room(1), *(slot for slot, vfs in there if vfs)})
    return {
        "attach": with_room(1), "attach a set": with_room(2),
        "change": attached, "detach": attached,
        "detach a set": [slot for slot, vfs in there if len(vfs) > 1],
        "adopt": [slot for slot in with_room(1) if slot in running],
        # A VM that is gone is made anew once the attachments of the one before have ended.
        "start": off + [slot for slot, (state, vfs) in slots if state == GONE and not vfs],
        "destroy": running, "reboot": running, "save": running, "rename": off,
        "undefine": [slot for slot, _ in there],
        "libvirtd killed": killed, "vfmgrd killed": killed,
        "PF down": [None] if world.pf_up else []}


def choose(random, world, tally, left, least):
    """Returns (kind, target). What lacks its number comes sooner, and first when acts run short."""
    can = {kind: found for kind, found in targets(world).items() if found}
    lacking = {kind: least - tally.tried.get(kind, 0) for kind in KINDS
               if tally.tried.get(kind, 0) < least}
    short = 3 * sum(lacking.values()) >= left  # some acts only make others possible
    kinds = [kind for kind in can if short and kind in lacking] or list(can)
    kind = random.choices(kinds, [KINDS[each] * (3 if each in lacking else 1)
                                  for each in kinds])[0]
    return kind, random.choice(can[kind])


# --- the count ---

@dataclass
class Tally:
    tried: dict = field(default_factory=dict)
    done: dict = field(default_factory=dict)
    seconds: dict = field(default_factory=dict)

    def add(self, kind, done, seconds=0):
        self.tried[kind] = self.tried.get(kind, 0) + 1
        self.done[kind] = self.done.get(kind, 0) + bool(done)
        self.seconds[kind] = self.seconds.get(kind, 0) + seconds

    def lines(self):
        return [f"{kind}: {self.done.get(kind, 0)} of {self.tried.get(kind, 0)} done, "
                f"{self.seconds.get(kind, 0):.0f} s" for kind in KINDS]

    def faults(self, least):
        found = [f"'{kind}' was tried {self.tried.get(kind, 0)} times, at least {least} expected"
                 for kind in KINDS if self.tried.get(kind, 0) < least]
        found += [f"'{kind}' was never done" for kind in KINDS
                  if self.tried.get(kind) and not self.done.get(kind)]
        tried, done = sum(self.tried.values()), sum(self.done.values())
        if done * 100 < tried * DONE_PERCENT:
            found.append(f"{done} of {tried} acts did what they are to do, fewer than "
                         f"{DONE_PERCENT} %")
        return found


def least_of(acts):
    """Returns how often each kind is tried in so many acts."""
    return acts * LEAST // ACTS
