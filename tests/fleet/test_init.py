# SPDX-License-Identifier: Apache-2.0
"""What vfctl fleet init makes: a folder for each machine, whatever it is in the fleet."""

import os
import subprocess

from fleet import VFCTL, vfctl


def below(folder):
    return {str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file()}


MEMBER = {"etc/default/etcd", "etc/systemd/system/etcd.service.d/vfmgr.conf",
          "etc/vfmgr-etcd/ca.pem", "etc/vfmgr-etcd/etcdctl.sh", "etc/vfmgr-etcd/member.key",
          "etc/vfmgr-etcd/member.pem"}
REPLICA = {"etc/systemd/system/vfmgr-fleetd.service.d/keys.conf", "etc/vfmgr-fleet/ca.pem",
           "etc/vfmgr-fleet/replica.key", "etc/vfmgr-fleet/replica.pem", "etc/vfmgr/fleetd.toml"}
HOST = {"etc/vfmgr/conf.d/fleet.toml"}


def test_a_machine_has_one_folder_for_all_that_it_is(tmp_path):
    made = tmp_path / "fleet"
    vfctl("fleet", "init", made, "--etcd", "a=10.0.0.1", "--replica", "a", "--host-at", "a",
          "--host-at", "h1=h1.example")
    assert below(made / "machines/a") == MEMBER | REPLICA | HOST
    assert below(made / "machines/h1") == HOST
    assert 'address = "10.0.0.1"' in (made / "machines/a/etc/vfmgr/conf.d/fleet.toml").read_text()
    assert 'address = "0.0.0.0"' in (made / "machines/h1/etc/vfmgr/conf.d/fleet.toml").read_text()
    etcd = (made / "machines/a/etc/default/etcd").read_text()
    assert "ETCD_DATA_DIR=/var/lib/etcd/vfmgr\n" in etcd


def test_what_is_there_stays_and_a_machine_is_added(tmp_path):
    made = tmp_path / "fleet"
    vfctl("fleet", "init", made, "--etcd", "a=10.0.0.1", "--replica", "a")
    before = {file: (made / file).read_bytes() for file in below(made)}
    vfctl("fleet", "init", made, "--etcd", "a=10.0.0.1", "--replica", "a", "--replica",
          "b=10.0.0.2")
    assert {file: (made / file).read_bytes() for file in before} == before
    assert below(made / "machines/b") == REPLICA


def test_a_machine_with_two_addresses_is_refused(tmp_path):
    done = subprocess.run([VFCTL, "fleet", "init", tmp_path / "fleet", "--etcd", "a=10.0.0.1",
                           "--replica", "a=10.0.0.2"], capture_output=True, text=True)
    assert done.returncode != 0
    assert "a is both at 10.0.0.1 and at 10.0.0.2" in done.stderr, done.stderr
    assert not (tmp_path / "fleet").exists()


def test_services_read_what_is_no_key_whatever_the_umask_is(tmp_path):
    made = tmp_path / "fleet"
    subprocess.run([VFCTL, "fleet", "init", made, "--etcd", "a=10.0.0.1", "--replica", "a"],
                   check=True, umask=0o077, capture_output=True)
    for file in sorted(below(made / "machines/a")):
        mode = os.stat(made / "machines/a" / file).st_mode & 0o777
        assert mode == (0o600 if file.endswith(".key") else 0o644), f"{file}: {mode:o}"
    assert os.stat(made / "machines/a/etc/vfmgr-etcd").st_mode & 0o777 == 0o755
