# SPDX-License-Identifier: Apache-2.0
"""vfmgrd on fakes, on this machine, for benchmarks of the API that need no emulated host."""

import http.client
import socket
import ssl

import live_daemon
from vflab.programs import built_here

PF = "0000:01:00.0"
HOST = {"pfs": [{"model": "igb", "pci": PF, "ifname": "enp1s0"}],
        "vms": [{"name": "vm1", "uuid": "11111111-1111-1111-1111-111111111111"}]}


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class TlsConnection(http.client.HTTPSConnection):
    """Connects from its own address, like another machine."""

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


class Daemon(live_daemon.Daemon):
    """A daemon with the packages' flags, served over TLS."""

    def __init__(self, folder, config="", host=None):
        self.store, self.port = folder / "state/vfmgr.db", free_port()
        super().__init__(folder, host or HOST,
                         f"[listen.tls]\nenabled = true\nport = {self.port}\n{config}",
                         program=built_here("vfmgrd_on_fakes"))

    def token(self, role):
        answer, token = self.ask("POST", "/v1/tokens", {"role": role})
        assert answer.status == 201, token
        return token["token"]

    def runs(self):
        return self.process.poll() is None
