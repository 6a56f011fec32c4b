# SPDX-License-Identifier: Apache-2.0
"""Simulated hosts answer as vfmgrd does, as far as a fleet's daemon asks them."""

import json
import re
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "contract")]

from certificates import Authority  # noqa: E402
from client import Connection, Server, trusting  # noqa: E402
from described import Document  # noqa: E402
from network import Here  # noqa: E402
from simulation import Simulation, key_hash, sent_at  # noqa: E402

HOSTS, PORT = 12, 8479
LISTS = ["pfs", "vfs", "vms", "attachments", "networks", "pools", "reservations"]
CLIENT = Here("client")


@pytest.fixture(scope="module")
def simulation(tmp_path_factory):
    simulated = Simulation(tmp_path_factory.mktemp("simulation"), HOSTS, processes=2, port=PORT)
    yield simulated
    simulated.end()


def server(simulation, name, **more):
    return Server(CLIENT, simulation.hosts[name].address, PORT, trusting(**more))


@pytest.fixture
def host(simulation):
    return server(simulation, "h3")


class Stream:
    """Events of a simulated host, one after the other."""

    def __init__(self, host, **headers):
        self.connection = Connection(CLIENT, host.address, host.port, host.context, 20)
        self.connection.request("GET", "/v1/events", headers={
            name.replace("_", "-"): value for name, value in headers.items()})
        self.answer = self.connection.getresponse()
        assert self.answer.status == 200

    def next(self):
        """Returns the name and the data of the next event."""
        name = ""
        while line := self.answer.readline().decode().rstrip("\n"):
            if line.startswith("event: "):
                name = line[7:]
            elif line.startswith("data: "):
                data = json.loads(line[6:])
        return name, data


@pytest.mark.parametrize("name", [*LISTS, "identities"])
def test_answers_are_those_that_the_document_describes(host, name):
    document, answer = Document("openapi.yaml"), host.ask("GET", f"/v1/{name}")
    operation, = [one for one in document.operations.values()
                  if (one.method, one.path) == ("GET", f"/v1/{name}")]
    schema, = document.schemas(operation.responses["200"]).values()
    assert answer.status == 200
    assert not list(document.complaints(schema, answer.body))


def test_a_host_has_64_vfs(host):
    assert len(host.ask("GET", "/v1/vfs").body["items"]) == 64
    assert len(host.ask("GET", "/v1/pfs").body["items"]) == 8


def test_hosts_share_no_identity_name_address_or_key(simulation):
    def marks(name):
        one = server(simulation, name)
        text = json.dumps([one.ask("GET", f"/v1/{path}").body for path in LISTS])
        found = re.findall(r"52:[0-9a-f]{2}:[0-9a-f:]+|0000[0-9a-f]{4}-0000|vm[0-9]+-|10\.[0-9.]+",
                           text)
        assert len(set(found)) > 2 * 32  # each attachment has a MAC and an address
        return set(found)
    assert not marks("h1") & marks("h12")
    assert len({one.public_key() for one in simulation.hosts.values()}) == HOSTS


def test_the_key_is_the_one_that_it_serves_with(simulation):
    import ssl
    one = simulation.hosts["h7"]
    assert key_hash(ssl.get_server_certificate((one.address, PORT))) == one.public_key()


def test_a_list_that_did_not_change_is_not_sent_again(simulation, host):
    tag = host.ask("GET", "/v1/vfs").headers["ETag"]
    before = simulation.counts()["unchanged"]
    assert host.ask("GET", "/v1/vfs", If_None_Match=tag).status == 304
    assert simulation.counts()["unchanged"] == before + 1


def test_reservations_are_durable_and_of_different_vfs(simulation, host, tmp_path):
    before = simulation.counts()["commits"]
    spec = {"pool": "rails", "count": 3}
    one, other = (host.ask("PUT", f"/v1/reservations/{name}", spec) for name in ("one", "other"))
    assert (one.status, other.status) == (200, 200), other
    vfs = [json.dumps(vf) for answer in (one, other) for vf in answer.body["vfs"]]
    assert len(set(vfs)) == 6
    assert host.ask("PUT", "/v1/reservations/one", spec).body == one.body
    assert {item["name"] for item in host.ask("GET", "/v1/reservations").body["items"]} == {
        "job-1", "one", "other"}
    assert host.ask("PUT", "/v1/reservations/all", {"pool": "rails", "count": 100}).status == 409
    for name in ("one", "other"):
        assert host.ask("DELETE", f"/v1/reservations/{name}").status == 204
    assert host.ask("GET", "/v1/reservations/one").status == 404
    assert simulation.counts()["commits"] == before + 5


def test_identities_have_a_generation_and_a_fence(simulation):
    host = server(simulation, "h4")
    tag = host.ask("GET", "/v1/identities").headers["ETag"]
    given = {"macs": [], "guids": [], "addresses": [], "generation": 7}
    answer = host.ask("PUT", "/v1/identities", given, If_Match=tag, Vfmgr_Fence="5")
    assert answer.status == 200 and answer.body == given
    assert host.ask("PUT", "/v1/identities", given, If_Match=tag).status == 412
    assert host.ask("PUT", "/v1/identities", {**given, "generation": 6}).status == 412
    assert host.ask("PUT", "/v1/identities", given, Vfmgr_Fence="4").status == 412
    assert host.ask("PUT", "/v1/identities", given, Vfmgr_Fence="6").status == 200
    assert host.ask("GET", "/v1/identities").body == given


def test_events_come_resume_and_change_what_they_are_about(simulation):
    host = server(simulation, "h5")

    def drifted():
        return not host.ask("GET", "/v1/vfs").body["items"][0]["settings"]["spoofchk"]
    before, tag, stream = drifted(), host.ask("GET", "/v1/vfs").headers["ETag"], Stream(host)
    began = time.monotonic()
    simulation.events_per_second(10 * HOSTS)
    events = [stream.next()[1] for _ in range(3)]
    simulation.events_per_second(0)
    numbers = [event["number"] for event in events]
    assert numbers == list(range(numbers[0], numbers[0] + 3))
    times = [began, *map(sent_at, events), time.monotonic()]
    assert times == sorted(times)
    assert Stream(host, Last_Event_ID=str(numbers[0])).next() == ("", events[1])
    last = simulation.counts()["events"]
    assert last >= 3 * HOSTS - HOSTS
    assert host.ask("GET", "/v1/vfs", If_None_Match=tag).status == 200
    assert isinstance(before, bool)


def test_a_stream_that_resumes_from_elsewhere_is_told(simulation):
    name, data = Stream(server(simulation, "h6"), Last_Event_ID="1000000").next()
    assert name == "resync" and data["number"] < 1000000


def test_changes_at_once_are_synced_together(simulation):
    before = simulation.counts()
    ready = threading.Barrier(8)

    def many(number):
        host = server(simulation, f"h{number}")
        ready.wait(20)
        for turn in range(20):
            name = f"/v1/reservations/many-{turn}"
            assert host.ask("PUT", name, {"pool": "rails", "count": 1}).status == 200
            assert host.ask("DELETE", name).status == 204
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(many, range(1, 9)))
    now = simulation.counts()
    commits, syncs = (now[name] - before[name] for name in ("commits", "syncs"))
    assert commits == 8 * 40 and syncs <= commits


def test_only_clients_of_the_ca_are_answered(tmp_path):
    (tmp_path / "ca").mkdir()
    authority = Authority(tmp_path / "ca")
    simulated = Simulation(tmp_path / "some", 1, processes=1, port=PORT + 1,
                           ca_file=authority.file)
    one = simulated.hosts["h1"]
    for certificate, status in ((None, 401), (authority.issue("fleet1"), 200)):
        host = Server(CLIENT, one.address, one.port, trusting(certificate=certificate))
        assert host.ask("GET", "/v1/vfs").status == status
    simulated.end()
