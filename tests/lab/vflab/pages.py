# SPDX-License-Identifier: Apache-2.0
"""Blocks of a page of the documentation, for tests that type them as they are written."""

import re
from dataclasses import dataclass

from vflab.paths import REPO

# "<!-- not run: why -->" or "<!-- ends with 0, 1: why -->" may stand before a block, and after its
# language where it is typed.
BLOCK = re.compile(r"^(?:<!-- not run: (?P<why>[^>]+?) -->\n"
                   r"|<!-- ends with (?P<ends>\d+(?:, \d+)*): [^>]+? -->\n)?"
                   r"```(?P<language>\w*)(?: (?P<where>\w+))?\n(?P<text>.*?)^```$",
                   re.DOTALL | re.MULTILINE)
MARK = re.compile(r"^<!-- (not run|ends with)\b", re.MULTILINE)
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
INDENTED = re.compile(r"^\n {4,}\S", re.MULTILINE)


@dataclass
class Block:
    heading: str
    language: str
    text: str
    why: str  # it is not run; empty if it is
    ends: frozenset  # exit statuses of a run that went well
    where: str = ""  # the word after the language, for example "vm"; empty: on the host


def blocks_of(page):
    """Returns the page's fenced blocks, in their order."""
    return blocks_in((REPO / page).read_text(), page)


def blocks_in(text, page):
    prose = BLOCK.sub(lambda block: "\n" * block[0].count("\n"), text)
    assert "```" not in prose, f"{page}: a fence that begins or ends no block"
    assert not MARK.search(prose), f"{page}: a mark that stands before no block"
    indented = INDENTED.search(prose)
    assert not indented, (f"{page}:{prose.count(chr(10), 0, indented.end()) + 1}: "
                          "an indented block, which no test types: write a fence")
    blocks = []
    for block in BLOCK.finditer(text):
        # A shell's comment in an earlier block is no heading.
        before = BLOCK.sub("", text[:block.start()])
        ends = frozenset(map(int, (block["ends"] or "0").split(", ")))
        blocks.append(Block(HEADING.findall(before)[-1], block["language"], block["text"],
                            block["why"] or "", ends, block["where"] or ""))
    return blocks
