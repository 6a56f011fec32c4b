# SPDX-License-Identifier: Apache-2.0
"""Blocks of a page of the documentation, for tests that type them as they are written."""

import re
from dataclasses import dataclass

from vflab.paths import REPO

# "<!-- not run: why -->" or "<!-- ends with 0, 1: why -->" may stand before a block.
BLOCK = re.compile(r"^(?:<!-- not run: (?P<why>[^>]+?) -->\n"
                   r"|<!-- ends with (?P<ends>\d+(?:, \d+)*): [^>]+? -->\n)?"
                   r"```(?P<language>\w*)\n(?P<text>.*?)^```$", re.DOTALL | re.MULTILINE)
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


@dataclass
class Block:
    heading: str
    language: str
    text: str
    why: str  # it is not run; empty if it is
    ends: frozenset  # exit statuses of a run that went well


def blocks_of(page):
    """Returns the page's fenced blocks, in their order."""
    text = (REPO / page).read_text()
    prose = BLOCK.sub(lambda block: "\n" * block[0].count("\n"), text)
    assert "```" not in prose, f"{page}: a fence that begins or ends no block"
    blocks = []
    for block in BLOCK.finditer(text):
        # A shell's comment in an earlier block is no heading.
        before = BLOCK.sub("", text[:block.start()])
        ends = frozenset(map(int, (block["ends"] or "0").split(", ")))
        blocks.append(Block(HEADING.findall(before)[-1], block["language"], block["text"],
                            block["why"] or "", ends))
    return blocks
