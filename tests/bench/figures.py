# SPDX-License-Identifier: Apache-2.0
"""Figures of a benchmark, vfmgr's and its peer's from the same rounds, kept in bench.json."""

import json
import random
from pathlib import Path
from statistics import median

PATH = Path(__file__).resolve().parent.parent.parent / "bench.json"
ROUNDS = 7
RESAMPLES = 2000


class Figures:
    def __init__(self, lab, name, unit, command_ours, command_peer, better="lower",
                 ratio_max=None, ratio_min=None, ours_max=None):
        self.lab, self.name, self.unit, self.better = lab, name, unit, better
        self.ratio_max, self.ratio_min = ratio_max, ratio_min  # ours divided by the peer's
        self.ours_max = ours_max  # an absolute limit, which depends on the machine's speed
        self.commands = {"command_ours": command_ours, "command_peer": command_peer}
        self.ours, self.peer = [], []
        lab.step(f"{name}, ours: {command_ours}")
        lab.step(f"{name}, peer: {command_peer}")

    @staticmethod
    def forget():
        PATH.write_text("[]\n")

    def round(self, ours, peer):
        """Adds one figure of each, measured directly one after the other."""
        self.ours.append(ours)
        self.peer.append(peer)
        self.lab.step(f"{self.name}: ours {ours:.4g} {self.unit}, peer {peer:.4g} {self.unit}")

    def report(self):
        ratio = median(self.ours) / median(self.peer)
        low, high = self.interval()
        entry = {"name": self.name, "ours": self.ours, "peer": self.peer, "ratio": ratio,
                 "ratio_interval": [low, high], "ratio_max": self.ratio_max,
                 "ratio_min": self.ratio_min, "ours_max": self.ours_max, "better": self.better,
                 "unit": self.unit, "rounds": len(self.ours), **self.commands}
        PATH.write_text(json.dumps([*json.loads(PATH.read_text()), entry], indent=2) + "\n")
        print(f"{self.name}: ours {median(self.ours):.4g} {self.unit}, peer "
              f"{median(self.peer):.4g} {self.unit}, ratio {ratio:.3f} ({self.better} is better), "
              f"medians of {len(self.ours)} rounds; of {RESAMPLES} resamplings 95 % have "
              f"{low:.3f} to {high:.3f}", flush=True)
        self.lab.count("rounds", len(self.ours))
        if self.ratio_max is not None:
            self.lab.check(ratio <= self.ratio_max,
                           f"{self.name}: ratio {ratio:.3f}, at most {self.ratio_max} is allowed")
        if self.ours_max is not None:
            self.lab.check(median(self.ours) < self.ours_max,
                           f"{self.name}: {median(self.ours):.3f} {self.unit}, less than "
                           f"{self.ours_max} is required")
        if self.ratio_min is not None:
            self.lab.check(ratio >= self.ratio_min,
                           f"{self.name}: ratio {ratio:.3f}, at least {self.ratio_min} is required")

    def interval(self):
        """Returns the ratio's interval, by bootstrap: what other such rounds would give."""
        dice = random.Random(0)  # the same figures give the same interval

        def once():
            rounds = dice.choices(range(len(self.ours)), k=len(self.ours))
            return (median(self.ours[index] for index in rounds)
                    / median(self.peer[index] for index in rounds))
        ratios = sorted(once() for _ in range(RESAMPLES))
        return ratios[RESAMPLES // 40], ratios[-RESAMPLES // 40]


def seconds(lab, command):
    """Measures by the emulated host's own clock, which excludes the connection to it."""
    shown = lab.host.run(f"began=$(date +%s.%N); {command} >/dev/null || exit 1; "
                         "echo \"$(date +%s.%N) $began\"", timeout=300).stdout.split()
    return float(shown[0]) - float(shown[1])
