# SPDX-License-Identifier: Apache-2.0
"""Writes a history (history.py) while it happens."""

import json
import threading
import time
from collections import Counter


class Record:
    """A file of the history. Each line is written whole, before anybody goes on."""

    def __init__(self, path):
        self.path, self.lock, self.counts = path, threading.Lock(), Counter()
        self.file, self.acts = path.open("w"), 0

    def line(self, **members):
        with self.lock:
            self.file.write(json.dumps(members) + "\n")
            self.file.flush()

    def act(self, client, kind, **members):
        with self.lock:
            self.acts += 1
            name = f"{client}-{self.acts}"
        self.line(act=name, client=client, kind=kind, invoked_at=time.monotonic(), **members)
        return Act(self, name, kind)

    def fault(self, kind, of, begun_at, evidence):
        self.counts["fault", kind] += 1
        self.line(fault=kind, of=of, begun_at=begun_at, ended_at=time.monotonic(),
                  evidence=evidence)

    def told(self, what):
        """Returns "attach ok 3, attach refused 1" or "kill-host 2, …"."""
        counted = [(" ".join(name[1:]), count) for name, count in sorted(self.counts.items())
                   if name[0] == what]
        return ", ".join(f"{name} {count}" for name, count in counted) or "none"

    def number(self, what):
        return sum(count for name, count in self.counts.items() if name[0] == what)


class Act:
    def __init__(self, record, name, kind):
        self.record, self.name, self.kind = record, name, kind

    def ended(self, outcome, **members):
        """`outcome`: ok or refused. Of an act whose outcome nobody knows this is not called."""
        self.record.counts["act", self.kind, outcome] += 1
        self.record.line(act=self.name, completed_at=time.monotonic(), outcome=outcome, **members)

    def unknown(self):
        self.record.counts["act", self.kind, "unknown"] += 1
