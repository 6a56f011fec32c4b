# SPDX-License-Identifier: Apache-2.0
"""Networks, and how each answer about them that api/openapi.yaml describes is provoked."""

NETWORKS_TRIED_MAX = 256
PF, SPARE = "0000:01:00.0", "0000:02:00.0"
NETWORK = {"name": "lab", "prefix": "192.168.100.0/24", "rdma": "rxe",
           "pfs": [{"pf": PF, "host_address": "192.168.100.1"}]}
# Its address belongs to no RDMA device.
BARE = {"name": "bare", "prefix": "192.168.101.0/24",
        "pfs": [{"pf": PF, "host_address": "192.168.101.1"}]}
NETWORKS = [NETWORK, BARE]


class NetworkAnswers:
    def replaceNetwork_200_Network(self):
        self.ask("replaceNetwork")
        spare = {"prefix": "10.9.0.0/24", "pfs": [{"pf": SPARE, "host_address": "10.9.0.1"}]}
        made = self.ask("replaceNetwork", body=spare, name="spare")
        again = self.ask("replaceNetwork", body=made.body, name="spare",
                         headers={"If-Match": made.headers["ETag"]})
        assert again.headers["ETag"] == made.headers["ETag"], "nothing changed"

    def replaceNetwork_404(self):
        self.ask("replaceNetwork", name="far", body={
            "prefix": "10.8.0.0/24", "pfs": [{"pf": "0000:7f:00.0", "host_address": "10.8.0.1"}]})

    def replaceNetwork_409(self):
        self.ask("replaceNetwork", body={"prefix": NETWORK["prefix"]}, name="twice")

    def replaceNetwork_422(self):
        for number in range(NETWORKS_TRIED_MAX):
            if self.ask("replaceNetwork", body={"prefix": f"10.100.{number}.0/24"},
                        name=f"n{number}").status == 422:
                break
        for _ in range(number):
            number -= 1
            self.once("removeNetwork", name=f"n{number}")

    def removeNetwork_204(self):
        self.ask("replaceNetwork", body={"prefix": "10.7.0.0/24"}, name="short")
        self.ask("removeNetwork", name="short")

    def removeNetwork_200(self):
        self.ask("replaceNetwork", body={"prefix": "10.7.0.0/24"}, name="short")
        self.ask("removeNetwork", "?dry_run=true", name="short")
        self.ask("removeNetwork", name="short")

    def removeNetwork_409(self):
        self.ask("removeNetwork")
