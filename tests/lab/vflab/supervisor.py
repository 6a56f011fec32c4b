# SPDX-License-Identifier: Apache-2.0
"""The process that owns one emulated host: starts QEMU, watches its console, restarts it.

It holds the lab's lock and the one ssh connection that all commands share. Clients connect to its
socket, get the state at once and at every change, and may send requests; all of it is JSON lines.
QEMU ends with the supervisor, however that ends, and in `lab run` the supervisor ends with the run.
"""

import json
import os
import selectors
import signal
import socket
import subprocess
import time
from pathlib import Path

from vflab import disk, panic, qemu
from vflab.paths import Lock
from vflab.shell import die_with_parent
from vflab.ssh import master_command

READY = panic.READY.encode()
PANIC_SETTLES_SECONDS = 5
STALL_SECONDS = 30  # for a boot that is only slow
SSH_ATTEMPTS_MAX = 5


class Supervisor:
    def __init__(self, folder):
        self.folder = Path(folder)
        self.settings = json.loads((self.folder / "settings.json").read_text())
        self.selector = selectors.DefaultSelector()
        self.clients = []
        self.state = {"boot": 0, "phase": "off", "detail": "", "pid": os.getpid()}
        self.process = None      # QEMU, through unshare
        self.master = None       # the shared ssh connection
        self.master_end = None
        self.qmp = None
        self.next_boot = False   # whether QEMU starts again when it ends
        self.ending = False
        self.deadline = None     # (when, what to do then)
        self.tail = b""
        self.shutdown_reason = ""
        self.ssh_attempts = 0

    def run(self):
        lock = Lock(self.folder / "lock")
        if not lock.try_take():
            raise SystemExit("another supervisor holds this lab")
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, lambda *_: None)
        woken, waker = socket.socketpair()
        woken.setblocking(False)
        waker.setblocking(False)
        signal.set_wakeup_fd(waker.fileno())
        self.watch(woken, lambda: self.end(woken))
        self.control = self.listen("control.sock", self.on_client)
        self.listen("qmp.sock", self.on_qmp)
        self.console = open(self.folder / "console.log", "ab", buffering=0)
        self.boot()
        while not (self.ending and self.process is None):
            timeout = None if self.deadline is None else max(0, self.deadline[0] - time.monotonic())
            ready = self.selector.select(timeout)
            for key, _ in ready:
                key.data()
            if self.deadline and time.monotonic() >= self.deadline[0]:
                action, self.deadline = self.deadline[1], None
                action()
        self.set_state("ended")
        (self.folder / "control.sock").unlink(missing_ok=True)

    def watch(self, source, action):
        self.selector.register(source, selectors.EVENT_READ, action)

    def unwatch(self, source):
        self.selector.unregister(source)
        source.close()

    def listen(self, name, accept):
        path = self.folder / name
        path.unlink(missing_ok=True)
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(path))
        listener.listen(16)
        self.watch(listener, lambda: accept(listener.accept()[0]))
        return listener

    # --- boots and what follows ---

    def boot(self):
        self.state["boot"] += 1
        self.tail, self.shutdown_reason, self.next_boot = b"", "", False
        self.ssh_attempts = 0
        line = disk.kernel_command_line(self.folder / "disk.raw")
        self.console.write(f"\n--- lab: boot {self.state['boot']}: {line}\n".encode())
        with open(self.folder / "qemu.log", "ab") as errors:
            self.process = subprocess.Popen(
                qemu.command(self.settings, line),
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors,
                preexec_fn=die_with_parent())
        os.set_blocking(self.process.stdout.fileno(), False)
        self.watch(self.process.stdout, self.on_console)
        self.set_state("booting", line)

    def on_console(self):
        data = os.read(self.process.stdout.fileno(), 65536)
        if not data:
            return self.on_end()
        self.console.write(data)
        self.tail = (self.tail + data)[-65536:]
        if self.state["phase"] == "booting" and READY in self.tail and not self.master:
            self.connect()
        if self.state["phase"] == "booting" and not self.deadline and self.has_stalled():
            self.deadline = (time.monotonic() + STALL_SECONDS, self.give_boot_up)
        if self.state["phase"] != "panic" and panic.PANIC.encode() in self.tail:
            self.set_state("panic")
            self.deadline = (time.monotonic() + PANIC_SETTLES_SECONDS, self.kill_qemu)
        if self.state["phase"] == "panic" and panic.END.encode() in self.tail:
            self.kill_qemu()

    def has_stalled(self):
        return panic.TIMER_LOST.encode() in self.tail and READY not in self.tail

    def give_boot_up(self):
        if self.state["phase"] == "booting" and self.has_stalled():
            self.set_state("stalled", "a timer of the emulated host's CPUs never rings")

    def on_end(self):
        """QEMU ended: the host restarted, powered off, was killed here, or QEMU crashed."""
        self.unwatch(self.process.stdout)
        status = self.process.wait()
        self.process = None
        self.deadline = None
        self.drop_ssh()
        if self.ending:
            return
        if self.next_boot or self.shutdown_reason == "guest-reset":
            return self.boot()
        if self.state["phase"] == "panic":
            return self.set_state("panic", "the emulated host's kernel panicked")
        if self.shutdown_reason:
            return self.set_state("off", self.shutdown_reason)
        log = (self.folder / "qemu.log").read_text(errors="replace")
        self.set_state("crashed", f"QEMU ended with {status}: {log[-400:]}")

    def kill_qemu(self):
        if self.process:
            self.process.kill()  # unshare; its child QEMU is killed with it

    def end(self, woken):
        woken.recv(64)
        self.quit()

    def quit(self):
        self.ending = True
        self.kill_qemu()

    # --- ssh ---

    def connect(self):
        """Opens one connection for all: a handshake costs the CPU a second, a channel little."""
        self.ssh_attempts += 1
        self.master = subprocess.Popen(
            master_command(self.folder), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            preexec_fn=die_with_parent())
        # ssh closes its output once it is connected, so a descriptor of its own shows its end.
        self.master_end = open(os.pidfd_open(self.master.pid), "rb", buffering=0)
        self.watch(self.master.stdout, self.on_ssh)
        self.watch(self.master_end, self.on_ssh_end)

    def on_ssh(self):
        connected = os.read(self.master.stdout.fileno(), 4096)
        self.unwatch(self.master.stdout)
        if connected:
            self.set_state("ready")

    def on_ssh_end(self):
        self.drop_ssh()
        if self.process and self.state["phase"] in ("booting", "ready"):
            if self.ssh_attempts < SSH_ATTEMPTS_MAX:
                return self.connect()
            self.set_state(self.state["phase"], "the shared ssh connection was lost")

    def drop_ssh(self):
        if self.master:
            if not self.master.stdout.closed:
                self.unwatch(self.master.stdout)
            self.unwatch(self.master_end)
            self.master.kill()
            self.master.wait()
            self.master = None
        (self.folder / "ssh.sock").unlink(missing_ok=True)

    # --- clients and QEMU's monitor ---

    def set_state(self, phase, detail=""):
        self.state.update(phase=phase, detail=detail)
        for client in list(self.clients):
            self.tell(client, {"state": self.state})

    def tell(self, client, message):
        try:
            client.sendall(json.dumps(message).encode() + b"\n")
        except OSError:
            pass  # it has gone; its end will be read soon

    def on_client(self, client):
        client.settimeout(5)
        self.clients.append(client)
        self.watch(client, Lines(self, client, self.on_request, self.on_client_end))
        self.tell(client, {"state": self.state})

    def on_client_end(self, client):
        self.clients.remove(client)
        self.unwatch(client)

    def on_request(self, client, request):
        action = request.get("do")
        if action == "quit":
            self.quit()
        elif action == "power-cycle":
            self.next_boot = True
            if request.get("slots"):
                self.settings["slots"] = request["slots"]
            self.kill_qemu() if self.process else self.boot()
        elif action == "power-off":
            self.shutdown_reason = "power cut"
            self.kill_qemu()
        elif action == "qmp" and self.qmp:
            self.tell(self.qmp, request["command"])

    def on_qmp(self, connection):
        connection.settimeout(5)
        self.qmp = connection
        self.watch(connection, Lines(self, connection, self.on_qmp_message, self.on_qmp_end))
        self.tell(connection, {"execute": "qmp_capabilities"})

    def on_qmp_end(self, connection):
        self.unwatch(connection)
        if self.qmp is connection:
            self.qmp = None

    def on_qmp_message(self, _, message):
        if message.get("event") == "SHUTDOWN":
            self.shutdown_reason = message["data"].get("reason", "unknown")
        elif "event" not in message and "id" in message:
            for client in list(self.clients):
                self.tell(client, {"qmp": message})


class Lines:
    """Reads JSON lines from a socket as they arrive."""

    def __init__(self, _, source, on_message, on_end):
        self.source, self.on_message, self.on_end = source, on_message, on_end
        self.rest = b""

    def __call__(self):
        try:
            data = self.source.recv(65536)
        except OSError:
            data = b""
        if not data:
            return self.on_end(self.source)
        *lines, self.rest = (self.rest + data).split(b"\n")
        for line in lines:
            if line.strip():
                self.on_message(self.source, json.loads(line))
