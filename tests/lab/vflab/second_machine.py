# SPDX-License-Identifier: Apache-2.0
"""A second small machine outside the emulated host, on the other end of its PF's wire.

It is a QEMU of its own, connected to the socket at which that wire ends, or to a hub's (vflab.hub)
where there are more. It dies with this process; it has no disk, and only its console shows what it
does.
"""

import os
import re
import selectors
import shutil
import subprocess
import time

from vflab import qemu
from vflab.host import CommandFailed, NotInTime, tried
from vflab.images import pack
from vflab.paths import LAB
from vflab.shell import die_with_parent
from vflab.vm import COMMAND_LINE

MAC = "52:54:00:c0:00:02"
MTU = 9000
BOOT_SECONDS = 240


class SecondMachine:
    """`programs`: files and folders of this machine that it gets in its root folder; `modules`: the
    emulated host's kernel modules that it loads, besides those of a VM; `wire`: a hub's socket.
    """

    def __init__(self, lab, programs=(), modules=(), name="second", mac=MAC, wire=None):
        self.lab, self.name, self.mac = lab, name, mac
        self.programs, self.modules = programs, modules
        self.folder = lab.machine.folder
        self.wire = wire or self.folder / qemu.WIRE
        self.text = ""      # the console's text from the start
        self.commands = 0
        self.process = None

    def __enter__(self):
        self.make_initrd()
        self.log = open(self.folder / f"{self.name}-console.log", "wb", buffering=0)
        self.process = subprocess.Popen(
            qemu.in_namespace(self.lab.machine.settings, self.arguments()),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            preexec_fn=die_with_parent())
        os.set_blocking(self.process.stdout.fileno(), False)
        return self

    def __exit__(self, *_):
        self.process.kill()  # unshare; its child QEMU is killed with it
        self.process.wait()
        self.log.close()

    def make_initrd(self):
        """Writes the tiny VM's archive, followed by one with this machine's init."""
        root = self.folder / f"{self.name}-root"
        root.mkdir(exist_ok=True)
        for file in (LAB / "vm/second-init", *self.programs):
            if file.is_dir():
                shutil.copytree(file, root / file.name, dirs_exist_ok=True)
            else:
                shutil.copy(file, root)
        for file in self.module_files():
            self.lab.host.copy_out(file, root)
        pack(root, self.folder / f"{self.name}-ours")
        with open(self.folder / f"{self.name}-initrd", "wb") as out:
            for part in ("tiny-initrd", f"{self.name}-ours"):
                out.write((self.folder / part).read_bytes())

    def module_files(self):
        """Returns the modules' files in the emulated host, which has the same kernel, in order."""
        needed = [line.split()[1] for name in self.modules
                  for line in self.lab.host.run(["modprobe", "--show-depends", name]).lines()
                  if line.startswith("insmod ")]
        return list(dict.fromkeys(needed))

    def arguments(self):
        run = self.folder
        return ["-name", f"{self.lab.machine.settings['name']}-{self.name}", "-nodefaults",
                "-display", "none", "-no-reboot",
                "-chardev", "stdio,id=console,signal=off", "-serial", "chardev:console",
                "-machine", "q35", "-accel", "tcg", "-cpu", "max", "-smp", "1", "-m", "512M",
                "-netdev", f"stream,id=wire,server=off,addr.type=unix,addr.path={self.wire}",
                "-device", f"virtio-net-pci,netdev=wire,mac={self.mac},host_mtu={MTU},romfile=",
                "-kernel", f"{run}/tiny-vmlinuz", "-initrd", f"{run}/{self.name}-initrd",
                "-append", f"{COMMAND_LINE} rdinit=/second-init"]

    # --- its console ---

    def wait_ready(self):
        self.wait_line("init: done", BOOT_SECONDS)
        for file in self.module_files():
            self.run(f"insmod /{file.rpartition('/')[2]} || lsmod | grep {module_name(file)}")
        return self

    def wait_line(self, pattern, deadline_seconds=60, begin=0):
        """Returns the first line after `begin` in the console's text that has the pattern."""
        end = time.monotonic() + deadline_seconds
        while True:
            whole = self.text[begin:].rpartition("\n")[0]
            found = next((line for line in whole.split("\n") if re.search(pattern, line)), None)
            if found is not None:
                return found
            self.read(end - time.monotonic(), pattern)

    def read(self, seconds, expected):
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            ready = selector.select(seconds) if seconds > 0 else []
        data = os.read(self.process.stdout.fileno(), 65536) if ready else b""
        self.log.write(data)
        self.text += data.decode(errors="replace").replace("\r", "")
        if not data:
            what = "ended" if ready else "says too little"
            raise NotInTime(f"the machine {self.name} {what}, no '{expected}': {self.text[-600:]}")

    def run(self, command, timeout=60):
        """Runs one line in its shell; returns its output, or fails with it."""
        self.commands += 1
        mark = f"=== {self.commands} "
        begin = len(self.text)
        self.process.stdin.write(f"{command}; echo \"{mark}$?\"\n".encode())
        self.process.stdin.flush()
        last = self.wait_line("^" + re.escape(mark), timeout, begin)
        printed = self.text[begin:].partition(last)[0]
        if last != mark + "0":
            raise CommandFailed(f"[{self.name}] {command}: {last} {printed}")
        return printed

    def wait_for(self, probe, deadline_seconds=60):
        """Like host.wait_for, for a shell command that is tried here."""
        return self.run(tried(probe, deadline_seconds), deadline_seconds + 30)


def module_name(file):
    return file.rpartition("/")[2].partition(".")[0].replace("-", "_")
