# SPDX-License-Identifier: Apache-2.0
"""Which acts can explain what a host did: for the checker, which says how it judges."""

from history import NEVER


def ends(act, vm, host, vf):
    """Whether this act, if it is done, takes the VF out of the VM."""
    if act.kind == "detach":
        return act.vm == vm and act.host in (None, host) and act.vf in (None, vf)
    if act.kind == "move":
        return act.vm == vm and act.host in (None, host)
    return act.kind == "drain" and act.host == host


def begins(act, vm, host, vf):
    """Whether this act, if it is done, brings the VF into the VM."""
    if act.outcome == "ok" and act.kind in ("attach", "move") and act.places():
        return any((one["vm"], one["host"], one["vf"]) == (vm, host, vf) for one in act.places())
    if act.kind == "attach":
        return act.vm == vm and act.host in (None, host) and act.vf in (None, vf)
    if act.kind == "move":
        return act.vm == vm and act.host != host and act.to in (None, host)
    return act.kind == "drain" and act.host != host


def reverts(act, vm, host, vf):
    """Whether this act can take the VF out again because it fails, or put it back."""
    return act.outcome != "ok" and (begins(act, vm, host, vf) or ends(act, vm, host, vf))


def tried(act, stay):
    """Whether the stay can be a try of this act that it gave up for another place."""
    return (act.kind in ("attach", "move") and act.vm == stay.vm
            and act.invoked_at <= stay.begin and stay.end <= act.effective_until)


def unexplained(history):
    """Yields (rule, time, text) of what hosts did and no act explains."""
    for vm, stays in history.by_vm.items():
        acts = history.about(vm)
        for stay in stays:
            yield from begun_by_nobody(stay, stays, acts)
            yield from ended_by_nobody(stay, stays, acts)
        yield from too_many(stays, acts)


def begun_by_nobody(stay, stays, acts):
    if stay.begun_by == "start":
        return
    if any(other.key == stay.key and other.mac == stay.mac and other.ended_by == "off"
           and other.end <= stay.begin for other in stays):
        return  # what the host's VMs had before it lost its power
    can = beginning(stay, acts)
    if not can:
        yield ("taken_by_nobody", stay.begin, f"{stay} with MAC {stay.mac}: nobody asked for it")
    elif all(act.outcome == "refused" for act in can):
        until = max(act.completed_at for act in can)
        if stay.end > until and not any(ends(act, *of(stay)) for act in can):
            yield "refused_yet_done", until, f"{stay} is still there after {can[-1]}"


def ended_by_nobody(stay, stays, acts):
    if stay.end == NEVER or stay.ended_by == "off":
        return
    can = [act for act in acts if act.may_act_at(stay.end)
           and (ends(act, *of(stay)) or reverts(act, *of(stay)) or tried(act, stay))]
    if not can:
        yield "freed_by_nobody", stay.end, f"{stay} with MAC {stay.mac}: nobody ended it"
    elif all(act.outcome == "refused" and not begins(act, *of(stay))
             and not tried(act, stay) for act in can):
        until = max(act.completed_at for act in can)
        if not any(other.key == stay.key and stay.end <= other.begin <= until for other in stays):
            yield "refused_yet_done", until, f"{stay} did not come back after {can[-1]}"


def of(stay):
    return stay.vm, stay.host, stay.vf


def beginning(stay, acts):
    return [act for act in acts if act.may_act_at(stay.begin)
            and (begins(act, *of(stay)) or reverts(act, *of(stay)) or tried(act, stay))]


def too_many(stays, acts):
    """A VM must not have more VFs at a moment than acts that each brought one."""
    present = []
    for stay in stays:  # by begin
        if stay.begun_by == "start":
            continue
        present = [other for other in present if other.covers(stay.begin)] + [stay]
        bringing = [[act for act in beginning(other, acts)] for other in present]
        if any(not can or any(act.kind != "attach" for act in can) for can in bringing):
            continue  # a move or a drain brings several, and one that nobody asked for is told
        if len(matched(bringing)) < len(present):
            yield ("taken_by_nobody", stay.begin,
                   f"VM {stay.vm} has {len(present)} VFs, more than anybody asked for: "
                   + ", ".join(f"{other.vf} of {other.host}" for other in present))


def matched(bringing):
    """Returns a largest choice of one act for each of as many stays as can be: {act: stay}."""
    chosen = {}

    def give(stay, seen):
        for act in bringing[stay]:
            if act.name not in seen:
                seen.add(act.name)
                if act.name not in chosen or give(chosen[act.name], seen):
                    chosen[act.name] = stay
                    return True
        return False
    for stay in range(len(bringing)):
        give(stay, set())
    return chosen
