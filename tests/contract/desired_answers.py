# SPDX-License-Identifier: Apache-2.0
"""The document of desired state, and how each described answer about it is provoked."""

from described import example
from network_answers import NETWORK, PF, SPARE

# As api_answers.RULES.
DESIRED_RULES = {"replaceDesired": {
    "networks/lab/name": "is the key, or left out", "pools/fast/name": "is the key, or left out",
    "networks/lab/ranges": "are inside the prefix and apart",
    "networks/lab/pfs": "each has an address of its own inside the prefix",
    "identities/macs": "are apart", "identities/guids": "are apart",
    "identities/addresses/0/ranges": "are apart", "identities/addresses": "name each network once"}}


def desired(spec):
    """A document with a value for every member."""
    return {"pfs": {PF: {**spec, "vf_driver": "igbvf"}},
            "networks": {"lab": {**example("network"), "name": "lab", "pfs": NETWORK["pfs"]}},
            "pools": {"fast": {**example("pool"), "name": "fast"}},
            "rdma_links": {"rxe0": example("rdma_link_spec")},
            "identities": example("identities")}


class DesiredAnswers:
    def replaceDesired_200_Desired(self):
        now = self.ask("getDesired")
        del now.body["pfs"]  # they may have drifted
        again = self.ask("replaceDesired", body=now.body, headers={"If-Match": now.headers["ETag"]})
        assert again.headers["ETag"] == now.headers["ETag"], "nothing changed"

    def replaceDesired_200_DesiredDryRun(self):
        answer = self.ask("replaceDesired", "?dry_run=true", body={"pools": {"slow": {}}})
        assert [change["pointer"] for change in answer.body["changes"]] == ["/pools/slow"]

    def replaceDesired_202(self):
        for query, body in (("", {"pfs": {SPARE: {"labels": {"rail": "1"}}}}),
                            ("?prune=true", self.without(SPARE))):
            ended = self.daemon.ended(self.ask("replaceDesired", query, body=body).body)
            assert ended["state"] == "succeeded", ended

    def without(self, pf):
        now = self.ask("getDesired").body
        now["pfs"].pop(pf, None)
        return now

    def replaceDesired_404(self):
        self.ask("replaceDesired", body={"pools": {"far": {"defaults": {"network": "nowhere"}}}})

    def replaceDesired_422(self):
        self.ask("replaceDesired", body={"pfs": {PF: {"num_vfs": 200}}})

    def replaceDesired_409(self):
        self.ask("replaceDesired", body={"networks": {"twice": {"prefix": "192.168.100.0/24"}}})
