# SPDX-License-Identifier: Apache-2.0
"""The lab's own reader of the documentation's blocks, and its scenarios, which type them."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "lab"))

from vflab.packages import PACKAGES  # noqa: E402,F401
from vflab.pages import blocks_of  # noqa: E402,F401
from vflab.scenario import load  # noqa: E402,F401
