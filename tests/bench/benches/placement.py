# SPDX-License-Identifier: Apache-2.0
"""A VF near each of 8 GPUs from 8 PFs: the choice, and the plan of all 8 attachments.

The peer tries all: the best of every set of taken PFs, which is what the tests judge the choice by.
It is no other product: none is known that chooses for a whole set. Both are one C++ program, which
fails unless each result is as good as that. The host is a value: observing one is not measured.
"""

import subprocess

from figures import ROUNDS, Figures
from vflab.programs import built_here

NEEDS_LAB = False
SECONDS = 14
MILLISECONDS_MAX = 50


def milliseconds(program, what, times):
    return float(subprocess.run([program, what, str(times)], check=True, text=True,
                                stdout=subprocess.PIPE).stdout)


def run(lab, seconds=SECONDS):
    lab.expect("rounds")
    program = built_here("placement")
    for what in ("place", "plan"):
        each = {one: seconds / ROUNDS / 4 for one in (what, "try-all")}
        times = {one: max(1, round(each[one] * 1000 / milliseconds(program, one, 10)))
                 for one in each}
        figures = Figures(lab, f"{what}-8x8", "ms", f"placement {what} {times[what]}",
                          f"placement try-all {times['try-all']}", ours_max=MILLISECONDS_MAX)
        for _ in range(ROUNDS):
            figures.round(milliseconds(program, what, times[what]),
                          milliseconds(program, "try-all", times["try-all"]))
        figures.report()
