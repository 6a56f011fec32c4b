# SPDX-License-Identifier: Apache-2.0
"""vfctl doctor --fleet on a real etcd: well, with a member that was killed, and without room. What
it says to type is typed."""

import json
import os
import re
import subprocess

import pytest

from fleet import VFCTL, Fleet
from etcd_cluster import ETCD
from live_daemon import ROOT, until

QUOTA = 16 << 20
VALUE = "x" * (1 << 20)
ROOM = "ETCD_QUOTA_BACKEND_BYTES"


@pytest.fixture(scope="module")
def fleet(tmp_path_factory):
    os.environ[ROOM] = str(QUOTA)  # of members, which get the environment of the tests
    try:
        with Fleet(tmp_path_factory.mktemp("doctor"), members=3) as fleet:
            until(lambda: len(fleet.replicas[0].get("/v1/fleet")["replicas"]) == 2,
                  "both replicas are there")
            yield fleet
    finally:
        del os.environ[ROOM]


def doctor(fleet, replica=0):
    """Returns the exit status, and the findings that fail or warn."""
    done = subprocess.run([VFCTL, "--host", f"unix:{fleet.replicas[replica].socket}", "-j",
                           "doctor", "--fleet"], capture_output=True, text=True, timeout=120)
    assert done.stdout, done.stderr
    report = json.loads(done.stdout)
    assert report["machine"] == "fleet"
    return done.returncode, [one for one in report["findings"]
                             if one["result"] in ("failed", "warning")]


def test_a_fleet_that_is_well_passes(fleet):
    until(lambda: fleet.replicas[0].get("/v1/fleet")["replicas"] and doctor(fleet)[0] == 0,
          "nothing is wrong")
    shown = subprocess.run([VFCTL, "--host", f"unix:{fleet.replicas[0].socket}", "doctor",
                            "--fleet", "--all"], capture_output=True, text=True, timeout=120)
    assert "3 of 3 members answer" in shown.stdout
    assert "etcd.version e" in shown.stdout, shown.stdout


def test_a_member_that_was_killed_is_named(fleet):
    dead = fleet.members[2]
    dead.kill()
    try:
        # Until then the others may have no leader.
        bad = until(lambda: (said := doctor(fleet))[0] == 1 and said[1], "it is a warning alone")
        assert {(one["rule"], one["subject"]) for one in bad} == {
            ("etcd.members", dead.name), ("etcd.members", "")}
        assert "2 of 3 members" in bad[1]["detail"]
        assert dead.url().removeprefix("https://") in bad[0]["detail"]
    finally:
        dead.start()
    until(lambda: doctor(fleet)[0] == 0, "the member is back")


def type_remedy(member, finding):
    """Types a remedy on the machine of a member, whose root is a folder here."""
    variables = member.keys / "etcdctl.sh"
    variables.write_text(variables.read_text().replace("=/etc/", f"={member.root}/etc/"))
    text = "\n".join(finding["remedy"]["commands"]).replace("/etc/", f"{member.root}/etc/")
    done = subprocess.run(["bash", "-euc", text], capture_output=True, text=True, timeout=120,
                          env={**os.environ, "PATH": f"{ETCD.parent}:{os.environ['PATH']}"})
    assert done.returncode == 0, f"{text}: {done.stderr}"


def test_an_etcd_without_room_is_found_and_what_to_type_makes_some(fleet):
    member = fleet.members[0]
    for number in range(2 * QUOTA // len(VALUE)):
        if member.control("put", f"/filler/{number}", input=VALUE).returncode:
            break
    status, bad = doctor(fleet)
    full = [one for one in bad if one["rule"] == "etcd.alarms"]
    assert status == 2 and full and all("NOSPACE" in one["detail"] for one in full), bad
    # A write of the fleet is refused, and says why.
    answer, problem = fleet.replicas[0].ask("POST", "/v1/join-tokens", {})
    assert answer.status >= 400, problem
    assert member.control("del", "--prefix", "/filler/").returncode == 0
    alarm, = [one for one in doctor(fleet)[1] if one["rule"] == "etcd.alarms"][:1]
    type_remedy(member, alarm)
    assert not [one for one in doctor(fleet)[1] if one["rule"] == "etcd.alarms"]
    assert fleet.replicas[0].ask("POST", "/v1/join-tokens", {})[0].status == 201


def test_rules_ask_for_series_that_exist(fleet):
    there = set(re.findall(r"^# TYPE (\S+)", fleet.replicas[0].call("GET", "/metrics").body, re.M))
    rules = (ROOT / "deploy/prometheus/vfmgr-fleet.rules.yml").read_text()
    asked = set(re.findall(r"\bvfmgr_fleet_[a-z_]+", "\n".join(
        re.findall(r"expr: (.*)", rules))))
    assert len(asked) == 5 and asked <= there, asked - there


def test_metrics_say_who_schedules_and_how_current_it_is(fleet):
    texts = [replica.call("GET", "/metrics").body for replica in fleet.replicas]
    assert sum("\nvfmgr_fleet_scheduler 1\n" in text for text in texts) == 1
    assert all("\nvfmgr_fleet_replicas 2\n" in text for text in texts)
    assert all('\nvfmgr_fleet_hosts{state="active"} 0\n' in text for text in texts)
