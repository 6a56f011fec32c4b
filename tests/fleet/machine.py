#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""machine.py NAME FOLDER UNITS: what stands for a machine and its systemd, in namespaces.

Run in a network namespace; makes a mount and a UTS namespace, in which /etc, /run, /root and
/var/lib are FOLDER's, and the host name is NAME. A command comes in by nsenter; its systemctl is
this file, too. Prints "ready", and ends all units when standard input ends.

UNITS is a document in JSON: "files" has each unit's file, "programs" what runs in place of the
program that ExecStart names, "boot" what the package has started. Of a unit these are followed,
with its drop-ins: Type, ExecStart, Environment, EnvironmentFile, LoadCredential, RuntimeDirectory
and StateDirectory, as they were at the boot or the last daemon-reload. Everything runs as root, and
nothing of a unit's sandbox is there.
"""

import ctypes
import glob
import json
import os
import shlex
import shutil
import socket
import subprocess
import sys
import threading
from pathlib import Path

CONTROL = "/run/systemd-of-the-test"
NAMESPACES = 0x00020000 | 0x04000000  # CLONE_NEWNS, CLONE_NEWUTS
# What programs read of /etc; users and groups of the packages are added.
KEPT = ("passwd", "group", "nsswitch.conf", "ld.so.cache", "ld.so.conf", "localtime",
        "ssl/openssl.cnf")
GROUPS = "vfmgr:x:990:\nvfmgr-fleetd:x:991:\n"
libc = ctypes.CDLL(None, use_errno=True)


def mount(*words):
    subprocess.run(["mount", *map(str, words)], check=True)


def become(name, folder):
    for file in KEPT:
        if (source := Path("/etc") / file).exists():
            to = folder / "etc" / file
            to.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, to)
    with (folder / "etc/group").open("a") as groups:
        groups.write(GROUPS)
    (folder / "etc/hosts").write_text(f"127.0.0.1 localhost\n127.0.1.1 {name}\n")
    if libc.unshare(NAMESPACES):
        raise OSError(ctypes.get_errno(), "unshare")
    mount("--make-rprivate", "/")
    socket.sethostname(name)
    for there in ("etc", "run", "root", "var/lib"):
        (folder / there).mkdir(parents=True, exist_ok=True)
        mount("--bind", folder / there, f"/{there}")


class Unit:
    def __init__(self, name, file):
        self.name, self.process = name, None
        self.keys = {}
        for part in [file, *sorted(glob.glob(f"/etc/systemd/system/{name}.service.d/*.conf"))]:
            for line in Path(part).read_text().splitlines():
                key, equals, value = line.partition("=")
                if equals and line[0] != "#":
                    self.keys.setdefault(key, []).append(self.specified(value))
        self.credentials = f"/run/credentials/{name}.service"

    def specified(self, value):
        for letter, meaning in (("H", socket.gethostname()), ("p", self.name),
                                ("d", f"/run/credentials/{self.name}.service")):
            value = value.replace(f"%{letter}", meaning)
        return value

    def last(self, key):
        return self.keys.get(key, [""])[-1]

    def environment(self):
        words = [word for line in self.keys.get("Environment", []) for word in shlex.split(line)]
        for file in self.keys.get("EnvironmentFile", []):
            if Path(file.removeprefix("-")).exists():
                lines = Path(file.removeprefix("-")).read_text().splitlines()
                words += [line for line in lines if line and line[0] != "#"]
        return dict(word.split("=", 1) for word in words)

    def make_folders(self):
        for key, below in (("RuntimeDirectory", "/run"), ("StateDirectory", "/var/lib")):
            for folder in self.last(key).split():
                Path(below, folder).mkdir(parents=True, exist_ok=True)
        for line in self.keys.get("LoadCredential", []):
            name, file = line.split(":", 1)
            Path(self.credentials).mkdir(parents=True, exist_ok=True)
            shutil.copy(file, Path(self.credentials, name))

    def begin(self, programs):
        """Returns a socket that receives READY=1, or None if the unit has no such type."""
        self.make_folders()
        environment = self.environment()
        program, *words = self.last("ExecStart").split()
        command = programs.get(program, [program]) + [
            word for one in words for word in
            (environment.get(one[1:], "").split() if one[0] == "$" else [one])]
        ready = None
        base = {"PATH": os.environ["PATH"], "HOME": "/root"}
        if self.last("Type") == "notify":
            ready = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            base["NOTIFY_SOCKET"] = f"/run/notify-{self.name}"
            Path(base["NOTIFY_SOCKET"]).unlink(missing_ok=True)
            ready.bind(base["NOTIFY_SOCKET"])
        with open(f"/var/lib/{self.name}.log", "a") as log:
            self.process = subprocess.Popen(command, env={**base, **environment},
                                            stdin=subprocess.PIPE, stdout=log, stderr=log)
        return ready

    def await_ready(self, ready, seconds=90):
        """Returns why it did not start, or nothing."""
        process = self.process
        threading.Thread(target=lambda: (process.wait(), ready.shutdown(socket.SHUT_RD)),
                         daemon=True).start()
        ready.settimeout(seconds)
        try:
            while b"READY=1" not in (said := ready.recv(4096)):
                if not said:
                    return f"Job for {self.name}.service failed; see {self.name}.log"
        except TimeoutError:
            return f"Job for {self.name}.service failed because a timeout was exceeded."
        return ""

    def stop(self):
        if self.process and self.process.poll() is None:
            self.process.terminate()
            self.process.wait(60)


class Machine:
    def __init__(self, files, programs):
        self.files, self.programs, self.units = files, programs, {}
        self.reload()

    def reload(self):
        for name, file in self.files.items():
            before, self.units[name] = self.units.get(name), Unit(name, file)
            self.units[name].process = before and before.process

    def start(self, unit, wait):
        ready = unit.begin(self.programs)
        if ready and wait:
            return unit.await_ready(ready)
        if ready:
            threading.Thread(target=unit.await_ready, args=(ready,), daemon=True).start()
        return ""

    def control(self, words):
        """Returns what systemctl prints when it fails, or nothing."""
        verb, *names = [word for word in words if not word.startswith("-")]
        if verb == "daemon-reload":
            return self.reload()
        for name in names:
            unit = self.units.get(name.removesuffix(".service"))
            if not unit:
                return f"Unit {name}.service not found."
            running = unit.process and unit.process.poll() is None
            if verb in ("restart", "stop"):
                unit.stop()
            if verb == "restart" or (verb == "start" or "--now" in words) and not running:
                if why := self.start(unit, "--no-block" not in words):
                    return why
        return "" if verb in ("enable", "start", "restart", "stop") else f"no verb {verb}"

    def end(self):
        for unit in self.units.values():
            unit.stop()


def answer(machine, connection):
    with connection:
        words = json.loads(connection.makefile().readline())
        connection.sendall((machine.control(words) or "").encode())


def serve(machine):
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(CONTROL)
        server.listen()
        while True:
            threading.Thread(target=answer, args=(machine, server.accept()[0]), daemon=True).start()


def main(name, folder, units):
    become(name, Path(folder))
    described = json.loads(units)
    machine = Machine(described["files"], described["programs"])
    try:
        for unit in described["boot"]:
            assert not (why := machine.control(["start", unit])), why
        threading.Thread(target=serve, args=(machine,), daemon=True).start()
        print("ready", flush=True)
        sys.stdin.read()
    finally:
        machine.end()


def systemctl(words):
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(CONTROL)
        connection.sendall(json.dumps(words).encode() + b"\n")
        if why := connection.makefile().read():
            sys.exit(why)


if __name__ == "__main__":
    if Path(sys.argv[0]).name == "systemctl":
        systemctl(sys.argv[1:])
    else:
        main(*sys.argv[1:])
