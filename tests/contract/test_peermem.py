# SPDX-License-Identifier: Apache-2.0
"""vf-guest peermem: its answers for whole machines, and that explaining changes nothing."""

import json
import os
import re
import subprocess

import pytest
from test_doctor import CHANGES, ROOT, TRACED, VF_GUEST, harmless

PEERMEM = [str(VF_GUEST), "peermem"]
BUNDLES = ROOT / "tests/fixtures/bundles"


def explained(*words, **how):
    return subprocess.run([*PEERMEM, "--explain", *map(str, words)], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, **how)


def of_bundle(name, *words):
    done = explained("--from", BUNDLES / f"{name}.json", "-o", "json", *words)
    assert done.returncode in (0, 1), done.stderr
    found = json.loads(done.stdout)
    assert (found["next"] == "impossible") == (done.returncode == 1)
    assert set(found) == {"module", "next", "end", "detail", "awaited", "hindrances", "refusal",
                          "remarks", "at_boot"}
    return found


@pytest.mark.parametrize("name, step, module", [
    ("gpu-host-ofed", "nothing", "nvidia-peermem"),
    ("gpu-host-wrong-order", "impossible", "nvidia-peermem"),
    ("gpu-guest-k8s", "wait", "nvidia-peermem"),
    ("guest-vf", "nothing", None),
    ("cerberus", "nothing", None),
])
def test_says_what_is_to_be_done(name, step, module):
    found = of_bundle(name)
    assert (found["next"], found["module"]) == (step, module), found["detail"]
    for hindrance in found["hindrances"]:
        remedy = hindrance["remedy"]
        assert remedy["commands"] or remedy["note"], hindrance["detail"]


def test_text_names_the_remedy():
    done = explained("--from", BUNDLES / "gpu-host-wrong-order.json")
    assert "$ dpkg-reconfigure nvidia-dkms-550" in done.stdout and done.returncode == 1


def test_says_who_does_it_at_boot():
    assert of_bundle("gpu-host-ofed", "--at-boot")["at_boot"]["by"] == "other"
    assert of_bundle("gpu-guest-k8s", "--at-boot")["at_boot"]["by"] == "other"
    for nothing in ("gpu-host-wrong-order", "guest-vf"):
        assert of_bundle(nothing, "--at-boot")["at_boot"] is None


def test_explaining_only_reads(tmp_path):
    trace = tmp_path / "trace"
    done = subprocess.run(["strace", "-f", "-qq", "-z", "-e", "signal=none", "-e",
                           f"trace={CHANGES},execve", "-o", str(trace), *PEERMEM, "--explain",
                           "--at-boot"], env=TRACED, stdout=subprocess.PIPE, check=True)
    assert done.stdout
    calls = [re.sub(r"^\d+ +", "", line) for line in trace.read_text().splitlines()]
    started = [call for call in calls if call.startswith("execve(")]
    assert [call for call in started if "modprobe" in call and "--dump-mod" not in call] == []
    assert [call for call in calls if call not in started and not harmless(call)] == []


def test_only_root_may_load():
    if os.geteuid() != 0:
        pytest.skip("only root can become somebody else")
    nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", *PEERMEM]
    refused = subprocess.run(nobody, stderr=subprocess.PIPE, text=True)
    assert refused.returncode == 5 and "--explain" in refused.stderr
    assert subprocess.run([*nobody, "--explain"], stdout=subprocess.PIPE).returncode == 0


@pytest.mark.parametrize("words", [["--wait", "0s"], ["--wait", "5"], ["--wait", "25h"],
                                   ["--wait", "5m", "--explain"], ["--from", "x.json"],
                                   ["--at-boot", "--not-at-boot"]])
def test_what_makes_no_sense_is_refused_whole(words):
    assert subprocess.run([*PEERMEM, *words], stderr=subprocess.PIPE).returncode == 2
