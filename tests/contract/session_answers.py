# SPDX-License-Identifier: Apache-2.0
"""How the answers about sessions are provoked."""

SESSIONS_MAX, SESSIONS_EACH_MAX = 1024, 32


def bearer(token):
    return {"Authorization": "Bearer " + token}


class SessionAnswers:
    def begin_sessions(self):
        """Two of the viewer's token, before all are taken."""
        self.session, self.to_end = (
            bearer(self.daemon.ask("POST", "/v1/sessions", **bearer(self.viewer["token"]))[1][
                "token"]) for _ in range(2))

    def beginSession_200(self):
        self.ask("beginSession", "?dry_run=true", headers=bearer(self.viewer["token"]))

    def beginSession_201(self):
        self.ask("beginSession", headers=bearer(self.viewer["token"]))

    def beginSession_403(self):
        self.ask("beginSession", headers=self.session)

    def beginSession_503(self):
        """With as many tokens as have all sessions, and one more."""
        for _ in range(SESSIONS_MAX // SESSIONS_EACH_MAX + 1):
            who = bearer(self.new_token("viewer")["token"])
            for _ in range(SESSIONS_EACH_MAX):
                if self.once("beginSession", headers=who).status == 503:
                    return

    def endSession_200(self):
        self.ask("endSession", "?dry_run=true", headers=self.session)

    def endSession_204(self):
        self.ask("endSession", headers=self.to_end)
