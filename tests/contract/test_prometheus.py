# SPDX-License-Identifier: Apache-2.0
"""GET /metrics, as Prometheus' own reader understands it."""

import json
import re
from collections import Counter
from pathlib import Path

import pytest
from live_daemon import Daemon
from prometheus_client.parser import text_string_to_metric_families

DEPLOY = Path(__file__).resolve().parent.parent.parent / "deploy"
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
    assert value(after, "vfmgr_build_info", version="0.2.0") == 1
    kinds = [span["step"] for span in ended["spans"] if span["kind"] == "step"]
    for kind, number in Counter(kinds).items():
        assert value(after, "vfmgr_step_duration_seconds_count", step=kind, undo="false") >= number
    assert value(after, "vfmgr_operations_total", kind="attach", state="succeeded") == 1
    assert value(after, "vfmgr_events_total", kind="attached") == 1


def test_the_host_is_measured_as_it_is_published(daemon):
    text = daemon.ask("GET", "/metrics")[1]
    states = [vf["state"] for vf in daemon.ask("GET", "/v1/vfs")[1]["items"]]
    assert {state: value(text, "vfmgr_vfs", pf=PF, state=state) for state in set(states)} == \
        Counter(states)
    assert value(text, "vfmgr_attachments", state="attached") == states.count("attached")
    assert value(text, "vfmgr_pf_info", pf=PF, ifname="enp1s0", mode="manage") == 1
    assert value(text, "vfmgr_store_size_bytes") > 4096
    assert value(text, "process_open_fds") > 10


def test_requests_are_counted_by_route_and_never_by_path(daemon):
    for number in range(3):
        daemon.ask("GET", f"/v1/pfs/0000:7f:0{number}.0")
        daemon.ask("GET", f"/nowhere/{number}")
    text = daemon.ask("GET", "/metrics")[1]
    assert value(text, "vfmgr_api_requests_total", route="/v1/pfs/{pci}", code="404") == 3
    assert value(text, "vfmgr_api_requests_total", route="", code="404") == 3
    assert "7f:0" not in text and "nowhere" not in text


def test_dashboard_and_rules_ask_for_series_that_exist(daemon):
    there = set()
    for family in text_string_to_metric_families(daemon.ask("GET", "/metrics")[1]):
        ends = {"histogram": ("_bucket", "_count", "_sum"), "counter": ("_total",)}
        there |= {family.name + end for end in ends.get(family.type, ("",))}
    panels = json.loads((DEPLOY / "grafana/vfmgr.json").read_text())["panels"]
    asked = [target["expr"] for panel in panels for target in panel.get("targets", [])]
    asked += re.findall(r"expr: (?:>-\n)?(.*?)\n +(?:for|labels):",
                        (DEPLOY / "prometheus/vfmgr.rules.yml").read_text(), re.DOTALL)
    assert len(asked) > 30
    for expression in asked:
        names = set(re.findall(r"\b(?:vfmgr|process)_[a-z_]+", expression))
        assert names <= there, f"{expression}: {names - there}"
        assert names or expression.startswith(("up", "count(up"))
