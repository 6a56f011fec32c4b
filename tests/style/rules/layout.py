# SPDX-License-Identifier: Apache-2.0
"""Where files are, and how they begin."""

import ast
import os
import re
import subprocess

from rules.tree import Rule

ROOT = {".ci", "api", "vfmgr", "guest-tools", "service", "tests", "deploy", "README.md", "LICENSE",
        "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "CMakeLists.txt", "CMakePresets.json",
        ".clang-format", ".clang-tidy", ".editorconfig", ".gitignore"}
SHEBANGS = {"/usr/bin/python3", "/bin/bash", "/bin/sh", "/usr/bin/busybox sh"}
CPP_NAME = re.compile(r"[a-z0-9_]+\.(?:cpp|hpp)")


def root_files(tree):
    return [f"{name}:1: nothing else belongs at the root" for name in tree.names
            if name.split("/")[0] not in ROOT or
            (name.startswith(".ci/") and name != ".ci/run")]


def headers(tree):
    found = []
    for name in tree.cpp():
        if name.endswith("pp") and not CPP_NAME.fullmatch(os.path.basename(name)):
            found.append(f"{name}:1: file names are snake_case")
        if not name.endswith(".hpp"):
            continue
        lines = tree.lines(name)
        if "#pragma once" not in lines:
            found.append(f"{name}:1: no #pragma once")
        if len(lines) < 2 or not lines[1].startswith("// "):
            found.append(f"{name}:2: a header begins with what it is, who owns it, which thread")
    return found


def scripts(tree):
    found = []
    for name in tree.names:
        if tree.captured(name) or (tree.root / name).is_symlink():
            continue
        shebang, executable = tree.shebang(name), os.access(tree.root / name, os.X_OK)
        if executable != bool(shebang):
            found.append(f"{name}:1: executable and without a first line #!, or the reverse")
        if shebang and shebang not in SHEBANGS:
            # The first python3 in PATH may lack Debian's modules.
            found.append(f"{name}:1: #!{shebang}: one of {', '.join(sorted(SHEBANGS))}")
    for name in tree.shell():
        shell = "bash" if "bash" in tree.shebang(name) else "sh"
        done = subprocess.run([shell, "-n", str(tree.root / name)], stderr=subprocess.PIPE)
        if done.returncode:
            found.append(f"{name}:1: {done.stderr.decode().splitlines()[0]}")
    for name in tree.python():
        try:
            ast.parse(tree.text(name))
        except SyntaxError as error:
            found.append(f"{name}:{error.lineno}: {error.msg}")
    return found


HEADER = "// SPDX\n// What this is.\n#pragma once\n"
RULES = [
    Rule("root-files", root_files,
         good={"README.md": "", "api/a.cpp": "", ".ci/run": ""},
         bad=[{"notes.txt": ""}, {"docs/a.md": ""}, {".ci/other": ""}]),
    Rule("headers", headers,
         good={"api/a.hpp": HEADER},
         bad=[{"api/a.hpp": "// SPDX\n// What.\n"}, {"api/a.hpp": "// SPDX\n#pragma once\n"},
              {"api/LoudName.hpp": HEADER}]),
    Rule("scripts", scripts,
         good={"tests/run": "#!/bin/bash\ntrue\n", "tests/a": "#!/usr/bin/python3\nx = 1\n"},
         bad=[{"tests/b": "#!/usr/bin/env python3\n"}, {"README.md": "executable by plant()\n"},
              {"tests/run": "#!/bin/bash\nif true\n"}, {"tests/c": "#!/usr/bin/python3\nx =\n"}]),
]
