# SPDX-License-Identifier: Apache-2.0
"""Programs of tests/ that a scenario runs in the emulated host or in a VM, or a benchmark here."""

import base64
import gzip
import subprocess

from . import apt
from .packages import build_dependencies, test_dependencies
from .paths import REPO, SUITES, machine_suite

BUILD = REPO / "build/lab"
CHUNK = 90_000  # one argument of a command is limited to 128 KiB


def built(lab, target, output=None):
    """Like built_here(). The program runs if the emulated host has this machine's release or a
    later one: the libraries that it loads have the same sonames in both, and glibc is upward
    compatible.
    """
    suite = lab.machine.settings["suite"]
    if SUITES.index(suite) < SUITES.index(machine_suite()):
        lab.skip(f"{target} is built on this machine, for {machine_suite()}; {suite} is older")
    return built_here(target, output)


def built_here(target, output=None):
    """Returns the stripped program or library {output} of the build folder's tests/. It is built
    with the packages' flags, for which the compiler cache has most objects.
    """
    apt.install_here([*build_dependencies(), *test_dependencies()])
    program = BUILD / target
    output = output or target
    for command in (["cmake", "--preset", "release", "-B", str(BUILD), "-DVFMGR_BUILD_TESTS=ON"],
                    ["cmake", "--build", str(BUILD), "--target", target],
                    ["strip", "-o", str(program), str(BUILD / "tests" / output)]):
        subprocess.run(command, cwd=REPO, check=True, stdout=subprocess.DEVNULL)
    return program


def send(vm, program, path):
    """Copies the program as an executable into a VM, which has no network to its host."""
    text = base64.b64encode(gzip.compress(program)).decode()
    for start in range(0, len(text), CHUNK):
        vm.run(f"printf %s '{text[start:start + CHUNK]}' >>{path}.b64")
    vm.run(f"base64 -d {path}.b64 | gunzip >{path} && chmod 755 {path} && rm {path}.b64")
