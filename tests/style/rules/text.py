# SPDX-License-Identifier: Apache-2.0
"""Bytes: licence line, white space, control characters, leftovers of merges."""

import re

from rules.tree import Rule

LICENCE = "SPDX-License-Identifier: Apache-2.0"
KERNEL = "tests/lab/module/"  # the lab's kernel module: the kernel's licence and style
KERNEL_LICENCE = "SPDX-License-Identifier: GPL-2.0"
LICENSED = (".cpp", ".hpp", ".c", ".h", ".py", ".sh", ".cmake", ".yaml", ".yml", ".toml",
            ".service", ".socket", ".timer", ".sysusers", ".tmpfiles", ".1", ".5", ".8",
            "CMakeLists.txt", ".ts", ".tsx", ".mjs", ".cjs", ".css")
PICTURES = ".png"
# A merge that was committed as it stood.
CONFLICT = re.compile(r"<{7} |={7}$|>{7} ")
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


def ours(tree):
    return [name for name in tree.names if not tree.captured(name)
            and not name.endswith(PICTURES) and not (tree.root / name).is_symlink()]


def spdx(tree):
    found = []
    for name in ours(tree):
        if not name.endswith(LICENSED) and not tree.shebang(name):
            continue
        first = tree.lines(name)[1 if tree.shebang(name) else 0:][:1]
        allowed = [LICENCE]
        if name.startswith(KERNEL):
            allowed.append(KERNEL_LICENCE)
        if not first or not any(licence in first[0] for licence in allowed):
            found.append(f"{name}:1: no line '{LICENCE}' at the top")
    return found


def white_space(tree):
    found = []
    for name in ours(tree):
        text = tree.text(name)
        if text and not text.endswith("\n"):
            found.append(f"{name}:{len(tree.lines(name))}: no newline at the end")
        if text.endswith("\n\n"):
            found.append(f"{name}:{len(tree.lines(name))}: empty lines at the end")
        for number, line in enumerate(tree.lines(name), 1):
            if "\t" in line and not name.startswith(KERNEL):
                found.append(f"{name}:{number}: a tab")
            if line != line.rstrip(" "):
                found.append(f"{name}:{number}: space at the end of the line")
            if CONFLICT.match(line):
                found.append(f"{name}:{number}: a conflict of a merge")
            if CONTROL.search(line):
                found.append(f"{name}:{number}: a control character")
            if "\ufffd" in line:
                found.append(f"{name}:{number}: not UTF-8")
    return found


RULES = [
    Rule("spdx", spdx,
         good={"api/a.cpp": f"// {LICENCE}\n", "tests/run": f"#!/bin/bash\n# {LICENCE}\n",
               "tests/lab/module/m.h": f"/* {KERNEL_LICENCE} */\n"},
         bad=[{"api/b.cpp": "int a;\n"}, {"tests/x": "#!/bin/bash\nset -e\n"},
              {"api/c.c": f"// {KERNEL_LICENCE}\n"}, {"deploy/a.service": ""}]),
    Rule("white-space", white_space,
         good={"api/a.cpp": "int a;\n", "tests/fuzz/corpus/a": "a\t\x01",
               "docs/a.png": b"\x89PNG\xff",
               "tests/lab/module/m.c": "\tint a;\n"},
         bad=[{"api/b.cpp": "int a;"}, {"api/b.cpp": "\tint a;\n"}, {"api/b.cpp": "int a; \n"},
              {"api/b.cpp": "int a;\r\n"}, {"api/b.cpp": "\x1b[1m\n"}, {"api/b.cpp": b"\xff\n"},
              {"README.md": "a\n\n"}, {"README.md": "a\n>>>>>>> of another\n"}]),
]
