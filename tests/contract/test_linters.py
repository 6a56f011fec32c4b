# SPDX-License-Identifier: Apache-2.0
"""The documents pass Redocly's and Spectral's recommended rules, without warnings."""

import json
import os
import subprocess
from pathlib import Path

import pytest
from live_daemon import BUILD

ROOT = Path(__file__).resolve().parent.parent.parent
API = ROOT / "api"
TOOLS = Path(os.environ.get("VFMGR_DOCUMENT_TOOLS", ROOT / "build/document-tools"))
# The fleet's as it is served: with copies of what it shares with openapi.yaml.
DOCUMENTS = [BUILD / "service/fleet/openapi-fleet.json" if path.stem == "openapi-fleet" else path
             for path in sorted(API.glob("openapi*.yaml"))]
QUIET = {**os.environ, "REDOCLY_TELEMETRY": "off", "REDOCLY_SUPPRESS_UPDATE_NOTICE": "true"}
OLDEST_NODE = "18.20.4"  # Debian 12's


def tool(*words):
    return subprocess.run([TOOLS / "node_modules/.bin" / words[0], *map(str, words[1:])],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=QUIET)


def redocly(document):
    done = tool("redocly", "lint", document, "--extends=recommended", "--format=json")
    problems = json.loads(done.stdout[done.stdout.index("{"):])["problems"]
    return [f"{one['ruleId']}: {one['message']}" for one in problems]


def spectral(document):
    done = tool("spectral", "lint", "--quiet", "--format", "json", "--ruleset",
                ROOT / "tests/contract/documents/spectral.yaml", document)
    return [f"{one['code']}: {one['message']}" for one in json.loads(done.stdout)]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.stem)
@pytest.mark.parametrize("judge", [redocly, spectral])
def test_a_document_has_no_problem(judge, document):
    assert judge(document) == []


@pytest.mark.parametrize("judge", [redocly, spectral])
def test_the_judges_see_what_is_wrong(judge, tmp_path):
    spoilt = tmp_path / "spoilt.yaml"
    whole = (API / "openapi.yaml").read_text()
    assert whole.count("      operationId: live\n") == 1
    spoilt.write_text(whole.replace("      operationId: live\n", "      operationId: about\n"))
    assert any("operation" in problem for problem in judge(spoilt))


def test_the_tools_run_on_the_oldest_node():
    script = """
const {satisfies} = require("semver"), all = require("./package-lock.json").packages;
console.log(JSON.stringify(Object.entries(all).filter(([, one]) => one.engines && one.engines.node
    && !satisfies(process.argv[1], one.engines.node)).map(([name]) => name)))"""
    done = subprocess.run(["node", "-e", script, OLDEST_NODE], cwd=TOOLS, text=True, check=True,
                          stdout=subprocess.PIPE)
    assert json.loads(done.stdout) == []


def test_the_lock_file_names_no_registry():
    assert '"resolved"' not in (ROOT / "tests/contract/documents/package-lock.json").read_text()
