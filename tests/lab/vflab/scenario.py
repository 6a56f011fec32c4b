# SPDX-License-Identifier: Apache-2.0
"""The tools of a scenario: `run(lab)` gets a Lab."""

import ast
import importlib.util
import json
import time
from dataclasses import dataclass, field
from shlex import quote

from vflab.host import CommandFailed, Host
from vflab.observe import Observe
from vflab.paths import SCENARIOS
from vflab.shell import say
from vflab.vm import VM

SOCKET = "/run/vfmgr/vfmgr.sock"


class Skipped(Exception):
    pass


@dataclass
class Answer:
    """An answer of the API: `body` is the JSON value, or the text if it is not JSON."""
    status: int
    body: object
    headers: dict = field(default_factory=dict)

    def __str__(self):
        return f"{self.status} {json.dumps(self.body)[:1500]}"


class Lab:
    def __init__(self, machine, name, slice=None):
        self.machine = machine
        self.name = name
        self.slice = slice  # 0 and up to the scenario's SLICES; None: all of it
        self.host = Host(machine)
        self.observe = Observe(self.host)
        self.failures = []
        self.counts = {}
        self.expected = []
        self.vms = []
        self.kept = set()
        self.begin = time.monotonic()

    # --- actions ---

    def step(self, text):
        say(f"  {self.name}: {text}")

    def vm(self, name, start=True, **how):
        """Defines and starts a VM, with the options of VM. The lab removes it at the end."""
        vm = VM(self.host, name, **how)
        self.vms.append(vm)
        vm.define()
        return vm.start() if start else vm

    def api(self, method, path, body=None, headers=(), timeout=120):
        """Sends vfmgrd a request over its unix socket, as root."""
        words = [f"curl -sS --max-time {timeout} -D /dev/stderr --unix-socket {SOCKET}",
                 f"-X {method}"]
        words += [f"-H {quote(header)}" for header in headers]
        if body is not None:
            words.append("-H 'Content-Type: application/json' --data-binary @-")
        words.append(f"-w '\\n%{{http_code}}' {quote('http://localhost' + path)}")
        result = self.host.run(" ".join(words), check=False, timeout=timeout + 10,
                               input=None if body is None else json.dumps(body))
        text, _, status = result.stdout.rpartition("\n")
        if result.status != 0 or not status.isdigit():
            raise CommandFailed(f"{method} {path}: vfmgrd did not answer: {result}")
        pairs = [line.split(":", 1) for line in result.stderr.splitlines() if ":" in line]
        return Answer(int(status), as_json(text),
                      {name.strip().lower(): value.strip() for name, value in pairs})

    def vfctl(self, *arguments, check=True, timeout=180):
        return self.host.run(["vfctl", *arguments], check=check, timeout=timeout)

    def keeps(self, kind, what):
        """Declares a line of the clean state that the scenario can't avoid adding."""
        self.kept.add((kind, what))

    def reboot(self, **how):
        return self.host.reboot(**how)

    def power_cycle(self, **how):
        return self.host.power_cycle(**how)

    def qmp(self, execute, **arguments):
        return self.machine.qmp(execute, **arguments)

    def sliced(self, points, slices):
        """Returns the points of this slice, or all of them without a slice."""
        return points if self.slice is None else points[self.slice::slices]

    # --- judging ---

    def check(self, condition, text):
        """Records a failure and continues, so that one run shows all; returns whether it held."""
        if not condition:
            self.failures.append(text)
            say(f"  {self.name}: CHECK FAILED: {text}")
        return bool(condition)

    def check_equal(self, found, expected, text):
        return self.check(found == expected, f"{text}: {found!r}, expected {expected!r}")

    def expect(self, *what):
        """Declares what this scenario must provoke; it fails if that never happened."""
        self.expected += [name for name in what if name not in self.expected]

    def count(self, what, n=1):
        self.counts[what] = self.counts.get(what, 0) + n

    def skip(self, reason):
        raise Skipped(reason)

    def verdict(self):
        """Returns every failure so far, including provocations that did not happen."""
        idle = [f"'{what}' never happened" for what in self.expected if not self.counts.get(what)]
        return self.failures + idle

    def counts_text(self):
        names = self.expected + [name for name in self.counts if name not in self.expected]
        return " ".join(f"{name}={self.counts.get(name, 0)}" for name in names)

    def remove_vms(self):
        for vm in self.vms:
            vm.destroy()


def as_json(text):
    try:
        return json.loads(text)
    except ValueError:
        return text


def names():
    return [path.stem for path in sorted(SCENARIOS.glob("*.py"))]


def description(name, folder=SCENARIOS):
    """Returns the first line of the file's docstring, without running the file."""
    docstring = ast.get_docstring(ast.parse((folder / f"{name}.py").read_text()))
    return (docstring or "").split("\n")[0]


def load(name, folder=SCENARIOS):
    path = folder / f"{name}.py"
    spec = importlib.util.spec_from_file_location("scenario_" + name.replace("-", "_"), path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
