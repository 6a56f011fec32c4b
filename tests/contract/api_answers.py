# SPDX-License-Identifier: Apache-2.0
"""How each answer that api/openapi.yaml describes is provoked from a daemon on fakes.

An answer that comes from a parameter or a role of the document is the same for every operation, and
is in Api.provoke(). A single operation's own answer is in a method named after both: attach_404().
"""

from described import example
from desired_answers import DESIRED_RULES, DesiredAnswers, desired
from event_answers import EventAnswers
from fleet_answers import FLEET_RULES, MEMBERSHIP, FleetAnswers
from live_daemon import until
from network_answers import (NETWORK, NETWORK_RULES, PF, POOL, SPARE, NetworkAnswers,
                             set_up_networks)
from operation_answers import BY_HAND, OPERATION_RULES, OperationAnswers
from placing_answers import FAR_NIC, PLACED, PLACES, PlacingAnswers
from rdma_answers import RdmaAnswers
from session_answers import SessionAnswers

CARD = "0000:03:00.0"
LOOSE, ELSEWHERE = "0000:04:00.0", "0000:05:00.0"  # a PF that is removed, and inserted there
SPEC = {"mode": "manage", "num_vfs": 16}
VMS = [f"vm{number}" for number in range(1, 49)]
NETDEV = {"ethernet": True, "loopback": False, "up": True, "controller": None, "parent": None,
          "pci": None}
SLOTS_TRIED_MAX = 200
REQUESTS_TRIED_MAX = 5000


def card():
    """Returns the card as the daemon reads it; the route adds what else it knows."""
    known = example("firmware")
    settings = known["current"]
    return {**{key: value for key, value in known.items()
               if key not in ("pending", "in_use", "tries")},
            "pci": CARD, "functions": [CARD], "current": settings, "next": settings}


HOST = {"pfs": [{"model": "igb", "pci": PF, "ifname": "enp1s0", "total_vfs": 16},
                {"model": "igb", "pci": SPARE, "ifname": "enp2s0"},
                {"model": "igb", "pci": LOOSE, "ifname": "enp4s0"},
                {"model": "igb", "pci": FAR_NIC, "ifname": "enp18s0"}],
        "vms": [*({"name": name, "uuid": f"{number:08}-1111-1111-1111-111111111111",
                   "free_pcie_ports": 8} for number, name in enumerate(VMS)),
                {"name": "off", "uuid": "99999999-1111-1111-1111-111111111111", "runs": False},
                # Somebody put VFs 14 and 15 of PF into their XML.
                *({"name": name, "uuid": f"{digit * 8}-1111-1111-1111-111111111111",
                   "runs": False, "gpus": [vf]} for name, digit, vf in BY_HAND),
                PLACED],
        "places": PLACES,
        "firmware": [card()], "gids": ["192.168.100.1", "127.0.0.1"],
        "network": {"netdevs": {"eno2": NETDEV, "lo": {**NETDEV, "loopback": True}}, "rdma": {},
                    "rxe_module": True, "siw_module": True, "stale": False, "stale_reason": "",
                    "observed_at": "2026-01-31T12:00:00.000Z"}}
CONFIG = '[rdma_links]\ntrusted_netdevs = ["eno2", "lo", "eno9"]\n'
# A client that provokes all of this sends more requests than any other would.
LIMITS = "[limits]\nchanges_burst = 2000\nchanges_per_second = 5\nevent_streams_max = 4\n"

# Accepted bodies. Those that others are generated from have a value for every member.
BODIES = {"replacePfSpec": SPEC, "replaceNetwork": NETWORK,
          "replacePool": POOL, "reserve": {"pool": "fast"}, "replaceIdentities": {},
          "joinFleet": MEMBERSHIP,
          "replaceDesired": {}, "replaceTenant": {},
          "attach": {"vm": "vm1", "pf": PF}, "adopt": {"pci": BY_HAND[0][2]},
          "changeAttachment": {}, "verify": {},
          "changeFirmware": {"settings": {"NUM_OF_VFS": 4}}, "openInterop": {},
          "addRdmaLink": {"type": "rxe", "ifname": "eno2"}, "createToken": {"role": "viewer"},
          "rotateToken": {}, "rekeyPf": {"to": ELSEWHERE}}
WHOLE = {"replacePfSpec": {**SPEC, "vf_driver": "igbvf"},
         "replaceNetwork": {**example("network"), "pfs": NETWORK["pfs"]},
         "replacePool": {**example("pool"), "name": "fast"}, "replaceTenant": example("tenant"),
         "reserve": {**example("reservation_spec"), "pool": "fast", "count": 1},
         "replaceIdentities": example("identities_view"),
         "joinFleet": {**MEMBERSHIP, "contacted_at": MEMBERSHIP["joined_at"]},
         "replaceDesired": desired(SPEC),
         "attach": {**example("attachment_spec-all"), "pf": PF},
         "verify": example("verify_request-responder"), "adopt": example("adoption"),
         "changeFirmware": {"settings": {"SRIOV_EN": True, "NUM_OF_VFS": 4, "LINK_TYPE_P1": "IB",
                                         "LINK_TYPE_P2": "ETH", "ATS_ENABLED": True}},
         "openInterop": example("interop_request"), "addRdmaLink": example("rdma_link_spec"),
         "createToken": example("token_request"), "rotateToken": example("token_rotation"),
         "rekeyPf": example("rekey_request"), "changeAttachment": example("attachment_patch")}

# Rules that the server has and the schema lacks, at the path that is changed.
RULES = {**NETWORK_RULES, **FLEET_RULES, **DESIRED_RULES, **OPERATION_RULES,
         "attach": {"pf": "a VF needs one",
                    "settings/min_tx_rate_mbps": "is not above the maximum"},
         "adopt": {"network": "an address and a proof need one"},
         "createToken": {"role": "is no admin's with a tenant", "scopes": "are nouns",
                         "scopes/0": "is a noun",
                         "never_expires": "is false where something else says when"}}


def set_up(daemon):
    set_up_networks(daemon)
    daemon.do("PUT", f"/v1/pfs/{PF}/spec", SPEC)


class Api(NetworkAnswers, DesiredAnswers, EventAnswers, OperationAnswers, RdmaAnswers,
          PlacingAnswers, SessionAnswers, FleetAnswers):
    def __init__(self, asker, daemon):
        self.asker, self.daemon, self.who = asker, daemon, {}
        self.operations = asker.document.operations
        daemon.do("PUT", f"/v1/pfs/{SPARE}/spec", {"num_vfs": 1}, Idempotency_Key="used")
        self.attachment = self.attached("vm1", network="lab")
        self.bare = self.attached("vm2")
        self.on_tcp = self.attached("vm8", network="lab", guest_plane="tcp")
        daemon.do("PUT", "/v1/rdma-links/rxe0", BODIES["addRdmaLink"])
        self.operation = daemon.ask("GET", "/v1/operations")[1]["items"][0]["id"]
        self.viewer, self.token = (self.new_token(role) for role in ("viewer", "operator"))
        self.quarantined = self.quarantine("vm3")
        self.greedy = {}
        self.begin_sessions()

    def attached(self, vm, **more):
        return self.daemon.do("POST", "/v1/attachments",
                              {"vm": vm, "pf": PF, **more})["subject"].split("/")[-1]

    def new_token(self, role):
        return self.daemon.ask("POST", "/v1/tokens", {"role": role})[1]

    def quarantine(self, vm):
        """Returns the number of a VF whose reset failed."""
        path = "/v1/attachments/" + self.attached(vm)
        index = self.daemon.ask("GET", path)[1]["vf"]["index"]
        self.daemon.happen(refuse_step="reset_vf")
        ended = self.daemon.ended(self.daemon.ask("DELETE", path)[1])
        self.daemon.happen(refuse_step="")
        assert ended["state"] == "failed", ended
        return index

    # --- requests -------------------------------------------------------------------------------

    def ids(self, operation):
        one = self.operations[operation]
        named = {"pci": CARD if one.path.endswith("firmware") else PF, "index": 0, "vm": "vm1",
                 "name": "rxe0", "id": self.attachment, "code": "vf_in_use"}
        for path, name in (("/networks/", "lab"), ("/pools/", "fast"), ("/reservations/", "job"),
                           ("/tenants/", "blue")):
            if path in one.path:
                named["name"] = name
        if one.path.endswith("quarantine"):
            named["index"] = self.quarantined
        if operation == "adopt":
            named["vm"] = BY_HAND[0][0]
        if "/operations/" in one.path:
            named["id"] = self.operation
        if "/tokens/" in one.path:
            named["id"] = self.token["id"]
        return named

    def once(self, operation, query="", body=None, headers=None, **ids):
        one = self.operations[operation]
        named = {**self.ids(operation), **ids}
        path = one.path.format(**named)
        if operation == "detachSeveral":
            query += f"{'&' if query else '?'}ids={named['id']}"
        if one.body and body is None:
            body = BODIES[operation]
        return self.asker.ask(one, self.daemon.call, one.method, path + query, body=body,
                              **{**self.who, **(headers or {})})

    def ask(self, *what, headers=None, **how):
        answer = self.once(*what, headers=headers, **how)
        if answer.status != 429 or "Authorization" in (headers or {}):
            return answer
        # A client that was refused often is refused for a while; another client is not.
        self.who = {"Authorization": "Bearer " + self.new_token("admin")["token"]}
        return self.once(*what, headers=headers, **how)

    def provoke(self, operation, status, schema):
        own = getattr(self, f"{operation}_{status}{'_' if schema else ''}{schema}", None)
        if own:
            return own()
        one = self.operations[operation]
        if status == "200":
            dry = one.takes("dry_run") and schema in ("", "DryRun")
            return self.ask(operation, "?dry_run=true" if dry else "")
        if status == "304":
            for _ in range(20):  # the host may be observed in between
                known = self.ask(operation).headers["ETag"]
                same = self.ask(operation, headers={"If-None-Match": f'"other", W/{known}'})
                if same.status == 304:
                    break
            return same
        if status == "400":
            return self.ask(operation, "?nonsense=1")
        if status == "404":
            return self.ask(operation, pci="0000:7f:00.0", index=60000, vm="nobody", name="rxe9",
                            id="00000000", code="none")
        if status == "422":
            return self.ask(operation, body={"surprise": 1})
        headers = {"401": {"Authorization": "Bearer vfm_" + 64 * "0"},
                   "403": {"Authorization": "Bearer " + self.viewer["token"]},
                   "409": {"Idempotency-Key": "used"},
                   "412": {"If-Match": '"999999"'},
                   "415": {"Content-Type": "text/plain"}}
        if status in headers:
            return self.ask(operation, headers=headers[status])
        if status == "429":
            return self.flooded(operation)
        if status == "503":
            return self.with_full_slots(operation)
        return None

    def flooded(self, operation):
        """Floods with its own principals, to keep the others from being refused."""
        role = "viewer" if self.operations[operation].method == "GET" else "operator"
        if role not in self.greedy:
            self.greedy[role] = self.new_token(role)["token"]
        who = {"Authorization": "Bearer " + self.greedy[role]}
        for _ in range(REQUESTS_TRIED_MAX):
            if self.once(operation, "?nonsense=1", headers=who).status == 429:
                break

    def with_full_slots(self, operation):
        self.daemon.happen(step_milliseconds=600000)
        begun = self.fill("replacePfSpec", body={"num_vfs": 3}, pci=SPARE)
        if operation == "addRdmaLink":
            self.ask(operation, body={"type": "siw", "ifname": "eno2"}, name="siw0")
        elif operation == "forgetPf":
            self.ask(operation, pci=SPARE)
        else:
            self.ask(operation)
        self.daemon.happen(step_milliseconds=0)
        for one in begun:
            assert self.daemon.ended(one)["state"] == "succeeded"
        self.restore_spare()

    def fill(self, operation, **how):
        """Begins such operations until one is refused; those begun wait for the first one's end."""
        begun = []
        for _ in range(SLOTS_TRIED_MAX):
            answer = self.ask(operation, **how)
            if answer.status == 503:
                break
            begun.append(answer.body)
        return begun

    # --- answers of single operations ------------------------------------------------------------

    def readyz(self, expected):
        until(lambda: self.ask("ready").status == expected, f"readyz did not answer {expected}")

    def ready_503(self):
        self.daemon.happen(libvirt="down")
        self.readyz(503)
        self.daemon.happen(libvirt="up")
        self.readyz(200)

    def enrolGuest_200(self):
        self.ask("enrolGuest", "?dry_run=true", id=self.on_tcp)

    def enrolGuest_201(self):
        self.ask("enrolGuest", id=self.on_tcp)

    def enrolGuest_409(self):
        self.ask("enrolGuest")  # its guest is on vsock

    def replacePfSpec_200_PfSpec(self):
        self.ask("replacePfSpec")

    def replacePfSpec_202(self):
        answer = self.ask("replacePfSpec", body={"num_vfs": 2}, pci=SPARE)
        assert self.daemon.ended(answer.body)["state"] == "succeeded"
        self.restore_spare()

    def restore_spare(self):
        self.daemon.do("PUT", f"/v1/pfs/{SPARE}/spec", {"num_vfs": 1})

    def replacePfSpec_422(self):
        self.ask("replacePfSpec", body={"num_vfs": 60000}, pci=SPARE)

    def forgetPf_200(self):
        self.ask("forgetPf", "?dry_run=true", pci=SPARE)

    def forgetPf_202(self):
        answer = self.ask("forgetPf", pci=SPARE)
        assert self.daemon.ended(answer.body)["state"] == "succeeded"
        self.daemon.do("PUT", f"/v1/pfs/{SPARE}/spec", {"num_vfs": 2})
        self.restore_spare()

    def forgetPf_409(self):
        self.ask("forgetPf")  # VFs of it are attached

    # A PF that is removed, perhaps inserted elsewhere, queried, and inserted again.

    def taken_out(self, operation, query="", to=None, libvirt="up", **card):
        spec = self.daemon.call("PUT", f"/v1/pfs/{LOOSE}/spec", {"num_vfs": 2})
        if spec.status == 202:
            assert self.daemon.ended(spec.body)["state"] == "succeeded", spec
        self.daemon.happen(libvirt=libvirt)
        self.daemon.happen(take_out=LOOSE)
        if to:
            self.daemon.happen(put_in={"pf": LOOSE, "to": to, **card})
        answer = self.ask(operation, query, pci=LOOSE)
        if answer.status == 202:
            assert self.daemon.ended(answer.body)["state"] == "succeeded", answer
        if to:
            self.daemon.happen(take_out=to)
        self.daemon.happen(put_in={"pf": LOOSE, "to": LOOSE})
        self.daemon.happen(libvirt="up")
        self.readyz(200)

    def endGonePf_200(self):
        self.taken_out("endGonePf", "?dry_run=true")

    def endGonePf_202(self):
        self.taken_out("endGonePf")

    def endGonePf_503(self):
        self.taken_out("endGonePf", libvirt="down")

    def confirmGonePf_200(self):
        self.taken_out("confirmGonePf", "?dry_run=true")

    def confirmGonePf_202(self):
        self.taken_out("confirmGonePf")

    def confirmGonePf_503(self):
        self.taken_out("confirmGonePf", libvirt="down")

    def rekeyPf_200(self):
        self.taken_out("rekeyPf", "?dry_run=true", to=ELSEWHERE)

    def rekeyPf_202(self):
        self.taken_out("rekeyPf", to=ELSEWHERE)
        # Back to the PF's own place.
        answer = self.ask("rekeyPf", body={"to": LOOSE}, pci=ELSEWHERE)
        assert self.daemon.ended(answer.body)["state"] == "succeeded", answer

    def rekeyPf_422(self):
        self.taken_out("rekeyPf", to=ELSEWHERE, total_vfs=1)

    def rekeyPf_503(self):
        self.taken_out("rekeyPf", to=ELSEWHERE, libvirt="down")

    def getFirmware_422(self):
        self.ask("getFirmware", pci=PF)  # no ConnectX

    def changeFirmware_200_Firmware(self):
        self.ask("changeFirmware", body={"settings": card()["current"]})

    def changeFirmware_202(self):
        assert self.daemon.ended(self.ask("changeFirmware").body)["state"] == "succeeded"
        self.daemon.do("PUT", f"/v1/pfs/{CARD}/firmware", {"settings": card()["current"]})

    def changeFirmware_422(self):
        self.ask("changeFirmware", pci=PF)

    def liftQuarantine_202(self):
        answer = self.ask("liftQuarantine", index=self.quarantine("vm4"))
        assert self.daemon.ended(answer.body)["state"] == "succeeded"

    def attach_202(self):
        """Attaches and detaches; the certificate shows how."""
        answer = self.ask("attach", body={"vm": "vm5", "pf": PF})
        ended = self.daemon.ended(answer.body)
        assert ended["state"] == "succeeded", ended
        gone = ended["subject"].split("/")[-1]
        assert self.daemon.ended(self.ask("detach", id=gone).body)["state"] == "succeeded"
        self.ask("getCertificate", id=gone)

    detach_202 = getCertificate_200 = attach_202

    def attach_404(self):
        self.ask("attach", body={"vm": "nobody", "pf": PF})

    def attach_422(self):
        self.ask("attach", body={"vm": "off", "pf": PF, "persistence": "live"})

    def verify_202(self):
        answer = self.ask("verify", body={"timeout_seconds": 5})
        self.daemon.ended(answer.body)  # no vf-guest runs in that VM

    def verify_422(self):
        self.ask("verify", id=self.bare)

    def default_500(self):
        self.daemon.happen(peers="broken")
        self.ask("openInterop")
        self.daemon.happen(peers="right")

    def createToken_201(self):
        self.ask("revokeToken", id=self.ask("createToken").body["id"])

    revokeToken_204 = createToken_201
