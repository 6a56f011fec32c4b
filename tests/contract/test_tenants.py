# SPDX-License-Identifier: Apache-2.0
"""Two tenants on one host of the real vfmgrd on fakes: who may call what, and that nothing that one
of them gets names what the other has.

The matrix has every operation of api/openapi.yaml for every role and tenant. What tenant alpha
gets, refusals and events included, is searched for what tenant bravo has."""

import json
import threading

import pytest
from described import Document
from event_stream import EventStream, kinds
from live_daemon import Daemon, until
from tenants import (CONFIG, DRY, FORBIDDEN_OF_OTHERS, HOST, NAMES, NOWHERE, PF_A, PF_B, PF_BOTH,
                     REQUESTS, ROLES, SPEC, VM_A, VM_HOST, Columns, Things, asked, given, leaks,
                     limits, put, without)


@pytest.fixture(scope="module")
def daemon(tmp_path_factory):
    started = Daemon(tmp_path_factory.mktemp("tenants"), HOST, CONFIG)
    for pf in (PF_A, PF_B, PF_BOTH):
        started.do("PUT", f"/v1/pfs/{pf}/spec", SPEC)
    for octet, name, pf in ((65, "alpha", PF_A), (66, "bravo", PF_B), (67, None, PF_BOTH)):
        network, pool = (f"{name}-net", f"{name}-pool") if name else ("common", "both")
        put(started, f"/v1/networks/{network}", {
            "prefix": f"10.{octet}.0.0/24", "vlan": octet,
            "pfs": [{"pf": pf, "host_address": f"10.{octet}.0.1"}]})
        put(started, f"/v1/pools/{pool}", {"select": {"pfs": [pf]}})
    for tenant, (_, uuid, _) in NAMES.items():
        put(started, f"/v1/tenants/{tenant}", limits(tenant, uuid))
    yield started
    started.end()


@pytest.fixture(scope="module")
def tenants(daemon):
    return {tenant: Things(daemon, tenant) for tenant in NAMES}


@pytest.fixture(scope="module")
def tokens(daemon):
    return {role: daemon.ask("POST", "/v1/tokens", {"role": role})[1]["token"] for role in ROLES}


@pytest.fixture(scope="module")
def document():
    return Document("openapi.yaml")


def test_the_matrix_has_every_operation(document):
    assert set(REQUESTS) == set(document.operations)


def test_who_may_call_what(daemon, document, tenants, tokens, capsys):
    columns = Columns(tenants, tokens).columns
    wrong, rows = [], []
    for operation in document.operations.values():
        row = []
        for name, (token, role, own, of) in columns.items():
            answer = asked(daemon, operation, token, of)
            expected = Columns.expected(operation, role, own, of)
            row.append(str(answer.status))
            if answer.status != expected:
                wrong.append(f"{operation.id} as {name}: {answer.status}, not {expected}: "
                             f"{answer.text[:300]}")
            if own is None:
                continue
            other = tenants["bravo" if own.tenant == "alpha" else "alpha"]
            said = [] if of is own else given(operation, of)
            if found := leaks(other.secrets(), answer, *said):
                wrong.append(f"{operation.id} as {name} names {found}: {answer.text[:500]}")
        rows.append((operation.id, row))
    with capsys.disabled():
        print("\n" + "\n".join(f"{number + 1}: {name}" for number, name in enumerate(columns)))
        print(f"{'':20}", *(f"{number + 1:3}" for number in range(len(columns))))
        for operation, row in rows:
            print(f"{operation:20}", *row)
        print(f"{len(rows)} operations, {len(rows) * len(columns)} calls, {len(wrong)} wrong")
    assert not wrong, "\n".join(wrong)


def plain(answer, *given):
    """An answer's body without what differs between any two requests."""
    body = dict(answer.body)
    body.pop("request_id", None)
    return without(json.dumps({**body, "instance": ""}), *given)


def test_what_is_anothers_is_answered_as_if_there_were_none(daemon, document, tenants):
    alpha, bravo = tenants["alpha"], tenants["bravo"]
    token, compared = alpha.tokens["operator"]["token"], 0
    for operation in document.operations.values():
        named = [name for name in operation.in_path() if name != "code"]
        if not operation.tenants or not named or operation.id in FORBIDDEN_OF_OTHERS:
            continue
        nothing = {"id": NOWHERE, "name": "nowhere-at-all", "vm": VM_HOST.replace("c", "0")}
        theirs = asked(daemon, operation, token, bravo)
        none = asked(daemon, operation, token, alpha, {name: nothing[name] for name in named})
        assert (theirs.status, none.status) == (404, 404), (theirs, none)
        assert plain(theirs, *given(operation, bravo)) == plain(
            none, *(nothing[name] for name in named)), operation.id
        compared += 1
    assert compared >= 10
    for body in ({"vm": "{}", "pool": "both", "network": "common"},
                 {"vm": alpha.vm, "pool": "{}", "network": "common"},
                 {"vm": alpha.vm, "pool": "both", "network": "{}"}):
        key = next(name for name, value in body.items() if value == "{}")
        theirs, none = (alpha.ask("POST", "/v1/attachments", {**body, key: name})
                        for name in (getattr(bravo, key), "nowhere"))
        assert (theirs.status, none.status) == (404, 404), (theirs, none)
        assert plain(theirs, getattr(bravo, key)) == plain(none, "nowhere")


def provoked(daemon, alpha, bravo):
    """What alpha gets that comes close to what bravo has: what was asked, and the answer."""
    theirs = daemon.ask("GET", bravo.shared["subject"])[1]
    shared = {"vm": alpha.vm, "pool": "both", "network": "common"}

    def ask(method, path, body=None, said=()):
        return path, alpha.ask(method, path, body), said

    yield ask("POST", "/v1/attachments", {**shared, "settings": {"mac": theirs["settings"]["mac"]}},
              [theirs["settings"]["mac"]])
    yield ask("POST", "/v1/attachments", {**shared, "address": theirs["address"]},
              [theirs["address"]])
    yield ask("PUT", "/v1/reservations/alpha-all" + DRY, {"pool": "both", "count": 128})
    yield ask("PUT", "/v1/reservations/alpha-far" + DRY,
              {"pool": "both", "count": 2, "distinct_pfs": True})
    yield ask("POST", "/v1/attachments", {**shared, "nonsense": {}})
    yield ask("POST", "/v1/attachments", {**shared, "settings": {"trust": True, "vlan": {"id": 5}}})
    yield ask("POST", "/v1/attachments", {"vm": alpha.vm, "pf": PF_BOTH})
    yield ask("POST", "/v1/attachments", {"vm": alpha.vm, "network": "common"})
    for noun in ("attachments", "vfs", "vms", "networks", "pools", "reservations", "operations"):
        yield ask("GET", f"/v1/{noun}?limit=1")
        yield ask("GET", f"/v1/{noun}?cursor=abc")
    for query in (f"attachments?vm={bravo.vm}", f"attachments?vm={bravo.uuid}",
                  f"attachments?pf={PF_B}", f"attachments?network={bravo.network}",
                  f"vfs?pf={PF_B}", f"vfs?attachment={bravo.attachment}", f"networks?pf={PF_B}",
                  f"operations?attachment={bravo.attachment}", f"pools?network={bravo.network}",
                  f"reservations?pool={bravo.pool}"):
        path, answer, _ = ask("GET", "/v1/" + query)
        assert answer.body["items"] == [], (query, answer)
        yield path, answer, [query.rpartition("=")[2]]
    yield ask("GET", f"/v1/operations/{bravo.operation['id']}?wait=30",
              said=[bravo.operation["id"]])
    yield ask("GET", "/v1/nothing")


def test_refusals_and_lists_name_nothing_of_the_other(daemon, tenants):
    alpha, bravo = tenants["alpha"], tenants["bravo"]
    secrets, statuses = bravo.secrets(), set()
    for path, answer, said in provoked(daemon, alpha, bravo):
        statuses.add(answer.status)
        found = leaks(secrets, answer, *said)
        assert not found, f"{path} names {found}: {answer.text}"
    assert {200, 400, 403, 404, 409, 422} <= statuses


def test_a_full_pool_is_explained_by_numbers(daemon, tenants):
    alpha, bravo = tenants["alpha"], tenants["bravo"]
    more = [bravo.attach(pool="both", network="common") for _ in range(2)]
    spec = {"vm": alpha.vm, "pool": "both", "network": "common"}
    answer = alpha.ask("POST", "/v1/attachments", spec)
    assert answer.status == 422 and answer.body["code"] == "limit_exceeded"
    assert "4 are attached, 0 reserved, 0 in quarantine" in answer.body["detail"], answer
    secrets = bravo.secrets() | {operation["id"] for operation in more}
    assert not leaks(secrets, answer)
    for one in more:
        daemon.do("DELETE", one["subject"])
    plan = alpha.ask("POST", "/v1/attachments" + DRY, spec)
    assert plan.status == 200, plan
    assert [one["chosen"] for one in plan.body["attachment"]["candidates"]] == [True]
    assert not leaks(secrets, plan)


def test_the_search_finds_what_there_is_to_find(daemon, document, tenants, tokens):
    """Each secret, in what somebody of no tenant gets: a search that finds nothing means it."""
    bravo, found = tenants["bravo"], set()
    for operation in document.operations.values():
        if operation.method == "GET" and operation.id != "followEvents":
            found |= leaks(bravo.secrets(), asked(daemon, operation, tokens["admin"], bravo))
    assert found == bravo.secrets()
    network = daemon.ask("GET", f"/v1/networks/{bravo.network}")[1]
    put(daemon, "/v1/networks/common-copy", {"prefix": "10.68.0.0/24", "vlan": 68})
    planted = limits("alpha", VM_A, networks=["alpha-net", "common", bravo.network])
    put(daemon, "/v1/tenants/alpha", planted)
    answer = tenants["alpha"].ask("GET", "/v1/networks")
    assert leaks(bravo.secrets(), answer) == {bravo.network}, network
    put(daemon, "/v1/tenants/alpha", limits("alpha", VM_A))
    assert daemon.call("DELETE", "/v1/networks/common-copy").status == 204


def act(daemon, tenant, *, ends_with):
    one = tenant.attach(pool=tenant.pool, network=tenant.network)
    assert tenant.ask("PUT", f"/v1/reservations/{tenant.tenant}-x",
                      {"pool": "both", "network": "common"}).status == 200
    assert tenant.ask("DELETE", f"/v1/reservations/{tenant.tenant}-x").status == 204
    daemon.happen(stop_vm=tenant.uuid)
    until(lambda: daemon.ask("GET", "/v1/vms/" + tenant.uuid)[1]["state"] == "shut_off", "stopped")
    daemon.happen(start_vm=tenant.uuid)
    until(lambda: daemon.ask("GET", "/v1/vms/" + tenant.uuid)[1]["state"] == "running", "started")
    daemon.do("DELETE", one["subject"])
    assert ends_with == "detached"
    return one


def test_events_are_the_tenants_own(daemon, tenants):
    alpha, bravo = tenants["alpha"], tenants["bravo"]
    token = "Bearer " + alpha.tokens["viewer"]["token"]
    live = EventStream(daemon, Authorization=token)
    assert live.next().event == "current"
    secrets = bravo.secrets()
    for _ in range(2):
        hidden = act(daemon, bravo, ends_with="detached")
        secrets |= {hidden["id"], hidden["subject"].split("/")[-1]}
        daemon.ask("POST", "/v1/tokens", {"role": "viewer"})
        daemon.do("PUT", f"/v1/pfs/{PF_B}/spec", {**SPEC, "labels": {"try": str(len(secrets))}})
        put(daemon, "/v1/networks/bravo-net", {
            "prefix": "10.66.0.0/24", "vlan": 66, "dscp": len(secrets),
            "pfs": [{"pf": PF_B, "host_address": "10.66.0.1"}]})
    shown = act(daemon, alpha, ends_with="detached")
    attachment = shown["subject"].split("/")[-1]
    stored = EventStream(daemon, "?after=0", Authorization=token)
    seen = {}
    for name, stream in (("live", live), ("stored", stored)):
        events = []
        while not events or (events[-1]["kind"], events[-1]["attachment"]) != (
                "detached", attachment):
            frame = stream.next()
            assert not frame.event, frame
            found = {secret for secret in secrets if secret in json.dumps(frame.body)}
            assert not found, f"{name} event names {found}: {frame.body}"
            events.append(frame.body)
        stream.close()
        seen[name] = events
    assert set(kinds(seen["live"])) == {
        "operation_accepted", "attaching", "attached", "operation_succeeded", "reservation_made",
        "reservation_released", "vm_stopped", "vm_started", "detaching", "detached"}
    assert seen["stored"][-len(seen["live"]):] == seen["live"]
    assert seen["live"][-1]["certificate"]["attachment"] == attachment
    everything = EventStream(daemon, "?after=0")
    text = ""
    while not all(secret in text for secret in (hidden["id"], bravo.uuid, attachment)):
        text += json.dumps(everything.next().body)
    everything.close()


def test_a_tenant_that_changes_loses_its_streams(daemon, tenants):
    alpha, bravo = tenants["alpha"], tenants["bravo"]
    streams = [EventStream(daemon, Authorization="Bearer " + one.tokens["viewer"]["token"])
               for one in (alpha, bravo)]
    for stream in streams:
        assert stream.next().event == "current"
    put(daemon, "/v1/tenants/alpha", limits("alpha", VM_A, pools=["alpha-pool"]))
    assert streams[0].ends() == []
    assert alpha.ask("GET", "/v1/pools/both").status == 404
    put(daemon, "/v1/tenants/alpha", limits("alpha", VM_A))
    assert alpha.ask("GET", "/v1/pools/both").status == 200
    act(daemon, bravo, ends_with="detached")
    assert streams[1].next().body["vm_uuid"] == bravo.uuid, "it goes on"
    streams[1].close()


def test_a_tenant_has_no_token_of_an_admin_and_hands_out_none(daemon, tenants):
    answer = daemon.call("POST", "/v1/tokens", {"role": "admin", "tenant": "alpha"})
    assert answer.status == 422 and answer.body["violations"][0]["pointer"] == "/tenant"
    answer = tenants["alpha"].ask("POST", "/v1/tokens", {"role": "viewer"})
    assert answer.status == 403 and "not for tenants" in answer.body["detail"]


def test_fields_are_named(daemon, tenants):
    answer = tenants["alpha"].ask("POST", "/v1/attachments", {
        "vm": "a-vm", "pf": PF_A, "pool": "alpha-pool", "best_effort": ["trust"],
        "settings": {"trust": True, "mac": "02:00:00:00:00:07", "spoofchk": False}})
    assert (answer.status, answer.body["code"]) == (403, "forbidden")
    assert [one["pointer"] for one in answer.body["violations"]] == [
        "/pf", "/best_effort", "/settings/spoofchk", "/settings/trust"]


def test_two_at_once_do_not_both_get_the_last_place(daemon, tenants):
    alpha = tenants["alpha"]
    had = len(alpha.ask("GET", "/v1/attachments").body["items"])
    put(daemon, "/v1/tenants/alpha", limits("alpha", VM_A, quota={"attachments": had + 1}))
    answers, spec = [], {"vm": alpha.vm, "pool": "alpha-pool", "network": "alpha-net"}
    threads = [threading.Thread(target=lambda: answers.append(
        alpha.ask("POST", "/v1/attachments", spec))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    taken = [daemon.ended(one.body) for one in answers if one.status == 202]
    assert [one["state"] for one in taken].count("succeeded") == 1, answers
    refused = [one for one in answers if one.status != 202]
    assert {(one.status, one.body["code"]) for one in refused} == {(403, "quota_exceeded")}
    assert len(alpha.ask("GET", "/v1/attachments").body["items"]) == had + 1
    for one in taken:
        if one["state"] == "succeeded":
            daemon.do("DELETE", one["subject"])
    put(daemon, "/v1/tenants/alpha", limits("alpha", VM_A))


def test_reserved_vfs_have_a_quota(daemon, tenants):
    alpha = tenants["alpha"]
    put(daemon, "/v1/tenants/alpha", limits("alpha", VM_A, quota={"reserved_vfs": 2}))
    path = "/v1/reservations/alpha-more"
    spec = {"pool": "alpha-pool", "network": "alpha-net"}
    assert alpha.ask("PUT", path, {**spec, "count": 1}).status == 200
    answer = alpha.ask("PUT", path, {**spec, "count": 2})
    assert (answer.status, answer.body["code"]) == (403, "quota_exceeded")
    assert alpha.ask("DELETE", path).status == 204
    put(daemon, "/v1/tenants/alpha", limits("alpha", VM_A))


def test_a_tenant_is_removed_when_nothing_refers_to_it(daemon):
    put(daemon, "/v1/tenants/gone", {})
    token = daemon.ask("POST", "/v1/tokens", {"role": "viewer", "tenant": "gone"})[1]
    refused = daemon.call("DELETE", "/v1/tenants/gone")
    assert refused.status == 409 and token["id"] in refused.body["detail"]
    other = daemon.call("PUT", "/v1/tenants/gone", {"vms": [VM_A]})
    assert other.status == 409 and "is tenant alpha's" in other.body["detail"]
    assert daemon.call("DELETE", "/v1/tokens/" + token["id"]).status == 204
    assert daemon.call("DELETE", "/v1/tenants/gone").status == 204
