# SPDX-License-Identifier: Apache-2.0
"""vf-guest's metrics, as Prometheus' own reader understands them."""

import json
import os
import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

ROOT = Path(__file__).resolve().parent.parent.parent
GOLDEN = ROOT / "tests/fixtures/metrics.prom"
EXAMPLES = ROOT / "api/examples"
VF_GUEST = Path(os.environ.get("VFMGR_BUILD_DIR", ROOT / "build/asan")) / "guest-tools/vf-guest"


def families(text):
    return {family.name: family for family in text_string_to_metric_families(text)}


def sound(text):
    """Checks that the reader accepts it, and the further rules of Prometheus' naming guide."""
    found = families(text)
    assert found
    for name, family in found.items():
        assert re.fullmatch(r"vf_guest(_[a-z]+)+", name)
        assert family.documentation and family.type in ("gauge", "summary")
        assert not re.search(r"_(us|ms|mbps|mib|total)(_|$)", name), "base units, and no counter"
        assert family.samples
    series = Counter((sample.name, *sorted(sample.labels.items()))
                     for family in found.values() for sample in family.samples)
    assert series.most_common(1)[0][1] == 1, "a series that is there twice spoils the whole file"
    return found


def values(family, **labels):
    return [sample.value for sample in family.samples
            if labels.items() <= {**sample.labels, "is": sample.name}.items()]


def test_the_golden_file_reads_as_meant():
    found = sound(GOLDEN.read_text())
    assert values(found["vf_guest_info"], version="1.2.3") == [1]
    assert values(found["vf_guest_configured"], attachment="77777777") == [0]
    good = {"attachment": "3f9c2b1d", "ifname": "enp7s0", "rdma_device": "rxe_3f9c"}
    assert values(found["vf_guest_verification_pass"], **good) == [1]
    assert values(found["vf_guest_verification_pass"], attachment="77777777") == [0]
    assert values(found["vf_guest_verification_timestamp_seconds"], **good) == [1769860812.34]
    assert values(found["vf_guest_verification_duration_seconds"], **good) == [12.34]
    assert values(found["vf_guest_test_bandwidth_bytes_per_second"], test="rdma_write",
                  **good) == [24179000]
    assert values(found["vf_guest_test_achieved_ratio"], **good) == [0.47]
    assert values(found["vf_guest_test_lost_messages"], test="ud_ping", **good) == [2]
    assert values(found["vf_guest_verification_warnings"], **good) == [1]
    latency = found["vf_guest_test_latency_seconds"]
    assert latency.type == "summary"
    assert values(latency, quantile="0.99", test="write_latency", **good) == [0.00032025]
    assert values(latency, **{"is": "vf_guest_test_latency_seconds_count"},
                  test="write_latency") == [5000]
    assert values(found["vf_guest_verification_lost_packets"], side="guest") == [820]


def test_labels_come_back_as_they_were():
    verdicts = families(GOLDEN.read_text())["vf_guest_test_verdict"]
    assert 'a "strange\\\n name' in {sample.labels["test"] for sample in verdicts.samples}


def vf_guest(*words):
    return subprocess.run([VF_GUEST, *map(str, words)], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True)


@pytest.fixture
def reports(tmp_path):
    """The reports that vf-guest stores for two attachments, in its own format."""
    folder = tmp_path / "reports"
    folder.mkdir()
    for name, attachment in (("verification", "aaaaaaaa"), ("verification-failed", "bbbbbbbb")):
        verification = json.loads((EXAMPLES / f"{name}.json").read_text())
        (folder / f"{attachment}.json").write_text(
            json.dumps({**verification, "attachment": attachment, "ifname": "eth1"}))
    return folder


def test_a_report_is_printed_and_measured(reports, tmp_path):
    file = tmp_path / "vf_guest.prom"
    places = ("--reports", reports, "--state", tmp_path / "none")
    shown = vf_guest(*places, "report", "-o", "json", "--metrics", file)
    assert (shown.returncode, shown.stderr) == (1, "")
    assert [(each["attachment"], each["verdict"], each["ifname"])
            for each in json.loads(shown.stdout)] == [("aaaaaaaa", "pass", "eth1"),
                                                      ("bbbbbbbb", "fail", "eth1")]
    found = sound(file.read_text())
    assert values(found["vf_guest_verification_pass"], ifname="eth1") == [1, 0]
    assert file.stat().st_mode & 0o777 == 0o644
    one = vf_guest(*places, "report", "--attachment", "aaaaaaaa")
    assert one.returncode == 0 and one.stdout.startswith("attachment aaaaaaaa: pass\n")
    assert "bbbbbbbb" not in one.stdout


def test_a_damaged_report_is_named_and_hides_no_other(reports):
    (reports / "cccccccc.json").write_text("{")
    shown = vf_guest("--reports", reports, "report", "--attachment", "aaaaaaaa")
    assert (shown.returncode, shown.stderr) == (0, "")
    shown = vf_guest("--reports", reports, "report", "-o", "json")
    assert shown.returncode == 1 and len(json.loads(shown.stdout)) == 2
    assert f"{reports}/cccccccc.json" in shown.stderr and "remedy: " in shown.stderr


def test_nothing_yet_is_said_with_the_remedy(tmp_path):
    shown = vf_guest("--reports", tmp_path / "none", "report", "-o", "json")
    assert (shown.returncode, json.loads(shown.stdout)) == (3, [])
    assert shown.stderr == ("vf-guest: no VF of this VM has been verified yet\n"
                            "  remedy: verify now: vf-guest verify\n")


def test_metrics_that_cant_be_written_are_a_failure(reports, tmp_path):
    shown = vf_guest("--reports", reports, "report", "--attachment", "aaaaaaaa",
                     "--metrics", tmp_path / "gone/vf_guest.prom")
    assert shown.returncode == 1 and "gone/vf_guest.prom can't be written" in shown.stderr
