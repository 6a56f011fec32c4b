# SPDX-License-Identifier: Apache-2.0
"""Fixtures of several files."""

import pytest
from certificates import Authority


@pytest.fixture
def authority(tmp_path):
    (tmp_path / "ca").mkdir()
    return Authority(tmp_path / "ca")
