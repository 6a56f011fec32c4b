# SPDX-License-Identifier: Apache-2.0
"""The blocks of the documentation's pages, as the lab finds them."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "lab"))

from vflab.pages import blocks_of  # noqa: E402,F401
