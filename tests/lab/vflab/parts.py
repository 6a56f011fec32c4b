# SPDX-License-Identifier: Apache-2.0
"""Parts cached by a hash of their inputs: a part is built once and never changed afterwards."""

import fcntl
import hashlib
import json
import os
import subprocess
from pathlib import Path

from vflab.paths import Lock, LabError, state_dir
from vflab.shell import timed

KEPT_PER_KIND = 2


def hash_of(*inputs):
    """Returns a short hash of JSON values; a Path stands for its content, recursively."""
    digest = hashlib.sha256()
    for value in inputs:
        if isinstance(value, Path):
            files = sorted(value.rglob("*")) if value.is_dir() else [value]
            for file in files:
                hash_file(digest, file, file.name if file == value else file.relative_to(value))
        else:
            digest.update(json.dumps(value, sort_keys=True).encode() + b"\0")
    return digest.hexdigest()[:16]


def hash_file(digest, file, name):
    if file.is_symlink():
        digest.update(f"{name}\0link\0{os.readlink(file)}\0".encode())
    elif file.is_file():
        executable = os.access(file, os.X_OK)
        digest.update(f"{name}\0{int(executable)}\0".encode())
        digest.update(hashlib.sha256(file.read_bytes()).digest())


class PartsInUse:
    """Held while parts are built and copied into a disk, so that no other lab prunes them
    meanwhile.

    Several labs may hold it at once; the last one to release it removes outdated parts.
    """

    def __enter__(self):
        self.file = open(state_dir() / "parts.lock", "a")
        fcntl.flock(self.file, fcntl.LOCK_SH)

    def __exit__(self, *_):
        try:
            fcntl.flock(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            prune(state_dir() / "parts")
        except BlockingIOError:
            pass  # another lab is at work here, and will prune
        self.file.close()


def part(kind, key, build):
    """Returns the folder of a part; build(folder) fills it if there is none for this key yet."""
    parts = state_dir() / "parts"
    parts.mkdir(exist_ok=True)
    path = parts / f"{kind}-{key}"
    with Lock(parts / f".lock-{kind}", f"waiting for another lab that builds {kind}"):
        if not path.exists():
            building = parts / f"building-{kind}-{key}"
            remove(building)
            building.mkdir()
            with timed(kind):
                build(building)
            building.rename(path)
        os.utime(path)
    return path


def prune(parts):
    """Keeps the newest few of each kind, and those that a lab may boot from again."""
    used = {json.loads(path.read_text())["qemu"]
            for path in parts.parent.glob("runs/*/settings.json")}
    kinds = {}
    for path in parts.glob("[!.]*"):
        if path.name.startswith("building-"):
            remove(path)  # its builder failed or was killed
        elif str(path) not in used:
            kinds.setdefault(path.name.rpartition("-")[0], []).append(path)
    for same in kinds.values():
        same.sort(key=lambda path: path.stat().st_mtime, reverse=True)
        for path in same[KEPT_PER_KIND:]:
            remove(path)


def remove(path):
    if path.parent.name != "parts":
        raise LabError(f"not a part: {path}")
    subprocess.run(["rm", "-rf", "--one-file-system", str(path)], check=True)
