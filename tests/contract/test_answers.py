# SPDX-License-Identifier: Apache-2.0
"""The real daemon gives every answer that the documents describe, and no other; it accepts bodies
that the schemas call good, and refuses those that they call bad."""

import functools
import http.client
import json
import os
import ssl
import tempfile
from pathlib import Path

import api_answers
import guest_answers
import other_answers
import pytest
from described import Document
from generated import Bodies
from live_daemon import Answer, Daemon, UnixConnection, free_port


class Asker:
    """Judges each answer by the document, and remembers which of the described answers came."""

    def __init__(self, name):
        self.document, self.came, self.said = Document(name), set(), []

    def ask(self, operation, call, method, path, **how):
        answer = call(method, path, **how)
        self.said.append(f"{method} {path}: {answer}")
        try:
            self.came.add(self.document.judge(operation, answer))
        except AssertionError as wrong:
            raise AssertionError(f"{method} {path} {how}: {wrong}") from None
        return answer

    def judge(self, operation, response, connection):
        answer = Answer(response)
        connection.close()
        self.came.add(self.document.judge(operation, answer))
        return answer


@pytest.fixture(scope="module")
def folder():
    """Any user can reach its sockets, as the tests connect as `nobody`, too."""
    with tempfile.TemporaryDirectory() as made:
        os.chmod(made, 0o755)
        for name in ("wide", "narrow"):
            (Path(made) / name).mkdir(mode=0o755)
        yield Path(made)


@pytest.fixture(scope="module")
def wide(folder):
    tls = f"[listen.tls]\nenabled = true\nport = {free_port()}\n"  # fleets come by it
    daemon = Daemon(folder / "wide", api_answers.HOST,
                    api_answers.CONFIG + api_answers.LIMITS + tls,
                    addresses=guest_answers.ADDRESSES)
    api_answers.set_up(daemon)
    yield daemon
    daemon.end()


@pytest.fixture(scope="module")
def responder_port():
    return free_port()


@pytest.fixture(scope="module")
def narrow(folder, responder_port):
    daemon = Daemon(folder / "narrow", api_answers.HOST,
                    api_answers.CONFIG + other_answers.LIMITS,
                    words=["--responder", folder / "responder", "--responder-port",
                           str(responder_port)])
    api_answers.set_up(daemon)
    yield daemon
    daemon.end()


@pytest.fixture(scope="module")
def api(wide):
    return api_answers.Api(Asker("openapi.yaml"), wide)


@pytest.fixture(scope="module")
def guests(wide):
    return guest_answers.Guests(Asker("openapi-guest.yaml"), wide)


@pytest.fixture(scope="module")
def responders(narrow, folder, responder_port):
    # A client knows it by its fingerprint, which is not the subject of this test.
    trusting = ssl._create_unverified_context()
    connect = functools.partial(http.client.HTTPSConnection, "127.0.0.1", responder_port,
                                context=trusting, timeout=60)
    token = (folder / "responder/responder.token").read_text().strip()
    return guest_answers.Responders(Asker("openapi-responder.yaml"), narrow, connect, token)


def provoke_all(asker, provoke):
    """Returns the failures, by answer."""
    wrong = {}
    for answer in sorted(asker.document.answers, key=lambda one: (one[0] == "default", one)):
        if answer in asker.came:
            continue
        asker.said.clear()
        try:
            provoke(*answer)
            if answer not in asker.came:
                wrong[answer] = f"did not come: {asker.said[-5:]}"
        except Exception as error:  # of any kind: the others are still tried
            wrong[answer] = f"{type(error).__name__}: {error} {asker.said[-5:]}"[:1500]
    return wrong


def count(asker, wrong, capsys):
    total = asker.document.answers
    with capsys.disabled():
        print(f"\n{asker.document.name}: answers {len(asker.came & total)} of {len(total)}")
    assert not wrong, "\n".join(f"{' '.join(name)}: {why}" for name, why in wrong.items())
    assert asker.came == total


def test_api_gives_every_answer(api, narrow, capsys):
    place = other_answers.Place(api.asker, lambda: UnixConnection(narrow.socket), "/v1")

    def provoke(operation, status, schema):
        if operation == "default" and status in other_answers.API:
            return other_answers.API[status](place, narrow)
        return api.provoke(operation, status, schema)

    count(api.asker, provoke_all(api.asker, provoke), capsys)


def test_guest_plane_gives_every_answer(guests, narrow, capsys):
    near = guest_answers.Guests(guests.asker, narrow)
    place = other_answers.Place(guests.asker, near.connect, "/guest/v1/config",
                                {"X-Vsock-Cid": near.cid})

    def provoke(operation, status, schema):
        if operation == "default" and status in other_answers.GUESTS:
            return other_answers.GUESTS[status](place, narrow)
        if operation == "default" and status in ("500", "502", "504"):
            return near.provoke(operation, status, schema)
        return guests.provoke(operation, status, schema)

    count(guests.asker, provoke_all(guests.asker, provoke), capsys)


def test_responder_gives_every_answer(responders, narrow, capsys):
    place = other_answers.Place(responders.asker, responders.connect, "/responder/v1",
                                responders.headers)

    def provoke(operation, status, schema):
        if operation == "default" and status in other_answers.TRANSPORT:
            return other_answers.TRANSPORT[status](place, narrow)
        return responders.provoke(operation, status, schema)

    count(responders.asker, provoke_all(responders.asker, provoke), capsys)


def violates(answer):
    """Whether the body was read, and refused for what is in it."""
    assert answer.status != 400, answer
    return (answer.status == 422 and answer.body["code"] == "invalid_request"
            and len(answer.body["violations"]) > 0)


def judge_bodies(document, operation, base, ask, rules, capsys):
    """`rules` maps paths where the server has a rule that the schema lacks to the reason."""
    bodies, wrong, used = Bodies(document, document.operations[operation].body, base), [], set()
    for good, pairs in ((True, bodies.good), (False, bodies.bad)):
        for path, body in pairs:
            answer, place = ask(json.dumps(body)), "/".join(map(str, path))
            refused = violates(answer)
            if good and refused and place in rules:
                used.add(place)
            elif refused == good:
                wrong.append(f"{'good' if good else 'bad'} {place}: {answer}: {body!r}"[:500])
    with capsys.disabled():
        print(f"\n{document.name} {operation}: {len(bodies.good)} good bodies taken, "
              f"{len(bodies.bad)} bad ones refused" if not wrong else "")
    assert bodies.bad and not wrong, f"{len(wrong)} of them\n" + "\n".join(wrong)
    assert used == set(rules), "these rules are none"


@pytest.mark.parametrize("operation", api_answers.WHOLE)
def test_api_judges_bodies_as_its_document_does(api, operation, capsys):
    judge_bodies(api.asker.document, operation, api_answers.WHOLE[operation],
                 lambda body: api.ask(operation, "?dry_run=true", body),
                 api_answers.RULES.get(operation, {}), capsys)


@pytest.mark.parametrize("operation", guest_answers.WHOLE)
def test_guest_plane_judges_bodies_as_its_document_does(guests, operation, capsys):
    judge_bodies(guests.asker.document, operation, guest_answers.WHOLE[operation],
                 guests.asking(operation), guest_answers.RULES.get(operation, {}), capsys)


@pytest.mark.parametrize("operation", guest_answers.RESPONDERS_WHOLE)
def test_responder_judges_bodies_as_its_document_does(responders, operation, capsys):
    judge_bodies(responders.asker.document, operation, guest_answers.RESPONDERS_WHOLE[operation],
                 lambda body: responders.ask(operation, body),
                 guest_answers.RULES.get(operation, {}), capsys)
