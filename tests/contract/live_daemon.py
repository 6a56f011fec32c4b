# SPDX-License-Identifier: Apache-2.0
"""A daemon of ours: started, queried, and ended. And the real vfmgrd on fakes: tests change its
host over its standard input."""

import contextlib
import grp
import http.client
import json
import os
import signal
import socket
import subprocess
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
BUILD = Path(os.environ.get("VFMGR_BUILD_DIR", ROOT / "build/asan"))
DAEMON = BUILD / "tests/vfmgrd_on_fakes"
NOBODY = 65534  # a uid that has no role


def until(asked, what, seconds=60):
    """Polls for a state that sends no notification; returns the first answer that is true."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if answer := asked():
            return answer
    raise AssertionError(f"{what} within {seconds} s")


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("vfmgr", timeout=60)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self.path))


class Answer:
    """A whole answer; its body parsed if it is JSON, otherwise text."""

    def __init__(self, response):
        self.status, self.headers = response.status, response.headers
        self.text = response.read()
        plain = (self.headers["Content-Type"] or "").startswith("text/")
        self.body = (self.text.decode() if plain else json.loads(self.text)) if self.text else None

    def __str__(self):
        problem = isinstance(self.body, dict) and self.body.get("detail")
        return f"{self.status} {problem or self.text.decode()[:500]}"


@contextlib.contextmanager
def somebody():
    """Runs as a user without a role, by the socket's credentials; only root can change its uid."""
    if os.getuid() == 0:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        if os.getuid() == 0:
            os.seteuid(0)


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as free:
        return free.getsockname()[1]


class Program:
    """A daemon, started by `command` as systemd starts it. It answers on the unix socket `socket`,
    by the configuration that its kind writes with configure()."""

    def __init__(self, folder, command):
        self.folder, self.socket = folder, folder / "api.sock"
        self.command = list(map(str, command))
        self.log = (folder / "log").open("w+")

    def reload(self, config=None):
        """Returns when the daemon has reloaded this configuration, or its own again."""
        if config is not None:
            self.configure(config)
        notify = self.folder / "notify"
        notify.unlink(missing_ok=True)
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as reloaded:
            reloaded.bind(str(notify))
            reloaded.settimeout(60)
            self.process.send_signal(signal.SIGHUP)
            said = reloaded.recv(100)
            while said != b"READY=1":
                assert said.startswith((b"RELOADING=1\nMONOTONIC_USEC=", b"WATCHDOG=1")), said
                said = reloaded.recv(100)

    def start(self):
        notify = self.folder / "notify"
        notify.unlink(missing_ok=True)
        # What systemd waits for. Closed afterwards: a queue that no process reads blocks its
        # writers.
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as ready:
            ready.bind(str(notify))
            self.process = subprocess.Popen(
                self.command, env={**os.environ, "NOTIFY_SOCKET": str(notify)},
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, text=True)
            ready.settimeout(60)  # the daemon's exit closes no datagram socket of ours
            try:
                while ready.recv(100) != b"READY=1":
                    pass
            except TimeoutError:
                raise AssertionError(self.said()) from None

    def said(self):
        self.log.seek(0)
        return self.log.read()[-3000:]

    def call(self, method, path, body=None, socket=None, connection=None, **headers):
        connection = connection or UnixConnection(socket or self.socket)
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        if body is not None:
            headers.setdefault("Content-Type", "application/json")
            body = body if isinstance(body, (str, bytes)) else json.dumps(body)
            body = body.encode() if isinstance(body, str) else body
        try:
            connection.request(method, path, body, headers)
            return Answer(connection.getresponse())
        finally:
            connection.close()

    def ask(self, method, path, body=None, **where):
        answer = self.call(method, path, body, **where)
        return answer, answer.body

    def end(self):
        self.process.terminate()
        status = self.process.wait(60)
        assert status == 0, f"{status}: {self.said()}"


class Daemon(Program):
    def __init__(self, folder, host, config="", addresses=(), words=(), program=DAEMON):
        """With `addresses` it has a network namespace of its own, whose enp1s0 has them."""
        self.guests = folder / "guests.sock"
        command = [program, "--config", folder / "vfmgr.toml", "--host", folder / "host.json",
                   "--guests", self.guests, *words]
        if addresses:
            # The loopback device, renamed: the new namespace has it, and it has ifindex 1, which
            # the fakes' RDMA device belongs to.
            network = "".join(f"ip address add {one} dev enp1s0; " for one in addresses)
            command = ["unshare", "--net", "sh", "-ec",
                       f'ip link set lo name enp1s0; {network} ip link set enp1s0 up; exec "$@"',
                       "sh", *command]
        super().__init__(folder, command)
        self.configure(config)
        (folder / "host.json").write_text(json.dumps(host))
        self.start()

    def configure(self, config):
        (self.folder / "vfmgr.toml").write_text(
            f'state_dir = "{self.folder}/state"\n[listen.unix]\npath = "{self.socket}"\n'
            f'group = "{grp.getgrgid(os.getgid()).gr_name}"\n'
            f'[roles.uids]\n{os.getuid()} = "admin"\n{config}')

    def happen(self, **what):
        self.process.stdin.write(json.dumps(what) + "\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == "done\n"

    def do(self, method, path, body=None, **headers):
        answer, operation = self.ask(method, path, body, **headers)
        assert answer.status == 202, operation
        ended = self.ended(operation)
        assert ended["state"] == "succeeded", ended
        return ended

    def ended(self, operation):
        while operation["finished_at"] is None:
            operation = self.ask("GET", f"/v1/operations/{operation['id']}?wait=1")[1]
        return operation
