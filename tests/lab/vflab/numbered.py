# SPDX-License-Identifier: Apache-2.0
"""Two streams of numbered UDP packets between a VM and the second machine, over the VM's VF.

Each receiver knows which numbers never came. The second machine is outside of the emulated host,
and nothing of vfmgr is at either end.
"""

import json
from contextlib import contextmanager

from vflab.programs import send

PORT = 9100
EVERY_MS = 20
TAIL_SECONDS = 60  # for what is still on its way at a window's end
PROGRAM = "/root/numbered"  # in the VM; the second machine has it from its start
PID, LINES = "/run/numbered.pid", "/run/numbered.lines"
REPORT = (f"n=$(wc -l <{LINES}); kill -USR1 $(cat {PID}); "
          f"until [ $(wc -l <{LINES}) -gt $n ]; do sleep 0.1; done; tail -n1 {LINES}")


class End:
    def __init__(self, name, run):
        self.name, self.run = name, run

    def start(self, program, local, peer):
        self.run(f"({program} {local} {peer} {PORT} {EVERY_MS} >{LINES} 2>&1 </dev/null & "
                 f"echo $! >{PID})")

    def report(self):
        said = self.run(REPORT)
        return json.loads((said if isinstance(said, str) else said.stdout).strip())


class Window:
    """Packets of one span of time; `lost` and `sent` of each direction once it is over."""

    def __init__(self, name):
        self.name = name
        self.sent, self.lost, self.silence_ms = {}, {}, {}

    @property
    def all_lost(self):
        return sum(self.lost.values())

    def __str__(self):
        ways = ", ".join(f"{way}: {self.lost[way]} of {self.sent[way]} lost, "
                         f"silent for {self.silence_ms[way]} ms at most" for way in self.sent)
        return f"{self.name}: {ways}"


class Streams:
    def __init__(self, lab, vm, second, program):
        self.lab = lab
        send(vm, program.read_bytes(), PROGRAM)
        self.vm, self.second = End("VM", vm.run), End("second machine", second.run)
        self.windows = []

    def start(self, vm_address, second_address):
        self.second.start("/numbered", second_address, vm_address)
        self.vm.start(PROGRAM, vm_address, second_address)
        self.lab.host.wait_for("packets come at both ends",
                               lambda: all(end.report()["next"] > 10 for end in self.ends()), 60)

    def ends(self):
        return self.vm, self.second

    def stop(self):
        for end in self.ends():
            end.run(f"kill $(cat {PID})")

    def wait_sent(self, packets, deadline_seconds):
        begin = [end.report()["sent"] for end in self.ends()]
        self.lab.host.wait_for(
            f"{packets} packets each way",
            lambda: all(end.report()["sent"] >= was + packets
                        for end, was in zip(self.ends(), begin)), deadline_seconds)

    @contextmanager
    def window(self, name):
        window = Window(name)
        begin = [end.report()["sent"] for end in self.ends()]
        yield window
        end = [one.report()["sent"] for one in self.ends()]
        for way, receiver, first, last in (("from the VM", self.second, begin[0], end[0]),
                                           ("to the VM", self.vm, begin[1], end[1])):
            silence = 0

            def arrived():
                nonlocal silence
                said = receiver.report()
                silence = max(silence, said["silence_ms"])
                return said if said["next"] >= last else None
            said = self.lab.host.wait_for(f"packet {last} {way} has come", arrived, TAIL_SECONDS)
            window.sent[way] = last - first
            window.lost[way] = sum(first <= number < last for number in said["missing"])
            window.silence_ms[way] = silence
        self.windows.append(window)
        self.lab.step(f"packets over the VF, {window}")
