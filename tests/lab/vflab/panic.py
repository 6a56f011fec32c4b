# SPDX-License-Identifier: Apache-2.0
"""Judges the emulated host's console: whether its kernel died, and whether vfmgr caused it."""

import re

PANIC = "Kernel panic - not syncing"
END = "---[ end Kernel panic"
# Names as the kernel prints them (process names end at 15 characters): vfmgr's processes, kernel
# modules built from this repository, and modules that carry only vfmgr's traffic, whichever CPU an
# interrupt or kernel thread used for it.
OUR_PROCESSES = re.compile(r"\bComm: (vfmgr|vfctl|vf-guest)")
OUR_MODULES = ("vfmgr_lab_pf",)
MODULES_OF_OUR_TRAFFIC = ("rdma_rxe", "siw", "ib_core", "ib_uverbs", "ib_cm", "iw_cm", "rdma_cm",
                          "rdma_ucm")
AT_ENTRY = re.compile(r"\bRIP: 0010:entry_SYSCALL_64\+0x0/")
# The kernel's message about an emulated CPU whose timer never fires, as in some boots before init.
TIMER_LOST = "kthread timer wakeup didn't happen"
READY = "vfmgr-lab: ready"
LINES_BEFORE = 120
SUMMARY_LINES = 8
BOOT = "--- lab: boot "
COMPLAINT = re.compile(r"\bBUG: |\bOops: |general protection fault|stack guard page|"
                       r"PANIC: double fault")
TELLING = re.compile(r"\bBUG: |PANIC: double fault|\bComm: |^RIP: 0010|" + re.escape(PANIC))


def panic_text(console):
    """Returns the panic and what led to it in the same boot, or None."""
    lines = console.splitlines()
    number = next((n for n, line in enumerate(lines) if PANIC in line), None)
    if number is None:
        return None
    boot = max((n for n in range(number) if lines[n].startswith(BOOT)), default=0)
    # A recursion fills hundreds of lines, and the running process is printed before them.
    began = next((n for n in range(boot, number) if COMPLAINT.search(lines[n])), number)
    end = next((n for n in range(number, len(lines)) if END in lines[n]), len(lines) - 1)
    return "\n".join(lines[max(boot, min(began, number - LINES_BEFORE)):end + 1])


def panic_summary(console):
    """Returns the lines that identify a panic: what, who, where. Empty without a panic."""
    told = {}
    for line in (panic_text(console) or "").splitlines():
        text = re.sub(r"^\[ *[0-9.]+\] *", "", line)
        if TELLING.search(text) and END not in text:
            told.setdefault(text, line)
    return list(told.values())[:SUMMARY_LINES]


def died_on_entry(text):
    """A fault at the very first instruction of the system call entry, on the process's own stack.

    No kernel instruction has run, interrupts are masked, and the instruction there (swapgs, or a
    landing pad) can't fault: no process can cause it, and the printed process is chance.
    """
    return "double fault" in text and bool(AT_ENTRY.search(text))


def has_ours_on_stack(text):
    """Returns whether it died in a process or module of vfmgr, or in work for vfmgr's traffic."""
    if OUR_PROCESSES.search(text) and not died_on_entry(text):
        return True
    return any(re.search(rf"\[{module}\b", text) for module in OUR_MODULES + MODULES_OF_OUR_TRAFFIC)


def stalled_at_boot(console):
    """Returns whether the last boot lost a CPU's timer and did not complete."""
    last = console[console.rfind(BOOT):] if BOOT in console else ""
    return TIMER_LOST in last and READY not in last


def emulator_is_to_blame(console):
    """A panic without vfmgr on the stack, or a boot without timers: a scenario may run again."""
    text = panic_text(console)
    return stalled_at_boot(console) or (text is not None and not has_ours_on_stack(text))


def troubles(console):
    """Returns the last lines that may show why something failed although the kernel lived on."""
    return [line for line in console.splitlines() if COMPLAINT.search(line)][-SUMMARY_LINES:]


def kernel_complaints(console):
    """Returns lines about a kernel bug which did not stop the kernel."""
    # Slow emulation causes soft lockups, which are no bug of the kernel.
    return [line for line in console.splitlines()
            if COMPLAINT.search(line.replace("BUG: soft lockup", ""))]
