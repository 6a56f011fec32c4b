# SPDX-License-Identifier: Apache-2.0
"""Every answer that the documents describe is had of the real daemon, and no other comes."""

import os
import tempfile
from pathlib import Path

import other_answers
import pytest
from api_answers import CONFIG, HOST, Api
from described import Document
from live_daemon import Answer, Daemon, UnixConnection

class Asker:
    """Judges what comes by the document, and remembers which of its answers came."""

    def __init__(self, document):
        self.document, self.came, self.said = document, set(), []

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
    """Also nobody comes to its sockets."""
    with tempfile.TemporaryDirectory() as made:
        os.chmod(made, 0o755)
        for name in ("wide", "narrow"):
            (Path(made) / name).mkdir(mode=0o755)
        yield Path(made)


@pytest.fixture(scope="module")
def wide(folder):
    daemon = Daemon(folder / "wide", HOST, CONFIG, addresses=["192.168.100.1/24"])
    yield daemon
    daemon.end()


@pytest.fixture(scope="module")
def narrow(folder):
    daemon = Daemon(folder / "narrow", HOST, CONFIG + other_answers.LIMITS)
    yield daemon
    daemon.end()


@pytest.fixture(scope="module")
def api(wide):
    return Api(Asker(Document("openapi.yaml")), wide)


def provoke_all(asker, provoke):
    """What went wrong, by answer."""
    wrong = {}
    for answer in sorted(asker.document.answers - asker.came):
        if answer in asker.came:
            continue
        asker.said.clear()
        try:
            provoke(*answer)
            if answer not in asker.came:
                wrong[answer] = f"did not come: {asker.said[-5:]}"
        except Exception as error:  # whatever it was: the others are asked all the same
            wrong[answer] = f"{type(error).__name__}: {error} {asker.said[-5:]}"[:1500]
    return wrong


def count(asker, wrong):
    total = asker.document.answers
    print(f"\n{asker.document.name}: answers {len(asker.came & total)} of {len(total)}")
    assert not wrong, "\n".join(f"{' '.join(name)}: {why}" for name, why in wrong.items())
    assert asker.came == total, sorted(total - asker.came)


def test_api_gives_every_answer(api, narrow):
    place = other_answers.Place(api.asker, lambda: UnixConnection(narrow.socket), "/v1")

    def provoke(operation, status, schema):
        if operation == "default" and status in other_answers.API:
            return other_answers.API[status](place, narrow)
        return api.provoke(operation, status, schema)

    count(api.asker, provoke_all(api.asker, provoke))
