# SPDX-License-Identifier: Apache-2.0
"""A short chaos; `tests/fleet/chaos --minutes 60` is the long one."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

CHAOS = Path(__file__).resolve().parent / "chaos"


@pytest.mark.skipif(os.getuid() != 0, reason="only root makes network namespaces")
def test_a_short_chaos_violates_nothing(tmp_path):
    done = subprocess.run([sys.executable, CHAOS, "--minutes", "0.7", "--hosts", "3", "--clients",
                           "4", "--folder", tmp_path / "chaos"], capture_output=True, text=True,
                          timeout=600)
    print(done.stdout)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert "attach ok" in done.stdout and " faults: " in done.stdout
