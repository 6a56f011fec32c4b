# SPDX-License-Identifier: Apache-2.0
"""The real vfmgr-fleetd: configured, started, queried, and ended."""

import grp
import os
import ssl
import sys
from http.client import HTTPSConnection
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "contract"))

from live_daemon import BUILD, Program, free_port  # noqa: E402

FLEETD = BUILD / "service/fleet/vfmgr-fleetd"
BOTH_ENDS = "serverAuth,clientAuth"  # of a replica: it serves clients, and is a client of hosts
FLEET = "33333333-3333-4333-8333-333333333333"
NOBODY_THERE = "https://127.0.0.1:1"  # where no etcd answers


def replica_files(authority, name):
    """Returns the files of a certificate of the fleet's CA, and of its key, for a replica that is
    reached at 127.0.0.1."""
    identity = f"URI:vfmgr://{FLEET}/replica/{name}"
    return authority.issue(name, f"{identity},IP:127.0.0.1,DNS:localhost", BOTH_ENDS)


def remote(url, ca_file, files=None):
    """Returns a connection over TLS, for call(), of a client that may have a certificate."""
    host, _, port = url.removeprefix("https://").rpartition(":")
    trust = ssl.create_default_context(cafile=ca_file)
    if files:
        trust.load_cert_chain(*files)
    return HTTPSConnection(host, int(port), context=trust, timeout=60)


class Fleetd(Program):
    def __init__(self, folder, authority, name="fleet1", etcd=(NOBODY_THERE,), config=""):
        """`authority`: the fleet's CA, a certificates.Authority. Of `config`, keys without a table
        come first. The caller ends it with end()."""
        folder.mkdir(exist_ok=True)
        self.name, self.port, self.etcd = name, free_port(), list(etcd)
        self.url = f"https://127.0.0.1:{self.port}"
        self.authority = authority
        self.certificate, self.key = replica_files(authority, name)
        super().__init__(folder, [FLEETD, "--config", folder / "fleetd.toml", "--config-dir",
                                  folder / "fleetd.conf.d"])
        self.configure(config)
        self.start()

    def configure(self, config):
        endpoints = ", ".join(f'"{one}"' for one in self.etcd)
        (self.folder / "fleetd.toml").write_text(
            f'name = "{self.name}"\nurl = "{self.url}"\netcd.endpoints = [{endpoints}]\n'
            f'[listen.unix]\npath = "{self.socket}"\n'
            f'group = "{grp.getgrgid(os.getgid()).gr_name}"\n'
            f'[listen.tls]\naddress = "127.0.0.1"\nport = {self.port}\n'
            f'certificate_file = "{self.certificate}"\nkey_file = "{self.key}"\n'
            f'ca_file = "{self.authority.file}"\n'
            f'[roles.groups]\nvfmgr = "none"\n'
            f'[roles.uids]\n{os.getuid()} = "admin"\n{config}')

    def remote(self, files=None):
        return remote(self.url, self.authority.file, files)
