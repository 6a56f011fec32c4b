# SPDX-License-Identifier: Apache-2.0
"""A person at a web page of an emulated host: Debian's Chromium on this machine, driven by a
program of tests/web/lab, which takes steps and says what it sees."""

import json
import os
import subprocess

from vflab.apt import install_here
from vflab.packages import console_dependencies
from vflab.paths import REPO, LabError
from vflab.shell import call, die_with_parent

TESTS, TOOLS = REPO / "tests/web", REPO / "build/web-tools"
PACKAGES = ["chromium", "fonts-dejavu-core"]
UPDATE_PICTURES = "VFMGR_UPDATE_PICTURES"  # set to 1: the pictures are kept


def install():
    """Installs Chromium, Node.js, and what programs need to drive a browser, on this machine."""
    install_here([*PACKAGES, *console_dependencies()])
    call([str(REPO / "tests/npm-packages"), str(TESTS), str(TOOLS)])


class Person:
    """`program`: of tests/web/lab; `folder`: for its pictures."""

    def __init__(self, program, url, folder):
        install()
        self.process = subprocess.Popen(
            ["node", str(TESTS / "lab" / program), url, str(folder)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, preexec_fn=die_with_parent(),
            env={**os.environ, "NODE_PATH": str(TOOLS / "node_modules")})

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.kill()
        self.process.wait()

    def does(self, step, **what):
        """Returns what the person saw; LabError if the page did not come to it."""
        self.process.stdin.write(json.dumps({"step": step, **what}) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        answer = json.loads(line) if line else {"failed": "the browser ended"}
        if "failed" in answer:
            raise LabError(f"{step}: {answer['failed']}")
        return answer["done"]
