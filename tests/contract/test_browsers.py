# SPDX-License-Identifier: Apache-2.0
"""The real vfmgrd on fakes for people in a browser: their sessions, and what no other site's page
can do."""

import json
import socket
import subprocess

import pytest
from event_stream import EventStream
from live_daemon import until
from remote import Remote, configuration, served

HOST = {"pfs": [{"model": "igb", "pci": "0000:01:00.0", "ifname": "enp1s0"}],
        "vms": [{"name": "vm1", "uuid": "11111111-1111-1111-1111-111111111111"}]}
SESSIONS, OWN_SESSION = "/v1/sessions", "/v1/sessions/current"
WRITE = "/v1/pfs/0000:01:00.0/spec"
SPEC = json.dumps({"mode": "manage", "num_vfs": 2})


@pytest.fixture
def daemon(tmp_path, authority):
    with served(tmp_path / "daemon", HOST, authority, {"alice": "admin"}) as started:
        yield started


@pytest.fixture
def admin(daemon):
    made = daemon.ask("POST", "/v1/tokens", {"role": "admin"})[1]
    remote = Remote(daemon, token=made["token"])
    remote.id = made["id"]
    return remote


@pytest.fixture
def alice(daemon, authority):
    daemon.files = authority.issue("alice")
    return Remote(daemon, daemon.files)


def audit(daemon, query):
    return daemon.ask("GET", f"/v1/audit?{query}")[1]["items"]


def session_of(daemon, remote, files=None):
    begun = remote.ask("POST", SESSIONS)
    assert begun.status == 201, begun
    return Remote(daemon, files, begun.body["token"])


# --- sessions --------------------------------------------------------------------------------


def test_a_session_is_who_began_it_and_ends_at_its_word(daemon, admin):
    session = session_of(daemon, admin)
    assert session.ask("PUT", WRITE + "?dry_run=true", SPEC).status == 200
    until(lambda: [one["action"] for one in audit(daemon, f"who=token:{admin.id}")] == [
        f"PUT {WRITE}?dry_run=true", f"POST {SESSIONS}"], "the audit names who began it")
    assert session.status("POST", SESSIONS) == 403, "one session begins no other"
    stream = EventStream(daemon, connection=session.connection(), **session.headers)
    assert stream.response.status == 200
    answer = session.ask("DELETE", OWN_SESSION)
    assert answer.status == 204, answer
    while stream.frame():
        pass  # until it is cut
    assert session.status() == 401
    assert admin.status() == 200
    assert admin.status("DELETE", OWN_SESSION) == 404


def test_a_session_ends_with_its_token(daemon, admin):
    session = session_of(daemon, admin)
    stream = EventStream(daemon, connection=session.connection(), **session.headers)
    assert daemon.ask("DELETE", f"/v1/tokens/{admin.id}")[0].status == 204
    while stream.frame():
        pass
    ended = session.ask("GET", "/v1/pfs")
    assert ended.status == 401 and "ended" in ended.body["detail"], ended


def test_a_session_of_a_certificate_ends_with_it(daemon, authority, alice):
    session = session_of(daemon, alice, daemon.files)
    assert session.status() == 200
    assert Remote(daemon, token=session.headers["Authorization"][7:]).status() == 401, "alone"
    assert daemon.ask("GET", "/v1/pfs", **session.headers)[0].status == 401, "nor locally"
    authority.revoke(daemon.files[0])
    daemon.reload()
    with pytest.raises(OSError):
        session.status()


def test_a_session_is_not_kept_over_a_restart(daemon, admin):
    session = session_of(daemon, admin)
    assert session.status() == 200
    daemon.end()
    daemon.start()
    assert session.status() == 401
    assert admin.status() == 200


def test_a_user_of_the_unix_socket_needs_none(daemon):
    answer, problem = daemon.ask("POST", SESSIONS)
    assert answer.status == 403 and "needs no session" in problem["remedy"]


# --- other sites' pages ----------------------------------------------------------------------


def own(daemon):
    return f"127.0.0.1:{daemon.port}"


def test_another_sites_page_changes_nothing(daemon, alice):
    hostile = ({"Origin": "https://evil.example"}, {"Origin": "null"},
               {"Origin": f"http://{own(daemon)}"}, {"Sec_Fetch_Site": "cross-site"},
               {"Sec_Fetch_Site": "same-site", "Sec_Fetch_Mode": "navigate"},
               {"Content_Type": "text/plain"}, {"Host": "evil.example"},
               {"Host": "203.0.113.9"})
    for headers in hostile:
        answer = alice.ask("DELETE", WRITE, **headers)
        assert (answer.status, answer.body["code"]) == (403, "forbidden"), (headers, answer)
        assert answer.body["remedy"]
    until(lambda: [one["who"] for one in audit(daemon, "outcome=403")] == [
        "cert:alice"] * len(hostile), "each is in the audit")
    body = alice.ask("PUT", WRITE, SPEC, Content_Type="text/plain")
    assert body.status == 415, body
    page = {"Origin": f"https://{own(daemon)}", "Sec_Fetch_Site": "same-origin"}
    assert alice.ask("PUT", WRITE + "?dry_run=true", SPEC, **page).status == 200
    assert daemon.ask("GET", WRITE)[1]["mode"] == "observe", "nothing was changed"


def test_programs_and_tunnels_come_through(daemon, alice, admin):
    for host in (own(daemon), "127.0.0.1", f"localhost:{daemon.port}", "localhost:1234",
                 "LOCALHOST", f"[::1]:{daemon.port}", socket.gethostname()):
        assert alice.ask("GET", "/livez", Host=host).status == 200, host
    token = admin.headers["Authorization"][7:]
    curl = subprocess.run(
        ["curl", "-sS", "--cacert", daemon.folder / "state/tls.crt", "-w", "%{http_code}",
         "-H", f"Authorization: Bearer {token}", "-o", "/dev/null", "-X", "POST",
         f"https://localhost:{daemon.port}{SESSIONS}?dry_run=true"], capture_output=True, text=True)
    assert curl.stdout == "200", curl
    hostile = {"Host": "evil.example", "Origin": "https://evil.example"}
    assert daemon.ask("GET", "/v1/pfs", **hostile)[0].status == 200, "over the unix socket"


def test_a_reload_takes_another_name(daemon, authority, alice):
    name = {"Host": f"vfmgr.example:{daemon.port}"}
    refused = alice.ask("GET", "/livez", **name)
    assert refused.status == 403 and "host_names" in refused.body["remedy"]
    daemon.reload(configuration(authority, daemon.port, {"alice": "admin"}).replace(
        "enabled = true", 'enabled = true\nhost_names = ["vfmgr.example"]'))
    assert alice.ask("GET", "/livez", **name).status == 200
