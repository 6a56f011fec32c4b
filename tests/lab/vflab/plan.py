# SPDX-License-Identifier: Apache-2.0
"""Chooses the scenarios of a run without names: the core, one line of turns.txt, and one slice.

A scenario is sliced when its file has SLICES = N and its run() takes its points from lab.slice.
The line and the slice are chosen by the hash of the commit's tree, so that commits take turns; the
commit's own hash holds its date and message, with which a committer could choose. Scenarios that
neither list has and that are not sliced run in --long.
"""

import re
import subprocess

from . import scenario
from .paths import LAB, REPO, SCENARIOS, names_in

CORE = LAB / "core.txt"
TURNS = LAB / "turns.txt"


def core():
    return names_in(CORE)


def turns():
    return [line.split() for line in names_in(TURNS)]


def said_in(name, line):
    """Searches the scenario's file without running it."""
    return re.search(f"^{line}$", (SCENARIOS / f"{name}.py").read_text(), re.MULTILINE)


def slices(name):
    """Returns the scenario's number of slices, or 0."""
    said = said_in(name, r"SLICES = (\d+)")
    return int(said[1]) if said else 0


def sliced():
    """Returns the scenarios of which commits run slices."""
    return [name for name in scenario.names() if slices(name) and not said_in(name, "LONG = True")]


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


def choice_of(tree_hash, there):
    """Returns whose turn it is with a tree. Without a hash (an unpacked archive): the first."""
    return there[int(tree_hash or "0", 16) % len(there)]


def slice_of(tree_hash):
    """Returns whose slice it is: first the scenario is chosen, so that those of many slices do not
    come more often."""
    number = int(tree_hash or "0", 16)
    name = choice_of(tree_hash, sliced())
    return f"{name}/{number // len(sliced()) % slices(name)}"


def names(with_long):
    if with_long:
        return scenario.names()
    tree_hash = tree()
    return [*core(), *choice_of(tree_hash, turns()), slice_of(tree_hash)]


def sentence(with_long):
    if with_long:
        return f"all {len(scenario.names())} scenarios"
    tree_hash = tree()
    return (f"{len(core())} scenarios of core.txt, and for tree {tree_hash[:12] or '(none)'} "
            f"{' and '.join(choice_of(tree_hash, turns()))}, one of {len(turns())} turns, and "
            f"{slice_of(tree_hash)}, one of {len(sliced())} sliced scenarios")
