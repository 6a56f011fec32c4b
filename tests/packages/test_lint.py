# SPDX-License-Identifier: Apache-2.0
"""lintian and rpmlint on each package: no errors, and no exception without its reason. The counts
are written beside the packages; tests/run prints them."""

import re
import subprocess
from pathlib import Path

import pytest
from made import FOLDER

HERE = Path(__file__).parent
OVERRIDES = sorted((HERE.parents[1] / "deploy/deb/overrides").iterdir())
RPMLINT = HERE / "rpmlint.toml"


def lintian(*packages):
    return subprocess.run(["lintian", "--allow-root", "--tag-display-limit", "0",
                           "--show-overrides", *packages], capture_output=True, text=True).stdout


def rpmlint(*packages):
    return subprocess.run(["rpmlint", "--config", RPMLINT, *packages], capture_output=True,
                          text=True).stdout


def found(kind, output):
    """Returns lintian's "E: vfmgr: no-changelog" and rpmlint's "vfmgr.x86_64: E: no-signature"."""
    return re.findall(rf"^(?:\S+: )?{kind}: .*$", output, re.M)


def judge(tool, output, packages, excepted):
    counts = (f"{tool}: {len(packages)} packages, {len(found('E', output))} errors, "
              f"{len(found('W', output))} warnings, {excepted} exceptions")
    (FOLDER / f"{tool}.count").write_text(counts + "\n")
    (FOLDER / f"{tool}.log").write_text(output)
    assert found("E", output) == [], counts


def test_lintian_finds_no_error():
    packages = [*FOLDER.glob("*.deb"), *FOLDER.glob("portable/*.deb")]
    assert len(packages) == 10
    output = lintian(*packages)
    assert not re.search("(?:unused|mismatched)-override", output)
    judge("lintian", output, packages, len(found("O", output)))


def test_rpmlint_finds_no_error():
    packages = [*FOLDER.glob("*.rpm"), *FOLDER.glob("portable/*.rpm")]
    assert len(packages) == 5
    output = rpmlint(*packages)
    judged = re.search(r"(\d+) packages and 0 specfiles checked", output)
    assert judged and int(judged[1]) == len(packages), output
    judge("rpmlint", output, packages, len(re.findall('^ *"E: ', RPMLINT.read_text(), re.M)))


def test_both_find_what_is_wrong(tmp_path):
    control = tmp_path / "bad/DEBIAN"
    control.mkdir(parents=True)
    (control / "control").write_text("Package: bad\nVersion: 1\nArchitecture: all\n"
                                     "Maintainer: nobody\nDescription: bad\n")
    subprocess.run(["dpkg-deb", "--build", control.parent, tmp_path / "bad.deb"], check=True,
                   capture_output=True)
    assert len(found("E", lintian(tmp_path / "bad.deb"))) > 1
    everything = subprocess.run(["rpmlint", *FOLDER.glob("*.rpm")], capture_output=True, text=True)
    assert any("no-signature" in line for line in found("E", everything.stdout))


@pytest.mark.parametrize("file", [*OVERRIDES, RPMLINT], ids=lambda file: file.name)
def test_each_exception_has_its_reason_before_it(file):
    lines = [line.strip() for line in file.read_text().splitlines() if line.strip()]
    exceptions = [number for number, line in enumerate(lines)
                  if not line.startswith("#") and line not in ("Filters = [", "]")]
    assert exceptions
    assert [lines[number] for number in exceptions if not lines[number - 1].startswith("#")] == []
