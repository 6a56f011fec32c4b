# SPDX-License-Identifier: Apache-2.0
"""One emulated host as the driver process uses it: create, start, query, stop."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time

from vflab import ssh
from vflab.build import build
from vflab.disk import make_disk
from vflab.parts import PartsInUse
from vflab.paths import LAB, LabError, Lock, run_dir, state_dir
from vflab.shell import die_with_parent, say, timed
from vflab.trees import ssh_key

BOOT_DEADLINE_SECONDS = 400  # ten times what it takes on an idle machine
END_DEADLINE_SECONDS = 30
NMI_SECONDS = 20


class HostGone(LabError):
    """The emulated host panicked, hung or ended, and can't answer any more."""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def port_is_free(port):
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


class Machine:
    def __init__(self, name):
        self.name = name
        self.folder = run_dir(name)
        self.supervisor = None
        self.connection = None
        self.state = {}
        self.rest = b""
        self.answers = []
        self.hangs = False  # set when a request got no answer
        self.parts = None   # what it was made of
        self.consoles_beside = []  # of hosts that were beside it and have ended

    # --- creating and starting ---

    def is_running(self):
        lock = Lock(self.folder / "lock")
        free = lock.try_take()
        lock.release()
        return not free

    def prepare(self, suite, cpus, with_packages, api_port=None, parts=None, iommu=True, **more):
        """Builds what is missing, unless already done, and creates a fresh disk. `more`: memory
        and MACs, see vflab.qemu."""
        if self.is_running():
            raise LabError(f"the lab '{self.name}' is already up (lab down ends it)")
        if api_port and not port_is_free(api_port):
            raise LabError(f"port {api_port} of 127.0.0.1 is taken: choose another --api-port")
        for path in self.folder.iterdir():
            path.unlink() if not path.is_dir() else shutil.rmtree(path)
        with PartsInUse():
            parts = self.parts = parts or build(suite, with_packages)
            with timed("the emulated host's disk"):
                make_disk(parts.host, self.folder / "disk.raw")
                shutil.copy(parts.kernel, self.folder / "vmlinuz")
                shutil.copy(parts.initrd, self.folder / "initrd")
                # A link keeps a file after its part is pruned; QEMU opens these read-only.
                os.link(parts.vm_disk, self.folder / "vm-disk.raw")
                for name in ("vmlinuz", "initrd"):
                    os.link(parts.tiny / name, self.folder / f"tiny-{name}")
        settings = {"name": f"vfmgr-lab-{self.name}", "run": str(self.folder),
                    "state": str(state_dir()), "qemu": str(parts.qemu), "cpus": cpus,
                    "iommu": iommu, "suite": suite, "packages": parts.packages_key,
                    "ssh_port": free_port(), "api_port": api_port or free_port(), **more}
        (self.folder / "settings.json").write_text(json.dumps(settings, indent=1))
        ssh.write_configuration(self.folder, settings["ssh_port"], ssh_key())

    @property
    def settings(self):
        return json.loads((self.folder / "settings.json").read_text())

    def start(self, in_background=False):
        """Starts the supervisor. Unless in the background, it dies with this process."""
        log = open(self.folder / "supervisor.log", "ab")
        self.supervisor = subprocess.Popen(
            [sys.executable, str(LAB / "lab"), "--supervise", str(self.folder)],
            stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd="/", start_new_session=True,
            preexec_fn=None if in_background else die_with_parent())
        log.close()
        deadline = time.monotonic() + END_DEADLINE_SECONDS
        while not self.connect():
            if self.supervisor.poll() is not None or time.monotonic() > deadline:
                text = (self.folder / "supervisor.log").read_text()[-1000:]
                raise LabError(f"the lab's supervisor did not start: {text}")
            time.sleep(0.02)  # a new socket sends no event; it takes a tenth of a second

    def connect(self):
        connection = socket.socket(socket.AF_UNIX)
        try:
            connection.connect(str(self.folder / "control.sock"))
        except OSError:
            connection.close()
            return False
        self.connection = connection
        self.wait(lambda state: state, 10)
        return True

    # --- the supervisor's state ---

    def read(self, seconds):
        """Reads a message of the supervisor; returns False when none came in that time."""
        self.connection.settimeout(max(seconds, 0.001))
        try:
            data = self.connection.recv(65536)
        except TimeoutError:
            return False
        if not data:
            self.state = {**self.state, "phase": "ended"}
            return False
        *lines, self.rest = (self.rest + data).split(b"\n")
        for line in lines:
            message = json.loads(line)
            self.state = message.get("state", self.state)
            if "qmp" in message:
                self.answers.append(message["qmp"])
        return True

    def refresh(self):
        while self.read(0):
            pass
        return self.state

    def wait(self, condition, seconds):
        deadline = time.monotonic() + seconds
        while not condition(self.state):
            if self.state.get("phase") == "ended" or time.monotonic() >= deadline:
                return False
            self.read(deadline - time.monotonic())
        return True

    def request(self, **request):
        self.connection.sendall(json.dumps(request).encode() + b"\n")

    def wait_ready(self, boot=1, seconds=BOOT_DEADLINE_SECONDS):
        """Waits until ssh answers in that boot; a panic, a crash or silence is an error."""
        def settled(state):
            return (state["boot"] >= boot and state["phase"] != "booting"
                    or state["phase"] in ("panic", "crashed", "stalled"))
        begin = time.monotonic()
        self.wait(settled, seconds)
        if self.state["phase"] != "ready" or self.state["boot"] < boot:
            raise HostGone(f"the emulated host is '{self.state['phase']}' "
                           f"{time.monotonic() - begin:.0f} s into boot {boot}: "
                           f"{self.state['detail']}; console: {self.folder}/console.log")
        return time.monotonic() - begin

    def boot(self):
        self.start()
        seconds = self.wait_ready()
        say(f"the emulated host answers after {seconds:.1f} s")

    def qmp(self, execute, **arguments):
        """Sends QEMU a command, for example to pull a cable: set_link(name='igb', up=False)."""
        number = f"{os.getpid()}-{len(self.answers)}"
        self.request(do="qmp", command={"execute": execute, "arguments": arguments, "id": number})
        found = []

        def answered(_):
            found[:] = [answer for answer in self.answers if answer.get("id") == number]
            return found
        if not self.wait(answered, 30):
            raise HostGone(f"QEMU does not answer {execute}")
        if "error" in found[0]:
            raise LabError(f"QEMU refuses {execute}: {found[0]['error']['desc']}")
        return found[0]["return"]

    def tell_where_it_hangs(self):
        """Sends an NMI to a kernel that does not answer: its panic shows what ran, and where."""
        self.hangs = True
        connection = self.refresh()["detail"]
        try:
            self.qmp("inject-nmi")
        except LabError as refused:
            return str(refused)
        panics = self.wait(lambda state: state["phase"] == "panic", NMI_SECONDS)
        if panics:  # and QEMU is stopped once the panic is printed
            self.wait(lambda state: state["detail"] != connection, NMI_SECONDS)
        told = "an NMI's panic tells where" if panics else "not even an NMI gets through"
        return f"{connection}: {told}" if connection else told

    # --- the end ---

    def stop(self):
        """Stops the supervisor, and with it QEMU, and checks that both are gone."""
        if self.connection is None and not self.connect():
            if not self.is_running():
                return False
            raise LabError(f"the supervisor of '{self.name}' holds its lock but does not answer")
        pid = self.state.get("pid")
        try:
            self.request(do="quit")
        except OSError:
            pass  # it is stopping already
        self.wait(lambda state: state.get("phase") == "ended", END_DEADLINE_SECONDS)
        self.connection.close()
        self.connection = None
        if self.supervisor:
            try:
                self.supervisor.wait(END_DEADLINE_SECONDS)
            except subprocess.TimeoutExpired:
                self.supervisor.kill()
                self.supervisor.wait()
        elif self.is_running():
            # The lock proves that this pid is still the supervisor's, not another process's.
            os.kill(pid, signal.SIGKILL)
        with Lock(self.folder / "lock"):
            return True

    def console_text(self):
        path = self.folder / "console.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def consoles(self):
        """Returns its console's text and those of hosts that were beside it."""
        return [self.console_text(), *self.consoles_beside]

    def remove(self):
        shutil.rmtree(self.folder, ignore_errors=True)
