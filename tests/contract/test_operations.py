# SPDX-License-Identifier: Apache-2.0
"""deploy/OPERATIONS.md says what to do for each alert; the lab types its blocks."""

import re
import subprocess
from xml.etree import ElementTree

import pytest
from pages import blocks_of
from promtool import ALERTS, ROOT

PAGE = "deploy/OPERATIONS.md"


def test_each_alert_has_its_section_and_no_other():
    sections = re.findall(r"^### (\w+)$", (ROOT / PAGE).read_text(), re.MULTILINE)
    assert sections == list(ALERTS)


def test_each_alert_has_something_to_type():
    headings = {block.heading for block in blocks_of(PAGE)}
    assert ALERTS.keys() <= headings


@pytest.mark.parametrize("block", blocks_of(PAGE), ids=lambda block: block.heading)
def test_a_block_is_right(block):
    if block.language == "xml":
        assert block.why and ElementTree.fromstring(block.text) is not None
        return
    assert block.language == "sh"
    done = subprocess.run(["bash", "-n"], input=block.text, text=True, capture_output=True)
    assert done.returncode == 0, done.stderr
