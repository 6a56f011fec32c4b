# SPDX-License-Identifier: Apache-2.0
"""Chooses the scenarios of a run without names: the core, and one slice of the long ones.

A scenario is sliced when its file has SLICES = N and its run() takes its points from lab.slice.
Each commit runs one slice of all those, chosen by the hash of its tree, so that commits take
turns; the commit's own hash holds its date and message, with which a committer could choose.
Scenarios without slices that are not in the core run in --long.
"""

import re
import subprocess

from . import scenario
from .paths import LAB, REPO, SCENARIOS, names_in

CORE = LAB / "core.txt"


def core():
    return names_in(CORE)


def slices(name):
    """Returns the scenario's number of slices, or 0. Reads its file without running it."""
    said = re.search(r"^SLICES = (\d+)$", (SCENARIOS / f"{name}.py").read_text(), re.MULTILINE)
    return int(said[1]) if said else 0


def all_slices():
    return [f"{name}/{number}" for name in scenario.names() for number in range(slices(name))]


def split(name):
    """Returns the scenario's file and the number of its slice, None for the whole scenario."""
    file, _, number = name.partition("/")
    return file, int(number) if number else None


def unknown(names):
    known = {*scenario.names(), *all_slices()}
    return [name for name in names if name not in known]


def tree():
    done = subprocess.run(["git", "-C", str(REPO), "rev-parse", "HEAD^{tree}"],
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    return done.stdout.strip() if done.returncode == 0 else ""


def slice_of(tree_hash):
    """Returns the slice of a tree. Without a hash (an unpacked archive): the first."""
    there = all_slices()
    return there[int(tree_hash or "0", 16) % len(there)] if there else None


def names(with_long):
    if with_long:
        return scenario.names()
    chosen = slice_of(tree())
    return core() + ([chosen] if chosen else [])


def sentence(with_long):
    if with_long:
        return f"all {len(scenario.names())} scenarios"
    tree_hash = tree()
    return (f"{len(core())} scenarios of core.txt, and for tree {tree_hash[:12] or '(none)'} "
            f"slice {slice_of(tree_hash)} of {len(all_slices())} slices")
