# SPDX-License-Identifier: Apache-2.0
"""vf-guest's output arrives, or vf-guest reports that it did not."""

import subprocess

from test_doctor import VF_GUEST


def into_full(*words):
    with open("/dev/full", "w") as full:
        return subprocess.run([str(VF_GUEST), *words], stdout=full, stderr=subprocess.PIPE,
                              text=True)


def test_output_that_cant_be_written_is_a_failure():
    for words in (["version"], ["--version"], ["--help"], ["doctor", "--all"],
                  ["report", "--bundle", "-"]):
        done = into_full(*words)
        assert done.returncode == 1, (words, done)
        assert "standard output" in done.stderr, (words, done)


def test_version_is_an_option_too():
    shown = [subprocess.run([str(VF_GUEST), word], capture_output=True, text=True, check=True)
             for word in ("version", "--version")]
    assert shown[0].stdout == shown[1].stdout
    assert shown[0].stdout.startswith("vf-guest ")
