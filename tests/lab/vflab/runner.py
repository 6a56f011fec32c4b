# SPDX-License-Identifier: Apache-2.0
"""Runs scenarios: shares boots, judges, keeps the evidence of failures."""

import signal
import time
import traceback

from vflab import panic, plan, scenario
from vflab.build import build
from vflab.evidence import gather
from vflab.host import Host
from vflab.machine import HostGone, Machine
from vflab.observe import Observe
from vflab.parts import PartsInUse
from vflab.passed import Passed
from vflab.paths import SCENARIOS, LabError, new_results_dir
from vflab.shell import say

EMULATOR_RETRIES_MAX = 1  # per run
PASSED = Passed("lab")
DEADLINE_SECONDS = 900  # for a scenario without its own DEADLINE_SECONDS


class OutOfTime(AssertionError):
    pass


class Runner:
    def __init__(self, options, folder=SCENARIOS):
        self.options = options
        self.folder = folder
        self.machine = None
        self.parts = None
        self.clean = set()
        self.emulator_retries = 0
        self.passed = self.failed = self.skipped = 0

    # --- order ---

    def run(self, names):
        signal.signal(signal.SIGALRM, out_of_time)
        try:
            with PartsInUse():
                if not self.options.live:
                    # Built once, so that all boots of a run have the same sources.
                    self.parts = build(self.options.suite, not self.options.without_packages)
                self.run_all(names)
        except LabError as error:
            self.failed += 1
            print(f"FAIL lab: {error}", flush=True)
        finally:
            self.end_boot()
        retries = f", {self.emulator_retries} emulator-retry" if self.emulator_retries else ""
        skipped = f", {self.skipped} skipped" if self.skipped else ""
        print(f"{self.passed} passed, {self.failed} failed{skipped}{retries}", flush=True)
        return 0 if self.failed == 0 else 1

    def run_all(self, names):
        modules = self.load(names)
        # Names what has already passed on this tree, when tests/run resumes a run.
        modules = {name: module for name, module in modules.items()
                   if not self.reported_before(name)}
        own = [name for name in modules if getattr(modules[name], "BOOT", "shared") == "own"
               or plan.split(name)[1] is not None]  # a failed slice does not affect other scenarios
        shared = [name for name in modules if name not in own]
        for turn in range(self.options.repeat):
            if self.options.repeat > 1:
                say(f"--- run {turn + 1} of {self.options.repeat}")
            for name in shared:
                self.run_one(name, modules[name])
            for name in own:
                self.end_boot()
                self.run_one(name, modules[name])
            self.end_boot()

    def load(self, names):
        modules = {}
        for name in names:
            try:
                modules[name] = scenario.load(plan.split(name)[0], self.folder)
            except Exception as error:  # in the scenario's file: the others still run
                self.failed += 1
                print(f"FAIL {name}: its file can't be loaded: {error}", flush=True)
        return modules

    def reported_before(self, name):
        if not PASSED.told(name):
            return False
        self.passed += 1
        return True

    def run_one(self, name, module):
        if self.options.without_packages and getattr(module, "NEEDS_PACKAGES", True):
            self.skipped += 1
            return print(f"SKIP {name}: needs our packages", flush=True)
        failures, lab = self.attempt(name, module)
        if failures and self.may_retry():
            self.emulator_retries += 1
            print(f"emulator-retry {name}: the emulated host's kernel panicked or hung without a "
                  f"process or module of ours on its stack", flush=True)
            self.print_panic(name)
            self.keep_evidence(f"{name}-emulator-retry")
            self.end_boot()
            failures, lab = self.attempt(name, module)
        self.report(name, failures, lab)

    def report(self, name, failures, lab):
        seconds = time.monotonic() - lab.begin if lab else 0  # without the boot
        counts = lab.counts_text() if lab else ""
        if failures == ["skipped"]:
            self.skipped += 1
            return
        if not failures:
            self.passed += 1
            line = f"PASS {name} ({seconds:.1f} s) {counts}".rstrip()
            PASSED.keep(name, line)
            return print(line, flush=True)
        self.failed += 1
        print(f"FAIL {name}: {failures[0]}", flush=True)
        for further in failures[1:]:
            print(f"     {name}: {further}", flush=True)
        self.print_panic(name)
        if counts:
            print(f"     {name}: counted {counts}", flush=True)
        print(f"     {name}: evidence in {self.keep_evidence(name)}", flush=True)
        self.end_boot()  # a failed scenario may have left anything behind

    def print_panic(self, name):
        consoles = self.machine.consoles() if self.machine else []
        for line in [line for console in consoles
                     for line in panic.panic_summary(console) or panic.troubles(console)]:
            print(f"     {name}: {line[:140]}", flush=True)

    # --- one attempt ---

    def attempt(self, name, module):
        """Runs a scenario once; returns its failures and its Lab."""
        lab = None
        try:
            self.ensure_boot(getattr(module, "IOMMU", True))
            file, slice_number = plan.split(name)
            lab = scenario.Lab(self.machine, name, slice_number)
            say(f"{name}: {scenario.description(file, self.folder)}")
            self.limited(module, lab)
            failures = lab.verdict()
        except scenario.Skipped as reason:
            print(f"SKIP {name}: {reason}", flush=True)
            failures = ["skipped"]
        except HostGone as gone:
            return [*(lab.failures if lab else []), str(gone)], lab
        except (AssertionError, LabError) as error:
            failures = [*(lab.failures if lab else []), place(error) + str(error)]
        except Exception as error:  # a scenario's own bug is a failure, not the end of the run
            traceback.print_exc()
            failures = [f"{place(error)}{type(error).__name__}: {error}"]
        return self.after(lab, failures), lab

    def limited(self, module, lab):
        signal.alarm(getattr(module, "DEADLINE_SECONDS", DEADLINE_SECONDS))
        try:
            module.run(lab)
        finally:
            signal.alarm(0)

    def after(self, lab, failures):
        """Checks what must hold after every scenario: no error of the kernel, and a clean host."""
        if lab is None or (failures and failures != ["skipped"]):
            return failures  # left unchanged as evidence; the boot ends with it
        try:
            lab.remove_vms()
            state = Observe(lab.host).clean_state()
        except (AssertionError, LabError) as error:
            return [f"the host could not be checked afterwards: {error}"]
        self.clean |= state & lab.kept  # the next scenario of this boot finds it there
        left = [f"{kind} {what}" for kind, what in sorted(state - self.clean)]
        gone = [f"{kind} {what}" for kind, what in sorted(self.clean - state)]
        dirty = []
        if left:
            dirty.append("the host is not clean, left behind: " + ", ".join(left))
        if gone and not left:
            dirty.append("the host is not clean, missing: " + ", ".join(gone))
        complaints = panic.kernel_complaints(self.machine.console_text())
        if complaints:
            dirty.append(f"the host's kernel complains: {complaints[0]}")
        return failures + dirty if failures != ["skipped"] or dirty else failures

    def may_retry(self):
        return (self.emulator_retries < EMULATOR_RETRIES_MAX and self.machine is not None
                and any(map(panic.emulator_is_to_blame, self.machine.consoles())))

    # --- boots ---

    def ensure_boot(self, iommu):
        if self.machine is not None:
            return
        options = self.options
        self.machine = Machine(options.name)
        if options.live:
            if not self.machine.connect():
                raise LabError(f"no lab '{options.name}' is up (lab up starts it)")
        else:
            self.machine.prepare(options.suite, options.cpus, not options.without_packages,
                                 parts=self.parts, iommu=iommu)
            self.machine.boot()
        host = Host(self.machine)
        host.wait_booted()
        self.clean = Observe(host).clean_state()

    def end_boot(self):
        if self.machine is None:
            return
        if not self.options.live:
            self.machine.stop()
            self.machine.remove()
        self.machine = None

    def keep_evidence(self, name):
        if self.machine is None:
            return "(no boot)"
        try:
            return gather(self.machine, new_results_dir(name.replace("/", "-")))
        except (LabError, OSError) as error:
            return f"(could not be gathered: {error})"


def out_of_time(*_):
    raise OutOfTime("the scenario did not end within its deadline")


def place(error):
    """Returns where in the scenario's file it happened, as 'name.py:12: '."""
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if frame.filename.split("/")[-2:-1] in (["scenarios"], ["benches"]):
            return f"{frame.filename.rpartition('/')[2]}:{frame.lineno}: "
    return ""
