# SPDX-License-Identifier: Apache-2.0
"""Shell blocks of a page of the documentation, for scenarios that type them as they are written."""

import re
from dataclasses import dataclass

from vflab.paths import REPO

BLOCK = re.compile(r"^(?:<!-- not run: (?P<why>[^>]+?) -->\n)?```(?P<language>\w*)\n"
                   r"(?P<text>.*?)^```$", re.DOTALL | re.MULTILINE)
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


@dataclass
class Block:
    heading: str
    language: str
    text: str
    why: str  # it is not run; empty if it is


def blocks_of(page):
    """Returns the page's fenced blocks, in their order."""
    text = (REPO / page).read_text()
    prose = BLOCK.sub(lambda block: "\n" * block[0].count("\n"), text)
    assert "```" not in prose, f"{page}: a fence that begins or ends no block"
    blocks = []
    for block in BLOCK.finditer(text):
        # A shell's comment in an earlier block is no heading.
        before = BLOCK.sub("", text[:block.start()])
        blocks.append(Block(HEADING.findall(before)[-1], block["language"], block["text"],
                            block["why"] or ""))
    return blocks
