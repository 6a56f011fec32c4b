# SPDX-License-Identifier: Apache-2.0
"""Clients of the real vfmgrd on fakes over TLS, and its configuration for them."""

import http.client
import ssl
from contextlib import contextmanager

from live_daemon import Answer, Daemon, free_port


class Remote:
    """A client on another machine: it has a certificate, a token, both or nothing."""

    def __init__(self, daemon, files=None, token=None):
        self.trust = ssl.create_default_context(cafile=daemon.folder / "state/tls.crt")
        if files:
            self.trust.load_cert_chain(*files)
        self.port, self.headers = daemon.port, {"Authorization": f"Bearer {token}"} if token else {}

    def connection(self):
        return http.client.HTTPSConnection("127.0.0.1", self.port, context=self.trust, timeout=60)

    def ask(self, method, path, body=None, connection=None, **headers):
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        headers = {**self.headers, **({"Content-Type": "application/json"} if body else {}),
                   **headers}
        connection = connection or self.connection()
        connection.request(method, path, body, headers)
        return Answer(connection.getresponse())

    def status(self, method="GET", path="/v1/pfs"):
        return self.ask(method, path).status


def configuration(authority, port, clients, more=""):
    mapped = "".join(f'"{name}" = "{role}"\n' for name, role in clients.items())
    return (f'{more}\n[listen.tls]\nenabled = true\nport = {port}\n[tls]\n'
            f'client_ca_file = "{authority.file}"\nclient_crl_file = "{authority.crl}"\n'
            f'[tls.clients]\n{mapped}')


@contextmanager
def served(folder, host, authority, clients, more=""):
    """A daemon that clients reach over TLS, at its `port`."""
    folder.mkdir()
    port = free_port()
    daemon = Daemon(folder, host, configuration(authority, port, clients, more))
    daemon.port = port
    try:
        yield daemon
    finally:
        daemon.end()
