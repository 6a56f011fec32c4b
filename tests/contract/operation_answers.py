# SPDX-License-Identifier: Apache-2.0
"""How the answers in api/openapi.yaml are provoked that come from operations: one that is
cancelled, as many as may wait for a VM, and changes of attachments."""

from network_answers import SPARE

NO_VLAN = "needs an id where the VF has no VLAN"
OPERATION_RULES = {"changeAttachment": {"settings/min_tx_rate_mbps": "is not above the maximum",
                                        "settings/vlan": NO_VLAN, "settings/vlan/id": NO_VLAN}}


# VMs, and the VFs that somebody put into their XML.
BY_HAND = (("byhand", "6", "0000:01:13.6"), ("adopted", "7", "0000:01:13.4"))


class OperationAnswers:
    def cancelOperation_202(self):
        vfs = f"/v1/pfs/{SPARE}/vfs"
        before = len(self.daemon.ask("GET", vfs)[1]["items"])
        self.daemon.happen(step_milliseconds=600000)
        begun = self.ask("replacePfSpec", body={"num_vfs": before + 1}, pci=SPARE).body
        self.ask("cancelOperation", id=begun["id"])
        self.daemon.happen(step_milliseconds=0)
        ended = self.daemon.ended(begun)
        assert ended["state"] == "failed" and ended["problem"]["code"] == "cancelled", ended
        assert len(self.daemon.ask("GET", vfs)[1]["items"]) == before

    def cancelOperation_409(self):
        self.ask("cancelOperation")  # it has ended

    def changeAttachment_202(self):
        for settings in ({"spoofchk": False}, {"spoofchk": None}):
            begun = self.ask("changeAttachment", body={"settings": settings}, id=self.bare,
                             headers={"Content-Type": "application/merge-patch+json"})
            assert self.daemon.ended(begun.body)["state"] == "succeeded", begun

    def changeAttachment_422(self):
        """Everything that can't be changed is named at once."""
        refused = self.ask("changeAttachment", body={"vm": "vm2", "pf": SPARE, "network": "lab",
                                                     "settings": {"roce": True}})
        pointers = {each["pointer"] for each in refused.body["violations"]}
        assert pointers == {"/vm", "/pf", "/network", "/settings/roce"}, refused

    def changeAttachment_503(self):
        self.daemon.happen(step_milliseconds=600000)
        begun = self.fill("replacePfSpec", body={"num_vfs": 3}, pci=SPARE)
        self.ask("changeAttachment", body={"settings": {"spoofchk": False}}, id=self.bare)
        self.daemon.happen(step_milliseconds=0)
        for one in begun:
            assert self.daemon.ended(one)["state"] == "succeeded"
        self.restore_spare()

    def verify_503(self):
        """Verifies one VM; a silent VM must not prevent an admin's detach."""
        silent = self.attached("vm7", network="lab")
        begun = self.fill("verify", body={"timeout_seconds": 600}, id=silent)
        self.daemon.do("DELETE", f"/v1/attachments/{silent}")
        for one in begun:
            assert self.daemon.ended(one)["state"] == "failed"

    def detach_503(self, operation="detach"):
        """Uses all places that only detaches may use."""
        self.daemon.happen(step_milliseconds=600000)
        begun = self.fill("liftQuarantine")
        self.ask(operation)
        self.daemon.happen(step_milliseconds=0)
        states = [self.daemon.ended(one)["state"] for one in begun]
        assert states.count("succeeded") == 1, states
        self.quarantined = self.quarantine("vm6")

    liftQuarantine_503 = detach_503

    def detachSeveral_503(self):
        self.detach_503("detachSeveral")

    def detachSeveral_202(self):
        answer = self.ask("detachSeveral", id=self.attached("vm5"))
        assert self.daemon.ended(answer.body)["state"] == "succeeded"

    def adopt_202(self):
        name, _, vf = BY_HAND[1]
        ended = self.daemon.ended(self.ask("adopt", body={"pci": vf}, vm=name).body)
        assert ended["state"] == "succeeded", ended
        self.daemon.do("DELETE", ended["subject"])

    def adopt_422(self):
        self.ask("adopt", body={"pci": "0000:7f:00.0", "verify": "required"})  # without a network
