# SPDX-License-Identifier: Apache-2.0
"""Clients of a fleet under chaos: each asks one replica or the other, and records what it did.

A request whose answer is lost is sent again with its idempotency key, at either replica, until an
answer comes or patience ends; all of that is one act. An answer of 4xx says that it was not done.
"""

import http.client
import random
import threading
import time
import uuid
from datetime import datetime

from live_daemon import UnixConnection

PATIENCE = 90.0  # seconds, for the outcome of one act
POOL = "rails"   # of each host: all of its PFs
PAUSE = 0.3      # between two tries of a request


class Asking:
    """Asks replicas by their sockets, at random."""

    def __init__(self, replicas, rng, stop):
        self.replicas, self.rng, self.stop = replicas, rng, stop

    def once(self, method, path, body=None, replica=None, timeout=15.0, **headers):
        """Returns the replica and its answer; OSError or HTTPException if none came."""
        replica = replica or self.rng.choice(self.replicas)
        connection = UnixConnection(replica.socket)
        connection.timeout = timeout
        return replica, replica.call(method, path, body, connection=connection, **headers)

    def until_known(self, method, path, body=None, **headers):
        """Returns an answer below 500, or None: what became of the request is not known."""
        key, deadline = str(uuid.UUID(int=self.rng.getrandbits(128))), time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            try:
                _, answer = self.once(method, path, body, Idempotency_Key=key, **headers)
            except (OSError, http.client.HTTPException, ValueError):
                answer = None
            # 429 and 409 for a key that is still at work say nothing of what the key began.
            if answer and answer.status < 500 and answer.status not in (425, 429):
                return answer
            self.stop.wait(PAUSE)
        return None

    def operation(self, location):
        """Returns the operation that ended, or None."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            try:
                _, answer = self.once("GET", f"{location}?wait=5")
            except (OSError, http.client.HTTPException, ValueError):
                self.stop.wait(PAUSE)
                continue
            if answer.status == 200 and answer.body["finished_at"]:
                return answer.body
            if answer.status == 404:
                return None  # the host's store is an older one
            if answer.status != 200:
                self.stop.wait(PAUSE)
        return None


def vf_name(vf):
    return f"{vf['pf']}/{vf['index']}"


class Client(threading.Thread):
    """Acts until `stop`, whose acts under way it still ends. `trouble`: what it can't explain."""

    def __init__(self, name, world, record, replicas, seed, stop):
        super().__init__(name=name, daemon=True)
        self.world, self.record, self.stop_now = world, record, stop
        self.rng = random.Random(f"{seed} {name}")
        self.asking = Asking(replicas, self.rng, threading.Event())
        self.attachments = []  # (host, id, vm, vf) that it attached
        self.reservations, self.made = [], 0  # (name, host) that it has
        self.refusal, self.trouble = None, None

    def run(self):
        acts = [self.attach, self.attach_by_vm, self.attach_reserved, self.detach, self.detach,
                self.detach, self.reserve, self.release, self.read, self.read,
                self.read_reservations]
        try:
            while not self.stop_now.is_set():
                self.rng.choice(acts)()
                self.stop_now.wait(self.rng.uniform(0.05, 0.5))
        except Exception as error:  # a defect of the chaos, which must not pass for silence
            self.trouble = f"{self.name}: {type(error).__name__}: {error}"
            raise

    def perform(self, act, method, path, body=None):
        """Returns the operation that the request began and that succeeded, or None."""
        self.refusal = None
        answer = self.asking.until_known(method, path, body)
        if answer is None:
            return act.unknown()
        if answer.status != 202:
            assert answer.status < 300 or "code" in answer.body, answer
            self.refusal = answer.status
            act.ended("refused", said=str(answer)[:300])
            return None
        operation = self.asking.operation(answer.headers["Location"])
        if operation is None:
            return act.unknown()
        if operation["state"] != "succeeded":
            act.ended("refused", said=str(operation.get("error"))[:300])
            return None
        return operation

    def some_vm(self, host=None):
        host = host or self.rng.choice(list(self.world.hosts))
        return host, self.rng.choice(self.world.hosts[host].vms)

    def attach(self):
        host, vm = self.some_vm()
        body = {"vm": vm, "pf": self.rng.choice(self.world.hosts[host].pfs)}
        self.attached(host, vm, f"/v1/hosts/{host}/attachments", body)

    def attach_by_vm(self):
        """The fleet finds the VM's host."""
        host, vm = self.some_vm()
        self.attached(host, vm, "/v1/attachments", {"vm": vm, "pool": POOL})

    def attach_reserved(self):
        if not self.reservations:
            return
        name, host = self.rng.choice(self.reservations)
        _, vm = self.some_vm(host)
        self.attached(host, vm, "/v1/attachments", {"vm": vm, "reservation": name},
                      reservation=name)

    def attached(self, host, vm, path, body, **more):
        act = self.record.act(self.name, "attach", vm=vm, host=host, **more)
        operation = self.perform(act, "POST", path, {**body, "verify": "none"})
        if operation is None:
            return
        path = operation["subject"].replace("/v1/", f"/v1/hosts/{host}/", 1)
        try:
            _, answer = self.asking.once("GET", path)
        except (OSError, http.client.HTTPException, ValueError):
            answer = None
        if answer is None or answer.status != 200:
            return act.ended("ok")  # it is not known which VF it was
        vf = vf_name(answer.body["vf"])
        self.attachments.append((host, answer.body["id"], vm, vf))
        act.ended("ok", vf=vf, mac=answer.body["settings"]["mac"])

    def reserve(self):
        self.made += 1
        name = f"{self.name}-{self.made}"
        act = self.record.act(self.name, "reserve", reservation=name)
        answer = self.asking.until_known("PUT", f"/v1/reservations/{name}", {
            "pool": POOL, "count": self.rng.choice([1, 1, 2]),
            "strategy": self.rng.choice(["pack", "spread"]), "seconds": self.rng.randint(20, 90)})
        if answer is None:
            return act.unknown()
        if answer.status != 201:
            return act.ended("refused", said=str(answer)[:300])
        self.reservations.append((name, answer.body["host"]))
        act.ended("ok", host=answer.body["host"], vfs=[vf_name(vf) for vf in answer.body["vfs"]],
                  expires_at=monotonic(answer.body["expires_at"]))

    def release(self):
        if not self.reservations:
            return
        name, _ = self.reservations.pop(self.rng.randrange(len(self.reservations)))
        act = self.record.act(self.name, "release", reservation=name)
        answer = self.asking.until_known("DELETE", f"/v1/reservations/{name}")
        if answer is None:
            return act.unknown()
        # 404: it has expired.
        act.ended("ok" if answer.status == 204 else "refused", said=str(answer)[:300])

    def detach(self):
        if not self.attachments:
            return
        host, name, vm, vf = self.attachments.pop(self.rng.randrange(len(self.attachments)))
        act = self.record.act(self.name, "detach", vm=vm, host=host, vf=vf)
        if self.perform(act, "DELETE", f"/v1/hosts/{host}/attachments/{name}"):
            act.ended("ok")
        elif self.refusal != 404:
            self.attachments.append((host, name, vm, vf))

    def read(self):
        self.read_list("attachments", attachment_line)

    def read_reservations(self):
        self.read_list("reservations", reservation_line)

    def read_list(self, what, line_of):
        invoked_at = time.monotonic()
        try:
            replica, answer = self.asking.once("GET", f"/v1/{what}?limit=500")
        except (OSError, http.client.HTTPException, ValueError):
            self.record.counts["act", "read", "unknown"] += 1
            return
        if answer.status != 200:
            self.record.counts["act", "read", "refused"] += 1
            return
        assert answer.body["next"] is None, f"the fleet has more {what} than a page"
        self.record.counts["act", "read", "ok"] += 1
        self.record.line(read=what, invoked_at=invoked_at, completed_at=time.monotonic(),
                         replica=replica.name, stale=stale_of(answer.body),
                         items=[item for one in answer.body["items"] if (item := line_of(one))])


def attachment_line(one):
    if not one["live"]:
        return None
    return {"host": one["host"], "vf": vf_name(one["vf"]), "vm": one["vm_uuid"]}


def reservation_line(one):
    return {"reservation": one["name"], "host": one["host"],
            "vfs": [vf_name(vf) for vf in one["vfs"]]}


def monotonic(text):
    at = datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()
    return at - (time.time() - time.monotonic())


def stale_of(page):
    """Of a host that was not read yet, a list says nothing."""
    return {one["host"]: None if one["why"] == "not_read" else monotonic(one["since"])
            for one in page["stale"]}
