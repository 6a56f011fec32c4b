# SPDX-License-Identifier: Apache-2.0
"""Networks, pools and tenants, and how each answer about them that api/openapi.yaml describes is
provoked."""

from described import example

NETWORKS_TRIED_MAX = 257
PF, SPARE = "0000:01:00.0", "0000:02:00.0"
NETWORK = {"name": "lab", "prefix": "192.168.100.0/24", "rdma": "rxe",
           "pfs": [{"pf": PF, "host_address": "192.168.100.1"}]}
# Its address belongs to no RDMA device.
BARE = {"name": "bare", "prefix": "192.168.101.0/24",
        "pfs": [{"pf": PF, "host_address": "192.168.101.1"}]}
POOL = {"name": "fast", "select": {"pfs": [PF], "link_layers": ["ethernet"]},
        "defaults": {"network": "lab"}}

# As api_answers.RULES.
NETWORK_RULES = {
    "replaceNetwork": {"name": "is the path's, or left out",
                       "ranges": "are inside the prefix and apart",
                       "pfs": "each has an address of its own inside the prefix"},
    "replacePool": {"name": "is the path's, or left out"},
    "replaceTenant": {"name": "is the path's, or left out"},
    "reserve": {"": "a pool or a network is needed"},
    "replaceIdentities": {"macs": "are apart", "guids": "are apart",
                          "addresses/0/ranges": "are apart",
                          "addresses": "name each network once",
                          "generation": "is there with claims"}}


def set_up_networks(daemon):
    for path, body in ((f"/v1/networks/{NETWORK['name']}", NETWORK),
                       (f"/v1/networks/{BARE['name']}", BARE), ("/v1/pools/fast", POOL),
                       ("/v1/tenants/blue", {})):
        answer, problem = daemon.ask("PUT", path, body)
        assert answer.status == 200, problem


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
        self.too_many("replaceNetwork", "removeNetwork",
                      lambda number: {"prefix": f"10.100.{number}.0/24"})

    def too_many(self, make, remove, body):
        """Makes such objects until one is refused, and removes them."""
        made = []
        for number in range(NETWORKS_TRIED_MAX):
            if self.ask(make, body=body(number), name=f"n{number}").status == 422:
                break
            made.append(f"n{number}")
        for name in made:
            self.once(remove, name=name)

    def removeNetwork_204(self):
        self.ask("replaceNetwork", body={"prefix": "10.7.0.0/24"}, name="short")
        self.ask("removeNetwork", name="short")

    def removeNetwork_200(self):
        self.ask("replaceNetwork", body={"prefix": "10.7.0.0/24"}, name="short")
        self.ask("removeNetwork", "?dry_run=true", name="short")
        self.ask("removeNetwork", name="short")

    def removeNetwork_409(self):
        self.ask("removeNetwork")

    def replacePool_200_Pool(self):
        self.ask("replacePool")

    def replacePool_404(self):
        self.ask("replacePool", body={"defaults": {"network": "nowhere"}}, name="far")

    def replacePool_422(self):
        self.too_many("replacePool", "removePool", lambda _: {})

    def removePool_200(self):
        self.ask("replacePool", body={}, name="short")
        self.ask("removePool", "?dry_run=true", name="short")

    def removePool_204(self):
        self.ask("replacePool", body={}, name="short")
        self.ask("removePool", name="short")

    def replaceTenant_200_Tenant(self):
        self.ask("replaceTenant")

    def replaceTenant_409(self):
        self.ask("replaceTenant", body=example("tenant"))
        self.ask("replaceTenant", name="red", body={"vms": example("tenant")["vms"]})

    def replaceTenant_422(self):
        self.too_many("replaceTenant", "removeTenant", lambda _: {})

    def removeTenant_200(self):
        self.ask("replaceTenant", body={}, name="short")
        self.ask("removeTenant", "?dry_run=true", name="short")

    def removeTenant_204(self):
        self.ask("replaceTenant", body={}, name="short")
        self.ask("removeTenant", name="short")

    def removeTenant_409(self):
        self.ask("replaceTenant", body={}, name="busy")
        self.ask("createToken", body={"role": "viewer", "tenant": "busy"})
        self.ask("removeTenant", name="busy")

    def createToken_404(self):
        self.ask("createToken", body={"role": "viewer", "tenant": "nobody"})

    def reserve_200_Reservation(self):
        self.ask("reserve")

    def reserve_404(self):
        self.ask("reserve", body={"pool": "nowhere"})

    def reserve_409(self):
        self.ask("reserve")
        other = {"Authorization": "Bearer " + self.token["token"]}
        self.ask("reserve", headers=other)

    def reserve_422(self):
        self.ask("reserve", body={"network": "lab", "count": 128})

    def release_200(self):
        self.ask("reserve")
        self.ask("release", "?dry_run=true")

    def release_204(self):
        self.ask("reserve")
        self.ask("release")

    def getReservation_200(self):
        self.ask("reserve")
        self.ask("getReservation")

    def removePool_409(self):
        self.ask("reserve")
        self.ask("removePool")

    def replaceIdentities_200_IdentitiesView(self):
        self.ask("replaceIdentities", body={})
