# SPDX-License-Identifier: Apache-2.0
"""How much of the project runs as root on what a front sends, before a step is admitted.

before_a_step.cpp is a broker's connection and nothing else. Whatever it does not reach, the linker
drops; what is left has its lines in the debugging information.
"""

import os
import re
import subprocess
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

REPO = Path(__file__).resolve().parents[2]
LINES_MAX = 2000
FLAGS = ("-std=c++20", "-O0", "-g1", "-ffunction-sections", "-fdata-sections", f"-I{REPO}")
# Dropped code keeps its line table, from address 0 on; a program that is not position-independent
# lies far above even the longest function.
FIRST_ADDRESS = 0x400000
THE_TEST_ITSELF = "tests/packages/before_a_step.cpp"
BROKER = ("admit", "messages", "records", "serve", "underway")


def sources():
    """Returns the sources that are compiled together: whatever the broker may reach."""
    types = {*REPO.glob("api/types/*.cpp"), *REPO.glob("api/os/*.cpp")}
    fmt = REPO / "api/types/fmt.cpp"
    return {"fmt": [fmt], "types": sorted(types - {fmt}),
            "plan": sorted(REPO.glob("vfmgr/plan/*.cpp")),
            "broker": [*(REPO / f"service/broker/{name}.cpp" for name in BROKER),
                       REPO / THE_TEST_ITSELF]}


def compiled(folder, name, files):
    unity, made = folder / f"{name}.cpp", folder / f"{name}.o"
    unity.write_text("".join(f'#include "{file}"\n' for file in files))
    subprocess.run(["g++", *FLAGS, "-c", unity, "-o", made], check=True)
    return made


def lines_of(program):
    """Returns the project's lines that have code in the program: {file: numbers}."""
    shown = subprocess.run(["objdump", "--dwarf=decodedline", program], check=True, text=True,
                           stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
    found, file = defaultdict(set), None
    for line in shown.splitlines():
        if heading := re.fullmatch(r"(\S+\.[ch]pp):", line):
            file = Path(heading[1])
        elif line.endswith(":"):
            file = None
        elif file and file.is_relative_to(REPO) and (
                row := re.match(r"\S+ +(\d+) +0x([0-9a-f]+)", line)):
            if int(row[2], 16) >= FIRST_ADDRESS:
                found[str(file.relative_to(REPO))].add(int(row[1]))
    return found


def test_what_runs_as_root_before_a_step_is_admitted_is_little(tmp_path):
    with ThreadPoolExecutor(max_workers=os.cpu_count()) as each:
        objects = list(each.map(lambda one: compiled(tmp_path, *one), sources().items()))
    program = tmp_path / "before-a-step"
    subprocess.run(["g++", "-no-pie", "-Wl,--gc-sections", *objects, "-o", program, "-lpthread"],
                   check=True)
    found = lines_of(program)
    del found[THE_TEST_ITSELF]
    listed = [f"{len(numbers):5} {file}" for file, numbers in
              sorted(found.items(), key=lambda one: -len(one[1]))]
    total = sum(map(len, found.values()))
    count = f"{total} lines run as root before a step is admitted"
    results = Path(os.environ["VFMGR_PACKAGES"])
    (results / "before-a-step.count").write_text(f"{count} (limit {LINES_MAX})\n")
    (results / "before-a-step.txt").write_text("\n".join(listed) + "\n")
    assert {"service/broker/admit.cpp", "service/broker/messages.cpp", "service/broker/serve.cpp",
            "api/os/message_lines.cpp", "vfmgr/plan/bounds.cpp"} <= set(found)
    assert total < LINES_MAX, "\n".join([count, *listed])
