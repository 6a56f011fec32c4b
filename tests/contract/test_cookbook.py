# SPDX-License-Identifier: Apache-2.0
"""Every block of api/COOKBOOK.md runs as it is written, in its order, against a live daemon."""

import os
import re
import subprocess

import pytest
from live_daemon import Daemon
from pages import blocks_of
from test_client import compiled
from test_vfctl_hosts import free_port

PF = "0000:01:00.0"
HOST = {"pfs": [{"model": "mlx5", "pci": PF, "ifname": "enp1s0"}],
        "vms": [{"name": "vm1", "uuid": "11111111-1111-1111-1111-111111111111"}],
        "gids": ["192.168.100.1"]}
NETWORK = {"prefix": "192.168.100.0/24", "pfs": [{"pf": PF, "host_address": "192.168.100.1"}]}
BLOCKS = blocks_of("api/COOKBOOK.md")
PRINTED = {1: "true", 2: f"{PF}/0", 3: "job-7", 4: "to vfio-pci", 5: "succeeded\n",
           6: "failed\nVM vm1 did not report within 5 s", 7: "data: {", 8: "succeeded",
           9: "succeeded\nflr", 10: "invalid_request\n/vm"}


@pytest.fixture(name="host")
def running(tmp_path):
    port = free_port()
    daemon = Daemon(tmp_path, HOST, f"[listen.tls]\nenabled = true\nport = {port}\n")
    for path, body in (("/v1/networks/lab", NETWORK),
                       ("/v1/pools/train", {"select": {"pfs": [PF]},
                                            "defaults": {"network": "lab"}})):
        answer, problem = daemon.ask("PUT", path, body)
        assert answer.status == 200, problem
    daemon.do("PUT", f"/v1/pfs/{PF}/spec", {"mode": "manage", "num_vfs": 4})
    token = daemon.ask("POST", "/v1/tokens", {"role": "operator"})[1]["token"]
    certificate = str(tmp_path / "state/tls.crt")
    yield daemon, {**os.environ, "VFMGR": f"https://127.0.0.1:{port}", "VFMGR_TOKEN": token,
                   "VFMGR_CA": certificate, "NODE_EXTRA_CA_CERTS": certificate}
    daemon.end()


def test_the_blocks_for_curl(host):
    daemon, environment = host
    blocks = [block.text for block in BLOCKS if block.language == "sh"]
    assert len(blocks) == 1 + len(PRINTED), "one that says where the host is, and the calls"
    script = "".join(f"{text}\necho '<end of block {number}>'\n"
                     for number, text in enumerate(blocks))
    done = subprocess.run(["bash", "-euo", "pipefail", "-c", script], env=environment, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120)
    said = re.split(r"<end of block \d+>\n", done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr + daemon.said()
    for number, text in PRINTED.items():
        assert text in said[number], f"call {number} printed:\n{said[number]}{done.stderr}"
    assert daemon.ask("GET", "/v1/attachments")[1]["items"] == []


def test_the_generated_client(host, tmp_path):
    daemon, environment = host
    folder = tmp_path / "client"
    folder.mkdir()
    source, = (block.text for block in BLOCKS if block.language == "ts")
    client = compiled(folder, source)
    done = subprocess.run(["node", client], env=environment, text=True, timeout=60,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert done.returncode == 0, done.stderr + daemon.said()
    assert re.fullmatch(r"vm1 has 0000:\S+ with MAC \S+\n", done.stdout), done.stdout
    assert daemon.ask("GET", "/v1/attachments")[1]["items"] == []


def test_every_block_has_a_language_that_is_run():
    assert {block.language for block in BLOCKS} == {"sh", "ts"}
    assert not any(block.why for block in BLOCKS)
