# SPDX-License-Identifier: Apache-2.0
"""Histories made by hand, for the tests of the checker."""

import checker

VM, OTHER = "11111111-1111-1111-1111-111111111111", "22222222-2222-2222-2222-222222222222"
MAC, SECOND = "52:54:00:10:00:01", "52:54:00:10:00:02"
GUID = "02:00:00:00:00:10:00:01"
VF, NEXT = "0000:01:00.0/0", "0000:01:00.0/1"
START = [{"host": host, "at": 0, "vfs": []} for host in ("h1", "h2")]


class Story:
    """A history told in order of the acts' names: act() gives one line or two."""

    def __init__(self):
        self.lines, self.count = [*START], 0

    def act(self, kind, begin, end=None, outcome="unknown", **members):
        self.count += 1
        name = f"a{self.count}"
        self.lines.append({"act": name, "client": "c1", "kind": kind, "invoked_at": begin,
                           **members})
        if end is not None:
            self.lines.append({"act": name, "completed_at": end, "outcome": outcome})
        return self

    def attach(self, begin, end, outcome="ok", vm=VM, host="h1", vf=VF, mac=MAC, **more):
        return self.act("attach", begin, end, outcome, vm=vm, host=host, vf=vf, mac=mac, **more)

    def detach(self, begin, end, outcome="ok", vm=VM, host="h1", vf=VF):
        return self.act("detach", begin, end, outcome, vm=vm, host=host, vf=vf)

    def saw(self, at, host="h1", off=False, **vms):
        """`vf0=(VM, MAC)`: that VF of the host has them, and the others nothing."""
        vfs = [{"vf": f"0000:01:00.0/{name[2:]}", "mac": one[1],
                "guid": one[2] if one[2:] else None, "vms": [one[0]] if one[0] else []}
               for name, one in vms.items()]
        self.lines.append({"host": host, "at": at, "vfs": vfs, **({"off": True} if off else {})})
        return self

    def read(self, begin, end, *items, stale=None, what="attachments"):
        self.lines.append({"read": what, "invoked_at": begin, "completed_at": end,
                           "replica": "fleet1", "stale": stale or {}, "items": list(items)})
        return self

    def line(self, **line):
        self.lines.append(line)
        return self

    def rules(self):
        return [one.rule for one in checker.check(self.lines)]

    def told(self):
        return "\n".join(map(str, checker.check(self.lines)))


def attached(**more):
    """The VM has VF 0 of h1 from 1.5 on, acknowledged at 2."""
    return Story().attach(1, 2, **more).saw(1.5, vf0=(VM, MAC))


def item(host="h1", vf=VF, vm=VM):
    return {"host": host, "vf": vf, "vm": vm}


def reserved(name="r1", end=1, outcome="ok", begin=0.5, **more):
    return dict(kind="reserve", begin=begin, end=end, outcome=outcome, reservation=name,
                host="h1", vfs=[VF, NEXT], **more)
