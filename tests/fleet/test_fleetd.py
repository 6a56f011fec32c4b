# SPDX-License-Identifier: Apache-2.0
"""vfmgr-fleetd from outside, where no etcd answers: it starts, says so, and answers what it can."""

import signal
import subprocess
import sys
import threading
from pathlib import Path

import jsonschema
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

from fleetd import FLEETD, Fleetd  # noqa: E402

from certificates import Authority  # noqa: E402, I001


@pytest.fixture(scope="module")
def fleet_ca(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("ca"))


@pytest.fixture
def fleetd(tmp_path, fleet_ca):
    daemon = Fleetd(tmp_path / "fleet1", fleet_ca)
    yield daemon
    if daemon.process.poll() is None:
        daemon.end()


def test_it_lives_without_etcd_and_says_that_it_is_not_ready(fleetd):
    assert fleetd.ask("GET", "/livez")[1] == {"alive": True}
    answer, readiness = fleetd.ask("GET", "/readyz")
    assert answer.status == 503 and answer.headers["Retry-After"] == "5"
    assert readiness == {"ready": False, "not_ready": ["etcd"]}
    assert fleetd.call("GET", "/readyz", connection=fleetd.remote()).status == 503


def test_it_names_itself_and_what_it_has(fleetd):
    about = fleetd.ask("GET", "/v1")[1]
    assert (about["name"], about["api"]) == ("vfmgr-fleetd", "v1")
    for link in about["links"]:
        answer = fleetd.call("GET", link)
        if answer.status == 503:  # what is in etcd, which it has not read
            assert "has not read etcd yet" in answer.body["detail"], answer
        else:
            assert answer.status == 200, link


def validated(document, schema, body):
    whole = {"$schema": "https://json-schema.org/draft/2020-12/schema",
             "$ref": f"#/components/schemas/{schema}", **document}
    jsonschema.Draft202012Validator(whole).validate(body)


def test_answers_are_as_its_document_says(fleetd):
    document = fleetd.ask("GET", "/v1/openapi.json")[1]
    for path, schema in (("/v1", "FleetAbout"), ("/livez", "Liveness"),
                         ("/readyz", "FleetReadiness"),
                         ("/v1/problems/conflict", "ProblemExplanation"),
                         ("/v1/audit", "AuditEntryList"), ("/v1/nothing", "Problem")):
        validated(document, schema, fleetd.ask("GET", path)[1])


def test_roles_are_those_of_users_and_of_certificates(fleetd, fleet_ca):
    assert fleetd.call("GET", "/v1").status == 200, "an admin by uid"
    person = fleet_ca.issue("person.example")
    assert fleetd.call("GET", "/v1", connection=fleetd.remote()).status == 401
    assert fleetd.call("GET", "/v1", connection=fleetd.remote(person)).status == 403
    fleetd.reload('[tls.clients]\n"person.example" = "viewer"\n')
    assert fleetd.call("GET", "/v1", connection=fleetd.remote(person)).status == 200
    refused = fleetd.call("GET", "/v1/audit", connection=fleetd.remote(person))
    assert refused.status == 403
    entry = next(one for one in fleetd.ask("GET", "/v1/audit")[1]["items"]
                 if one["who"] == "cert:person.example")
    assert (entry["action"], entry["outcome"]) == ("GET /v1/audit", "403")
    assert entry["from"] == "address:127.0.0.1"
    assert 'request who=cert:person.example from=address:127.0.0.1 action="GET /v1/audit" ' \
           "status=403" in fleetd.said()


def test_a_request_for_another_site_is_refused_and_told_which_file(fleetd):
    answer, problem = fleetd.ask("GET", "/v1", connection=fleetd.remote(), Host="evil.example")
    assert answer.status == 403 and "/etc/vfmgr/fleetd.toml" in problem["remedy"]


def test_metrics_are_prometheus(fleetd):
    fleetd.ask("GET", "/v1")
    text = fleetd.call("GET", "/metrics").body
    assert 'vfmgr_api_requests_total{code="200",method="GET",route="/v1"} 1\n' in text
    assert "vfmgr_fleet_requests_running 1\n" in text


def test_many_clients_are_answered_at_once(fleetd):
    statuses = []

    def scrape():
        statuses.extend(fleetd.call("GET", "/metrics").status for _ in range(5))

    threads = [threading.Thread(target=scrape) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert statuses == [200] * 80


def test_a_wrong_configuration_leaves_the_one_before(fleetd):
    fleetd.reload("[limits]\nchanges_burst = 0\n")
    assert "limits.changes_burst must be a whole number from 1 to 1000000" in fleetd.said()
    assert fleetd.call("GET", "/livez").status == 200
    fleetd.reload("[limits]\nchanges_burst = 7\nworker_threads = 5\n")
    said = fleetd.said()
    assert "configuration changed key=limits.changes_burst from=100 to=7" in said
    assert "only a restart applies it key=limits.worker_threads from=32 to=5" in said


def test_a_renewed_certificate_is_served_after_a_reload(fleetd, fleet_ca):
    def served():
        connection = fleetd.remote()
        connection.connect()
        try:
            return connection.sock.getpeercert(binary_form=True)
        finally:
            connection.close()
    before = served()
    fleetd.certificate, fleetd.key = fleet_ca.issue(
        "renewed", "IP:127.0.0.1", "serverAuth,clientAuth")
    fleetd.reload("")
    assert served() != before


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_it_ends_when_it_is_told_to(fleetd, how):
    fleetd.process.send_signal(how)
    assert fleetd.process.wait(30) == 0
    assert f"stopping signal={int(how)}" in fleetd.said()


def check(folder, config):
    (folder / "fleetd.toml").write_text(config)
    done = subprocess.run([FLEETD, "--config", folder / "fleetd.toml", "--config-dir",
                           folder / "none", "--check-config"], capture_output=True, text=True)
    return done.returncode, done.stderr


def test_check_config_names_what_is_wrong(tmp_path, fleet_ca):
    status, said = check(tmp_path, 'name = "a"\ncolour = 1\n')
    assert status == 1 and f"{tmp_path}/fleetd.toml:2: colour is not known" in said
    certificate, key = fleet_ca.issue("checked", "IP:127.0.0.1", "serverAuth,clientAuth")
    config = ('name = "a"\nurl = "https://a:8480"\netcd.endpoints = ["https://10.0.0.1:2379"]\n'
              'listen.unix.group = "root"\nroles.groups.vfmgr = "none"\n[listen.tls]\n'
              f'certificate_file = "{certificate}"\nkey_file = "{key}"\n')
    assert check(tmp_path, f'{config}ca_file = "{fleet_ca.file}"\n') == (0, "")
    status, said = check(tmp_path, f'{config}ca_file = "{tmp_path}/none.pem"\n')
    assert status == 1 and "at=listen.tls" in said and "at=etcd" in said
