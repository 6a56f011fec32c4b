# SPDX-License-Identifier: Apache-2.0
"""A downgrade to a version that can't read what is stored: refused by the package's scripts, which
dpkg itself runs here in a folder of its own, on packages that contain nothing else."""

import re
import subprocess
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
PRERM = REPOSITORY / "deploy/deb/service/prerm"


def oldest_reader():
    return re.search(r"^oldest=(.*)$", PRERM.read_text(), re.M)[1]


def package(folder, version, prerm):
    """Packs the script alone; returns the .deb."""
    control = folder / version / "DEBIAN"
    control.mkdir(parents=True)
    (control / "control").write_text(
        f"Package: vfmgr\nVersion: {version}\nArchitecture: all\n"
        "Maintainer: nobody\nDescription: the scripts alone\n")
    script = control / "prerm"
    script.write_text(prerm)
    script.chmod(0o755)
    deb = folder / f"{version}.deb"
    subprocess.run(["dpkg-deb", "--build", control.parent, deb], check=True, capture_output=True)
    return deb


class Dpkg:
    """dpkg with a root of its own. Its packages' scripts change nothing outside."""

    def __init__(self, root):
        self.root = root
        for name in ("var/lib/dpkg/updates", "var/lib/dpkg/info", "var/log"):
            (root / name).mkdir(parents=True)
        for name in ("status", "available"):
            (root / "var/lib/dpkg" / name).touch()

    def install(self, deb):
        return subprocess.run(["dpkg", f"--root={self.root}", "--force-script-chrootless",
                               "--install", deb], capture_output=True, text=True)

    def version(self):
        status = (self.root / "var/lib/dpkg/status").read_text()
        assert "Status: install ok installed" in status
        return re.search("^Version: (.*)$", status, re.M)[1]


@pytest.fixture
def dpkg(tmp_path):
    return Dpkg(tmp_path / "root")


def test_the_store_was_not_changed_after_the_version_that_the_script_names():
    schema = (REPOSITORY / "vfmgr/store/schema.cpp").read_text()
    forms = re.findall(r"^constexpr char const\* version_(\d+) =", schema, re.M)
    assert f"the store (form {forms[-1]})" in PRERM.read_text(), \
        "set oldest to the version that brings this form"


@pytest.mark.parametrize("words, refused", [
    ("upgrade 0.1.0", True), ("upgrade 0.1.9", True), ("upgrade 0.2.0", False),
    ("upgrade 0.2.0+portable", False), ("upgrade 0.10.0", False),
    ("failed-upgrade 0.10.0 0.2.0", True), ("failed-upgrade 0.1.0 0.2.0", False)])
def test_only_what_could_not_read_the_store_is_refused(words, refused):
    done = subprocess.run(["sh", PRERM, *words.split()], capture_output=True, text=True)
    assert done.returncode == (1 if refused else 0)
    assert (words.split()[1] in done.stderr) == refused


def test_dpkg_keeps_the_newer_version(dpkg, tmp_path):
    newer = PRERM.read_text().replace(f"oldest={oldest_reader()}", "oldest=0.9.0")
    assert dpkg.install(package(tmp_path, "0.9.0", newer)).returncode == 0
    done = dpkg.install(package(tmp_path, "0.8.0", PRERM.read_text()))
    assert done.returncode != 0
    assert "version 0.8.0 can't read what the installed version has stored" in done.stderr
    assert "version 0.9.0 refused to be replaced by version 0.8.0" in done.stderr
    assert dpkg.version() == "0.9.0"


def test_dpkg_upgrades_and_returns_to_a_version_that_reads_the_store(dpkg, tmp_path):
    for version in ("0.2.0", "0.9.0"):
        assert dpkg.install(package(tmp_path, version, PRERM.read_text())).returncode == 0
        assert dpkg.version() == version
    assert dpkg.install(tmp_path / "0.2.0.deb").returncode == 0
    assert dpkg.version() == "0.2.0"


def test_a_package_before_0_2_0_is_refused_although_it_agrees(dpkg, tmp_path):
    dpkg.install(package(tmp_path, "0.2.0", PRERM.read_text()))
    done = dpkg.install(package(tmp_path, "0.1.0", "#!/bin/sh\n"))
    assert done.returncode != 0 and dpkg.version() == "0.2.0"
    assert "this downgrade is refused" in done.stderr
    assert dpkg.install(tmp_path / "0.2.0.deb").returncode == 0, "nothing is left half-way"
