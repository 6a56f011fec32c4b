#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Reads what test programs leave behind and prints one line for each case.

results.py gtest PROGRAM STATUS JSON LOG    a GoogleTest program's --gtest_output=json
results.py junit PART STATUS XML LOG        pytest's --junitxml

PASS name | FAIL name (LOG) | SKIP name: reason. A program that died, or that ended badly although
every case passed (a leak, say), is a failure of its own.
"""

import json
import re
import sys
import xml.etree.ElementTree as xml
from pathlib import Path


def gtest(program, status, report, log):
    lines, failed = [], False
    try:
        suites = json.loads(Path(report).read_text())["testsuites"]
    except (OSError, ValueError, KeyError):
        running = re.findall(r"^\[ RUN +\] (\S+)$", Path(log).read_text(errors="replace"), re.M)
        where = f" in {running[-1]}" if running else ""
        return [f"FAIL {program} ended with {status}{where} ({log})"]
    for suite in suites:
        for case in suite["testsuite"]:
            name = f"{program} {suite['name']}.{case['name']}"
            if case.get("failures"):
                failed = True
                lines.append(f"FAIL {name} ({log})")
            elif case.get("status") == "NOTRUN":
                lines.append(f"SKIP {name}: disabled")
            elif case.get("result") == "SKIPPED":
                case_name = re.escape(f"{suite['name']}.{case['name']}")
                said = re.search(rf"RUN +\] {case_name}\n.*: Skipped\n(.*)",
                                 Path(log).read_text(errors="replace"))
                lines.append(f"SKIP {name}: {said[1] if said else 'no reason given'}")
            else:
                lines.append(f"PASS {name}")
    if status != 0 and not failed:
        lines.append(f"FAIL {program} ended with {status} although its cases passed ({log})")
    if not lines:
        lines.append(f"FAIL {program} has no cases ({log})")
    return lines


def junit(part, status, report, log):
    lines, failed = [], False
    try:
        cases = list(xml.parse(report).getroot().iter("testcase"))
    except (OSError, xml.ParseError):
        return [f"FAIL {part} ended with {status} and no report ({log})"]
    for case in cases:
        name = f"{part} {case.get('classname')}.{case.get('name')}"
        skipped = case.find("skipped")
        if case.find("failure") is not None or case.find("error") is not None:
            failed = True
            lines.append(f"FAIL {name} ({log})")
        elif skipped is not None:
            lines.append(f"SKIP {name}: {skipped.get('message', 'no reason given')}")
        else:
            lines.append(f"PASS {name}")
    if status != 0 and not failed:
        lines.append(f"FAIL {part} ended with {status} ({log})")
    return lines


if __name__ == "__main__":
    if len(sys.argv) != 6 or sys.argv[1] not in ("gtest", "junit"):
        sys.exit(__doc__)
    reader = {"gtest": gtest, "junit": junit}[sys.argv[1]]
    print("\n".join(reader(sys.argv[2], int(sys.argv[3]), sys.argv[4], sys.argv[5])))
