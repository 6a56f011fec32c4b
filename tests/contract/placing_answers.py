# SPDX-License-Identifier: Apache-2.0
"""How the answers about a VM's PCI tree are provoked: a VM that is off has a GPU and a NIC that
share a switch of the host."""

GPU, FAR_NIC = "0000:11:00.0", "0000:12:00.0"


def below_the_switch(function):
    ids = {"vendor": 0, "device": 0, "subsystem_vendor": 0, "subsystem_device": 0}
    ports = ("0000:10:01.0", "0000:13:00.0", f"0000:14:{function[5:7]}.0")
    return {"address": function, "above": [{"address": port, **ids} for port in ports],
            "numa_node": 0, "speed_gts": None, "width": None}


PLACES = {"gpus": [below_the_switch(GPU)], "pfs": [below_the_switch(FAR_NIC)], "redirecting": [],
          "unread": []}
PLACED = {"name": "placed", "uuid": "88888888-1111-1111-1111-111111111111", "runs": False,
          "gpus": [GPU, FAR_NIC],
          "pcie": {"next_bus": 3, "free_slots": [4, 5], "cell_nodes": [], "placed": []}}


class PlacingAnswers:
    def without_libvirt(self, operation):
        self.daemon.happen(libvirt="down")
        self.readyz(503)
        self.ask(operation, vm="placed")
        self.daemon.happen(libvirt="up")
        self.readyz(200)

    def placed(self, operation, query=""):
        answer = self.ask(operation, query, vm="placed")
        if answer.status == 202:
            assert self.daemon.ended(answer.body)["state"] == "succeeded", answer

    def getVmTopology_503(self):
        self.without_libvirt("getVmTopology")

    def placeInVm_200(self):
        self.placed("placeInVm", "?dry_run=true")

    def placeInVm_202(self):
        self.placed("placeInVm")
        self.placed("undoPlaceInVm")

    def placeInVm_422(self):
        self.ask("placeInVm", vm="vm1")  # no PCI Express

    def placeInVm_503(self):
        self.without_libvirt("placeInVm")

    def undoPlaceInVm_200(self):
        self.placed("undoPlaceInVm", "?dry_run=true")

    def undoPlaceInVm_202(self):
        self.placed("placeInVm")
        self.placed("undoPlaceInVm")

    def undoPlaceInVm_422(self):
        self.ask("undoPlaceInVm", vm="vm1")

    def undoPlaceInVm_503(self):
        self.without_libvirt("undoPlaceInVm")
