# SPDX-License-Identifier: Apache-2.0
"""Uses vfmgrd's API like any client: HTTPS to 127.0.0.1 with a token."""

import hashlib
import http.client
import json
import ssl

from report import NotObserved

REQUEST_SECONDS = 60
OPERATION_SECONDS = 300


class Api:
    def __init__(self, port, certificate, token):
        """`certificate` is the daemon's own, fetched over ssh; no other is trusted."""
        self.port, self.token = port, token
        self.tls = ssl.create_default_context(cadata=certificate)
        self.tls.check_hostname = False  # the certificate itself is pinned, whatever host it names
        self.fingerprint = hashlib.sha256(ssl.PEM_cert_to_DER_cert(certificate)).hexdigest()

    def ask(self, method, path, body=None, token=None, seconds=REQUEST_SECONDS):
        connection = http.client.HTTPSConnection("127.0.0.1", self.port, context=self.tls,
                                                 timeout=seconds)
        headers = {"Authorization": f"Bearer {token or self.token}"}
        if body is not None:
            headers["Content-Type"] = "application/json"
        try:
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            answer = connection.getresponse()
            text = answer.read().decode()
            return answer.status, json.loads(text) if text.strip() else None
        finally:
            connection.close()

    def get(self, path):
        status, body = self.ask("GET", path)
        if status != 200:
            raise NotObserved(f"GET {path}: {problem(status, body)}")
        return body

    def put(self, path, body):
        """Sets what needs no operation."""
        status, answer = self.ask("PUT", path, body)
        if status != 200:
            raise NotObserved(f"PUT {path}: {problem(status, answer)}")
        return answer

    def start(self, method, path, body=None):
        """Sends a request that changes something; returns its operation."""
        status, answer = self.ask(method, path, body)
        if status != 202:
            raise NotObserved(f"{method} {path}: {problem(status, answer)}")
        return answer

    def follow(self, operation, say, meanwhile=lambda: None):
        """Prints each step when it is done, until the end; calls `meanwhile` between polls."""
        printed, waits = 0, 0
        while True:
            operation = self.get(f"/v1/operations/{operation['id']}?wait=1")
            done = [step for step in operation["steps"] if step["state"] == "done"]
            for step in done[printed:]:
                say(f"      {step['sentence']}")
            printed = len(done)
            meanwhile()
            if operation["state"] == "succeeded":
                return operation
            waits += 1
            if operation["state"] == "failed":
                found = operation["problem"]
                raise NotObserved(f"{found['detail']} ({found['code']}); {found.get('remedy')}")
            if waits > OPERATION_SECONDS:
                raise NotObserved(f"operation {operation['id']} has not ended: {operation}")


def problem(status, body):
    if isinstance(body, dict) and "detail" in body:
        return f"{status} {body.get('code')}: {body['detail']}; {body.get('remedy', '')}"
    return f"{status} {json.dumps(body)[:500]}"
