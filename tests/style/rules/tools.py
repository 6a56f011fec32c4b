# SPDX-License-Identifier: Apache-2.0
"""Verdicts of other programs: clang-format, systemd-analyze, man."""

import os
import re
import subprocess
import tempfile
from pathlib import Path

from rules.tree import Rule

PLAIN = {**os.environ, "LC_ALL": "C.UTF-8", "MANWIDTH": "80", "MANPAGER": "cat"}
EXPOSURE_MAX = 40  # systemd-analyze's exposure in tenths; 9.6 without any hardening
EXPOSED_MAX = 20   # of a unit that the API's clients and VMs reach
EXPOSED = ("vfmgrd.service", "vfmgr-fleetd.service", "vfmgr-guestd.service",
           "vfmgr-restore.service")


def output_of(command, **options):
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              stdin=subprocess.DEVNULL, **options)
    except FileNotFoundError:
        return 127, f"{command[0]} is not installed (deploy/test-packages.txt)"
    return done.returncode, done.stdout.decode(errors="replace")


def clang_format(tree):
    names = [str(tree.root / name) for name in tree.cpp()]
    if not names:
        return []
    status, shown = output_of(["clang-format-19", "--dry-run", "-Werror", *names])
    if status == 0:
        return []
    places = {}  # the first place of each file
    for line in shown.splitlines():
        if ": error:" in line:
            path, number = line.replace(f"{tree.root}/", "", 1).split(":")[:2]
            places.setdefault(path, number)
    return [f"{path}:{number}: clang-format-19 -i" for path, number in places.items()] \
        or [f"clang-format:1: {shown[:200]}"]


def unit_files(tree, folder):
    """Copies the units whose programs exist, which makes verify judge only the units."""
    paths = []
    for name in tree.names:
        if name.startswith("deploy/") and name.endswith((".service", ".socket")):
            copy = Path(folder) / os.path.basename(name)
            copy.write_text(re.sub(r"(?m)^ExecStart=/\S+", "ExecStart=/bin/true", tree.text(name)))
            paths.append((name, copy))
    return paths


def units(tree):
    found = []
    with tempfile.TemporaryDirectory() as folder:
        paths = unit_files(tree, folder)
        if not paths:
            return []
        _, shown = output_of(["systemd-analyze", "verify", "--man=no", "--recursive-errors=no",
                              *[str(copy) for _, copy in paths]])
        found += [f"{line.replace(folder + '/', 'deploy/systemd/')}"
                  for line in shown.splitlines() if line.strip()]
        for name, copy in paths:
            if not name.endswith(".service"):
                continue
            exposed = copy.name in EXPOSED
            status, shown = output_of(["systemd-analyze", "security", "--no-pager",
                                       "--offline=true",
                                       f"--threshold={EXPOSED_MAX if exposed else EXPOSURE_MAX}",
                                       str(copy)])
            if status:
                found.append(f"{name}:1: {shown.splitlines()[-1]}")
            settings = re.findall(r"(?m)^\S+=\S+", tree.text(name))
            if not exposed and "ProtectKernelTunables=yes" in settings:
                found.append(f"{name}:1: ProtectKernelTunables=yes makes /sys read-only")
    return found


def man_pages(tree):
    found = []
    for name in tree.names:
        if re.fullmatch(r"deploy/man/[\w.-]+\.[158]", name):
            _, shown = output_of(["sh", "-c", 'man --warnings -l -Tutf8 "$1" >/dev/null', "sh",
                                  str(tree.root / name)], env=PLAIN)
            found += [f"{name}:1: {line}" for line in shown.splitlines() if line.strip()]
    return found


UNITS = Path(__file__).resolve().parents[3] / "deploy/systemd"
SAFE_UNIT = (UNITS / "vfmgr-broker.service").read_text().replace("vfmgr-broker.socket", "")
RULES = [
    Rule("clang-format", clang_format,
         good={".clang-format": "BasedOnStyle: Google\n", "api/a.cpp": "int a;\n"},
         bad=[{"api/a.cpp": "int   a;\n"}]),
    Rule("units", units,
         good={"deploy/systemd/a.service": SAFE_UNIT},
         bad=[{"deploy/systemd/a.service": "[Service]\nExecStart=/bin/true\n"},
              {"deploy/systemd/b.service": "[Service]\nExecStrat=/bin/true\n"},
              {"deploy/systemd/vfmgrd.service": SAFE_UNIT},
              {"deploy/systemd/a.service": SAFE_UNIT + "[Service]\nProtectKernelTunables=yes\n"}]),
    Rule("man-pages", man_pages,
         good={"deploy/man/a.1": ".TH A 1\n.SH NAME\na \\- b\n"},
         bad=[{"deploy/man/a.1": ".TH A 1\n.SH NAME\n.nosuchmacro\n"}]),
]
