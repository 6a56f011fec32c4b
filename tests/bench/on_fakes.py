# SPDX-License-Identifier: Apache-2.0
"""vfmgrd on fakes, on this machine: for benches of the API, which need no emulated host."""

import grp
import http.client
import json
import os
import socket
import ssl
import subprocess

from vflab.programs import built_here

PF = "0000:01:00.0"
HOST = {"pfs": [{"model": "igb", "pci": PF, "ifname": "enp1s0"}],
        "vms": [{"name": "vm1", "uuid": "11111111-1111-1111-1111-111111111111"}]}
READY_SECONDS = 60


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class TlsConnection(http.client.HTTPSConnection):
    """From an address of its own, as another machine would be."""

    def __init__(self, port, address):
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        super().__init__("127.0.0.1", port, context=context, timeout=60,
                         source_address=(address, 0))

    def ask(self, token, method, path, body=None):
        self.request(method, path, body, {"Authorization": "Bearer " + token,
                                          "Content-Type": "application/json"})
        answer = self.getresponse()
        answer.read()
        return answer.status


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
        self.socket, self.store = folder / "api.sock", folder / "state/vfmgr.db"
        self.port = free_port()
        (folder / "vfmgr.toml").write_text(
            f'state_dir = "{folder}/state"\n[listen.unix]\npath = "{self.socket}"\n'
            f'group = "{grp.getgrgid(os.getgid()).gr_name}"\n'
            f"[listen.tls]\nenabled = true\nport = {self.port}\n"
            f'[roles.uids]\n{os.getuid()} = "admin"\n')
        (folder / "host.json").write_text(json.dumps(HOST))
        ready = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        ready.bind(str(folder / "notify"))
        self.log = (folder / "log").open("w+")
        self.process = subprocess.Popen(
            [built_here("vfmgrd_on_fakes"), "--config", folder / "vfmgr.toml",
             "--host", folder / "host.json"],
            env={**os.environ, "NOTIFY_SOCKET": str(folder / "notify")},
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=self.log)
        ready.settimeout(READY_SECONDS)
        assert ready.recv(100) == b"READY=1"

    def ask(self, method, path, body=None):
        connection = UnixConnection(self.socket)
        connection.request(method, path, None if body is None else json.dumps(body),
                           {"Content-Type": "application/json"})
        answer = connection.getresponse()
        text = answer.read()
        connection.close()
        return answer.status, json.loads(text) if text else None

    def manage(self, num_vfs):
        status, operation = self.ask("PUT", f"/v1/pfs/{PF}/spec",
                                     {"mode": "manage", "num_vfs": num_vfs})
        assert status == 202, operation
        _, ended = self.ask("GET", f"/v1/operations/{operation['id']}?wait=30")
        assert ended["state"] == "succeeded", ended

    def token(self, role):
        status, token = self.ask("POST", "/v1/tokens", {"role": role})
        assert status == 201, token
        return token["token"]

    def runs(self):
        return self.process.poll() is None

    def end(self):
        self.process.terminate()
        return self.process.wait(60)
