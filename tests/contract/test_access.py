# SPDX-License-Identifier: Apache-2.0
"""The real vfmgrd on fakes, over TLS: who may do what, by certificate and by token, and what a
reload changes for those who are connected."""

import http.client
import socket
import ssl
import threading
from datetime import datetime, timezone

import pytest
from certificates import Authority
from event_stream import EventStream
from live_daemon import until
from remote import Remote, configuration, served

PF = "0000:01:00.0"
HOST = {"pfs": [{"model": "igb", "pci": PF, "ifname": "enp1s0"}],
        "vms": [{"name": "vm1", "uuid": "11111111-1111-1111-1111-111111111111"}]}
FLEET = "spiffe://site.example/fleet"
DRY_RUN = "/v1/attachments?dry_run=true"
ATTACH = f'{{"vm": "vm1", "pf": "{PF}"}}'
FOREVER = 600_000  # milliseconds: longer than any test


@pytest.fixture
def daemon(tmp_path, authority):
    with served(tmp_path / "daemon", HOST, authority,
                {FLEET: "operator", "monitor": "viewer"}) as started:
        yield started


def waiting(remote, path):
    """Begins a request whose answer comes much later; returns what became of it, in a list."""
    became, connection = [], remote.connection()

    def wait():
        try:
            became.append(remote.ask("GET", path, connection=connection).status)
        except OSError as cut:
            became.append(type(cut).__name__)
        except http.client.HTTPException as cut:
            became.append(type(cut).__name__)

    thread = threading.Thread(target=wait)
    thread.start()
    return thread, became


def operation_that_stays(daemon):
    daemon.happen(step_milliseconds=FOREVER)
    operation = daemon.ask("PUT", f"/v1/pfs/{PF}/spec", {"num_vfs": 2})[1]
    return f"/v1/operations/{operation['id']}?wait=60"


def let_it_end(daemon, path):
    daemon.happen(step_milliseconds=0)
    daemon.ended(daemon.ask("GET", path.split("?")[0])[1])


def wait_until_asked(daemon, path, clients):
    """Their long polls wait once requests that came later were answered."""
    for _ in range(3):
        for client in clients:
            assert client.status(path=path.split("?")[0]) == 200


def is_closed(connection):
    connection.sock.settimeout(30)
    try:
        return connection.sock.recv(1) == b""
    except ConnectionError:
        return True


def test_certificates_give_their_role(daemon, authority):
    fleet = Remote(daemon, authority.issue("host-7", f"URI:{FLEET},DNS:monitor"))
    assert fleet.status() == 200
    assert fleet.ask("POST", DRY_RUN, ATTACH).status == 409, "allowed, but the PF has no VFs"
    assert fleet.ask("GET", "/v1/tokens").status == 403
    assert daemon.ask("GET", "/v1/audit?limit=1")[1]["items"][0]["who"] == f"cert:{FLEET}"
    monitor = Remote(daemon, authority.issue("monitor"))
    assert monitor.status() == 200
    assert monitor.ask("POST", DRY_RUN, ATTACH).status == 403


def test_a_certificate_without_a_role_is_told_what_to_write(daemon, authority):
    nobody = Remote(daemon, authority.issue("nobody", "DNS:nobody.example")).ask("GET", "/v1/pfs")
    assert nobody.status == 403
    assert "nobody.example has no role" in nobody.body["detail"]
    assert '[tls.clients] "nobody.example" = "viewer"' in nobody.body["remedy"]
    assert "authentication failed who=cert:nobody.example" in daemon.said()


def test_who_has_none_may_send_a_token_and_a_token_decides(daemon, authority):
    token = daemon.ask("POST", "/v1/tokens", {"role": "viewer"})[1]["token"]
    assert Remote(daemon).status() == 401
    assert Remote(daemon, token=token).status() == 200
    files = authority.issue("fleet", f"URI:{FLEET}")
    both = Remote(daemon, files, token)
    assert both.ask("POST", DRY_RUN, ATTACH).status == 403
    assert Remote(daemon, files, "vfm_" + 64 * "0").status() == 401


def test_certificates_that_do_not_verify_end_the_handshake(daemon, authority, tmp_path):
    (tmp_path / "other").mkdir()
    other = Authority(tmp_path / "other").issue("monitor")
    revoked = authority.issue("revoked", f"URI:{FLEET}")
    daemon_files = authority.issue("server", f"URI:{FLEET}", "serverAuth")
    authority.revoke(revoked[0])
    daemon.reload()
    for files in (other, revoked, daemon_files):
        with pytest.raises(ssl.SSLError):
            Remote(daemon, files).status()
    for why in ("unable to get local issuer certificate", "certificate revoked",
                "unsuitable certificate purpose"):
        until(lambda: why in daemon.said(), why)


def test_a_reload_cuts_off_who_lost_the_role(daemon, authority):
    path = operation_that_stays(daemon)
    fleet = Remote(daemon, authority.issue("fleet", f"URI:{FLEET}"))
    monitor = Remote(daemon, authority.issue("monitor"))
    idle = fleet.connection()
    assert fleet.ask("GET", "/v1/pfs", connection=idle).status == 200
    (struck, became_of_struck), (stays, became_of_other) = (
        waiting(one, path) for one in (fleet, monitor))
    wait_until_asked(daemon, path, (fleet, monitor))
    daemon.reload(configuration(authority, daemon.port,
                                {FLEET: "viewer", "monitor": "viewer", "new": "viewer"}))
    struck.join(30)
    assert became_of_struck and became_of_struck[0] != 200
    assert is_closed(idle)
    assert fleet.status() == 200, "as a viewer"
    assert Remote(daemon, authority.issue("new")).status() == 200
    said = daemon.said()
    assert f"configuration changed key=tls.clients.{FLEET} from=operator to=viewer" in said
    assert became_of_other == []
    let_it_end(daemon, path)
    stays.join(30)
    assert became_of_other == [200]


def test_a_revocation_cuts_off_who_is_connected(daemon, authority):
    files = authority.issue("fleet", f"URI:{FLEET}")
    fleet = Remote(daemon, files)
    idle = fleet.connection()
    assert fleet.ask("GET", "/v1/pfs", connection=idle).status == 200
    authority.revoke(files[0])
    daemon.reload()
    assert is_closed(idle)


def test_a_stream_of_events_ends_with_what_its_reader_showed(daemon, authority):
    files = authority.issue("fleet", f"URI:{FLEET}")
    remotes = [Remote(daemon, files), Remote(daemon, authority.issue("monitor")),
               Remote(daemon, authority.issue("new"))]
    clients = {FLEET: "operator", "monitor": "operator", "new": "viewer"}
    daemon.reload(configuration(authority, daemon.port, clients))
    struck, lower, stays = streams = [EventStream(daemon, connection=one.connection())
                                      for one in remotes]
    assert [one.next().event for one in streams] == ["current"] * 3
    authority.revoke(files[0])
    daemon.reload(configuration(authority, daemon.port, {**clients, "monitor": "viewer"}))
    assert struck.ends() == lower.ends() == []
    daemon.ask("POST", "/v1/tokens", {"role": "viewer"})
    assert stays.next().body["kind"] == "token_created"
    stays.close()


def test_a_wrong_configuration_changes_nothing(daemon, authority):
    monitor = Remote(daemon, authority.issue("monitor"))
    idle = monitor.connection()
    assert monitor.ask("GET", "/v1/pfs", connection=idle).status == 200
    daemon.reload(configuration(authority, daemon.port, {}, "[limits]\nchanges_burst = 0\n"))
    said = daemon.said()
    assert "the configuration is not reloaded" in said
    assert f"at={daemon.folder}/vfmgr.toml:8" in said, said
    daemon.reload(configuration(authority, daemon.port, {"monitor": "viewer"}).replace(
        str(authority.crl), str(authority.crl) + ".none"))
    assert "can't load the revocation lists" in daemon.said()
    assert monitor.ask("GET", "/v1/pfs", connection=idle).status == 200
    daemon.reload(configuration(authority, daemon.port + 1, {"monitor": "viewer"}))
    assert "only a restart applies it key=listen.tls.port" in daemon.said().replace('"', "")
    assert monitor.status() == 200


def test_tokens_expire_unless_somebody_asks_for_ever(daemon):
    def days(body):
        token = daemon.ask("POST", "/v1/tokens", {"role": "viewer", **body})[1]
        if token["expires_at"] is None:
            return None, token["never_expires"]
        until_then = datetime.fromisoformat(token["expires_at"].replace("Z", "+00:00"))
        return round((until_then - datetime.now(timezone.utc)).total_seconds() / 86400), False

    assert days({}) == (90, False)
    assert days({"expires_in_seconds": 86400}) == (1, False)
    assert days({"days": 7}) == (7, False)
    assert days({"never_expires": True}) == (None, True)
    for wrong in ({"never_expires": True, "days": 1}, {"expires_at": "2020-01-31T12:00:00.000Z"},
                  {"expires_in_seconds": 59}):
        assert daemon.ask("POST", "/v1/tokens", {"role": "viewer", **wrong})[0].status == 422


def test_scopes_narrow_a_token(daemon):
    answer, made = daemon.ask("POST", "/v1/tokens", {"role": "admin", "scopes": ["vms", "tokens"]})
    assert answer.status == 201
    scoped = Remote(daemon, token=made["token"])
    assert [scoped.status(path=path) for path in ("/v1", "/livez", "/v1/vms")] == [200] * 3
    refused = scoped.ask("GET", "/v1/pfs")
    assert refused.status == 403 and "needs scope pfs" in refused.body["detail"]
    assert scoped.ask("POST", "/v1/tokens", '{"role": "viewer"}').status == 403
    made = daemon.ask("POST", "/v1/tokens", {"role": "viewer", "scopes": ["metrics"]})[1]
    scraper = Remote(daemon, token=made["token"])
    assert [scraper.status(path=path) for path in ("/metrics", "/v1/pfs")] == [200, 403]
    answer, typo = daemon.ask("POST", "/v1/tokens", {"role": "viewer", "scopes": ["vm"]})
    assert answer.status == 422 and "attachments" in typo["remedy"], typo


def test_a_token_that_is_replaced_loses_its_connections(daemon):
    path = operation_that_stays(daemon)
    made = daemon.ask("POST", "/v1/tokens", {"role": "admin"})[1]
    before = Remote(daemon, token=made["token"])
    thread, became = waiting(before, path)
    wait_until_asked(daemon, path, [before])
    used = [one for one in daemon.ask("GET", "/v1/tokens")[1]["items"] if one["id"] == made["id"]]
    assert used[0]["last_used_from"] == "address:127.0.0.1"
    own = before.connection()
    rotated = before.ask("POST", f"/v1/tokens/{made['id']}/rotate", connection=own)
    assert rotated.status == 200, "the answer with the new secret still comes"
    thread.join(30)
    assert became and became[0] != 200
    assert before.status() == 401
    after = Remote(daemon, token=rotated.body["token"])
    assert after.status() == 200
    thread, became = waiting(after, path)
    wait_until_asked(daemon, path, [after])
    assert daemon.ask("DELETE", f"/v1/tokens/{made['id']}")[0].status == 204
    thread.join(30)
    assert became and became[0] != 200
    let_it_end(daemon, path)


def test_the_daemons_own_certificate_names_the_host_and_stays(daemon):
    pem = (daemon.folder / "state/tls.crt").read_text()
    trust = ssl.create_default_context(cadata=pem)
    with socket.create_connection(("127.0.0.1", daemon.port)) as plain:
        with trust.wrap_socket(plain, server_hostname=socket.gethostname()) as secure:
            assert secure.version() == "TLSv1.3"
    daemon.end()
    daemon.start()
    assert (daemon.folder / "state/tls.crt").read_text() == pem
