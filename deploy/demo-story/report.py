# SPDX-License-Identifier: Apache-2.0
"""Prints the story step by step, and records it in demo-report.json."""

import json
import time
from contextlib import contextmanager


class NotObserved(AssertionError):
    """vfmgr reported something that the other tools did not confirm."""


class Report:
    def __init__(self, path):
        self.path = path
        self.began = time.monotonic()
        self.steps = []
        self.ip_link = {"mac": None, "vlan": None, "trust": None}
        self.verification = {"tests": [], "peer_gid": None, "vf_mac": None}

    def say(self, text):
        print(f"[{time.monotonic() - self.began:6.1f} s] {text}", flush=True)

    def record(self, name, began, observed, sentence):
        seconds = round(time.monotonic() - began, 1)
        self.steps.append({"name": name, "seconds": seconds, "observed": observed})
        self.say(f"* {sentence}")
        for key, value in observed.items():
            self.say(f"      {key}: {value}")

    @contextmanager
    def step(self, name, sentence):
        """Yields a dictionary for the observations; a step without any fails."""
        began, observed = time.monotonic(), {}
        self.say(f"  {name.replace('_', ' ')} ...")
        yield observed
        expect(observed, f"nothing was observed in step {name}")
        self.record(name, began, observed, sentence)

    def write(self, result):
        text = json.dumps({"result": result, "steps": self.steps, "ip_link": self.ip_link,
                           "verification": self.verification}, indent=2)
        self.path.write_text(text + "\n")


def expect(condition, what):
    if not condition:
        raise NotObserved(what)
