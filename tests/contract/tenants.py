# SPDX-License-Identifier: Apache-2.0
"""Two tenants on one host: what they have, every request that there is, what answer each caller is
to get, and the search for what an answer must not name."""

import json
import re

from described import example
from event_stream import EventStream, FirstFrame

# Addresses that no example in the API's description has.
PF_A, PF_B, PF_BOTH = "0000:a1:00.0", "0000:b2:00.0", "0000:c3:00.0"
VM_A, VM_B, VM_HOST = (f"{digit * 8}-{digit * 4}-{digit * 4}-{digit * 4}-{digit * 12}"
                       for digit in "abc")
NAMES = {"alpha": ("a-vm", VM_A, PF_A), "bravo": ("bravo-vm", VM_B, PF_B)}
HOST = {"pfs": [{"model": "igb", "pci": pci, "ifname": f"enp{number}s0"}
                for number, pci in enumerate((PF_A, PF_B, PF_BOTH), 1)],
        "vms": [{"name": "a-vm", "uuid": VM_A, "free_pcie_ports": 30},
                {"name": "bravo-vm", "uuid": VM_B, "free_pcie_ports": 30},
                {"name": "host-vm", "uuid": VM_HOST}]}
CONFIG = "[limits]\nchanges_burst = 5000\nchanges_per_second = 1000\n"
ROLES = ("viewer", "operator", "admin")
NOWHERE = "00000000"  # an id that nothing has
TOKEN_NOBODY = "vfm_" + 64 * "0"

# Each operation: query, body, and the status that its caller gets who may call it and names what it
# may use. {…} is what the caller has, by the names of Tenants.things().
DRY = "?dry_run=true"
SPEC = {"mode": "manage", "num_vfs": 4}
REQUESTS = {
    "about": ("", None, 200), "live": ("", None, 200), "ready": ("", None, 200),
    "getOpenApi": ("", None, 200), "explainProblem": ("", None, 200),
    "listPfs": ("", None, 200), "getPf": ("", None, 200), "getPfSpec": ("", None, 200),
    "replacePfSpec": (DRY, SPEC, 200), "forgetPf": (DRY, None, 409),
    "endGonePf": (DRY, None, 409), "confirmGonePf": (DRY, None, 409),
    "rekeyPf": (DRY, {"to": "0000:7f:00.0"}, 409),
    "getFirmware": ("", None, 422), "changeFirmware": (DRY, {"settings": {"SRIOV_EN": True}}, 422),
    "listVfs": ("", None, 200), "listAllVfs": ("", None, 200), "getVf": ("", None, 200),
    "listVfVerifications": ("", None, 200), "listVfHistory": ("", None, 200),
    "liftQuarantine": (DRY, None, 404),
    "checkHost": ("", None, 200), "getTopology": ("", None, 200),
    "listRdmaNames": ("", None, 200), "listTraffic": ("", None, 200),
    "listFirmware": ("", None, 200), "bundleHost": ("", None, 200),
    "listVms": ("", None, 200), "getVm": ("", None, 200),
    "getVmTopology": ("", None, 200), "placeInVm": (DRY, None, 422),
    "undoPlaceInVm": (DRY, None, 422),
    "listAttachments": ("", None, 200),
    "attach": (DRY, {"vm": "{vm}", "pool": "{pool}", "network": "{network}"}, 200),
    "adopt": (DRY, {"pci": "0000:7f:00.0"}, 404),
    "getAttachment": ("", None, 200), "detach": (DRY, None, 200),
    "detachSeveral": (DRY + "&ids={id}", None, 200),
    "changeAttachment": (DRY, {"settings": {"link_state": None}}, 200),
    "getCertificate": ("", None, 404),
    "enrolGuest": ("", None, 409),
    "listVerifications": ("", None, 200), "verify": (DRY, {}, 200),
    "showInterop": ("", None, 404), "openInterop": (DRY, {}, 200), "closeInterop": ("", None, 404),
    "listNetworks": ("", None, 200), "getNetwork": ("", None, 200),
    "replaceNetwork": (DRY, {"prefix": "10.99.0.0/24"}, 409), "removeNetwork": (DRY, None, 409),
    "listPools": ("", None, 200), "getPool": ("", None, 200),
    "replacePool": (DRY, {}, 200), "removePool": (DRY, None, 409),
    "listReservations": ("", None, 200), "getReservation": ("", None, 200),
    "reserve": (DRY, {"pool": "{pool}", "network": "{network}"}, 200),
    "release": (DRY, None, 200),
    "listTenants": ("", None, 200), "getTenant": ("", None, 200),
    "replaceTenant": (DRY, {}, 200), "removeTenant": (DRY, None, 409),
    "getFleet": ("", None, 200), "joinFleet": (DRY, example("fleet_membership"), 422),
    "leaveFleet": (DRY, None, 404), "confirmRestored": (DRY, None, 200),
    "getIdentities": ("", None, 200), "replaceIdentities": (DRY, {}, 200),
    "getDesired": ("", None, 200), "replaceDesired": (DRY, {}, 200),
    "listRdmaLinks": ("", None, 200), "getRdmaLink": ("", None, 404),
    "addRdmaLink": (DRY, example("rdma_link_spec"), 403), "deleteRdmaLink": (DRY, None, 404),
    "listOperations": ("", None, 200), "getOperation": ("", None, 200),
    "cancelOperation": ("", None, 409),
    "followEvents": ("", None, 200),
    "listTokens": ("", None, 200), "createToken": (DRY, {"role": "viewer"}, 200),
    "revokeToken": (DRY, None, 200), "rotateToken": (DRY, None, 200),
    "beginSession": (DRY, None, 200), "endSession": (DRY, None, 404),
    "listAudit": ("", None, 200), "getMetrics": ("", None, 200),
}
# Names of reservations begin with their tenant's: nobody else makes one with such a name.
FORBIDDEN_OF_OTHERS = {"reserve"}
OF_NO_TENANT = {"reserve": 409}


class Things:
    """What a tenant has."""

    def __init__(self, daemon, tenant):
        self.daemon, self.tenant = daemon, tenant
        self.vm, self.uuid, self.pf = NAMES[tenant]
        self.network, self.pool, self.reservation = (
            f"{tenant}-{noun}" for noun in ("net", "pool", "kept"))
        self.tokens = {role: daemon.ask("POST", "/v1/tokens", {"role": role, "tenant": tenant})[1]
                       for role in ROLES[:2]}
        self.operation = self.attach(pool=self.pool, network=self.network)
        self.attachment = self.operation["subject"].split("/")[-1]
        self.shared = self.attach(pool="both", network="common")
        self.reserved = self.ask("PUT", f"/v1/reservations/{self.reservation}",
                                 {"pool": self.pool, "network": self.network, "seconds": 3600})
        assert self.reserved.status == 200, self.reserved

    def ask(self, method, path, body=None, role="operator", **headers):
        headers["Authorization"] = "Bearer " + self.tokens[role]["token"]
        return self.daemon.call(method, path, body, **headers)

    def attach(self, **spec):
        answer = self.ask("POST", "/v1/attachments", {"vm": self.vm, **spec})
        assert answer.status == 202, answer
        ended = self.daemon.ended(answer.body)
        assert ended["state"] == "succeeded", ended
        return ended

    def ids(self, path):
        by_noun = {"/networks/": self.network, "/pools/": self.pool, "/tenants/": self.tenant,
                   "/reservations/": self.reservation, "/rdma-links/": "rxe0"}
        named = {"pci": self.pf, "index": 0, "vm": self.uuid, "code": "vf_in_use",
                 "name": next((name for noun, name in by_noun.items() if noun in path), ""),
                 "id": self.attachment}
        if "/operations/" in path:
            named["id"] = self.operation["id"]
        if "/tokens/" in path:
            named["id"] = self.tokens["viewer"]["id"]
        return named

    def body(self, body):
        names = {"vm": self.vm, "pool": self.pool, "network": self.network}
        return body and json.loads(re.sub(r"\{(vm|pool|network)\}",
                                          lambda found: names[found[1]], json.dumps(body)))

    def secrets(self):
        """Everything by which another tenant could know of it."""
        all_of = {self.vm, self.uuid, self.network, self.pool, self.reservation, self.pf,
                  *(token["id"] for token in self.tokens.values())}
        for operation in (self.operation, self.shared):
            one = self.daemon.ask("GET", operation["subject"])[1]
            all_of |= {operation["id"], one["id"], one["vf_pci"], one["settings"]["mac"],
                       one["address"]}
        return all_of


def limits(tenant, uuid, **more):
    return {"vms": [uuid], "networks": [f"{tenant}-net", "common"],
            "pools": [f"{tenant}-pool", "both"],
            "fields": ["address", "mac", "link_state"], **more}


def put(daemon, path, body):
    answer = daemon.call("PUT", path, body)
    assert answer.status == 200, answer


def without(text, *given):
    """What the caller said itself is no news to it."""
    for one in given:
        text = text.replace(one, "…")
    return text


def leaks(secrets, answer, *given):
    text = without("\n".join([answer.text.decode(), *map(str, answer.headers.items())]), *given)
    return {secret for secret in secrets if secret in text}


class Columns:
    """Who calls, with which token, and whose things it names."""

    def __init__(self, tenants, tokens):
        alpha, bravo = tenants["alpha"], tenants["bravo"]
        self.columns = {"none": (TOKEN_NOBODY, None, None, alpha)}
        for role in ROLES:
            self.columns[role] = (tokens[role], role, None, alpha)
        for own, other in ((alpha, bravo), (bravo, alpha)):
            for role in ROLES[:2]:
                token = own.tokens[role]["token"]
                self.columns[f"{own.tenant} {role}"] = (token, role, own, own)
                self.columns[f"{own.tenant} {role} of {other.tenant}"] = (token, role, own, other)

    @staticmethod
    def expected(operation, role, own, of):
        status = REQUESTS[operation.id][2]
        if own is None:
            status = OF_NO_TENANT.get(operation.id, status)
        if role is None:
            return 401
        if operation.role is None:
            return status
        if own and not operation.tenants:
            return 403
        if ROLES.index(role) < ROLES.index(operation.role):
            return 403
        names_something = operation.in_path() and operation.in_path() != ["code"]
        in_request = operation.id in ("attach", "detachSeveral")
        if own and of is not own and (names_something or in_request):
            return 403 if operation.id in FORBIDDEN_OF_OTHERS else 404
        return status


def given(operation, of):
    """What a request says of what somebody has: its answer may repeat that."""
    ids, body = of.ids(operation.path), of.body(REQUESTS[operation.id][1]) or {}
    names = [*operation.in_path(), *re.findall(r"{(\w+)}", REQUESTS[operation.id][0])]
    path = [str(ids[name]) for name in names if name not in ("index", "code")]
    return path + [value for value in body.values() if isinstance(value, str)]


def asked(daemon, operation, token, of, ids=None):
    query, body, _ = REQUESTS[operation.id]
    path = (operation.path + query).format(**{**of.ids(operation.path), **(ids or {})})
    headers = {"Authorization": "Bearer " + token}

    def once():
        if operation.id == "followEvents":
            return FirstFrame(EventStream(daemon, **headers))
        return daemon.call(operation.method, path, of.body(body), **headers)

    # Who can't authenticate may try once a second; the refusal is held back as long.
    while (answer := once()).status == 429:
        pass
    return answer
