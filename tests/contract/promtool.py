# SPDX-License-Identifier: Apache-2.0
"""Prometheus' own judge of rules, fed with series that were scraped from a live daemon."""

import json
import os
import subprocess
from pathlib import Path

import yaml
from prometheus_client.parser import text_string_to_metric_families

ROOT = Path(__file__).resolve().parent.parent.parent
RULES = ROOT / "deploy/prometheus/vfmgr.rules.yml"
ALERTS = {rule["alert"]: rule
          for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]}
PROMTOOL = Path(os.environ.get("VFMGR_PROMTOOL", ROOT / "build/promtool/usr/bin/promtool"))
TARGET = {"instance": "host1:8470", "job": "vfmgr"}
MINUTES = 30


def promtool(*words):
    assert PROMTOOL.exists(), f"{PROMTOOL} is missing; tests/run contract unpacks it"
    ended = subprocess.run([PROMTOOL, *map(str, words)], stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, text=True)
    return ended.returncode, ended.stdout


def scraped(daemon):
    """Returns the series of /metrics, as Prometheus adds its target to them."""
    answer, text = daemon.ask("GET", "/metrics")
    assert answer.status == 200, text
    series = {("up", tuple(sorted(TARGET.items()))): 1.0}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            labels = tuple(sorted({**sample.labels, **TARGET}.items()))
            assert (sample.name, labels) not in series, "a series that is there twice"
            series[sample.name, labels] = sample.value
    return series


def down():
    return {("up", tuple(sorted(TARGET.items()))): 0.0}


def number(value):
    """Without an exponent, whose sign promtool takes for that of the next step."""
    return f"{value:.6f}"


def over_time(before, after):
    """Each series goes from one scrape to the other in a straight line. One that the first scrape
    lacks begins at zero, since a counter that nothing has counted yet may have no series."""
    lines = []
    for key, last in after.items():
        first = before.get(key, last if key[0].endswith("_seconds") else 0.0)
        step = (last - first) / MINUTES
        name, labels = key
        text = ",".join(f"{label}={json.dumps(value)}" for label, value in labels)
        sign = "+" if step >= 0 else "-"
        lines.append({"series": f"{name}{{{text}}}",
                      "values": f"{number(first)}{sign}{number(abs(step))}x{MINUTES}"})
    return lines


def test_of(before, after, alerts):
    """A test for promtool that these alerts fire in the end, and no others."""
    samples = [{"labels": "{" + ",".join(f"{label}={json.dumps(value)}"
                                         for label, value in sorted(alert.items())) + "}",
                "value": 1} for alert in alerts]
    expression = 'count by (alertname, pf, vf, kind) (ALERTS{alertstate="firing"})'
    return {"rule_files": [str(RULES)], "evaluation_interval": "1m",
            "tests": [{"interval": "1m", "input_series": over_time(before, after),
                       "promql_expr_test": [{"expr": expression, "eval_time": f"{MINUTES - 1}m",
                                             "exp_samples": samples}]}]}


def judged(folder, before, after, alerts):
    """Returns what promtool has to say against it; empty if nothing."""
    file = folder / "rules_test.json"  # JSON is YAML
    file.write_text(json.dumps(test_of(before, after, alerts)))
    status, said = promtool("test", "rules", file)
    return said if status else ""
