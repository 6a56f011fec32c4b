# SPDX-License-Identifier: Apache-2.0
"""GET /metrics, as Prometheus' own reader understands it."""

import pytest
from live_daemon import Daemon
from prometheus_client.parser import text_string_to_metric_families

VM = "11111111-1111-1111-1111-111111111111"
PF = "0000:01:00.0"
HOST = {"pfs": [{"model": "igb", "pci": PF, "ifname": "enp1s0"}],
        "vms": [{"name": "vm1", "uuid": VM}]}


@pytest.fixture(name="daemon", scope="module")
def running(tmp_path_factory):
    started = Daemon(tmp_path_factory.mktemp("prometheus"), HOST)
    yield started
    started.end()


def value(text, name, **labels):
    samples = [sample for family in text_string_to_metric_families(text)
               for sample in family.samples]
    return sum(one.value for one in samples
               if one.name == name and labels.items() <= one.labels.items())


def test_operations_are_counted_when_they_have_ended(daemon):
    daemon.do("PUT", f"/v1/pfs/{PF}/spec", {"mode": "manage", "num_vfs": 2})
    before = daemon.ask("GET", "/metrics")[1]
    ended = daemon.do("POST", "/v1/attachments", {"vm": "vm1", "pf": PF})
    answer, after = daemon.ask("GET", "/metrics")
    assert answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    took = "vfmgr_operation_duration_seconds"
    assert value(before, took + "_count", kind="attach", state="succeeded") == 0
    assert value(after, took + "_count", kind="attach", state="succeeded") == 1
    assert "# TYPE vfmgr_operation_duration_seconds histogram" in after
    spans = "vfmgr_operation_span_seconds"
    steps = sum(one["took_us"] for one in ended["spans"] if one["kind"] == "step") / 1e6
    assert value(after, spans + "_count", kind="attach", span="step") == 1
    spent = value(after, spans + "_sum", kind="attach", span="step")
    assert spent == pytest.approx(steps, abs=1e-6)
    assert value(after, "vfmgr_build_info", version="0.1.0") == 1
