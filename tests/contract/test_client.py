# SPDX-License-Identifier: Apache-2.0
"""A client in TypeScript, on types generated from the document, drives the live daemon."""

import json
import os
import subprocess

import pytest
from live_daemon import Daemon
from test_linters import ROOT, TOOLS
from test_vfctl_hosts import free_port

PF = "0000:01:00.0"
HOST = {"pfs": [{"model": "igb", "pci": PF, "ifname": "enp1s0"}],
        "vms": [{"name": "vm1", "uuid": "11111111-1111-1111-1111-111111111111"}]}
SOURCE = ROOT / "tests/contract/documents/client.ts"
STRICT = ["--strict", "--noUncheckedIndexedAccess", "--target", "es2022", "--module", "nodenext",
          "--types", "node"]


def compiled(folder, source):
    """Compiles a client's source with types of the document; returns what Node runs."""
    (folder / "node_modules").symlink_to(TOOLS / "node_modules")
    (folder / "package.json").write_text('{"type": "module"}')
    (folder / "client.ts").write_text(source)
    for words in (["openapi-typescript", ROOT / "api/openapi.yaml", "-o", "vfmgr.ts",
                   "--default-non-nullable=false"],
                  ["tsc", *STRICT, "client.ts"]):
        done = subprocess.run([TOOLS / "node_modules/.bin" / words[0], *map(str, words[1:])],
                              cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True)
        assert done.returncode == 0, done.stdout
    return folder / "client.js"


@pytest.fixture(name="client", scope="module")
def client_of_the_tests(tmp_path_factory):
    return compiled(tmp_path_factory.mktemp("client"), SOURCE.read_text())


def test_it_attaches_follows_the_events_and_detaches(client, tmp_path):
    port = free_port()
    daemon = Daemon(tmp_path, HOST, f"[listen.tls]\nenabled = true\nport = {port}\n")
    daemon.do("PUT", f"/v1/pfs/{PF}/spec", {"mode": "manage", "num_vfs": 2})
    token = daemon.ask("POST", "/v1/tokens", {"role": "operator"})[1]["token"]
    done = subprocess.run(
        ["node", client, f"https://127.0.0.1:{port}", token, "vm1", PF], timeout=60, text=True,
        env={**os.environ, "NODE_EXTRA_CA_CERTS": str(tmp_path / "state/tls.crt")},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert done.returncode == 0, done.stderr
    got = json.loads(done.stdout)
    assert got["same"] and got["gone"] == "not_found", got
    assert got["states"] == ["succeeded", "succeeded"]
    numbers = [event["number"] for event in got["events"]]
    assert numbers == sorted(set(numbers))
    kinds = [event["kind"] for event in got["events"]]
    assert kinds.count("attached") == kinds.count("detached") == 1
    kept = daemon.ask("GET", f"/v1/pfs/{PF}/vfs/0/history")[1]["items"]
    stored = {one["number"] for one in kept if one["kind"] in ("attached", "detached")}
    assert len(stored) == 2 and stored <= set(numbers)
    assert daemon.ask("GET", "/v1/attachments")[1]["items"] == []
    daemon.end()
