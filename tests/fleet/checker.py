#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""checker.py [--fresh SECONDS] FILE…: judges a history of a fleet; exits with 1 if it was wrong.

history.py says what a history is. What was wrong, by rule:
  two_holders      a MAC, a GUID, or an address of a network, was in two VFs at one moment
  given_twice      a VF was in two VMs; or two reservations, or one and a VM that did not use it,
                   had a VF at one moment
  lost             an act that was acknowledged is not there, and nothing can have ended it
  freed_by_nobody  a VF left its VM, and nobody can have asked for it: silence frees nothing
  taken_by_nobody  a VF came into a VM, and nobody can have asked for it, or not for so many
  refused_yet_done an act that was refused had an effect that stayed
  old_read         a list is older than it says
  left_over        all is healed, and somebody still has to put something right by hand
  no_fault         a fault of the run has no evidence that it happened

How it judges. The hosts' own logs have every change with its time: on these lines it relies. Each
stay of a VF in a VM is an interval, and so is the time in which an act can have had an effect: from
its request to its answer, or for ever if its outcome is unknown. A refused act may have had an
effect that was undone before its answer. What a host did must be explained by an act whose interval
contains the moment; any act that can explain it does, so an act whose answer was lost accuses
nobody. Where acts overlap, all of their orders are right. What is reported therefore was wrong in
whatever order things happened; in return, a wrong deed that coincides with an unknown act of the
same VM can go unnoticed.

One act of `attach` explains one VF of its VM at a moment, so two VFs for one request are seen. What
is certain of a reservation lies between its acknowledgement and the first request that can have
ended or used it, its expiry, or a jump of a clock. A list that was read from t1 to t2 shows, of
each host that it does not call stale, a moment between t1 - SECONDS and t2, or earlier by the time
of silence after which a host is stale when a fault can have silenced it; of a stale one a moment
after its `since` - SECONDS.
"""

import argparse
import itertools
import sys
from dataclasses import dataclass
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))

import explain  # noqa: E402
from history import NEVER, Holding, History, read_lines  # noqa: E402

FRESH_SECONDS = 2.0  # a read without `stale` has every act acknowledged this long before it
# So long a replica believes in a host that says nothing; until then it does not call it stale.
SILENCE_SECONDS = 45.0


@dataclass
class Violation:
    rule: str
    at: float
    text: str

    def __str__(self):
        return f"{self.rule} at {self.at:.3f}: {self.text}"


def overlapping(intervals):
    """Yields pairs of these that overlap, each with one that began before it."""
    open_ones = []
    for one in sorted(intervals, key=lambda each: each.begin):
        open_ones = [other for other in open_ones if other.end > one.begin]
        for other in open_ones:
            yield other, one
        open_ones.append(one)


def two_holders(history):
    held = {}
    for log in history.logs.values():
        for kind, found in (("MAC", log.mac), ("GUID", log.guid)):
            for value, holdings in found.items():
                held.setdefault((kind, value), []).extend(holdings)
    given = {(kind, value) for stay in history.stays
             for kind, value in (("MAC", stay.mac), ("GUID", stay.guid))}
    for name, holdings in addresses(history).items():
        held[name] = holdings
        given.add(name)
    for name, holdings in held.items():
        if name not in given:
            continue  # what cards have before anybody sets it may be the same on each host
        for one, other in overlapping(holdings):
            if (one.host, one.vf) != (other.host, other.vf):
                yield Violation("two_holders", other.begin,
                                f"{' '.join(name)} is in VF {one.vf} of {one.host} and in VF "
                                f"{other.vf} of {other.host}")


def addresses(history):
    """Who holds each address: the VFs that acknowledged acts gave it to, while they stay."""
    held = {}
    for _, place, stay in history.placed():
        if place.get("address"):
            name = "address", place.get("network") or "", place["address"]
            held.setdefault(name, {})[id(stay)] = Holding(*stay.key[:2], stay.begin, stay.end)
    return {name: list(stays.values()) for name, stays in held.items()}


@dataclass
class Reserved:
    """In this time a reservation certainly has the VF."""
    act: object
    begin: float
    end: float


def certain(history):
    """Returns by (host, VF) when reservations certainly had it."""
    had = {}
    clocks = [fault["begun_at"] for fault in history.faults if fault["fault"] == "clock"]
    for act in history.of_kind("reserve", outcome="ok"):
        ends = [other.invoked_at for other in history.of_kind("release", "attach")
                if other.reservation == act.reservation]
        ends += [act.expires_at or NEVER, *(at for at in clocks if at >= act.invoked_at)]
        if (end := min(ends)) > act.completed_at:
            for vf in act.vfs or []:
                had.setdefault((act.host, vf), []).append(Reserved(act, act.completed_at, end))
    return had


def given_twice(history):
    for log in history.logs.values():
        for at, vf, vms in log.shared:
            yield Violation("given_twice", at, f"VF {vf} of {log.host} is in VMs {' '.join(vms)}")
    had = certain(history)
    for (host, vf), reserved in had.items():
        for one, other in overlapping(reserved):
            yield Violation("given_twice", other.begin,
                            f"VF {vf} of {host} has {one.act} and {other.act}")
    for stay in history.stays:
        for reserved in had.get((stay.host, stay.vf), ()):
            if stay.overlaps(reserved.begin, reserved.end) and stay.end > reserved.begin:
                yield Violation("given_twice", max(stay.begin, reserved.begin),
                                f"{stay} is reserved by {reserved.act}")


def can_have_ended(history, place, since, until, but=None):
    """Whether an act other than `but` can have taken this VF out of its VM in that time."""
    return any(act is not but and explain.ends(act, place["vm"], place["host"], place["vf"])
               and act.may_act_within(since, until) for act in history.about(place["vm"]))


def can_have_begun(history, place, since, until, but=None):
    return any(act is not but and explain.begins(act, place["vm"], place["host"], place["vf"])
               and act.may_act_within(since, until) for act in history.about(place["vm"]))


def lost(history):
    for act in history.acts:
        if act.outcome != "ok":
            continue
        for place in act.places():
            if place["host"] in history.logs:
                yield from not_placed(history, act, place)
        if act.kind in ("detach", "move", "drain"):
            yield from not_taken(history, act)


def not_placed(history, act, place):
    at = act.completed_at
    stay = history.stay_at(place, at)
    where = f"VF {place['vf']} of {place['host']}"
    if not stay:
        if not can_have_ended(history, place, act.invoked_at, at, but=act):
            yield Violation("lost", at, f"{act}, but {where} is not in VM {place['vm']}")
        return
    for name in ("mac", "guid"):
        if place.get(name) not in (None, getattr(stay, name)):
            yield Violation("lost", at, f"{act} with {name} {place[name]}, but {where} has "
                                        f"{getattr(stay, name)}")
    if act.kind == "move":
        yield from moved_otherwise(history, act, stay)


def moved_otherwise(history, act, stay):
    """What moves keeps its identities, unless another act was at the VM meanwhile."""
    others = [other for other in history.about(act.vm) if other is not act
              and other.may_act_within(act.invoked_at, act.completed_at)]
    before = [one for one in history.by_vm[act.vm]
              if one.host == act.host and one.covers(act.invoked_at)]
    if before and not others and (stay.mac, stay.guid) not in {(one.mac, one.guid)
                                                               for one in before}:
        yield Violation("lost", act.completed_at,
                        f"{act}, but {stay} has MAC {stay.mac} and GUID {stay.guid}, which no VF "
                        "had that it moved from")


def not_taken(history, act):
    """A stay that was there before the request and is there after the answer was not ended."""
    if act.kind == "move" and not act.host:
        return  # it may have been at its destination before
    for stay in history.by_vm.get(act.vm, ()) if act.vm else history.stays:
        if (explain.ends(act, stay.vm, stay.host, stay.vf) and stay.begin < act.invoked_at
                and stay.end > act.completed_at):
            yield Violation("lost", act.completed_at, f"{act}, but {stay} is still there")


def covered(history, read, host):
    """Returns from when on the read must show this host; None if it says nothing about it."""
    if read.get("hosts") is not None and host not in read["hosts"]:
        return None
    if host not in read.get("stale", {}):
        return read["invoked_at"]
    if any(fault["fault"] == "clock" and fault["begun_at"] < read["completed_at"]
           for fault in history.faults):
        return None
    return read["stale"][host]


def allowed(history, read, fresh):
    """Returns how old the read may be: older when a fault can have made a host silent before it."""
    since = read["invoked_at"] - SILENCE_SECONDS - fresh
    silent = any(fault["fault"].startswith(("cut", "stop"))
                 and fault["begun_at"] <= read["completed_at"]
                 and fault.get("ended_at", NEVER) >= since for fault in history.faults)
    return fresh + (SILENCE_SECONDS if silent else 0)


def old_reads(history, fresh):
    for read in history.reads:
        judge = old_attachments if read["read"] == "attachments" else old_reservations
        for at, text in judge(history, read, allowed(history, read, fresh)):
            stale = f", which calls {sorted(read['stale'])} stale" if read.get("stale") else ""
            yield Violation("old_read", at, f"{read['read']} read from {read.get('replica')} at "
                                            f"{read['invoked_at']:.3f}{stale}: {text}")


def old_attachments(history, read, fresh):
    shown = {(one["host"], one["vf"], one["vm"]) for one in read["items"]}
    for act, place, stay in history.placed():
        if act.completed_at >= read["invoked_at"] - fresh or stay.end <= read["completed_at"]:
            continue
        since = covered(history, read, place["host"])
        if (since is not None and act.completed_at < since - fresh and stay.key not in shown
                and not can_have_ended(history, place, act.completed_at, read["completed_at"],
                                       but=act)):
            yield read["completed_at"], f"it does not show {act}"
    for host, vf, vm in shown:
        place, since = {"host": host, "vf": vf, "vm": vm}, covered(history, read, host)
        for act in [] if since is None else history.enders(vm, host):
            if (act.completed_at < since - fresh
                    and explain.ends(act, vm, host, vf)
                    and not any(stay.key == (host, vf, vm) and stay.overlaps(
                        act.completed_at, read["completed_at"])
                        for stay in history.by_vm.get(vm, ()))
                    and not can_have_begun(history, place, act.invoked_at, read["completed_at"],
                                           but=act)):
                yield read["completed_at"], f"it shows VF {vf} of {host} despite {act}"


def old_reservations(history, read, fresh):
    shown = {one["reservation"] for one in read["items"]}
    until, since = read["completed_at"], read["invoked_at"] - fresh
    clocks = [fault["begun_at"] for fault in history.faults if fault["fault"] == "clock"]
    released = {act.reservation for act in history.of_kind("release", outcome="ok")
                if act.completed_at < since}
    made = history.of_kind("reserve")
    for act in made:
        ending = [other for other in history.of_kind("release", "attach")
                  if other.reservation == act.reservation and other.invoked_at < until]
        again = [other for other in made if other.reservation == act.reservation
                 and other is not act]
        if again:
            continue  # names that come again are not told apart
        if act.outcome == "ok" and act.completed_at < since and act.reservation not in shown and (
                not ending and (act.expires_at or NEVER) > until
                and not any(act.invoked_at <= at <= until for at in clocks)):
            yield until, f"it does not show {act}"
        if act.reservation in shown & released and act.effective_until < since:
            yield until, f"it shows {act}, which was released"


def left_over(history):
    final = history.final
    if not final:
        return
    at = final["at"]
    for what in ("operations", "drains", "moves"):
        for one in final.get(what) or []:
            yield Violation("left_over", at, f"{what}: {one} has not ended")
    for host, state in (final.get("hosts") or {}).items():
        if state != "active":
            yield Violation("left_over", at, f"host {host} is {state}")
    stays = {stay.key: stay for stay in history.stays if stay.covers(at)}
    if final.get("attachments") is not None:
        shown = {(one["host"], one["vf"], one["vm"]) for one in final["attachments"]}
        for host, vf, vm in sorted(shown ^ set(stays)):
            said = "the fleet does not know it" if (host, vf, vm) in stays else "it is not there"
            yield Violation("left_over", at, f"VF {vf} of {host} in VM {vm}: {said}")
    yield from residue(history, at)
    if final.get("claims") is not None:
        held = {(stay.host, stay.mac) for stay in stays.values()}
        for one in final["claims"]:
            if (one["host"], one["mac"]) not in held:
                yield Violation("left_over", at, f"{one['host']} has a claim on {one['mac']}, "
                                                 "which no VM there has")


def residue(history, at):
    """VFs that kept the identity of a VM which they are not in."""
    given = {stay.mac for stay in history.stays} | {stay.guid for stay in history.stays}
    in_vms = {(stay.host, stay.vf) for stay in history.stays if stay.covers(at)}
    for log in history.logs.values():
        for value, holdings in itertools.chain(log.mac.items(), log.guid.items()):
            for one in holdings:
                if value in given and one.begin <= at < one.end and (
                        one.host, one.vf) not in in_vms:
                    yield Violation("left_over", at, f"VF {one.vf} of {one.host} has {value}, "
                                                     "and is in no VM")


def faults_without_evidence(history):
    for fault in history.faults:
        if not fault.get("evidence"):
            yield Violation("no_fault", fault["begun_at"],
                            f"{fault['fault']} of {fault.get('of')} shows nothing")


def check(lines, fresh=FRESH_SECONDS):
    """Returns what was wrong, by time."""
    history = History(lines)
    found = itertools.chain(
        two_holders(history), given_twice(history), lost(history),
        (Violation(*one) for one in explain.unexplained(history)),
        old_reads(history, fresh), left_over(history), faults_without_evidence(history))
    return sorted(found, key=lambda one: one.at)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--fresh", type=float, default=FRESH_SECONDS, metavar="SECONDS")
    parser.add_argument("files", nargs="+", metavar="FILE")
    options = parser.parse_args()
    violations = check(read_lines(options.files), options.fresh)
    for violation in violations:
        print(violation)
    print(f"{len(violations)} violations")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
