# SPDX-License-Identifier: Apache-2.0
"""The lab's folders and files."""

import fcntl
import os
import re
import shutil
from pathlib import Path

LAB = Path(__file__).resolve().parent.parent
REPO = LAB.parent.parent
SCENARIOS = LAB / "scenarios"
RESULTS_KEPT = 30
SUITES = ("bookworm", "trixie")  # oldest first


class LabError(Exception):
    """A failure of the lab that the user can act on."""


def state_dir():
    state = Path(os.environ.get("VFMGR_LAB_DIR", "/var/cache/vfmgr-lab")).absolute()
    # A unix socket's path ends at 107 characters, and the lab's are below this folder.
    if len(str(state)) > 60:
        raise LabError(f"VFMGR_LAB_DIR is too long for unix sockets (60 characters): {state}")
    state.mkdir(parents=True, exist_ok=True)
    return state


def names_in(path):
    """Reads a list with one name per line; # begins a comment."""
    if not path.exists():
        raise LabError(f"no {path.relative_to(REPO)}: git checkout it, the lab reads names there")
    lines = [line.split("#")[0].strip() for line in path.read_text().splitlines()]
    return [line for line in lines if line]


def run_dir(name):
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,23}", name):
        raise LabError(f"a lab's name is 1 to 24 letters, digits, dots or dashes, not '{name}'")
    path = state_dir() / "runs" / name
    path.mkdir(parents=True, exist_ok=True)
    return path


def machine_suite():
    for line in Path("/etc/os-release").read_text().splitlines():
        if line.startswith("VERSION_CODENAME="):
            return line.split("=", 1)[1].strip('"')
    raise LabError("/etc/os-release names no VERSION_CODENAME: the lab needs Debian 12 or 13")


class Lock:
    """An exclusive lock on a file; the kernel drops it when its holder dies."""

    def __init__(self, path, while_waiting=None):
        self.path = path
        self.while_waiting = while_waiting
        self.file = None

    def try_take(self):
        opened = open(self.path, "a")
        try:
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            opened.close()
            return False
        self.file = opened
        return True

    def __enter__(self):
        if self.try_take():
            return self
        if self.while_waiting:
            print(self.while_waiting, flush=True)
        self.file = open(self.path, "a")
        fcntl.flock(self.file, fcntl.LOCK_EX)
        return self

    def __exit__(self, *_):
        self.release()

    def release(self):
        if self.file:
            self.file.close()
            self.file = None


def remove_dead_runs():
    """Removes the files of a killed `lab run`; its processes died with it."""
    for path in (state_dir() / "runs").glob("run-*"):
        lock = Lock(path / "lock")
        if path.is_dir() and lock.try_take():
            shutil.rmtree(path, ignore_errors=True)
            lock.release()


def new_results_dir(name):
    parent = state_dir() / "results"
    parent.mkdir(exist_ok=True)
    old = sorted(parent.iterdir(), key=lambda path: path.stat().st_mtime)
    for path in old[:-RESULTS_KEPT]:
        shutil.rmtree(path, ignore_errors=True)
    number = 1
    while (parent / f"{name}-{number}").exists():
        number += 1
    path = parent / f"{name}-{number}"
    path.mkdir()
    return path
