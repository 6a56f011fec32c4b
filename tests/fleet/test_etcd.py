# SPDX-License-Identifier: Apache-2.0
"""service/fleet/etcd on real members of etcd that are killed, paused, filled and compacted."""

import contextlib
import json
import os
import queue
import signal
import subprocess
import threading
import time
from pathlib import Path

import pytest
from etcd_cluster import ROOT, USER, Cluster
from live_daemon import BUILD, until

SIGN_OF_LIFE = 10 + 5  # seconds after which a watch on a silent member ends (EtcdPaces)
LEASE = 10


class Probe:
    """tests/fleet/programs/etcd_probe.cpp"""

    def __init__(self, cluster, prefix="/vfmgr/", **changed):
        settings = {"prefix": prefix, **cluster.describe(), **changed}
        self.process = subprocess.Popen([BUILD / "tests/etcd_probe", json.dumps(settings)],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.lines = queue.Queue()
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            self.lines.put(line)
        self.lines.put(None)

    def begin(self, do, **words):
        self.process.stdin.write(json.dumps({"do": do, **words}) + "\n")
        self.process.stdin.flush()

    def end(self, seconds=120):
        line = self.lines.get(timeout=seconds)
        assert line is not None, f"etcd_probe ended with {self.process.wait()}"
        return json.loads(line)

    def do(self, do, **words):
        self.begin(do, **words)
        return self.end()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGCONT)
        self.process.stdin.close()
        try:
            status = self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise
        assert status == 0, status


@pytest.fixture(name="cluster", scope="module")
def of_three(tmp_path_factory):
    """For tests that leave it as it was."""
    with Cluster(tmp_path_factory.mktemp("etcd"), 3) as cluster:
        cluster.await_leader()
        yield cluster


@pytest.fixture(autouse=True)
def empty(request):
    if "cluster" in request.fixturenames:
        request.getfixturevalue("cluster").control("del", "/vfmgr/", "--prefix")


def test_etcd_is_as_the_fake_claims(cluster):
    with Probe(cluster) as probe:
        assert probe.do("claims") == {"broken": []}


def test_each_member_is_shown_and_so_is_one_that_is_down(tmp_path):
    with Cluster(tmp_path / "etcd", 3) as cluster, Probe(cluster) as probe:
        leader = cluster.await_leader()
        shown = probe.do("members")["members"]
        assert sorted(one["name"] for one in shown) == ["m0", "m1", "m2"]
        assert all(not one["problem"] and one["version"].startswith("3.") for one in shown)
        assert {one["leader"] for one in shown} == {
            one["id"] for one in shown if one["name"] == f"m{leader}"}
        cluster.kill((leader + 1) % 3)
        shown = {one["name"]: one for one in probe.do("members", seconds=20)["members"]}
        down = shown.pop(f"m{(leader + 1) % 3}")
        assert down["problem"]["problem"] == "unavailable" and down["id"]
        assert len(shown) == 2 and not any(one["problem"] for one in shown.values())


def test_a_watch_ends_when_its_member_has_no_leader(tmp_path):
    with Cluster(tmp_path / "etcd", 3) as cluster:
        cluster.await_leader()
        with Probe(cluster, endpoints=cluster.endpoints[:1]) as probe:
            begins = probe.do("range", key="")["revision"] + 1
            assert probe.do("watch", key="", revision=begins) == {}
            put = probe.do("put", key="a", value="1")["revision"]
            assert probe.do("next") == {"nothing": False, "keys": ["a"]}
            for member in (1, 2):
                cluster.kill(member)
            began = time.monotonic()
            ended = probe.do("next", seconds=SIGN_OF_LIFE)
            assert ended["problem"] == "unavailable", ended
            assert "no leader" in ended["causes"][0][2], ended
            assert time.monotonic() - began < SIGN_OF_LIFE - 3
            # Nothing is carried out, and that is known.
            assert probe.do("put", key="b", value="1")["problem"] == "unavailable"
            cluster.start(1)
            cluster.await_leader(among=(0, 1))
            assert probe.do("watch", key="", revision=put) == {}
            assert probe.do("next") == {"nothing": False, "keys": ["a"]}


def test_a_watch_on_a_paused_member_ends(tmp_path):
    with Cluster(tmp_path / "etcd", 1) as cluster:
        cluster.await_leader()
        with Probe(cluster) as probe:
            assert probe.do("watch", key="", revision=probe.do("range", key="")["revision"]) == {}
            # It is silent, and asked for a sign of life, which comes.
            silent = time.monotonic()
            while time.monotonic() - silent < SIGN_OF_LIFE + 5:
                assert "problem" not in probe.do("next", seconds=5)
            cluster.pause(0)
            began = time.monotonic()
            ended = probe.do("next", seconds=60)
            assert ended["problem"] == "unavailable", ended
            assert time.monotonic() - began < SIGN_OF_LIFE + 5
            unanswered = probe.do("put", key="a", value="1", seconds=4)
            assert unanswered["problem"] in ("timed_out", "unavailable"), unanswered
            cluster.resume(0)
            until(lambda: "revision" in probe.do("put", key="a", value="1"), "it goes on")


@contextlib.contextmanager
def counting(cluster, seconds):
    """Two replicas add to one number while the test goes on; in the end it is what they say."""
    with Probe(cluster) as one, Probe(cluster) as other:
        for probe in (one, other):
            probe.begin("count_up", key="counter", seconds=seconds)
        yield
        answers = [probe.end(seconds + 120) for probe in (one, other)]
        keys = one.do("range", key="", seconds=30)["keys"]
    done = sum(answer["ended"].get("done", 0) for answer in answers)
    print(answers)
    for answer in answers:
        assert set(answer["ended"]) <= {"done", "refused", "not read"}, answer
    assert done > 50, answers
    assert json.loads(keys["counter"])["number"] == done, answers
    assert len([key for key in keys if key.startswith("acts/")]) == done


def test_no_transaction_is_lost_or_doubled_when_the_leader_is_killed(tmp_path):
    with Cluster(tmp_path / "etcd", 3) as cluster:
        cluster.await_leader()
        with counting(cluster, 24):
            for _ in range(3):
                leader = cluster.await_leader()
                cluster.kill(leader)
                cluster.await_leader(among=[one for one in range(3) if one != leader])
                cluster.start(leader)


def test_no_transaction_is_lost_or_doubled_when_the_leader_is_paused(tmp_path):
    with Cluster(tmp_path / "etcd", 3) as cluster:
        cluster.await_leader()
        with counting(cluster, 24):
            for _ in range(2):
                leader = cluster.await_leader()
                cluster.pause(leader)
                cluster.await_leader(among=[one for one in range(3) if one != leader])
                cluster.resume(leader)


def test_a_follower_is_right_after_a_compaction_that_it_missed(cluster):
    with Probe(cluster) as writer, Probe(cluster) as probe:
        for number in range(50):
            writer.do("put", key=f"hosts/{number}", value="1")
        probe.do("follow", key="hosts/")
        until(lambda: not probe.do("followed")["stale"], "it follows")
        probe.process.send_signal(signal.SIGSTOP)
        for turn in range(40):
            for number in range(0, 50, 10):
                writer.do("put", key=f"hosts/{number}", value=f"{turn} " + "x" * 20_000)
        cluster.control("del", "/vfmgr/hosts/7")
        revision = writer.do("range", key="hosts/")["revision"]
        cluster.control("compaction", str(revision))
        probe.process.send_signal(signal.SIGCONT)
        expected = writer.do("range", key="hosts/")["keys"]
        assert "hosts/7" not in expected
        until(lambda: probe.do("followed")["keys"] == expected, "its copy is etcd's")
        assert probe.do("followed")["resets"] == 1


def test_a_watch_that_begins_before_a_compaction_says_so(cluster):
    with Probe(cluster) as probe:
        first = probe.do("put", key="a", value="1")["revision"]
        second = probe.do("put", key="a", value="2")["revision"]
        cluster.control("compaction", str(second))
        begun = probe.do("watch", key="", revision=first)
        ended = probe.do("next") if begun == {} else begun
        assert ended["compacted"], ended


def test_a_follower_is_stale_until_etcd_is_there_again(tmp_path):
    with Cluster(tmp_path / "etcd", 1) as cluster:
        cluster.await_leader()
        with Probe(cluster) as probe:
            probe.do("put", key="a", value="1")
            probe.do("follow", key="")
            until(lambda: not probe.do("followed")["stale"], "it follows")
            cluster.kill(0)
            stale = until(lambda: (now := probe.do("followed"))["stale"] and now["problem"] and now,
                          "it is stale, and says why")
            assert stale["keys"] == {"a": "1"} and stale["problem"]["problem"] == "unavailable"
            cluster.start(0)
            until(lambda: not probe.do("followed")["stale"], "it follows again")
            probe.do("put", key="b", value="2")
            until(lambda: probe.do("followed")["keys"] == {"a": "1", "b": "2"}, "it has both")
            assert probe.do("followed")["resets"] == 1


def test_another_leads_when_the_leader_is_paused_and_that_one_notices(cluster):
    with Probe(cluster) as first, Probe(cluster) as second:
        first.do("elect", value="first")
        fence = until(lambda: first.do("election")["fence"], "it is elected")
        second.do("elect", value="second")
        until(lambda: second.do("election")["leader"] == "first", "the other knows")
        first.process.send_signal(signal.SIGSTOP)
        began = time.monotonic()
        higher = until(lambda: second.do("election")["fence"], "the other is elected")
        # etcd looks for leases that have ended every half second, and a new leader of etcd
        # extends them.
        assert LEASE / 2 < time.monotonic() - began < LEASE + 5
        assert higher > fence
        # Its first answer after it goes on is already right.
        first.begin("election")
        first.process.send_signal(signal.SIGCONT)
        assert first.end()["fence"] is None
        until(lambda: first.do("election")["calls"] == ["elected", "lost"], "it is notified")
        until(lambda: first.do("election")["leader"] == "second", "it knows")
        # Who resigns is followed at once.
        began = time.monotonic()
        second.do("resign")
        until(lambda: first.do("election")["fence"], "it is elected again")
        assert time.monotonic() - began < 3
        assert second.do("election")["calls"] == ["elected", "lost"]


def test_a_leader_stays_leader_when_etcds_leader_is_killed(tmp_path):
    with Cluster(tmp_path / "etcd", 3) as cluster:
        leader = cluster.await_leader()
        with Probe(cluster) as probe:
            probe.do("elect", value="first")
            fence = until(lambda: probe.do("election")["fence"], "it is elected")
            cluster.kill(leader)
            began = time.monotonic()
            while time.monotonic() - began < LEASE + 5:
                assert probe.do("election")["fence"] == fence
            assert probe.do("election")["calls"] == ["elected"]


def test_a_full_etcd_says_so_and_still_erases(tmp_path):
    with Cluster(tmp_path / "etcd", 1, ["--quota-backend-bytes", "3000000"]) as cluster:
        cluster.await_leader()
        with Probe(cluster) as probe:
            filled = probe.do("fill", seconds=30)
            assert filled["done"] > 5
            assert filled["error"]["problem"] == "limit_exceeded", filled
            assert "alarm disarm" in filled["error"]["remedy"]
            # What was reported as not carried out is not there.
            keys = probe.do("range", key="fill/")["keys"]
            assert len(keys) == filled["done"] and filled["last"] not in keys
            assert probe.do("members")["members"][0]["alarms"] == ["NOSPACE"]
            assert probe.do("put", key="a", value="")["problem"] == "limit_exceeded"
            cluster.control("del", "/vfmgr/fill/", "--prefix")
            assert probe.do("range", key="fill/")["keys"] == {}


def expired(authority, name):
    stem = authority.folder / "old"
    authority.make("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                   "-keyout", f"{stem}.key", "-out", f"{stem}.csr", "-subj", f"/CN={name}",
                   "-addext", "extendedKeyUsage=clientAuth")
    authority.make("ca", "-batch", "-config", authority.folder / "ca.cnf", "-in", f"{stem}.csr",
                   "-out", f"{stem}.crt", "-notext", "-startdate", "20240101000000Z",
                   "-enddate", "20240102000000Z")
    return stem.with_suffix(".crt"), stem.with_suffix(".key")


def test_an_expired_certificate_is_named_and_its_renewal_used(cluster):
    certificate, key = expired(cluster.authority, USER)
    with Probe(cluster, certificate_file=str(certificate), key_file=str(key)) as probe:
        refused = probe.do("put", key="a", value="1")
        assert refused["problem"] == "unavailable", refused
        assert str(certificate) in refused["detail"]
        assert "expired at 2024-01-02T00:00:00.000Z" in refused["detail"]
        new_certificate, new_key = cluster.authority.issue(USER)
        key.write_bytes(Path(new_key).read_bytes())
        certificate.write_bytes(Path(new_certificate).read_bytes())
        assert "revision" in probe.do("put", key="a", value="1")


def test_a_member_that_its_authority_does_not_know_is_refused(cluster, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    stranger = type(cluster.authority)(other)
    with Probe(cluster, ca_file=str(stranger.file)) as probe:
        refused = probe.do("put", key="a", value="1")
        assert refused["problem"] == "unavailable", refused
        assert len(refused["causes"]) == 3


def test_etcds_user_has_no_more_than_its_prefix(tmp_path):
    with Cluster(tmp_path / "etcd", 1) as cluster:
        cluster.await_leader()
        root = cluster.authority.issue("root")
        for words in (["user", "add", "root:secret"], ["user", "grant-role", "root", "root"],
                      ["user", "add", f"{USER}:secret"], ["role", "add", "fleet"],
                      ["role", "grant-permission", "--prefix", "fleet", "readwrite", "/vfmgr/"],
                      ["user", "grant-role", USER, "fleet"], ["auth", "enable"]):
            if words[:3] == ["user", "grant-role", "root"]:
                with contextlib.suppress(OSError):
                    cluster.control("role", "add", "root")
            cluster.control(*words, certificate=root)
        with Probe(cluster) as probe:
            assert "revision" in probe.do("put", key="a", value="1")
            assert probe.do("range", key="")["keys"] == {"a": "1"}
            assert probe.do("watch", key="", revision=1) == {}
            assert probe.do("next") == {"nothing": False, "keys": ["a"]}
            assert not probe.do("members")["members"][0]["problem"]
        with Probe(cluster, prefix="/other/") as probe:
            for command in ({"do": "put", "key": "a", "value": "1"}, {"do": "range", "key": ""}):
                refused = probe.do(**command)
                assert refused["problem"] == "forbidden", refused
                assert "role" in refused["remedy"]
            watched = probe.do("watch", key="", revision=1)
            ended = probe.do("next") if watched == {} else watched
            assert ended["problem"] == "forbidden", ended
