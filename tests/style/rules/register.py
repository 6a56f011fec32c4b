# SPDX-License-Identifier: Apache-2.0
"""A command runs everything in tests/: it is registered with ctest, or is a scenario."""

import os
import re

from rules.tree import Rule

CMAKE = ("tests/CMakeLists.txt", "tests/fuzz/CMakeLists.txt")
LISTS = ("tests/lab/core.txt", "tests/lab/turns.txt")
# Folders of tests/unit that are not the product's, for what spans several rooms.
ACROSS = {"recordings", "vfmgr/proof/verbs"}
SCENARIO = re.compile(r"tests/lab/scenarios/([\w-]+)\.py")


def texts(tree, pattern):
    return {name: tree.text(name) for name in tree.names if re.fullmatch(pattern, name)}


def unregistered(tree):
    cmake = "".join(tree.text(name) for name in CMAKE if name in tree.names)
    units = {folder for folders in
             re.findall(r'^ *vfmgr_unit_test\(\w+\s+"?([\w/;-]+)', cmake, re.MULTILINE)
             for folder in folders.split(";")}
    pytests = set(re.findall(r"^vfmgr_pytests\(\w+ ([\w-]+)", cmake, re.MULTILINE))
    parsers = set(re.findall(r"foreach\(parser ([^)]*)\)\n\s*vfmgr_fuzz_target\(netlink_", cmake))
    fuzzed = set(re.findall(r"^vfmgr_fuzz_target\((\w+) ", cmake, re.MULTILINE))
    fuzzed |= {f"netlink_{parser}" for listed in parsers for parser in listed.split()}
    rooms = {os.path.dirname(name) for name in tree.names} | ACROSS
    found = []
    for name in tree.names:
        unit = re.fullmatch(r"tests/unit/([\w/-]+)/\w+\.cpp", name)
        if unit and (unit[1] not in units or not name.endswith("_test.cpp") and
                     name.removeprefix("tests/") not in cmake):
            found.append(f"{name}:1: no program of tests/CMakeLists.txt has it")
        if unit and unit[1] not in rooms:
            found.append(f"{name}:1: the product has no folder {unit[1]}")
        script = re.fullmatch(r"tests/([\w-]+)/test_\w+\.py", name)
        if script and script[1] not in pytests and name.removeprefix("tests/") not in cmake:
            found.append(f"{name}:1: no entry of tests/CMakeLists.txt runs it")
        target = re.fullmatch(r"tests/fuzz/(\w+)\.cpp", name)
        if target and target[1] not in fuzzed:
            found.append(f"{name}:1: no vfmgr_fuzz_target() of tests/fuzz/CMakeLists.txt")
        if target and not any(seed.startswith(f"tests/fuzz/corpus/{target[1]}/")
                              for seed in tree.names):
            found.append(f"{name}:1: no seeds in tests/fuzz/corpus/{target[1]}")
    return found


def unused_probes(tree):
    users = "".join(texts(tree, r"tests/(lab/scenarios|lab/vflab|bench/benches)/[\w-]+\.py")
                    .values())
    return [f"{name}:1: no scenario or bench runs it" for name in tree.names
            if (probe := re.fullmatch(r"tests/(?:lab/probes|bench/programs)/(\w+)\.cpp", name))
            and not re.search(rf"\b{probe[1]}\b", users)]


def listed(tree):
    there = {match[1] for name in tree.names if (match := SCENARIO.fullmatch(name))}
    found, seen = [], set()
    for path in LISTS:
        for number, line in enumerate(tree.lines(path) if path in tree.names else [], 1):
            for name in line.split("#")[0].split():
                if name not in there:
                    found.append(f"{path}:{number}: no scenario {name}")
                elif "\nSLICES = " in tree.text(f"tests/lab/scenarios/{name}.py"):
                    found.append(f"{path}:{number}: {name} is sliced, it leaves the list")
                elif name in seen:
                    found.append(f"{path}:{number}: {name} is listed twice")
                seen.add(name)
    return found


GOOD = {
    "tests/CMakeLists.txt": 'vfmgr_unit_test(a_test "a;b/c" lib)\n'
                            "vfmgr_pytests(contract contract)\n",
    "tests/fuzz/CMakeLists.txt": "vfmgr_fuzz_target(one lib)\nforeach(parser two)\n"
                                 "  vfmgr_fuzz_target(netlink_${parser} lib)\nendforeach()\n",
    "a/x.cpp": "", "b/c/x.cpp": "",
    "tests/unit/a/x_test.cpp": "", "tests/unit/b/c/x_test.cpp": "",
    "tests/contract/test_a.py": "",
    "tests/fuzz/one.cpp": "", "tests/fuzz/corpus/one/seed": "",
    "tests/fuzz/netlink_two.cpp": "", "tests/fuzz/corpus/netlink_two/seed": "",
    "tests/lab/probes/probe.cpp": "", "tests/lab/scenarios/uses.py": 'built(lab, "probe")\n',
    LISTS[0]: "uses  # the probe\n", LISTS[1]: "",
}
RULES = [
    Rule("register", lambda tree: [*unregistered(tree), *unused_probes(tree), *listed(tree)],
         good=GOOD,
         bad=[{"tests/unit/b/c/d/x_test.cpp": ""}, {"tests/unit/a/helper.cpp": ""},
              {"tests/unit/d/x_test.cpp": "", "tests/CMakeLists.txt":
               "vfmgr_unit_test(a_test \"a;b/c;d\" lib)\nvfmgr_pytests(contract contract)\n"},
              {"tests/other/test_b.py": ""}, {"tests/fuzz/three.cpp": ""},
              {"tests/fuzz/CMakeLists.txt": "vfmgr_fuzz_target(one lib)\n"},
              {"tests/fuzz/three.cpp": "",
               "tests/fuzz/CMakeLists.txt": GOOD["tests/fuzz/CMakeLists.txt"] +
               "vfmgr_fuzz_target(three lib)\n"},
              {"tests/lab/probes/idle.cpp": ""}, {LISTS[0]: "gone\n"},
              {LISTS[1]: "gone uses\n"}, {LISTS[1]: "uses\n"},
              {"tests/lab/scenarios/uses.py": 'SLICES = 2\nbuilt("probe")\n\nSLICES = 2\n'}]),
]
