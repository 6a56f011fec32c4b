# SPDX-License-Identifier: Apache-2.0
"""Programs of tests/ that a scenario runs in the emulated host or in a VM."""

import subprocess

from . import apt
from .packages import build_dependencies, test_dependencies
from .paths import REPO, machine_suite

BUILD = REPO / "build/lab"


def built(lab, target):
    """The stripped program, built with the packages' flags: the compiler's cache knows most of it.

    It is built on this machine, so it runs where the emulated host is of the machine's release.
    """
    if lab.machine.settings["suite"] != machine_suite():
        lab.skip(f"{target} is built on this machine, for {machine_suite()}")
    apt.install_here([*build_dependencies(), *test_dependencies()])
    program = BUILD / target
    for command in (["cmake", "--preset", "release", "-B", str(BUILD), "-DVFMGR_BUILD_TESTS=ON"],
                    ["cmake", "--build", str(BUILD), "--target", target],
                    ["strip", "-o", str(program), str(BUILD / "tests" / target)]):
        subprocess.run(command, cwd=REPO, check=True, stdout=subprocess.DEVNULL)
    return program
