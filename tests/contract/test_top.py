# SPDX-License-Identifier: Apache-2.0
"""vfctl top and /v1/host/traffic of the real vfmgrd on fakes, while packets go through a VF."""

import json
import os
import pty
import select
import subprocess
import threading

import pytest
from live_daemon import Daemon
from vfctl import VFCTL, environment, vfctl

PF, OTHER = "0000:01:00.0", "0000:02:00.0"
HOST = {"pfs": [{"model": "mlx5", "pci": PF, "ifname": "enp1s0"},
                {"model": "igb", "pci": OTHER, "ifname": "enp2s0"}],
        "vms": [{"name": "vm1", "uuid": "11111111-1111-1111-1111-111111111111"}]}
NONE = dict.fromkeys(("rx_packets", "rx_bytes", "rx_dropped", "tx_packets", "tx_bytes",
                      "tx_dropped", "multicast", "broadcast"))


@pytest.fixture(scope="module")
def daemon(tmp_path_factory):
    started = Daemon(tmp_path_factory.mktemp("top"), HOST)
    for pf in (PF, OTHER):
        started.do("PUT", f"/v1/pfs/{pf}/spec", {"mode": "manage", "num_vfs": 4})
    started.do("POST", "/v1/attachments", {"vm": "vm1", "pf": PF, "vf": 3})
    yield started
    started.end()


def count(daemon, index, **counters):
    daemon.happen(traffic={"pf": PF, "index": index, "counters": {**NONE, **counters}})


def test_the_counters_of_vfs_are_listed_by_pf(daemon):
    count(daemon, 1, rx_bytes=1500, rx_packets=1)
    items = daemon.ask("GET", "/v1/host/traffic")[1]["items"]
    assert [item["pf"] for item in items] == [PF, OTHER]
    assert items[0]["vfs"] == [{"index": 1,
                                "counters": {**NONE, "rx_bytes": 1500, "rx_packets": 1}}]
    assert (items[1]["vfs"], items[1]["problem"]) == ([], None)
    daemon.happen(rdma={"pf": PF, "counters": {"out_of_sequence": 7}})
    counted = [item["rdma_hw_counters"]
               for item in daemon.ask("GET", "/v1/host/traffic")[1]["items"]]
    assert counted == [{"out_of_sequence": 7}, {}]
    only = daemon.ask("GET", f"/v1/host/traffic?pf={OTHER}")[1]["items"]
    assert [item["pf"] for item in only] == [OTHER]
    first = daemon.ask("GET", "/v1/host/traffic?limit=1")[1]
    rest = daemon.ask("GET", f"/v1/host/traffic?limit=1&cursor={first['next']}")[1]
    assert [item["pf"] for item in first["items"] + rest["items"]] == [PF, OTHER]
    assert rest["next"] is None


def test_top_shows_rates_while_packets_go_through(daemon):
    ended = threading.Event()

    def send():
        packets = 0
        while not ended.wait(0.02):
            packets += 10
            count(daemon, 3, rx_packets=packets, rx_bytes=1500 * packets, tx_dropped=packets)
    sender = threading.Thread(target=send)
    sender.start()
    try:
        shown = vfctl(daemon, "top", "--interval", "0.5", "--count", "2", "-o", "json").stdout
    finally:
        ended.set()
        sender.join()
    updates = [json.loads(line) for line in shown.splitlines()]
    assert len(updates) == 2 and updates[0]["read_at"] < updates[1]["read_at"]
    row = updates[1]["items"][0]
    assert (row["vf"], row["vm"], row["state"]) == (f"{PF}/3", "vm1", "attached")
    assert row["rx_packets_per_second"] > 0 and row["tx_bits_per_second"] is None
    assert row["rx_bits_per_second"] == pytest.approx(12000 * row["rx_packets_per_second"], rel=0.1)
    assert row["dropped_per_second"] == row["rx_packets_per_second"]


def test_top_ends_by_ctrl_c_without_an_error(daemon):
    with subprocess.Popen([VFCTL, "--host", f"unix:{daemon.socket}", "top", "--interval", "0.2",
                           "-o", "csv"], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline().startswith("vf,vm,verdict,")
        process.send_signal(2)
        process.communicate(timeout=30)
    assert process.returncode == 130


def test_an_interval_that_counters_can_not_tell_is_refused(daemon):
    refused = vfctl(daemon, "top", "--interval", "0", status=2)
    assert "--interval" in refused.stderr


def await_text(terminal, text):
    shown = b""
    while text.encode() not in shown:
        assert select.select([terminal], [], [], 60)[0], shown
        shown += os.read(terminal, 4096)


def test_top_on_a_terminal_waits_for_a_daemon_that_restarts(tmp_path):
    daemon = Daemon(tmp_path, HOST)
    process, terminal = pty.fork()
    if process == 0:
        os.execve(VFCTL, [VFCTL, "--host", f"unix:{daemon.socket}", "top", "--interval", "0.2"],
                  environment(tmp_path))
    await_text(terminal, "0 VFs have a VM")
    daemon.end()
    await_text(terminal, "; trying again")
    daemon.start()
    await_text(terminal, "0 VFs have a VM")
    os.write(terminal, b"\x03")
    assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 130
    os.close(terminal)
    daemon.end()
