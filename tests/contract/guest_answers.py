# SPDX-License-Identifier: Apache-2.0
"""How each answer that the documents of guest plane and responder describe is provoked. As in
api_answers.py: what applies to every operation is in provoke(), the rest in methods named after
operation and status."""

import concurrent.futures
import ctypes
import http.client
import ipaddress
import itertools
import socket
import ssl
import subprocess
import threading

from api_answers import PF, VMS
from live_daemon import UnixConnection

ADDRESSES = ["192.168.100.1/24", "192.168.101.1/24"]
REPORT = {"nonce": "none", "tests": []}
SESSIONS_MAX = 16  # served by a responder at once
TRIES_MAX = 40
WHOLE_REPORT = {
    "nonce": "none", "digests": {"rc_ping": "00"}, "facts": {"kernel": "6.1"}, "error": "none",
    "tests": [{"name": "rc_ping", "verdict": "pass", "by": "guest", "bytes_checked": 1,
               "mismatches": 0, "figures": {"p50_us": 1.5}, "detail": "", "remedy": ""}],
    "counters": [{"source": "netdev", "device": "eth0", "name": "rx_dropped", "count": 1}]}

TURNED_AWAY = "too many requests"


def end_at(address):
    return {"gid": ipaddress.ip_address(f"::ffff:{address}").packed.hex(), "qp_num": 17, "psn": 1,
            "path_mtu": 1024, "reads_max": 1}


def stream(kind, address, pairs=1, message_bytes=64):
    region = {"address": 4096, "rkey": 1, "length": 4096}
    back = region if kind in ("write_echo", "transfer") else None
    return {"kind": kind, "message_bytes": message_bytes, "pairs": [end_at(address)] * pairs,
            "back": back, "depth": 1}


SESSION = {"attachment": "none", "run": "none", "nonce": "none", "guest": end_at("192.168.100.9")}
STREAM = {**stream("transfer", "192.168.100.9"), "dct": {"qp_num": 1, "key": 1}}
WHOLE = {"start_guest_run": {"profile": "quick"}, "open_session": SESSION, "open_stream": STREAM,
         "report_session": WHOLE_REPORT, "report_run_error": WHOLE_REPORT}
# Rules that the server has and the schema lacks, at the path that is changed.
RULES = {"open_stream": {"kind": "others have no back or no dct", "pairs": "a transfer has one",
                         "message_bytes": "whole chunks, as many as back has",
                         "back": "a transfer needs it", "back/length": "for a whole message"}}


WAITS = {"Prefer": "respond-async"}
HOST_ADDRESS, TCP_PORT = "192.168.100.1", 8471


class TcpConnection(http.client.HTTPSConnection):
    """From that address, in the network namespace of that process."""

    def __init__(self, pid, address):
        super().__init__(HOST_ADDRESS, TCP_PORT, timeout=60,
                         context=ssl._create_unverified_context())
        self.pid, self.address = pid, address

    def connect(self):
        made = []

        def there():  # a thread of its own, to leave the others where they are
            with open(f"/proc/{self.pid}/ns/net", encoding="ascii") as network:
                assert ctypes.CDLL(None).setns(network.fileno(), 0) == 0
            made.append(socket.create_connection((self.host, self.port), self.timeout,
                                                 (self.address, 0)))
        thread = threading.Thread(target=there)
        thread.start()
        thread.join()
        self.sock = self._context.wrap_socket(made[0], server_hostname=self.host)


class Guests:
    """The VMs of a daemon, each with a CID; those that a test uses get a VF."""

    def __init__(self, asker, daemon):
        self.asker, self.daemon, self.names = asker, daemon, iter(VMS[9:])
        self.operations = asker.document.operations
        vms = daemon.ask("GET", "/v1/vms")[1]["items"]
        self.cids = {vm["name"]: str(vm["vsock_cid"]) for vm in vms if vm["vsock_cid"]}
        self.cid, self.attachment, self.address = self.attached()

    def attached(self, name=None, network="lab", **more):
        name = name or next(self.names)
        ended = self.daemon.do("POST", "/v1/attachments",
                               {"vm": name, "pf": PF, "network": network, **more})
        attachment = self.daemon.ask("GET", ended["subject"])[1]
        return self.cids[name], attachment["id"], attachment["address"]

    def detach(self, attachment):
        self.daemon.do("DELETE", "/v1/attachments/" + attachment)

    def connect(self):
        return UnixConnection(self.daemon.guests)

    def ask(self, operation, cid=None, body=None, query="", headers=None, connection=None, **ids):
        one = self.operations[operation]
        ids = {"attachment": self.attachment, "session": "none", "stream": "none", "run": "none",
               **ids}
        if one.body and body is None:
            body = REPORT if operation.startswith("report") else {}
        return self.asker.ask(one, self.daemon.call, one.method, one.path.format(**ids) + query,
                              body=body, connection=connection or self.connect(),
                              **{"X_Vsock_Cid": cid or self.cid, **WAITS, **(headers or {})})

    def provoke(self, operation, status, schema):
        own = getattr(self, f"{operation}_{status}", None)
        if own:
            return own()
        if status == "400":
            return self.ask(operation, body="{")
        if status == "403":
            return self.ask(operation, headers={"X_Vsock_Port": "4000"})
        if status == "404":
            return self.ask(operation, cid="99")
        if status == "415":
            return self.ask(operation, headers={"Content_Type": "text/plain"})
        return None

    def asking(self, operation):
        """Sends one body after another, from the VMs in turn, as each may send only so many
        requests; where a session is needed, only from VMs that have one."""
        those = itertools.cycle(self.cids.items())
        if operation == "open_stream":
            had = [self.opened() for _ in range(6)]
            those = itertools.cycle((cid, answer.body["session"])
                                    for cid, _, _, answer in had)

            def ask(body):
                cid, session = next(those)
                return self.patiently(operation, cid, body, session=session)
            return ask
        return lambda body: self.patiently(operation, next(those)[1], body)

    def patiently(self, operation, cid, body, **ids):
        while True:
            answer = self.ask(operation, cid, body, **ids)
            if answer.status != 503 or TURNED_AWAY not in answer.body["detail"]:
                return answer

    # --- guests on TCP --------------------------------------------------------------------------

    def enrol_guest_201(self):
        """Shows the token of an enrolment, once more, and then the key."""
        _, attachment, address = self.attached(guest_plane="tcp")
        pid = self.daemon.process.pid
        subprocess.run(["nsenter", "-t", str(pid), "-n", "ip", "address", "add", address, "dev",
                        "enp1s0"], check=True)
        enrolment = self.daemon.ask("POST", f"/v1/attachments/{attachment}/enrolment")[1]
        secret = {"secret": enrolment["token"]}
        enrolled = self.ask("enrol_guest", body=secret, connection=TcpConnection(pid, address))
        self.ask("enrol_guest", body=secret, connection=TcpConnection(pid, address))
        known = {"Authorization": f"Bearer {enrolled.body['key']}"}
        config = self.ask("get_guest_config", connection=TcpConnection(pid, address), headers=known)
        assert [one["attachment"] for one in config.body["attachments"]] == [attachment], config
        other = self.ask("get_guest_config", connection=TcpConnection(pid, HOST_ADDRESS),
                         headers=known)
        assert other.status == 404, other
        self.ask("get_guest_config", connection=TcpConnection(pid, address),
                 headers={"Authorization": "Bearer none"})
        self.detach(attachment)

    enrol_guest_401 = default_401 = enrol_guest_201

    def enrol_guest_409(self):
        self.ask("enrol_guest", body={"secret": "0" * 64})

    # --- sessions and streams -------------------------------------------------------------------

    def run(self, cid, attachment):
        return self.ask("start_guest_run", cid, attachment=attachment).body

    def request(self, run, address):
        return {"attachment": run["attachment"], "run": run["run"], "nonce": run["nonce"],
                "guest": end_at(address)}

    def opened(self, name=None, **network):
        """Returns a VM with a VF, and the answer to its request for a session."""
        cid, attachment, address = self.attached(name, **network)
        run = self.run(cid, attachment)
        answer = self.ask("open_session", cid, self.request(run, address))
        return cid, attachment, address, answer

    def with_peers(self, how):
        self.daemon.happen(peers=how)
        attachment = self.opened()[1]
        self.daemon.happen(peers="right")
        self.detach(attachment)

    def open_session_201(self):
        """Opens a session and sends the requests that belong in it."""
        cid, attachment, address, answer = self.opened()
        session = answer.body["session"]
        opened = self.ask("open_stream", cid, stream("one_sided", address), session=session)
        self.ask("close_stream", cid, session=session, stream=opened.body["stream"])
        self.ask("open_stream", cid, "{", session=session)
        self.ask("open_stream", cid, stream("one_sided", address, 4, 8 << 20), session=session)
        self.ask("report_session", cid, session=session)
        self.detach(attachment)

    open_stream_201 = open_stream_400 = close_stream_204 = open_stream_422 = open_session_201
    report_session_200 = open_session_201

    def open_session_202(self):
        """Opens sessions until one VM has its share, and no more."""
        name, had = next(self.names), []
        for _ in range(SESSIONS_MAX):
            _, attachment, _, answer = self.opened(name)
            had.append(attachment)
            if answer.status == 202:
                break
        for attachment in had:
            self.detach(attachment)

    def open_session_409(self):
        self.with_peers("wrong")

    def open_stream_202(self):
        """Opens two streams that take a CPU each; only one is served."""
        had = [self.opened() for _ in range(2)]
        for cid, _, address, answer in had:
            self.ask("open_stream", cid, stream("write_echo", address),
                     session=answer.body["session"])
        for _, attachment, _, _ in had:
            self.detach(attachment)

    def get_guest_config_200(self):
        self.ask("get_guest_config")

    def get_guest_config_400(self):
        self.ask("get_guest_config", query="?wait=soon")

    def get_host_topology_200(self):
        self.ask("get_host_topology")

    def start_guest_run_201(self):
        self.run(self.cid, self.attachment)

    def start_guest_run_409(self):
        """When the control thread is busy, it begins both runs before either is answered."""
        with concurrent.futures.ThreadPoolExecutor(24) as together:
            for _ in range(TRIES_MAX):
                cid, attachment, _ = self.attached()
                for _ in range(20):
                    together.submit(self.daemon.call, "GET", "/v1/operations")
                both = [together.submit(self.run, cid, attachment) for _ in range(6)]
                answers = [one.result() for one in both]
                self.detach(attachment)
                if any("run" not in answer for answer in answers):
                    break

    def report_run_error_200(self):
        run = self.run(self.cid, self.attachment)
        self.ask("report_run_error", run=run["run"],
                 body={"nonce": run["nonce"], "tests": [], "error": "nothing works"})

    # --- answers of any operation ----------------------------------------------------------------

    def default_422(self):
        self.detach(self.opened(network="bare")[1])

    def default_500(self):
        self.with_peers("broken")

    def default_502(self):
        self.with_peers("refused")

    def default_504(self):
        self.with_peers("hanging")


def permit(number):
    return {"attachment": f"{number:08x}", "run": f"run{number}", "nonce": f"nonce{number}",
            "vf_mac": None, "peer_address": "127.0.0.1", "mtu": 1500, "rdma": "rxe", "path": "wire"}


RESPONDERS_WHOLE = {
    "open_session": {"permit": {**permit(0), "vf_mac": "02:00:00:00:00:01", "profile": "quick",
                                "vf_tx_rate_mbps": 1},
                     "request": SESSION},
    "open_stream": STREAM, "report_session": WHOLE_REPORT}


class Responders:
    """vf-guest serve, whose clients declare themselves what their guests may do."""

    def __init__(self, asker, daemon, connect, token):
        self.asker, self.daemon, self.connect = asker, daemon, connect
        self.operations, self.number = asker.document.operations, 0
        self.headers = {"Authorization": f"Bearer {token}", **WAITS}

    def ask(self, operation, body=None, headers=None, session="none", **ids):
        one = self.operations[operation]
        path = one.path.format(session=session, **{"stream": "none", **ids})
        if body is None and one.body:
            body = REPORT if operation == "report_session" else stream("one_sided", "127.0.0.1")
        return self.asker.ask(one, self.daemon.call, one.method, path, body=body,
                              connection=self.connect(), **{**self.headers, **(headers or {})})

    def provoke(self, operation, status, schema):
        own = getattr(self, f"{operation}_{status}", None)
        if own:
            return own()
        if status in ("200", "204"):
            return self.ask(operation)
        if status == "400":
            return self.ask(operation, body="{")
        if status == "401":
            return self.ask(operation, headers={"Authorization": "Bearer nonsense"})
        if status == "404":
            return self.ask(operation)
        if status == "415":
            return self.ask(operation, headers={"Content-Type": "text/plain"})
        return None

    def opened(self, **other):
        self.number += 1
        allowed = permit(self.number)
        request = {key: allowed[key] for key in ("attachment", "run", "nonce")}
        request["guest"] = end_at("127.0.0.1")
        return self.ask("open_session", {"permit": allowed, "request": {**request, **other}})

    def with_peers(self, how):
        self.daemon.happen(peers=how)
        self.opened()
        self.daemon.happen(peers="right")

    def open_session_201(self):
        session = self.opened().body["session"]
        self.ask("open_stream", session=session)
        self.ask("report_session", session=session)

    open_stream_201 = report_session_200 = open_session_201

    def open_session_202(self):
        had = [self.opened() for _ in range(SESSIONS_MAX + 1)]
        for answer in had[:-1]:
            self.ask("drop_session", session=answer.body["session"])

    def open_session_403(self):
        self.opened(run="another")

    def open_session_409(self):
        self.with_peers("wrong")

    def open_stream_202(self):
        had = [self.opened().body["session"] for _ in range(2)]
        for session in had:
            self.ask("open_stream", stream("write_echo", "127.0.0.1"), session=session)
        for session in had:
            self.ask("drop_session", session=session)

    def default_404(self):
        self.asker.ask(None, self.daemon.call, "GET", "/responder/v1/none",
                       connection=self.connect(), **self.headers)

    def default_422(self):
        session = self.opened().body["session"]
        self.ask("open_stream", stream("one_sided", "127.0.0.1", 4, 8 << 20), session=session)
        self.ask("drop_session", session=session)

    def default_500(self):
        self.with_peers("broken")

    def default_502(self):
        self.with_peers("refused")

    def default_503(self):
        self.with_peers("silent")

    def default_504(self):
        self.with_peers("hanging")
