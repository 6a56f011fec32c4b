# SPDX-License-Identifier: Apache-2.0
"""The stream of events of the real vfmgrd on fakes: order, resuming, filters, ends."""

import json
import os
import signal
import subprocess

import pytest
from event_stream import EventStream, kinds
from live_daemon import BUILD, Daemon, until

PF, OTHER = "0000:01:00.0", "0000:02:00.0"
VM, OFF = "11111111-1111-1111-1111-111111111111", "22222222-2222-2222-2222-222222222222"
HOST = {"pfs": [{"model": "igb", "pci": pci, "ifname": name}
                for pci, name in ((PF, "enp1s0"), (OTHER, "enp2s0"))],
        "vms": [{"name": "vm1", "uuid": VM}, {"name": "vm2", "uuid": OFF}]}
CONFIG = ("[limits]\nchanges_burst = 5000\nchanges_per_second = 1000\nevent_streams_max = 8\n"
          "event_backlog_max = 16\n")
SPEC = {"mode": "manage", "num_vfs": 2}
ATTACH = {"vm": "vm1", "pf": PF}
VFCTL = BUILD / "service/vfctl"


@pytest.fixture(scope="module")
def daemon(tmp_path_factory):
    started = Daemon(tmp_path_factory.mktemp("events"), HOST, CONFIG)
    started.do("PUT", f"/v1/pfs/{PF}/spec", SPEC)
    yield started
    started.end()


def new_token(daemon, role="viewer"):
    return daemon.ask("POST", "/v1/tokens", {"role": role})[1]


def opened(daemon, query="", **headers):
    """Retries while the streams of earlier tests still end."""
    def asked():
        stream = EventStream(daemon, query, **headers)
        return stream.response.status == 200 and stream

    stream = until(asked, "no stream is free")
    assert stream.next().event == "current"
    return stream


def attach_and_detach(daemon):
    attachment = daemon.do("POST", "/v1/attachments", ATTACH)["subject"]
    daemon.do("DELETE", attachment)
    return attachment.rsplit("/", 1)[1]


def test_an_attachment_is_followed_from_its_request_to_its_end(daemon):
    # Not what observations find meanwhile.
    stream = EventStream(daemon, "?kind=operation_accepted,operation_succeeded,attaching,attached,"
                         "detaching,detached")
    assert stream.response.headers["Content-Type"] == "text/event-stream"
    assert stream.response.headers["Cache-Control"] == "no-store"
    assert stream.response.headers["Content-Length"] is None
    first = stream.next()
    assert (first.event, first.body) == ("current", {"number": int(first.id)})
    ended = daemon.do("POST", "/v1/attachments", ATTACH)
    begun = stream.until("operation_succeeded")
    assert kinds(begun) == ["operation_accepted", "attaching", "attached", "operation_succeeded"]
    attachment = ended["subject"].rsplit("/", 1)[1]
    for event in begun:
        assert (event["operation"], event["attachment"]) == (ended["id"], attachment)
    for event in begun[1:]:
        assert (event["pf"], event["vf"], event["vm"], event["vm_uuid"]) == (PF, 0, "vm1", VM)
    daemon.do("DELETE", ended["subject"])
    over = stream.until("operation_succeeded")
    assert kinds(over) == ["operation_accepted", "detaching", "detached", "operation_succeeded"]
    assert over[2]["certificate"]["attachment"] == attachment
    numbers = [event["number"] for event in begun + over]
    assert numbers == sorted(set(numbers)) and numbers[0] > int(first.id)
    history = daemon.ask("GET", f"/v1/pfs/{PF}/vfs/0/history")[1]["items"]
    assert kinds(history)[:2] == ["detached", "attached"], "operations are in no VF's history"
    assert history[0] == over[2]
    stream.close()


def test_what_an_event_reports_can_be_read(daemon):
    stream = EventStream(daemon, "?kind=token_created,token_rotated,token_revoked")
    stream.next()
    for _ in range(20):
        token = new_token(daemon)
        event = stream.next().body
        assert (event["kind"], event["token"]) == ("token_created", token["id"])
        assert token["token"] not in json.dumps(event)
        listed = daemon.ask("GET", "/v1/tokens")[1]["items"]
        assert token["id"] in [one["id"] for one in listed]
        other = daemon.ask("POST", f"/v1/tokens/{token['id']}/rotate", {"grace_seconds": 0})[1]
        event = stream.next().body
        assert (event["kind"], event["token"]) == ("token_rotated", token["id"])
        assert other["token"] not in json.dumps(event)
        daemon.ask("DELETE", "/v1/tokens/" + token["id"])
        assert stream.next().body["kind"] == "token_revoked"
    stream.close()


def test_what_is_only_stored(daemon):
    daemon.do("PUT", f"/v1/pfs/{OTHER}/spec", {"mode": "manage", "num_vfs": 2})
    network, pool, reservation = (EventStream(daemon, f"?{noun}=first")
                                  for noun in ("network", "pool", "reservation"))
    for one in (network, pool, reservation):
        one.next()

    def put(path, body):
        answer, shown = daemon.ask("PUT", path, body)
        assert answer.status == 200, shown

    def delete(path):
        assert daemon.ask("DELETE", path)[0].status in (200, 204)

    for octet, name in enumerate(("other", "first")):
        put("/v1/networks/" + name, {"prefix": f"10.{octet}.0.0/24", "vlan": octet + 1, "pfs": [
            {"pf": OTHER, "host_address": f"10.{octet}.0.1"}]})
        put("/v1/pools/" + name, {"select": {"pfs": [f"{OTHER}/{octet}"]}})
        put("/v1/reservations/" + name, {"pool": name})
    events = [one.next().body for one in (network, pool, reservation)]
    assert kinds(events) == ["network_changed", "pool_changed", "reservation_made"]
    assert [event[noun] for event, noun in zip(events, ("network", "pool", "reservation"))] == (
        ["first"] * 3)
    for noun in ("reservations", "pools", "networks"):
        for name in ("other", "first"):
            delete(f"/v1/{noun}/{name}")
    events = [one.next().body for one in (network, pool, reservation)]
    assert kinds(events) == ["network_removed", "pool_removed", "reservation_released"]
    identities = EventStream(daemon, "?kind=identities_changed")
    identities.next()
    put("/v1/identities", {"macs": ["02:00:00:00:00:01-02:00:00:00:00:ff"]})
    assert identities.next().body["kind"] == "identities_changed"
    put("/v1/identities", {})
    for one in (network, pool, reservation, identities):
        one.close()


def test_the_host_changes_by_itself(daemon):
    stream = EventStream(daemon, f"?vm={OFF}")
    by_name = EventStream(daemon, "?vm=vm2")
    other = EventStream(daemon, "?vm=vm1")
    for one in (stream, by_name, other):
        one.next()
    daemon.happen(stop_vm=OFF)
    assert kinds(stream.until("vm_stopped")) == ["vm_stopped"]
    assert by_name.next().body["vm_uuid"] == OFF
    daemon.happen(stop_vm=VM)
    assert other.next().body["vm_uuid"] == VM
    daemon.happen(start_vm=VM)
    assert other.next().body["kind"] == "vm_started"
    for one in (stream, by_name, other):
        one.close()


def test_filters_are_exact(daemon):
    first = EventStream(daemon)
    number = first.next().body["number"]
    first.close()
    daemon.do("PUT", f"/v1/pfs/{OTHER}/spec", {"num_vfs": 1})
    attachment = attach_and_detach(daemon)

    def after(query, last):
        stream = EventStream(daemon, f"?after={number}&{query}")
        events = stream.until(last)
        stream.close()
        return events

    of_pf = after(f"pf={OTHER}", "operation_succeeded")
    assert {event["pf"] for event in of_pf} == {OTHER}
    # An observation may come first.
    assert [kind for kind in kinds(of_pf) if kind != "num_vfs_changed"] == [
        "operation_accepted", "pf_configured", "operation_succeeded"]
    of_attachment = after(f"attachment={attachment}", "detached")
    assert kinds(of_attachment) == ["operation_accepted", "attaching", "attached",
                                    "operation_succeeded", "operation_accepted", "detaching",
                                    "detached"]
    of_kind = after("kind=detached,attached", "detached")
    assert kinds(of_kind) == ["attached", "detached"]
    of_both = after(f"kind=operation_accepted,attached&vm={VM}", "attached")
    assert kinds(of_both) == ["operation_accepted", "attached"]


@pytest.mark.parametrize("query", ["?kind=lost_and_found", "?kind=", "?kind=attached,",
                                   "?pf=enp1s0", "?after=-1", "?after=x", "?vms=a",
                                   "?after=99999999999999999999", "?kind=lost&kind=drift"])
def test_a_wrong_parameter_is_named(daemon, query):
    answer, problem = daemon.ask("GET", "/v1/events" + query)
    assert answer.status == 400, problem
    assert problem["remedy"]


def test_a_wrong_header_is_named(daemon):
    answer, problem = daemon.ask("GET", "/v1/events", Last_Event_ID="abc")
    assert answer.status == 400 and "Last-Event-ID" in problem["detail"]


def test_a_head_is_answered_at_once(daemon):
    stream = EventStream(daemon, method="HEAD")
    assert stream.response.status == 200
    assert stream.response.headers["Content-Type"] == "text/event-stream"
    stream.close()


def test_a_client_resumes_by_header_or_parameter(daemon):
    stream = EventStream(daemon)
    number = stream.next().body["number"]
    stream.close()
    attach_and_detach(daemon)
    header = EventStream(daemon, Last_Event_ID=str(number))
    parameter = EventStream(daemon, f"?after={number}")
    both = EventStream(daemon, "?after=1", Last_Event_ID=str(number))
    all_events = [one.until("detached") for one in (header, parameter, both)]
    assert all_events[0] == all_events[1] == all_events[2]
    assert all_events[0][0]["number"] > number
    for one in (header, parameter, both):
        one.close()


# Farther back than the daemon has in memory: from the store, page by page.
def test_a_client_resumes_from_the_store(daemon):
    tokens = [new_token(daemon)["id"] for _ in range(300)]
    stream = EventStream(daemon, "?after=0&kind=token_created")
    seen = []
    while seen[-300:] != tokens:
        seen.append(stream.next().body["token"])
    live = new_token(daemon)["id"]
    assert stream.next().body["token"] == live
    assert len(seen) == len(set(seen))
    stream.close()


def test_a_number_that_was_never_given_is_a_resync(daemon):
    stream = EventStream(daemon, "?after=1000000000")
    frame = stream.next()
    assert (frame.event, frame.body) == ("resync", {"number": int(frame.id)})
    assert int(frame.id) < 1000000000
    new_token(daemon)
    assert stream.next().body["kind"] == "token_created"
    stream.close()


def test_streams_have_a_limit_of_their_own(daemon):
    streams = [opened(daemon) for _ in range(8)]
    answer, problem = daemon.ask("GET", "/v1/events")
    assert (answer.status, problem["code"]) == (503, "unavailable")
    assert "event_streams_max" in problem["remedy"] and answer.headers["Retry-After"]
    # A principal with fewer of them gets the place of the oldest.
    other = opened(daemon, Authorization="Bearer " + new_token(daemon)["token"])
    streams[0].ends()
    for one in [*streams[1:], other]:
        one.close()


def test_a_stream_ends_with_its_token(daemon):
    token, kept = new_token(daemon), new_token(daemon)
    stream = opened(daemon, Authorization="Bearer " + token["token"])
    other = opened(daemon, Authorization="Bearer " + kept["token"])
    local = opened(daemon)
    assert daemon.ask("DELETE", "/v1/tokens/" + token["id"])[0].status == 204
    assert stream.ends() == [], "not even that it was revoked"
    assert other.next().body["kind"] == local.next().body["kind"] == "token_revoked"
    for one in (other, local):
        one.close()
    answer, _ = daemon.ask("GET", "/v1/events", Authorization="Bearer " + token["token"])
    assert answer.status == 401


# It reads nothing until its socket is full and the daemon no longer has in memory what it needs.
def test_a_reader_that_falls_behind_is_cut_and_resumes(daemon):
    stream = EventStream(daemon, "?kind=token_created")
    stream.next()
    made = [new_token(daemon)["id"] for _ in range(800)]
    got = [frame.body["token"] for frame in stream.ends()]
    assert got == made[:len(got)] and len(got) < len(made), "cut"
    again = EventStream(daemon, "?kind=token_created", Last_Event_ID=stream.last_id)
    while len(got) < len(made):
        got.append(again.next().body["token"])
    assert got == made
    again.close()


def test_a_restart_misses_and_repeats_nothing(tmp_path):
    daemon = Daemon(tmp_path, HOST, CONFIG)
    daemon.do("PUT", f"/v1/pfs/{PF}/spec", SPEC)
    whole, cut = EventStream(daemon, "?after=0"), EventStream(daemon, "?after=0")
    events = cut.until("operation_succeeded")
    attach_and_detach(daemon)
    daemon.end()
    before = [frame.body for frame in whole.ends()]
    assert before[-1]["kind"] == "operation_succeeded"
    cut.close()
    daemon.start()
    stream = EventStream(daemon, Last_Event_ID=str(events[-1]["number"]))
    events += stream.until("vfmgrd_started")
    new_token(daemon)
    events += stream.until("token_created")
    again = EventStream(daemon, "?after=0")
    assert again.until("vfmgrd_started") + again.until("token_created") == events
    assert events[:len(before)] == before
    for one in (stream, again):
        one.close()
    daemon.end()


def vfctl(daemon, *words):
    return subprocess.Popen([VFCTL, "--socket", daemon.socket, "events", *words], text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def test_vfctl_prints_events_over_a_restart(tmp_path):
    daemon = Daemon(tmp_path, HOST, CONFIG)
    process = vfctl(daemon, "-o", "json", "--kind", "token_created,vfmgrd_started")
    assert "following events after event" in process.stderr.readline()
    token = new_token(daemon)
    assert json.loads(process.stdout.readline())["token"] == token["id"]
    daemon.end()
    assert "connecting again in 1 s" in process.stderr.readline()
    daemon.start()
    assert json.loads(process.stdout.readline())["kind"] == "vfmgrd_started"
    token = new_token(daemon)
    last = json.loads(process.stdout.readline())
    assert last["token"] == token["id"]
    process.send_signal(signal.SIGINT)
    rest = process.communicate(timeout=20)[1]
    assert process.returncode == 130
    assert f"vfctl events --after {last['number']}" in rest
    daemon.end()


def test_vfctl_prints_a_table_and_names_what_is_wrong(daemon):
    process = vfctl(daemon, "--after", "0", "--pf", "enp1s0", "--kind", "pf_configured")
    assert process.stdout.readline().split() == ["EVENT", "AT", "KIND", "PF", "VF", "VM",
                                                 "ATTACHMENT", "DETAIL"]
    assert process.stdout.readline().split()[2:4] == ["pf_configured", PF]
    process.send_signal(signal.SIGINT)
    assert process.wait(20) == 130
    process.communicate()
    wrong = vfctl(daemon, "--kind", "nonsense")
    assert "nonsense" in wrong.communicate(timeout=60)[1]
    assert wrong.returncode == 2
    nobody = subprocess.run([VFCTL, "--socket", os.devnull, "events"], text=True,
                            capture_output=True, timeout=60)
    assert nobody.returncode == 6, nobody
