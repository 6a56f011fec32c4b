# SPDX-License-Identifier: Apache-2.0
"""Judges the emulated host's console: did its kernel die, and was it of our doing?"""

import re

PANIC = "Kernel panic - not syncing"
END = "---[ end Kernel panic"
# Names as the kernel prints them (a process's name ends at 15 characters), kernel modules built
# from this repository, and those that carry nothing but our traffic: whoever's CPU it was that an
# interrupt or a kernel thread took to work at it.
OUR_PROCESSES = re.compile(r"\bComm: (vfmgr|vfctl|vf-guest)")
OUR_MODULES = ("vfmgr_lab_pf",)
MODULES_OF_OUR_TRAFFIC = ("rdma_rxe", "siw", "ib_core", "ib_uverbs", "ib_cm", "iw_cm", "rdma_cm",
                          "rdma_ucm")
AT_ENTRY = re.compile(r"\bRIP: 0010:entry_SYSCALL_64\+0x0/")
# The kernel's words for an emulated CPU whose timer never rings: seen in boots, before init.
TIMER_LOST = "kthread timer wakeup didn't happen"
READY = "vfmgr-lab: ready"
LINES_BEFORE = 120
SUMMARY_LINES = 8
BOOT = "--- lab: boot "
COMPLAINT = re.compile(r"\bBUG: |\bOops: |general protection fault|stack guard page|"
                       r"PANIC: double fault")
TELLING = re.compile(r"\bBUG: |PANIC: double fault|\bComm: |^RIP: 0010|" + re.escape(PANIC))


def panic_text(console):
    """The panic and what led to it in the same boot, or None."""
    lines = console.splitlines()
    number = next((n for n, line in enumerate(lines) if PANIC in line), None)
    if number is None:
        return None
    boot = max((n for n in range(number) if lines[n].startswith(BOOT)), default=0)
    # A recursion fills hundreds of lines, and who ran is told before them.
    began = next((n for n in range(boot, number) if COMPLAINT.search(lines[n])), number)
    end = next((n for n in range(number, len(lines)) if END in lines[n]), len(lines) - 1)
    return "\n".join(lines[max(boot, min(began, number - LINES_BEFORE)):end + 1])


def panic_summary(console):
    """The lines of a panic that tell one from another: what, who, where. Empty without a panic."""
    told = {}
    for line in (panic_text(console) or "").splitlines():
        text = re.sub(r"^\[ *[0-9.]+\] *", "", line)
        if TELLING.search(text) and END not in text:
            told.setdefault(text, line)
    return list(told.values())[:SUMMARY_LINES]


def died_on_entry(text):
    """A fault at the very first instruction of the system call entry, on the process's own stack.

    No instruction of the kernel's has run, interrupts are masked, and what stands there (swapgs, or
    a landing pad) can't fault: no process can bring it about, and whose name is told is chance.
    """
    return "double fault" in text and bool(AT_ENTRY.search(text))


def has_ours_on_stack(text):
    """Whether a process or module of ours, or what works at our traffic, is where it died."""
    if OUR_PROCESSES.search(text) and not died_on_entry(text):
        return True
    return any(re.search(rf"\[{module}\b", text) for module in OUR_MODULES + MODULES_OF_OUR_TRAFFIC)


def stalled_at_boot(console):
    """Whether the last boot lost a CPU's timer, and did not come to its end."""
    last = console[console.rfind(BOOT):] if BOOT in console else ""
    return TIMER_LOST in last and READY not in last


def emulator_is_to_blame(console):
    """A panic without us on the stack, or a boot without timers: a scenario may run again."""
    text = panic_text(console)
    return stalled_at_boot(console) or (text is not None and not has_ours_on_stack(text))


def troubles(console):
    """The last lines that may tell why something failed although the kernel lived on."""
    return [line for line in console.splitlines() if COMPLAINT.search(line)][-SUMMARY_LINES:]


def kernel_complaints(console):
    """Lines that tell of a kernel bug which did not stop the kernel."""
    # Slow emulation makes soft lockups; they are no bug of the kernel's.
    return [line for line in console.splitlines()
            if COMPLAINT.search(line.replace("BUG: soft lockup", ""))]
