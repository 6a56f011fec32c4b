# SPDX-License-Identifier: Apache-2.0
"""A membership of a fleet, and how the answers about it are provoked."""

import tempfile
from pathlib import Path

from certificates import Authority
from described import example


def ca():
    with tempfile.TemporaryDirectory() as folder:
        return Authority(Path(folder)).file.read_text()


MEMBERSHIP = {**example("fleet_membership"), "ca": ca()}
OTHER_FLEET = "44444444-4444-4444-4444-444444444444"

# As api_answers.RULES.
FLEET_RULES = {"joinFleet": {"ca": "is the certificate of a CA"}}


class FleetAnswers:
    def joinFleet_200_FleetMembership(self):
        self.ask("joinFleet")
        assert self.ask("joinFleet").body["fleet"] == MEMBERSHIP["fleet"], "again"
        self.ask("leaveFleet")

    def joinFleet_409(self):
        self.ask("joinFleet")
        self.ask("joinFleet", body={**MEMBERSHIP, "fleet": OTHER_FLEET})
        self.ask("leaveFleet")

    def leaveFleet_200(self):
        self.ask("joinFleet")
        self.ask("leaveFleet", "?dry_run=true")
        self.ask("leaveFleet")

    def leaveFleet_204(self):
        self.ask("joinFleet")
        self.ask("leaveFleet")

    def leaveFleet_404(self):
        self.ask("leaveFleet")

    def confirmRestored_204(self):
        self.ask("confirmRestored")

    def replaceIdentities_409(self):
        self.ask("replaceIdentities", body={"generation": 5})
        self.ask("replaceIdentities", body={"generation": 5, "macs": ["52:54:00:00:00:01"]})
        self.ask("leaveFleet")
