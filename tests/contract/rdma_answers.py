# SPDX-License-Identifier: Apache-2.0
"""How the answers about RDMA links and interop windows are provoked (api_answers)."""


class RdmaAnswers:
    """A part of Api, which has ask(), the daemon and the attachment `bare`."""

    def showInterop_200(self):
        self.ask("openInterop")
        self.ask("showInterop")
        self.ask("closeInterop", "?dry_run=true")
        self.ask("closeInterop")

    openInterop_200_InteropWindow = showInterop_200
    closeInterop_200 = closeInterop_204 = showInterop_200

    def openInterop_409(self):
        self.ask("openInterop", id=self.bare)  # the host has no address there

    def addRdmaLink_200_RdmaLink(self):
        self.ask("addRdmaLink")

    def addRdmaLink_202(self):
        for operation in ("addRdmaLink", "deleteRdmaLink"):
            link = {"type": "siw", "ifname": "eno2"} if operation == "addRdmaLink" else None
            answer = self.ask(operation, body=link, name="siw0")
            assert self.daemon.ended(answer.body)["state"] == "succeeded"

    deleteRdmaLink_202 = addRdmaLink_202

    def addRdmaLink_404(self):
        self.ask("addRdmaLink", body={"type": "rxe", "ifname": "eno9"}, name="rxe9")

    def addRdmaLink_422(self):
        self.ask("addRdmaLink", body={"type": "rxe", "ifname": "lo"}, name="rxe9")
