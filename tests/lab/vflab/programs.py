# SPDX-License-Identifier: Apache-2.0
"""Programs of tests/ that a scenario runs in the emulated host or in a VM, or a bench here."""

import base64
import gzip
import subprocess

from . import apt
from .packages import build_dependencies, test_dependencies
from .paths import REPO, SUITES, machine_suite

BUILD = REPO / "build/lab"
CHUNK = 90_000  # one argument of a command has room for 128 KiB


def built(lab, target, output=None):
    """As built_here(). It runs where the emulated host is of this machine's release or a later one:
    the libraries that it loads have the same sonames in both, and glibc is upward compatible.
    """
    suite = lab.machine.settings["suite"]
    if SUITES.index(suite) < SUITES.index(machine_suite()):
        lab.skip(f"{target} is built on this machine, for {machine_suite()}; {suite} is older")
    return built_here(target, output)


def built_here(target, output=None):
    """The stripped program, or library: {output} of the build folder's tests/. Built with the
    packages' flags: the compiler's cache knows most of it.
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
    """The program's bytes into a VM, which has no network to its host, as an executable file."""
    text = base64.b64encode(gzip.compress(program)).decode()
    for start in range(0, len(text), CHUNK):
        vm.run(f"printf %s '{text[start:start + CHUNK]}' >>{path}.b64")
    vm.run(f"base64 -d {path}.b64 | gunzip >{path} && chmod 755 {path} && rm {path}.b64")
