# SPDX-License-Identifier: Apache-2.0
"""The real vfmgrd on fakes: what a stop and the next start do to the clients of that moment."""

import shutil
import signal
import threading

from live_daemon import Daemon, until

PF, OTHER = "0000:01:00.0", "0000:02:00.0"
SPEC = {"mode": "manage", "num_vfs": 2}
FOREVER = 600_000  # milliseconds: longer than any test


def host(**more):
    return {"pfs": [{"model": "igb", "pci": pci, "ifname": name}
                    for pci, name in ((PF, "enp1s0"), (OTHER, "enp2s0"))], **more}


def begun(daemon):
    """Returns an operation that stays at its first step."""
    daemon.happen(step_milliseconds=FOREVER)
    answer, operation = daemon.ask("PUT", f"/v1/pfs/{PF}/spec", SPEC)
    assert answer.status == 202, operation
    path = f"/v1/operations/{operation['id']}"
    until(lambda: [step["state"] for step in daemon.ask("GET", path)[1]["steps"]][:1]
          == ["intended"], "no step begins")
    return path


def folder(tmp_path, name):
    (tmp_path / name).mkdir()
    return tmp_path / name


def test_a_stop_answers_who_waits(tmp_path):
    daemon = Daemon(folder(tmp_path, "one"), host())
    path = begun(daemon)
    answers = []
    asking = threading.Thread(
        target=lambda: answers.append(daemon.ask("GET", path + "?wait=60")))
    asking.start()
    # The request waits once a later one was answered twice: each took the control thread's turn.
    for _ in range(2):
        assert daemon.ask("GET", path)[0].status == 200
    daemon.process.send_signal(signal.SIGTERM)
    asking.join(15)
    assert answers, "nothing came for 15 s"
    answer, operation = answers[0]
    assert (answer.status, operation["state"]) == (200, "running")
    daemon.happen(step_milliseconds=0)
    assert daemon.process.wait(60) == 0, daemon.said()


def test_a_start_serves_while_it_recovers(tmp_path):
    first = Daemon(folder(tmp_path, "one"), host())
    path = begun(first)
    first.process.kill()
    first.process.wait(60)
    shutil.copytree(first.folder / "state", folder(tmp_path, "two") / "state")
    # The daemon reports READY before the first step of the undo can end.
    second = Daemon(tmp_path / "two", host(step_milliseconds=FOREVER))
    assert second.ask("GET", "/v1/pfs")[0].status == 200
    assert second.ask("GET", path)[1]["state"] == "running"
    answer, problem = second.ask("PUT", f"/v1/pfs/{PF}/spec", SPEC)
    assert (answer.status, problem["code"]) == (503, "unavailable")
    assert f"pf {PF} is in recovery" in problem["detail"]
    assert f"vfctl op wait {path.rsplit('/', 1)[1]}" in problem["remedy"]
    assert answer.headers["Retry-After"]
    answer, elsewhere = second.ask("PUT", f"/v1/pfs/{OTHER}/spec", SPEC)
    assert answer.status == 202
    second.happen(step_milliseconds=0)
    ended = second.ask("GET", path + "?wait=30")[1]
    assert ended["state"] == "failed"
    assert "its changes were undone" in ended["problem"]["detail"]
    for operation in (elsewhere, accepted(second)):
        now = second.ask("GET", f"/v1/operations/{operation['id']}?wait=30")[1]
        assert now["state"] == "succeeded", now
    second.process.terminate()
    assert second.process.wait(60) == 0, second.said()


def accepted(daemon):
    """Retries, because the PF is free again only a moment after the operation's end."""
    def asked():
        answer, said = daemon.ask("PUT", f"/v1/pfs/{PF}/spec", SPEC)
        assert answer.status in (202, 503), said
        return answer.status == 202 and said

    return until(asked, "the PF was not free")
