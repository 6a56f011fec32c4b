# SPDX-License-Identifier: Apache-2.0
"""How the answers in api/openapi.yaml are provoked that come from operations: one that is
cancelled, and as many as may wait for a VM."""

from network_answers import SPARE


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

    def verify_503(self):
        """Verifies one VM; a silent VM must not prevent an admin's detach."""
        silent = self.attached("vm7", network="lab")
        begun = self.fill("verify", body={"timeout_seconds": 600}, id=silent)
        self.daemon.do("DELETE", f"/v1/attachments/{silent}")
        for one in begun:
            assert self.daemon.ended(one)["state"] == "failed"
