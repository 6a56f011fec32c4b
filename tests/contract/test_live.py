# SPDX-License-Identifier: Apache-2.0
"""vfmgrd as it is, on fakes, over its sockets."""

import grp
import http.client
import json
import os
import socket
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
BUILD = Path(os.environ.get("VFMGR_BUILD_DIR", ROOT / "build/asan"))
DAEMON = BUILD / "tests/vfmgrd_on_fakes"
PF = "/v1/pfs/0000:01:00.0"
VM = "11111111-1111-1111-1111-111111111111"
HOST = {"pfs": [{"model": "igb", "pci": "0000:01:00.0", "ifname": "enp1s0"}],
        "vms": [{"name": "vm1", "uuid": VM}]}
SPEC = {"mode": "manage", "num_vfs": 2}


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("vfmgr", timeout=60)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self.path))


class Daemon:
    def __init__(self, folder):
        self.socket, self.guests = folder / "api.sock", folder / "guests.sock"
        (folder / "vfmgr.toml").write_text(
            f'state_dir = "{folder}/state"\n[listen.unix]\npath = "{self.socket}"\n'
            f'group = "{grp.getgrgid(os.getgid()).gr_name}"\n'
            f'[roles.uids]\n{os.getuid()} = "admin"\n')
        (folder / "host.json").write_text(json.dumps(HOST))
        self.log = (folder / "log").open("w+")
        ready = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        ready.bind(str(folder / "notify"))
        self.process = subprocess.Popen(
            [DAEMON, "--config", folder / "vfmgr.toml", "--host", folder / "host.json",
             "--guests", self.guests],
            env={**os.environ, "NOTIFY_SOCKET": str(folder / "notify")},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, text=True)
        # What systemd waits for; the daemon's end closes no datagram socket of ours.
        ready.settimeout(60)
        try:
            assert ready.recv(100) == b"READY=1"
        except TimeoutError:
            raise AssertionError(self.said()) from None

    def said(self):
        self.log.seek(0)
        return self.log.read()

    def happen(self, **what):
        self.process.stdin.write(json.dumps(what) + "\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == "done\n"

    def ask(self, method, path, body=None, socket=None, **headers):
        connection = UnixConnection(socket or self.socket)
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        if body is not None:
            headers.setdefault("Content-Type", "application/json")
            body = body if isinstance(body, str) else json.dumps(body)
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        text = answer.read()
        connection.close()
        return answer, json.loads(text) if text else None

    def do(self, method, path, body=None, **headers):
        answer, operation = self.ask(method, path, body, **headers)
        assert answer.status == 202, operation
        _, ended = self.ask("GET", f"/v1/operations/{operation['id']}?wait=30")
        assert ended["state"] == "succeeded", ended
        return ended


@pytest.fixture(scope="module")
def daemon(tmp_path_factory):
    started = Daemon(tmp_path_factory.mktemp("live"))
    started.do("PUT", PF + "/spec", SPEC)
    yield started
    started.process.terminate()
    assert started.process.wait(60) == 0, started.said()


def refused(answer, status, *words):
    response, problem = answer
    assert response.status == status, problem
    assert response.headers["Content-Type"] == "application/problem+json"
    text = problem["detail"] + " " + problem["remedy"]
    assert all(word in text for word in words), text


def test_guests_say_who_they_are(daemon):
    def config(**headers):
        return daemon.ask("GET", "/guest/v1/config", socket=daemon.guests, **headers)
    assert config(X_Vsock_Cid="3")[1]["attachments"] == []
    refused(config(X_Vsock_Cid="99"), 404, "99")
    refused(config(X_Vsock_Cid="3", X_Vsock_Port="4000"), 403)
    refused(config(), 403)
