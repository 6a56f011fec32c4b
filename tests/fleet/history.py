# SPDX-License-Identifier: Apache-2.0
"""What the clients of a fleet did, what they read, and what its hosts really were, with times.

A history is lines of JSON, in any order and in any number of files. All times are seconds of one
machine's CLOCK_MONOTONIC, on which everything runs. A member that is absent is not known.

{"act": "c1-7", "client": "c1", "kind": "attach", "invoked_at": 1.5, …}, written before the request
is sent, and {"act": "c1-7", "completed_at": 1.9, "outcome": "ok", …}, written when its outcome is
known; the lines of one act add up. Retries of one request are one act: it is invoked when the first
is sent. Without an outcome it is unknown.
  ok       the fleet said that it is done
  refused  the fleet said that it is not done, or that it was undone
  unknown  nobody said anything: it is done, or not, or will be
kind     members
attach   vm (a UUID), host, vf ("0000:01:00.0/3": PF and index), mac, guid, address, network,
         reservation (the name of the one that it uses)
detach   vm, host, vf
move     vm, host (from), to, gives: [as an attach has them]
drain    host
reserve  reservation, host, vfs, expires_at
release  reservation

{"host": "h1", "at": 1.7, "vfs": [{"vf", "mac", "guid", "vms": [UUID]}]}: what the host's kernel and
hypervisor are from then on, until the host's next line, as they know it themselves. VFs that have
neither a MAC nor a VM may be left out. "off": true says that the host lost its power; what its VMs
had then may come back without anybody's act.

{"read": "attachments", "invoked_at", "completed_at", "replica", "stale": {host: since or null},
"items": [{"host", "vf", "vm"}]}: all of a list, or of the hosts named in "hosts".
{"read": "reservations", …, "items": [{"reservation", "host", "vfs"}]}

{"fault": "kill", "of": "h1", "begun_at", "ended_at", "evidence": what shows that it happened}

{"final": true, "at", "operations": [], "drains": [], "moves": [], "hosts": {host: state},
"attachments": [{"host", "vf", "vm"}], "claims": [{"host", "mac"}]}: what the fleet says when all is
healed and nothing happens any more; each of the lists may be absent.
"""

import json
import math
from dataclasses import dataclass, field

NO_MAC = {None, "", "00:00:00:00:00:00"}
NO_GUID = {None, "", "00:00:00:00:00:00:00:00"}
NEVER = math.inf


@dataclass
class Act:
    name: str
    kind: str
    invoked_at: float
    completed_at: float = NEVER
    outcome: str = "unknown"
    members: dict = field(default_factory=dict)

    def __getattr__(self, name):
        """Another member; None where the act does not name it."""
        if name == "members":
            raise AttributeError(name)
        return self.members.get(name)

    @property
    def effective_until(self):
        """When it can have an effect for the last time."""
        return NEVER if self.outcome == "unknown" else self.completed_at

    def may_act_at(self, time):
        return self.invoked_at <= time <= self.effective_until

    def may_act_within(self, begin, end):
        return self.invoked_at <= end and begin <= self.effective_until

    def places(self):
        """Returns where it says that it put VFs: members as an attach has them."""
        if self.outcome != "ok":
            return []
        own = [self.members] if self.kind == "attach" and self.vf else []
        return own + [{"vm": self.vm, **one} for one in self.gives or []]

    def __str__(self):
        named = " ".join(f"{name} {self.members[name]}" for name in
                         ("vm", "host", "to", "vf", "reservation") if self.members.get(name))
        return f"{self.kind} {self.name} ({named}), {self.outcome}"


@dataclass
class Stay:
    """A VF is in a VM, with this identity, from `begin` until `end`."""
    host: str
    vf: str
    vm: str
    mac: str | None
    guid: str | None
    begin: float
    end: float = NEVER
    begun_by: str = "change"  # or "start": the host's first line; or "off"
    ended_by: str = "change"

    @property
    def key(self):
        return self.host, self.vf, self.vm

    def covers(self, time):
        return self.begin <= time < self.end

    def overlaps(self, begin, end):
        return self.begin <= end and begin < self.end

    def __str__(self):
        return f"VF {self.vf} of {self.host} in VM {self.vm}"


@dataclass
class Holding:
    """A VF of a host has an identity."""
    host: str
    vf: str
    begin: float
    end: float = NEVER


class HostLog:
    """The lines of a host as intervals: its VFs' stays in VMs and what they hold."""

    def __init__(self, host, lines):
        self.host, self.stays, self.mac, self.guid = host, [], {}, {}
        self.shared = []  # (time, vf, VMs) where a VF was in several VMs
        current, holding = {}, {}
        for number, line in enumerate(sorted(lines, key=lambda one: one["at"])):
            why = "off" if line.get("off") else "change" if number else "start"
            self.follow_stays(current, line, why)
            self.follow_identities(holding, line)
        self.stays.sort(key=lambda one: one.begin)

    def follow_stays(self, current, line, why):
        now = {}
        for vf in line["vfs"]:
            vms = vf.get("vms") or []
            if len(vms) > 1:
                self.shared.append((line["at"], vf["vf"], vms))
            for vm in vms:
                now[vf["vf"], vm, vf.get("mac"), vf.get("guid")] = vf
        for key in [key for key in current if key not in now]:
            stay = current.pop(key)
            stay.end, stay.ended_by = line["at"], why
        for key in now:
            if key not in current:
                current[key] = Stay(self.host, *key, line["at"], begun_by=why)
                self.stays.append(current[key])

    def follow_identities(self, holding, line):
        now = {}
        for vf in line["vfs"]:
            for kept, name, none in ((self.mac, "mac", NO_MAC), (self.guid, "guid", NO_GUID)):
                if vf.get(name) not in none:
                    now[name, vf[name], vf["vf"]] = kept
        for key in [key for key in holding if key not in now]:
            holding.pop(key).end = line["at"]
        for key, kept in now.items():
            if key not in holding:
                holding[key] = Holding(self.host, key[2], line["at"])
                kept.setdefault(key[1], []).append(holding[key])


class History:
    def __init__(self, lines):
        acts, hosts = {}, {}
        self.reads, self.faults, self.final, self.came = [], [], None, None
        for line in lines:
            if "act" in line:
                acts.setdefault(line["act"], {}).update(line)
            elif "fault" in line:
                self.faults.append(line)
            elif "read" in line:
                self.reads.append(line)
            elif "final" in line:
                self.final = line
            else:
                hosts.setdefault(line["host"], []).append(line)
        self.acts = sorted((self.act(one) for one in acts.values()),
                           key=lambda one: one.invoked_at)
        self.logs = {host: HostLog(host, of_host) for host, of_host in hosts.items()}
        self.stays = sorted((stay for log in self.logs.values() for stay in log.stays),
                            key=lambda one: one.begin)
        self.by_vm = {}
        for stay in self.stays:
            self.by_vm.setdefault(stay.vm, []).append(stay)

        self.drains, self.acts_of_vm = self.of_kind("drain"), {}
        for act in self.acts:
            if act.vm:
                self.acts_of_vm.setdefault(act.vm, []).append(act)
        self.ended = {}  # by VM, or by host for drains: acts that took VFs away, acknowledged
        for act in self.of_kind("detach", "move", "drain", outcome="ok"):
            self.ended.setdefault(act.host if act.kind == "drain" else act.vm, []).append(act)

    def about(self, vm):
        """Returns the acts that can change the VFs of this VM."""
        return self.acts_of_vm.get(vm, []) + self.drains

    def placed(self):
        """Returns (act, place, stay) of each VF that was acknowledged and came."""
        if self.came is None:
            found = ((act, place, self.stay_at(place, act.completed_at))
                     for act in self.acts for place in act.places())
            self.came = [one for one in found if one[2]]
        return self.came

    def enders(self, vm, host):
        return self.ended.get(vm, []) + self.ended.get(host, [])

    @staticmethod
    def act(line):
        known = {"act": "name", "kind": "kind", "invoked_at": "invoked_at",
                 "completed_at": "completed_at", "outcome": "outcome"}
        return Act(**{known[name]: value for name, value in line.items() if name in known},
                   members={name: value for name, value in line.items() if name not in known})

    def of_kind(self, *kinds, outcome=None):
        return [act for act in self.acts
                if act.kind in kinds and outcome in (None, act.outcome)]

    def stay_at(self, place, time):
        """Returns the stay of this VF in this VM at that time, whatever its identity."""
        return next((stay for stay in self.by_vm.get(place["vm"], ())
                     if (stay.host, stay.vf) == (place["host"], place["vf"])
                     and stay.covers(time)), None)


def read_lines(paths):
    """Yields the lines of these files. The last of a file may be cut: its writer was killed."""
    for path in paths:
        with open(path) as lines:
            for line in lines:
                if line.endswith("\n"):
                    yield json.loads(line)
