# SPDX-License-Identifier: Apache-2.0
"""What a comment or a document cites is in this repository: documents, and headings in them."""

import ast
import io
import os
import re
import tokenize

from rules.sizes import COMMENT, LITERAL
from rules.tree import Rule

URL = re.compile(r"\b[a-z]+://\S+")
CITED = re.compile(r"(?<![\w./-])((?:\.{0,2}/)*[A-Za-z][\w./-]*\.md)\b(?:#([\w-]+))?")
OWN_HEADING = re.compile(r"\]\(#([\w-]+)\)")
# A number means another section once one is added before it, and no check would notice.
NUMBERED = re.compile(r"[\w-]+\.md(?:,\s*|\s+(?=§|section|rule|part))"
                      r"(?:§|sections?|rules?|parts?)?\s*\d[\d.]*")
HEADING = re.compile(r"^#{1,6} +(.*?)[ #]*$")
LINKED = re.compile(r"\[([^\]]*)\]\([^)]*\)")
TOKEN = re.compile(f"{COMMENT}|{LITERAL}", re.S)
SHELL_COMMENT = re.compile(r"(?:^|\s)#(?!!)(.*)")


def cpp_comments(text):
    for match in TOKEN.finditer(text):
        if match["comment"]:
            first = text.count("\n", 0, match.start()) + 1
            for number, line in enumerate(match[0].split("\n"), first):
                yield number, line.strip("/* ")


def python_comments(text):
    """Comments, and the documentation of modules, classes and functions."""
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
        nodes = list(ast.walk(ast.parse(text)))
    except (SyntaxError, tokenize.TokenError):
        return []  # the rule "scripts" reports it
    found = [(token.start[0], token.string.strip("# ")) for token in tokens
             if token.type == tokenize.COMMENT]
    lines = text.split("\n")
    for node in nodes:
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) \
                and ast.get_docstring(node) is not None:
            doc = node.body[0]
            found += [(number, lines[number - 1].strip())
                      for number in range(doc.lineno, doc.end_lineno + 1)]
    return sorted(found)


def shell_comments(text):
    for number, line in enumerate(text.split("\n"), 1):
        match = SHELL_COMMENT.search(line)
        if match:
            yield number, match[1].strip()


def prose(tree):
    """Yields (file, [(line number, text)]) of all comments and documents."""
    for name in tree.cpp():
        yield name, list(cpp_comments(tree.text(name)))
    for name in tree.python():
        yield name, list(python_comments(tree.text(name)))
    for name in tree.shell():
        yield name, list(shell_comments(tree.text(name)))
    for name in tree.names:
        if name.endswith(".md") and not tree.captured(name):
            yield name, list(enumerate(tree.lines(name), 1))


def runs(lines):
    """Joins consecutive lines. Yields (text, [(offset, line number)])."""
    text, starts = "", []
    for number, line in lines:
        if starts and number > starts[-1][1] + 1:
            yield text, starts
            text, starts = "", []
        starts.append((len(text), number))
        text += line + "\n"
    if starts:
        yield text, starts


def line_at(starts, offset):
    return max(number for start, number in starts if start <= offset)


def anchors(text):
    """Those that GitHub makes of a document's headings."""
    found, fenced, count = set(), False, {}
    for line in text.split("\n"):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        match = HEADING.match(line)
        if fenced or not match:
            continue
        plain = LINKED.sub(r"\1", match[1]).lower()
        anchor = re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")
        again = count.get(anchor, 0)
        count[anchor] = again + 1
        found.add(f"{anchor}-{again}" if again else anchor)
    return found


def documents(tree, citing, cited):
    """The files that a name may mean: from the root, from the citing file's folder, by basename."""
    folder = os.path.dirname(citing)
    paths = {os.path.normpath(cited), os.path.normpath(os.path.join(folder, cited))}
    there = [name for name in tree.names if name in paths]
    if there or "/" in cited:
        return there
    return [name for name in tree.names
            if os.path.basename(name) == cited and not tree.captured(name)]


def wrong_citation(tree, citing, cited, anchor):
    meant = documents(tree, citing, cited)
    if not meant:
        return f"there is no {cited}"
    if not anchor or any(anchor in anchors(tree.text(name)) for name in meant):
        return ""
    return f"no heading of {cited} has the anchor #{anchor}"


def references(tree):
    found = []
    for name, lines in prose(tree):
        for text, starts in runs(lines):
            text = URL.sub(lambda match: " " * len(match[0]), text)
            for match in NUMBERED.finditer(text):
                found.append(f"{name}:{line_at(starts, match.start())}: "
                             f"'{' '.join(match[0].split())}': cite a heading, as in A.md#heading")
            for match in CITED.finditer(text):
                if wrong := wrong_citation(tree, name, match[1], match[2]):
                    found.append(f"{name}:{line_at(starts, match.start())}: {wrong}")
            if name.endswith(".md"):
                known = anchors(tree.text(name))
                found += [f"{name}:{line_at(starts, match.start())}: no heading #{match[1]} here"
                          for match in OWN_HEADING.finditer(text) if match[1] not in known]
    return found


FACTS = ("# Facts\n\n## What can't be\n\nSee [above](#facts).\n\n"
         "## `a_b()` twice\n\n## `a_b()` twice\n")
RULES = [
    Rule("references", references,
         good={"vfmgr/kernel/KERNEL.md": FACTS,
               "vfmgr/kernel/a.hpp": "// Facts: KERNEL.md#what-cant-be, KERNEL.md#a_b-twice-1.\n",
               "api/a.cpp": "// In vfmgr/kernel/KERNEL.md#facts.\nauto gone = \"gone.md#here\";\n",
               "api/b.md": "[Facts](../vfmgr/kernel/KERNEL.md#facts) https://example.org/a.md, 3\n",
               "tests/a.py": '"""As KERNEL.md has it."""\nGONE = "gone.md, 3"\n',
               "tests/a.sh": "echo gone.md  # not KERNEL.md\n",
               "tests/fuzz/corpus/a.md": "gone.md, 3\n"},
         bad=[{"api/a.cpp": "// Facts: gone.md.\n"}, {"api/a.cpp": "int a;  /* docs/gone.md */\n"},
              {"api/a.cpp": "// other/KERNEL.md#facts\n"}, {"api/a.c": "// KERNEL.md#gone\n"},
              {"api/a.cpp": "// (KERNEL.md, 3.2)\n"}, {"api/a.cpp": "// (KERNEL.md,\n// 3)\n"},
              {"api/a.cpp": "// KERNEL.md section 4\n"}, {"api/a.cpp": "// KERNEL.md, rule 5\n"},
              {"api/b.md": "In ../vfmgr/kernel/KERNEL.md#gone\n"}, {"api/b.md": "[x](#gone)\n"},
              {"tests/a.py": '"""As gone.md has it."""\n'}, {"tests/a.py": "a = 1  # gone.md\n"},
              {"tests/a.sh": "true  # gone.md\n"},
              {"vfmgr/kernel/KERNEL.md": "```\n# Facts\n```\n"}]),
]
