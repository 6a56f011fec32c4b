# SPDX-License-Identifier: Apache-2.0
"""The real vfmgrd on fakes: cases that it once refused or ignored without an explanation."""

import pytest
from live_daemon import Daemon

PF = "/v1/pfs/0000:01:00.0"
VM = "11111111-1111-1111-1111-111111111111"
HOST = {"pfs": [{"model": "igb", "pci": "0000:01:00.0", "ifname": "enp1s0"}],
        "vms": [{"name": "vm1", "uuid": VM}]}
SPEC = {"mode": "manage", "num_vfs": 2}


@pytest.fixture(scope="module")
def daemon(tmp_path_factory):
    started = Daemon(tmp_path_factory.mktemp("live"), HOST)
    started.do("PUT", PF + "/spec", SPEC)
    yield started
    started.end()


def refused(answer, status, *words):
    response, problem = answer
    assert response.status == status, problem
    assert response.headers["Content-Type"] == "application/problem+json"
    text = problem["detail"] + " " + problem["remedy"]
    assert all(word in text for word in words), text


ATTACH = {"vm": "vm1", "pf": "0000:01:00.0"}


def test_a_misspelt_dry_run_attaches_nothing(daemon):
    refused(daemon.ask("POST", "/v1/attachments?dryrun=true", ATTACH), 400, "dryrun", "dry_run")
    assert daemon.ask("GET", "/v1/attachments")[1]["items"] == []


@pytest.mark.parametrize("path", ["/v1", "/livez", "/v1/pfs", PF, PF + "/vfs", "/v1/vms",
                                  "/v1/tokens", "/v1/operations", "/v1/rdma-links"])
def test_no_route_ignores_a_parameter(daemon, path):
    refused(daemon.ask("GET", path + "?nonsense=1"), 400, "nonsense")


def test_tokens_are_made_and_revoked_on_paper(daemon):
    answer, plan = daemon.ask("POST", "/v1/tokens?dry_run=true", {"role": "viewer"})
    assert (answer.status, plan["plan"]["steps"]) == (200, [])
    assert daemon.ask("GET", "/v1/tokens")[1]["items"] == []
    _, token = daemon.ask("POST", "/v1/tokens", {"role": "viewer"})
    path = "/v1/tokens/" + token["id"]
    assert daemon.ask("DELETE", path + "?dry_run=true")[0].status == 200
    assert len(daemon.ask("GET", "/v1/tokens")[1]["items"]) == 1
    assert daemon.ask("DELETE", path)[0].status == 204
    refused(daemon.ask("DELETE", path + "?dry_run=true"), 404, token["id"])


def test_another_query_is_another_request(daemon):
    key = {"Idempotency_Key": "one"}
    path = "/v1/rdma-links/rxe9"
    first, _ = daemon.ask("DELETE", path + "?force=false", **key)
    assert first.status == 404, "it has no operation, so the key stays free"
    ended = daemon.do("PUT", PF + "/spec?dry_run=false", {**SPEC, "vf_driver": "igbvf"}, **key)
    again, same = daemon.ask("PUT", PF + "/spec?dry_run=false", {**SPEC, "vf_driver": "igbvf"},
                             **key)
    assert (again.status, same["id"]) == (202, ended["id"])
    refused(daemon.ask("PUT", PF + "/spec", {**SPEC, "vf_driver": "igbvf"}, **key), 409)


def test_a_body_that_is_not_said_to_be_json_is_415(daemon):
    for kind in ("text/plain", "application/x-www-form-urlencoded", "application/jsonp"):
        refused(daemon.ask("POST", "/v1/attachments", ATTACH, Content_Type=kind), 415, kind)
    path = "/v1/attachments?dry_run=true"
    for kind in ("application/json", "Application/JSON; charset=utf-8"):
        assert daemon.ask("POST", path, ATTACH, Content_Type=kind)[0].status == 200


def test_a_pf_is_asked_for_by_its_address(daemon):
    ended = daemon.do("POST", "/v1/attachments", ATTACH)
    for pf in ("0000:01:00.0", "01:00.0"):
        assert len(daemon.ask("GET", f"/v1/attachments?pf={pf}")[1]["items"]) == 1
    assert daemon.ask("GET", "/v1/attachments?pf=0000:02:00.0")[1]["items"] == []
    refused(daemon.ask("GET", "/v1/attachments?pf=enp1s0"), 400, "enp1s0")
    daemon.do("DELETE", ended["subject"])


def test_a_dry_run_names_the_revision_that_it_was_planned_from(daemon):
    now = daemon.ask("GET", PF + "/spec")[0].headers["ETag"]
    assert now != '"0"'
    plan = daemon.ask("PUT", PF + "/spec?dry_run=true", {**SPEC, "num_vfs": 3})[0]
    assert (plan.status, plan.headers["ETag"]) == (200, now)


@pytest.mark.parametrize("path", ["/v1/attachments/00000000/verifications",
                                  PF + "/vfs/999/history", PF + "/vfs/999/verifications"])
def test_what_never_was_has_no_history(daemon, path):
    refused(daemon.ask("GET", path), 404)


def test_guests_say_who_they_are(daemon):
    def config(**headers):
        return daemon.ask("GET", "/guest/v1/config", socket=daemon.guests, **headers)
    assert config(X_Vsock_Cid="3")[1]["attachments"] == []
    refused(config(X_Vsock_Cid="99"), 404, "99")
    refused(config(X_Vsock_Cid="3", X_Vsock_Port="4000"), 403)
    refused(config(), 403)
    refused(daemon.ask("POST", "/guest/v1/sessions", {}, socket=daemon.guests, X_Vsock_Cid="3",
                       Content_Type="text/plain"), 415, "text/plain")


def test_a_pf_that_is_gone_ends_by_a_persons_word(tmp_path):
    daemon = Daemon(tmp_path, HOST)
    daemon.do("PUT", PF + "/spec", SPEC)
    attachment = daemon.do("POST", "/v1/attachments", ATTACH)["subject"]
    mac = daemon.ask("GET", attachment)[1]["settings"]["mac"]
    assert daemon.ask("GET", PF)[1]["standing"] == {"is": "here", "detail": None, "remedy": None}
    refused(daemon.ask("POST", PF + "/gone"), 409, "is on this host")
    daemon.happen(take_out="0000:01:00.0")
    # No observation since. A refusal observes the host first, and finds the PF gone.
    refused(daemon.ask("POST", PF + "/confirm-gone"), 409, "vfctl pf gone")
    refused(daemon.ask("DELETE", attachment), 409, "vfctl pf gone 0000:01:00.0")
    shown = daemon.ask("GET", PF)[1]
    assert shown["standing"]["is"] == "gone" and shown["info"]["identity"]["mac"], shown
    assert [pf["info"]["pci"] for pf in daemon.ask("GET", "/v1/pfs")[1]["items"]] == [
        "0000:01:00.0"]
    plan = daemon.ask("POST", PF + "/gone?dry_run=true")[1]["plan"]
    assert len(plan["steps"]) == 1 and mac in " ".join(plan["notes"]), plan
    assert daemon.ask("GET", attachment)[0].status == 200, "a dry run"
    ended = daemon.do("POST", PF + "/gone")
    assert (ended["kind"], ended["subject"]) == ("end_gone_pf", PF)
    assert daemon.ask("GET", attachment)[0].status == 404
    assert daemon.do("POST", PF + "/confirm-gone")["steps"] == []
    refused(daemon.ask("GET", PF), 404)
    refused(daemon.ask("POST", PF + "/gone"), 404)
    daemon.end()


def test_a_pf_that_is_elsewhere_is_rekeyed(tmp_path):
    daemon = Daemon(tmp_path, HOST)
    daemon.do("PUT", PF + "/spec", SPEC)
    daemon.happen(stop_vm=VM)
    attachment = daemon.do("POST", "/v1/attachments",
                           {**ATTACH, "persistence": "config"})["subject"]
    before = daemon.ask("GET", attachment)[1]
    refused(daemon.ask("POST", PF + "/rekey", {"to": "0000:02:00.0"}), 409,
            "is still at its address")
    refused(daemon.ask("POST", PF + "/rekey", {}), 422)
    refused(daemon.ask("POST", PF + "/rekey", {"to": "x"}), 422)
    daemon.happen(take_out="0000:01:00.0")
    daemon.happen(put_in={"pf": "0000:01:00.0", "to": "0000:02:00.0"})
    for method, path in (("POST", PF + "/gone"), ("DELETE", attachment)):
        refused(daemon.ask(method, path), 409, "vfctl pf rekey 0000:01:00.0 0000:02:00.0")
    assert daemon.ask("GET", PF)[1]["standing"]["is"] == "renumbered"
    ended = daemon.do("POST", PF + "/rekey", {"to": "0000:02:00.0"})
    assert ended["kind"] == "rekey_pf"
    after = daemon.ask("GET", attachment)[1]
    assert after["vf"] == {"pf": "0000:02:00.0", "index": before["vf"]["index"]}
    assert after["settings"] == before["settings"]
    assert daemon.ask("GET", "/v1/pfs/0000:02:00.0")[1]["standing"]["is"] == "here"
    daemon.do("DELETE", attachment)
    daemon.end()
