# SPDX-License-Identifier: Apache-2.0
"""HTTPS to a fleet or a host, which tells what is known of a request whose answer did not come."""

import http.client
import json
import ssl


class Unsent(Exception):
    """The server can't have got the request."""


class Lost(Exception):
    """The request was sent, or a part of it; nobody knows what became of it."""


class Answer:
    def __init__(self, response):
        self.status, self.headers = response.status, response.headers
        text = response.read()
        kind = self.headers["Content-Type"] or ""
        self.body = json.loads(text) if text and "json" in kind else text.decode(errors="replace")

    def __str__(self):
        return f"{self.status} {str(self.body)[:500]}"


def trusting(ca_file=None, certificate=None):
    """Returns a context that trusts these CAs, or anybody; `certificate`: files of our own."""
    context = ssl.create_default_context(cafile=ca_file)
    if not ca_file:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if certificate:
        context.load_cert_chain(*certificate)
    return context


class Connection(http.client.HTTPConnection):
    """Connects as a party, by `context` over TLS or without."""

    def __init__(self, party, address, port, context, timeout):
        super().__init__(address, port, timeout=timeout)
        self.party, self.context = party, context

    def connect(self):
        plain = self.party.connect(self.host, self.port, self.timeout)
        self.sock = plain
        if self.context:
            self.sock = self.context.wrap_socket(plain, server_hostname=self.host)


class Server:
    """A server's API, asked by a party. Each request has a connection of its own."""

    def __init__(self, party, address, port, context=None, token=None, timeout=20):
        self.party, self.address, self.port, self.context = party, address, port, context
        self.token, self.timeout = token, timeout

    def ask(self, method, path, body=None, timeout=None, **headers):
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        if body is not None:
            headers["Content-Type"] = "application/json"
            body = json.dumps(body).encode()
        connection = Connection(self.party, self.address, self.port, self.context,
                                timeout or self.timeout)
        try:
            try:
                connection.connect()
            except OSError as error:
                raise Unsent(f"{self.address}:{self.port}: {error}") from error
            try:
                connection.request(method, path, body, headers)
                return Answer(connection.getresponse())
            except (OSError, http.client.HTTPException, ValueError) as error:
                raise Lost(f"{self.address}:{self.port}: {type(error).__name__}: "
                           f"{error}") from error
        finally:
            connection.close()

    def __str__(self):
        return f"https://{self.address}:{self.port}"
