# SPDX-License-Identifier: Apache-2.0
"""The emulated host's disk: created for each lab, kept over its reboots."""

import shlex
import subprocess
from pathlib import Path

from vflab.paths import LabError
from vflab.shell import call

DISK_BYTES = 8 << 30


def make_disk(tree, path):
    """Creates a sparse disk from the tree in two seconds, which is faster than copying an image."""
    path.unlink(missing_ok=True)
    with open(path, "wb") as disk:
        disk.truncate(DISK_BYTES)
    call(["mke2fs", "-q", "-F", "-t", "ext4", "-d", str(tree), str(path)])


def replay_journal(path):
    """Replays the journal: after a power cut it may hold the newest file contents."""
    done = subprocess.run(["e2fsck", "-p", "-E", "journal_only", str(path)],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode > 1:  # 1: errors were corrected
        raise LabError(f"e2fsck on the emulated host's disk: {done.stdout}")


def read_file(path, name):
    return subprocess.run(["debugfs", "-R", f"cat {name}", str(path)], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, check=True).stdout.decode(errors="replace")


def extract(path, folder, target):
    """Copies a folder out of a disk that no QEMU uses any more."""
    replay_journal(path)
    subprocess.run(["debugfs", "-R", f"rdump {folder} {target}", str(path)],
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def grub_command_line(text):
    """Returns the command line that grub-mkconfig makes of /etc/default/grub for a normal boot."""
    values = {}
    for line in text.splitlines():
        name, equals, value = line.strip().partition("=")
        if not equals or not name.replace("_", "").isalnum():
            continue
        words = shlex.split(value, comments=True)
        for known, content in sorted(values.items(), reverse=True):
            words = [word.replace(f"${known}", content).replace("${%s}" % known, content)
                     for word in words]
        values[name] = " ".join(words)
    both = (values.get("GRUB_CMDLINE_LINUX", ""), values.get("GRUB_CMDLINE_LINUX_DEFAULT", ""))
    return " ".join(part for part in both if part)


def kernel_command_line(path):
    """Returns the host's own command line, read from its disk at each boot, and the lab's part."""
    replay_journal(Path(path))
    chosen = grub_command_line(read_file(path, "/etc/default/grub"))
    return f"console=ttyS0 root=/dev/vda rw {chosen}"
