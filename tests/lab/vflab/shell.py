# SPDX-License-Identifier: Apache-2.0
"""Runs programs on this machine: progress lines, readable errors, children that die with it."""

import ctypes
import os
import shlex
import signal
import subprocess
import sys
import threading
import time

from vflab.paths import LabError

STARTED = time.monotonic()
_print_lock = threading.Lock()


def say(text):
    with _print_lock:
        print(f"[{time.monotonic() - STARTED:6.1f} s] {text}", flush=True)


class timed:
    """Prints what starts and how long it took."""

    def __init__(self, text):
        self.text = text

    def __enter__(self):
        say(f"{self.text} ...")
        self.begin = time.monotonic()

    def __exit__(self, failure, *_):
        outcome = "failed after" if failure else "done in"
        say(f"{self.text}: {outcome} {time.monotonic() - self.begin:.1f} s")


def call(command, **options):
    """Runs a program to its end and returns its output; an error shows the last lines of it."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          stdin=None if "input" in options else subprocess.DEVNULL, **options)
    if done.returncode != 0:
        output = "\n".join((done.stdout + done.stderr).splitlines()[-30:])
        raise LabError(f"{shlex.join(map(str, command))[:300]}\n"
                       f"ended with {done.returncode}:\n{output}")
    return done.stdout


def die_with_parent(parent=None):
    """For preexec_fn: the child is killed when this process ends, however it ends.

    The kernel ties this to the *thread* that forked, so only main threads may start such children.
    """
    parent = parent or os.getpid()
    libc = ctypes.CDLL(None)

    def in_child():
        libc.prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
        if os.getppid() != parent:     # the parent died before the line above
            os._exit(1)
    return in_child


def fail(text, status=1):
    print(f"lab: {text}", file=sys.stderr, flush=True)
    raise SystemExit(status)
