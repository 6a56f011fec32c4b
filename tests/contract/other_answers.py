# SPDX-License-Identifier: Apache-2.0
"""How the answers that `default` describes are provoked, at any path: the transport's refusals, and
failures behind it. The daemon has narrow limits; `Place` has the path where a document's operations
are served."""

from live_daemon import somebody

LIMITS = """[limits]
body_bytes_max = 32768
header_bytes_max = 1024
connections_max = 4
read_seconds_max = 1
answer_seconds_max = 2
"""


STRANGERS_TRIES_MAX = 500


class Place:
    def __init__(self, asker, connect, path, headers=None):
        self.asker, self.connect, self.path = asker, connect, path
        self.headers = headers or {}

    def ask(self, call, method, path=None, body=None, **headers):
        return self.asker.ask(None, call, method, path or self.path, body=body,
                              connection=self.connect(), **{**self.headers, **headers})

    def had(self, raw):
        """Returns the answer to bytes that are an incomplete request, or one that is refused."""
        connection = self.connect()
        connection.connect()
        connection.sock.sendall(raw)
        answer = connection.response_class(connection.sock)
        answer.begin()
        return self.asker.judge(None, answer, connection)


def method_not_allowed(place, daemon):
    place.ask(daemon.call, "PATCH")


def slow_request(place, _):
    place.had(f"GET {place.path} HTTP/1.1\r\n".encode())


def long_body(place, daemon):
    place.ask(daemon.call, "POST", body=" " * 65536)


def expectation(place, daemon):
    place.ask(daemon.call, "POST", body="{}", Expect="a miracle")


def long_headers(place, daemon):
    place.ask(daemon.call, "GET", X_Long="x" * 2048)


def full(place, _):
    """Opens too many silent connections: the oldest is answered that another takes its place."""
    held = []
    for _ in range(64):
        connection = place.connect()
        connection.connect()
        held.append(connection)
    try:
        answer = held[0].response_class(held[0].sock)
        answer.begin()
        place.asker.judge(None, answer, held[0])
    finally:
        for connection in held:
            connection.close()


TRANSPORT = {"405": method_not_allowed, "408": slow_request, "413": long_body,
             "417": expectation, "431": long_headers}


def stranger_who_insists(place, _):
    for _ in range(STRANGERS_TRIES_MAX):
        connection = place.connect()
        connection.request("GET", "/v1", headers={"Authorization": "Bearer vfm_0"})
        answer = connection.getresponse()
        if answer.status == 429:
            return place.asker.judge(None, answer, connection)
        connection.close()
    return None


def nobodys(place, daemon):
    with somebody():
        place.ask(daemon.call, "GET")


def refused_by_the_kernel(place, daemon):
    daemon.happen(refuse_step="read_firmware")
    place.ask(daemon.call, "GET", "/v1/host/firmware")
    daemon.happen(refuse_step="")


def long_answer(place, daemon):
    daemon.happen(step_milliseconds=600000)
    operation = daemon.ask("PUT", "/v1/pfs/0000:02:00.0/spec", {"num_vfs": 2})[1]
    place.ask(daemon.call, "GET", f"/v1/operations/{operation['id']}?wait=60")
    daemon.happen(step_milliseconds=0)
    assert daemon.ended(operation)["state"] == "succeeded"


API = {**TRANSPORT, "403": nobodys, "429": stranger_who_insists,
       "502": refused_by_the_kernel, "503": full,
       "504": long_answer}
GUESTS = {**TRANSPORT, "503": full}
