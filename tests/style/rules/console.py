# SPDX-License-Identifier: Apache-2.0
"""The console: words that a person reads are in one file, and few packages run in the browser."""

import json
import os
import re

from rules.tree import Rule
from rules.typescript import TOKEN, blank, literals

SOURCES = "service/web/src/"
WORDS = "service/web/src/text/"
PACKAGE = "service/web/package.json"
AT_RUN_TIME = {"preact", "uplot", "d3-hierarchy"}
MODULES = AT_RUN_TIME | {"preact/hooks"}
EXACT = re.compile(r"\d+\.\d+\.\d+")
IMPORT = re.compile(r'(?:\bfrom|\bimport)\s*\(?\s*"([^"]+)"')
# Text of an element: after its tag, or after an inserted value and before the next tag.
ELEMENT = re.compile(r"<[A-Za-z][^<>]*>\s*(?!extends\b|implements\b)([A-Za-z][^<>{}=;]*)[<{]"
                     r"|\}\s*([A-Za-z][\w ,.']*)</")
ATTRIBUTE = re.compile(r'\b(?:title|aria-label|placeholder|alt|label|caption|act)="([^"]*[a-z]+)"')
SENTENCE = re.compile(r"[A-Z][a-z]+ .*[a-z]|.* [a-z]+[.…]$", re.S)


def sources(tree, ends=(".ts", ".tsx")):
    return [name for name in tree.names if name.startswith(SOURCES) and name.endswith(ends)]


def code_of(text):
    """Without comments and literals, and without arrows, which are no end of a tag."""
    return TOKEN.sub(blank, text).replace("=>", "  ")


def texts(tree):
    found = []
    for name in sources(tree):
        if name.startswith(WORDS):
            continue
        text = tree.text(name)
        words = [(line, said) for line, said in literals(text) if SENTENCE.fullmatch(said)]
        words += [(text.count("\n", 0, match.start()) + 1, match[1])
                  for match in ATTRIBUTE.finditer(text)]
        if name.endswith(".tsx"):
            code = code_of(text)
            words += [(code.count("\n", 0, match.start(match.lastindex)) + 1,
                       match[match.lastindex].strip()) for match in ELEMENT.finditer(code)]
        found += [f"{name}:{line}: '{said}' belongs in text/en.ts" for line, said in sorted(words)]
    return found


def module(name):
    """Returns the module that an import names, or nothing for a file of ours."""
    return None if name.startswith((".", "#")) else name


def dependencies(tree):
    found = []
    for name in sources(tree):
        for number, line in enumerate(tree.lines(name), 1):
            found += [f"{name}:{number}: {one} runs in the browser, where only these may: "
                      f"{', '.join(sorted(MODULES))}" for one in map(module, IMPORT.findall(line))
                      if one and one not in MODULES]
    if PACKAGE not in tree.names:
        return found
    try:
        package = json.loads(tree.text(PACKAGE))
    except ValueError:
        return found  # the rule "data-files" reports it
    found += [f"{PACKAGE}:1: {one} is needed at run time: {', '.join(sorted(AT_RUN_TIME))} may be"
              for one in package.get("dependencies", {}) if one not in AT_RUN_TIME]
    found += [f"{PACKAGE}:1: {one} {version}: one exact version"
              for group in ("dependencies", "devDependencies")
              for one, version in package.get(group, {}).items() if not EXACT.fullmatch(version)]
    lock = os.path.dirname(PACKAGE) + "/package-lock.json"
    return found + ([] if lock in tree.names else [f"{PACKAGE}:1: no {lock}"])


GOOD_PAGE = """// A page.
import { useState } from "preact/hooks";
import { text } from "../text/en";
export function Page({ name }: { name: string }) {
  const [open, setOpen] = useState<boolean>(false);
  if (open && name < "b") throw new Error("outside of it");
  return <p class="panel quiet" title={text.a} onClick={() => setOpen(true)}>{text.b} {name}</p>;
}
"""
GOOD_PACKAGE = '{"dependencies": {"preact": "1.2.3"}, "devDependencies": {"esbuild": "0.1.2"}}\n'
PAGE, OTHER = SOURCES + "pages/Page.tsx", SOURCES + "model/other.ts"
RULES = [
    Rule("console-text", texts,
         good={PAGE: GOOD_PAGE, WORDS + "en.ts": 'export const text = { a: "A word." };\n'},
         bad=[{PAGE: GOOD_PAGE.replace("{text.b}", "Words")},
              {PAGE: GOOD_PAGE.replace("{name}</p>", "{name} words</p>")},
              {PAGE: GOOD_PAGE.replace("{text.a}", '"words"')},
              {PAGE: GOOD_PAGE.replace("{text.b}", '{"Some words"}')},
              {OTHER: "export const said = `${1} words are here.`;\n"}]),
    Rule("console-dependencies", dependencies,
         good={PAGE: GOOD_PAGE, PACKAGE: GOOD_PACKAGE, "service/web/package-lock.json": "{}\n",
               OTHER: 'import type { paths } from "#api";\nimport { h } from "preact";\n'},
         bad=[{OTHER: 'import { memo } from "preact/compat";\n'},
              {OTHER: 'const other = await import("lodash");\n'},
              {PACKAGE: GOOD_PACKAGE.replace("preact", "lodash")},
              {PACKAGE: GOOD_PACKAGE.replace("1.2.3", "^1.2.3")},
              {PACKAGE: GOOD_PACKAGE.replace("0.1.2", "latest")}]),
]
