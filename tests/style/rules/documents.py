# SPDX-License-Identifier: Apache-2.0
"""Documents match the facts: links, paths, commands, man pages, data files, the commit message."""

import json
import os
import re

from rules.tree import Rule

LINK = re.compile(r"\[[^\]]*\]\(([^)\s#]+)(?:#[^)]*)?\)")
COMMAND = re.compile(r"(?:^|[\s`])(?:\./)?((?:deploy|tests)/[a-z][a-z-]*(?:/[a-z-]+)*)(?=[\s`]|$)")
OPTION = re.compile(r'add_(?:option|flag)(?:_function)?(?:<[^>]*>)?\(\s*"([^"]*)"')
PATH = re.compile(r"`((?:api|vfmgr|guest-tools|service|tests|deploy)/[^`\s#]*)(?:#[^`\s]*)?`")
SOURCE = re.compile(r"`([a-z0-9_/-]+\.[ch]pp)(?:#[^`\s]*)?`")
SCENARIOS = re.compile(r"\(((?:`[a-z-]+`(?:, )?)+)\)")
EVIDENCE = "tests/EVIDENCE.md"
LINES_MAX = {"README.md": 90, **{f"{folder}/README.md": 30 for folder in (
    "api", "vfmgr", "guest-tools", "service", "tests", "deploy")}}
SUBJECT = re.compile(r"[a-z][a-z0-9./_-]*(?:, [a-z][a-z0-9./_-]*)*: [A-Z][^\n]*[^.\n]")


def links(tree):
    found = []
    for name in tree.names:
        if not name.endswith(".md"):
            continue
        for number, line in enumerate(tree.lines(name), 1):
            for target in LINK.findall(line):
                beside = tree.root / os.path.dirname(name) / target
                if "://" not in target and not beside.exists():
                    found.append(f"{name}:{number}: there is no {target}")
    return found


def paths(tree):
    """Paths that documents name in code spans exist; of C++ files also their ends, as `a/b.cpp`.
    The change log names what was."""
    lines = [(name, number, line) for name in tree.names
             if name.endswith(".md") and name != "CHANGELOG.md"
             for number, line in enumerate(tree.lines(name), 1)]
    ends = {"/".join(parts[first:]) for parts in (name.split("/") for name in tree.names)
            for first in range(len(parts))}
    return [f"{name}:{number}: there is no {path}" for name, number, line in lines
            for path in PATH.findall(line) if not any(tree.root.glob(path.rstrip("/")))] + \
        [f"{name}:{number}: there is no {path}" for name, number, line in lines
         for path in SOURCE.findall(line) if path not in ends and not PATH.match(f"`{path}`")]


def first_screens(tree):
    """A folder's README fits one screen: what is in it, what it may include, where to start."""
    return [f"{name}:{most + 1}: {len(tree.lines(name)) - 1} lines, at most {most}"
            for name, most in LINES_MAX.items()
            if name in tree.names and len(tree.lines(name)) - 1 > most]


def evidence(tree):
    """The README gives the number of claims in the evidence; the scenarios that it names exist."""
    if EVIDENCE not in tree.names or "README.md" not in tree.names:
        return []
    rows = [(number, line.split("|")) for number, line in enumerate(tree.lines(EVIDENCE), 1)
            if line.startswith("| ")][1:]  # without the head
    found = [] if f" {len(rows)} rows" in tree.text("README.md") else \
        [f"README.md:1: does not say that {EVIDENCE} has {len(rows)} rows"]
    return found + [f"{EVIDENCE}:{number}: there is no scenario {name}" for number, row in rows
                    for names in SCENARIOS.findall(row[2])
                    for name in re.findall(r"[a-z-]+", names)
                    if f"tests/lab/scenarios/{name}.py" not in tree.names]


def readme_commands(tree):
    """The README's two commands, and any other that it shows, exist and are executable."""
    text = tree.text("README.md") if "README.md" in tree.names else ""
    shown = set(COMMAND.findall(text))
    found = [f"README.md:1: does not show {name}" for name in ("deploy/demo", "tests/run")
             if name not in shown]
    return found + [f"README.md:1: there is no program {name}" for name in sorted(shown)
                    if not (tree.root / name).is_dir() and not os.access(tree.root / name, os.X_OK)]


def options_of(tree, folder):
    names = set()
    for name in tree.cpp():
        if name.startswith(folder):
            for spelled in OPTION.findall(tree.text(name)):
                names |= {one.strip() for one in spelled.split(",") if one.strip().startswith("-")}
    return names


def option_documents(tree):
    """Every option of the programs is in its man page; vf-guest's long options have completion.
    vfctl completes its own."""
    found = []
    pages = [("service/cli/", "deploy/man/vfctl.1"), ("service/main.cpp", "deploy/man/vfmgrd.8"),
             ("service/fleet/main.cpp", "deploy/man/vfmgr-fleetd.8"),
             ("guest-tools/", "deploy/man/vf-guest.1")]
    for folder, page in pages:
        if page not in tree.names:
            found.append(f"{page}:1: there is no such page")
            continue
        text = tree.text(page).replace("\\-", "-")
        found += [f"{page}:1: says nothing of {option}" for option in options_of(tree, folder)
                  if not re.search(re.escape(option) + r"(?![\w-])", text)]
    completion = "deploy/completion/vf-guest"
    text = tree.text(completion) if completion in tree.names else ""
    return found + [f"{completion}:1: does not complete {option}"
                    for option in options_of(tree, "guest-tools/") if option.startswith("--")
                    and not re.search(re.escape(option) + r"(?![\w-])", text)]


def data_files(tree):
    found = []
    for name in tree.names:
        if tree.captured(name) or not name.endswith((".json", ".yaml", ".yml")):
            continue
        try:
            if name.endswith(".json"):
                json.loads(tree.text(name))
            else:
                import yaml
                yaml.safe_load(tree.text(name))
        except Exception as error:
            found.append(f"{name}:1: {str(error).splitlines()[0]}")
    return found


def commit_message(tree):
    """Subject "area: Imperative", a body that gives the reason and what was tested. HEAD only; not
    merges."""
    parents, message = tree.head_message()
    if parents > 1 or not message:
        return []
    lines = message.strip().split("\n")
    found = []
    if len(lines[0]) > 72 or not SUBJECT.fullmatch(lines[0]):
        found.append(f"HEAD:1: '{lines[0]}' is not \"area: Imperative subject\" of 72 characters")
    if len(lines) < 3 or lines[1]:
        found.append("HEAD:2: after an empty line the body says why and what a user sees")
    if not any("Tested:" in line for line in lines):
        found.append(f"HEAD:{len(lines)}: no 'Tested:' with the command that was run")
    return found


PAGES = {"deploy/man/vfctl.1": "\\-\\-verify, \\-\\-vlan", "deploy/man/vfmgrd.8": "",
         "deploy/man/vfmgr-fleetd.8": "",
         "deploy/man/vf-guest.1": "\\-\\-watch", "deploy/completion/vf-guest": "--wat"}
RULES = [
    Rule("links", links,
         good={"README.md": "[a](api/a.md#x) [b](https://example.org)\n", "api/a.md": ""},
         bad=[{"README.md": "[a](api/gone.md)\n"}]),
    Rule("paths", paths,
         good={"README.md": "`api/a.hpp#part`, `tests/*.json`, `tests/run x`\n", "api/a.hpp": "",
               "tests/b.json": "{}", "CHANGELOG.md": "`api/gone.hpp`\n"},
         bad=[{"README.md": "`api/gone.hpp`\n"}, {"CONTRIBUTING.md": "`tests/*.yaml`\n"},
              {"api/README.md": "`b/gone.cpp`\n"}]),
    Rule("first-screens", first_screens,
         good={"README.md": "\n" * 90, "api/README.md": "\n" * 30,
               "tests/lab/README.md": "\n" * 91},
         bad=[{"README.md": "\n" * 91}, {"api/README.md": "\n" * 31}]),
    Rule("evidence", evidence,
         good={"README.md": "It has 1 rows.\n", "tests/lab/scenarios/a-b.py": "",
               EVIDENCE: "| what | lab |\n|---|---|\n| `x` (`y`) | yes (`a-b`), `z` |\n"},
         bad=[{"README.md": "It has 2 rows.\n"},
              {EVIDENCE: "| what | lab |\n|---|---|\n| x | yes (`a-b`, `gone`) |\n"}]),
    Rule("readme-commands", readme_commands,
         good={"README.md": "    sudo deploy/demo\n    tests/run --quick\n",
               "deploy/demo": "#!/bin/sh\n", "tests/run": "#!/bin/bash\n"},
         bad=[{"README.md": "    tests/run\n"},
              {"README.md": "    deploy/demo\n    tests/run\n    deploy/gone\n"},
              {"tests/run": "not executable\n"}]),
    Rule("option-documents", option_documents,
         good={**PAGES, "service/cli/a.cpp": 'app.add_flag("--verify", verify, "");\n'},
         bad=[{"service/cli/a.cpp": 'app.add_option("-x,--extra", extra, "");\n'},
              {"guest-tools/main.cpp": 'app.add_flag("--verify", verify, "");\n'},
              {**PAGES, "guest-tools/main.cpp": 'app.add_flag("--watch", watch, "");\n'}]),
    Rule("data-files", data_files,
         good={"api/a.json": "{}", "api/a.yaml": "a: 1\n"},
         bad=[{"api/a.json": "{"}, {"api/a.yaml": "a: [1\n"}]),
    Rule("commit-message", commit_message,
         good={"HEAD_MESSAGE": "plan: Refuse a VF in use\n\nWhy.\n\nTested: tests/run unit\n"},
         bad=[{"HEAD_MESSAGE": "stuff\n\nWhy.\n\nTested: x\n"},
              {"HEAD_MESSAGE": "plan: Refuse a VF in use.\n\nWhy.\n\nTested: x\n"},
              {"HEAD_MESSAGE": "plan: " + "R" * 70 + "\n\nWhy.\n\nTested: x\n"},
              {"HEAD_MESSAGE": "plan: Refuse a VF in use\n\nWhy.\n"},
              {"HEAD_MESSAGE": "plan: Refuse a VF in use, Tested: x\n"}]),
]
