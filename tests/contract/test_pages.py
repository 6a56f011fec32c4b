# SPDX-License-Identifier: Apache-2.0
"""The real vfmgrd on fakes: lists in pages, filters, and what a client need not authenticate for.
vfctl shows a whole list."""

import http.client
import json
import ssl
import subprocess

import pytest
from live_daemon import BUILD, Daemon, free_port, until

PFS = ["0000:01:00.0", "0000:02:00.0"]
VFS = 300  # of each PF: more than a page has
HOST = {"pfs": [{"model": "igb", "pci": pci, "ifname": f"enp{number}s0", "total_vfs": VFS}
                for number, pci in enumerate(PFS, 1)],
        "vms": [{"name": f"vm{number}", "uuid": f"{number:08}-1111-1111-1111-111111111111"}
                for number in range(1, 4)]}
LIMITS = "[limits]\nchanges_burst = 2000\nchanges_per_second = 1000\n"


@pytest.fixture(scope="module")
def port():
    return free_port()


@pytest.fixture(scope="module")
def daemon(tmp_path_factory, port):
    tls = f'[listen.tls]\nenabled = true\naddress = "127.0.0.1"\nport = {port}\n'
    started = Daemon(tmp_path_factory.mktemp("pages"), HOST, LIMITS + tls)
    for pci in PFS:
        started.do("PUT", f"/v1/pfs/{pci}/spec", {"mode": "manage", "num_vfs": VFS})
    yield started
    started.end()


def pages(daemon, path, **query):
    """Yields the items of each page."""
    cursor = {}
    while True:
        words = "&".join(f"{name}={value}" for name, value in {**query, **cursor}.items())
        answer, body = daemon.ask("GET", f"{path}?{words}")
        assert answer.status == 200, body
        yield body["items"]
        if body["next"] is None:
            return
        cursor = {"cursor": body["next"]}


def whole(daemon, path, **query):
    return [item for page in pages(daemon, path, **query) for item in page]


def vfctl(daemon, *words):
    done = subprocess.run([BUILD / "service/vfctl", "--socket", daemon.socket, *words],
                          capture_output=True, text=True)
    assert done.returncode == 0, done
    return done.stdout


def test_all_vfs_are_in_one_list(daemon):
    sizes = [len(page) for page in pages(daemon, "/v1/vfs")]
    assert sizes == [500, 2 * VFS - 500]
    vfs = whole(daemon, "/v1/vfs", limit=7)
    assert [(vf["pf"], vf["index"]) for vf in vfs] == [(pci, index) for pci in PFS
                                                       for index in range(VFS)]
    assert {vf["state"] for vf in vfs} == {"free"}
    assert whole(daemon, f"/v1/pfs/{PFS[1]}/vfs", limit=100) == vfs[VFS:]
    assert whole(daemon, "/v1/vfs", pf=PFS[1]) == vfs[VFS:]


def test_vfctl_shows_a_list_to_its_end(daemon):
    names = vfctl(daemon, "vf", "list", "-o", "name").split()
    assert names == [f"{pci}/{index}" for pci in PFS for index in range(VFS)]
    shown = json.loads(vfctl(daemon, "vf", "list", "-o", "json"))
    assert shown == {"items": whole(daemon, "/v1/vfs"), "next": None}


def test_what_comes_and_goes_between_pages_hides_nothing(daemon):
    attached = [daemon.do("POST", "/v1/attachments", {"vm": f"vm{number}", "pf": PFS[0]})["subject"]
                for number in (1, 2, 3)]
    ids = sorted(subject.split("/")[-1] for subject in attached)
    first = daemon.ask("GET", "/v1/attachments?limit=1")[1]
    assert [one["id"] for one in first["items"]] == ids[:1]
    daemon.do("DELETE", "/v1/attachments/" + ids[0])
    rest = whole(daemon, "/v1/attachments", limit=1, cursor=first["next"])
    assert [one["id"] for one in rest] == ids[1:]
    operations = daemon.ask("GET", "/v1/operations?limit=2")[1]
    for one in ids[1:]:
        daemon.do("DELETE", "/v1/attachments/" + one)
    older = whole(daemon, "/v1/operations", limit=2, cursor=operations["next"])
    everything = whole(daemon, "/v1/operations")
    assert [one["id"] for one in everything][2:] == [
        one["id"] for one in [*operations["items"], *older]]


def test_lists_are_filtered(daemon):
    subject = daemon.do("POST", "/v1/attachments", {"vm": "vm1", "pf": PFS[1]})["subject"]
    attachment = subject.split("/")[-1]
    # QEMU holds it from the next observation on.
    vf, = until(lambda: [one for one in whole(daemon, "/v1/vfs", state="attached")
                         if one["holders"]], "no QEMU holds the attached VF")
    assert (vf["pf"], vf["attachment"], vf["vm"]) == (PFS[1], attachment, "vm1")
    for query in ({"vm": "vm1"}, {"vm": HOST["vms"][0]["uuid"]}, {"attachment": attachment}):
        assert whole(daemon, "/v1/vfs", **query) == [vf]
    assert whole(daemon, "/v1/attachments", state="detaching") == []
    begun = whole(daemon, "/v1/operations", attachment=attachment, kind="attach", limit=1)
    assert [one["subject"] for one in begun] == [subject]
    assert whole(daemon, "/v1/operations", attachment=attachment, kind="detach") == []
    daemon.do("DELETE", subject)
    assert whole(daemon, "/v1/vfs", vm="vm1") == []


@pytest.mark.parametrize("path", [
    "/v1/vfs?limit=0", "/v1/vfs?limit=501", "/v1/vfs?cursor=", "/v1/vfs?cursor=nonsense",
    "/v1/vfs?state=taken", "/v1/vfs?vm=", "/v1/vfs?pf=enp1s0", "/v1/operations?kind=nothing",
    "/v1/tokens?state=x"])
def test_what_a_list_can_not_do_is_refused(daemon, path):
    answer, problem = daemon.ask("GET", path)
    assert (answer.status, problem["code"]) == (400, "invalid_request")
    assert problem["remedy"]


def test_a_cursor_belongs_to_its_list(daemon):
    cursor = daemon.ask("GET", "/v1/vfs?limit=1")[1]["next"]
    for path in (f"/v1/vfs?state=free&cursor={cursor}", f"/v1/pfs?cursor={cursor}",
                 f"/v1/vfs?cursor={cursor[:-1]}f", f"/v1/vfs?cursor=z{cursor[1:]}"):
        answer, problem = daemon.ask("GET", path)
        assert answer.status == 400 and "leave out cursor" in problem["remedy"], problem


def test_every_list_says_where_it_goes_on(daemon):
    for number in range(3):
        prefix = {"prefix": f"10.{number}.0.0/24"}
        for path, body in (("networks", prefix), ("pools", {}),
                           ("reservations", {"pool": f"n{number}"})):
            answer, problem = daemon.ask("PUT", f"/v1/{path}/n{number}", body)
            assert answer.status == 200, problem
    paths = [f"/v1/{name}" for name in (
        "pfs", "vfs", "vms", "networks", "pools", "reservations", "attachments", "operations",
        "audit", "tokens", "rdma-links", "host/rdma", "host/firmware")]
    vf = f"/v1/pfs/{PFS[0]}/vfs/0"
    for path in (*paths, f"/v1/pfs/{PFS[0]}/vfs", vf + "/history", vf + "/verifications"):
        items = whole(daemon, path)
        assert whole(daemon, path, limit=max(1, len(items) // 3)) == items, path


# --- without a token ---

@pytest.fixture(scope="module")
def stranger(port):
    trusting = ssl._create_unverified_context()

    def get(path, method="GET", **headers):
        connection = http.client.HTTPSConnection("127.0.0.1", port, context=trusting, timeout=60)
        connection.request(method, path, headers=headers)
        answer = connection.getresponse()
        text = answer.read()
        connection.close()
        return answer, json.loads(text) if text else None
    return get


def test_a_stranger_learns_that_it_lives_and_no_more(stranger):
    assert stranger("/livez")[1] == {"alive": True}
    answer, readiness = stranger("/readyz")
    assert (answer.status, readiness) == (200, {"ready": True, "not_ready": [], "drift": None})
    assert stranger("/livez", "HEAD")[0].status == 200
    for path in ("/v1", "/v1/openapi.json", "/v1/vfs", "/v1/nothing"):
        answer, problem = stranger(path)
        assert answer.status == 401, path
        explained = stranger(problem["type"])
        assert explained[0].status == 200 and explained[1]["code"] == "unauthorized"
    assert stranger("/livez", Authorization="Bearer vfm_0")[0].status == 401


def test_a_document_is_sent_once(daemon):
    answer, document = daemon.ask("GET", "/v1/openapi.json")
    assert document["info"]["title"] == "vfmgr"
    again, _ = daemon.ask("GET", "/v1/openapi.json", If_None_Match=answer.headers["ETag"])
    assert (again.status, again.text, again.headers["ETag"]) == (304, b"", answer.headers["ETag"])


def test_every_mistake_of_a_body_is_named(daemon):
    answer, problem = daemon.ask("POST", "/v1/attachments",
                                 {"vm": "", "pf": "x", "verify": "yes", "more": 1})
    assert (answer.status, problem["code"]) == (422, "invalid_request")
    assert {one["pointer"] for one in problem["violations"]} == {"/vm", "/pf", "/verify", "/more"}
    answer, problem = daemon.ask("POST", "/v1/attachments", "{")
    assert (answer.status, problem["code"]) == (400, "invalid_request")
