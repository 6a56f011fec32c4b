# SPDX-License-Identifier: Apache-2.0
"""Words that must not be in the tree. Written such that this file does not contain them."""

import re

from rules.tree import Rule

ANYWHERE = [
    (re.compile(r"\b(?:T[O]DO|F[I]XME|X[X]X)\b"), "finish it, or open an issue"),
    (re.compile(r"/[w]ork/|/[f]arm/|bash_[j]obs|/[r]oot/\.pyenv"), "a path of one machine"),
    (re.compile(r"\b(?:deb|security|ftp|registry|snapshot)\.(?!vfmgr)[a-z]+\.(?:org|com|net)\b"),
     "names a package host; the machine's own sources decide"),
]
IN_CPP = [
    (re.compile(r"\b(?:sleep_(?:for|until)|u[s]leep|nano[s]leep)\b"),
     "wait for the event, with a deadline"),
    (re.compile(r"=\s*new\b"), "an owner: std::make_unique, or a value"),
    (re.compile(r"^\s*#\s*if.*\bTEST(?:S|ING)?\b"), "no test mode in product code"),
    (re.compile(r"\busing\s+namespace\s+std\b(?!::)"), "name what is used"),
    (re.compile(r"\bco_(?:await|return|yield)\b"), "no coroutines: g++ 12 miscompiles them"),
    (re.compile(r"\b[N]OLINT|#\s*pragma\s+(?:GCC|clang)\s+diagnostic"),
     "mend the cause; if there is none, say so in .clang-tidy"),
    (re.compile(r"\bDISABLED_"), "a test that does not run tests nothing"),
    (re.compile(r"\bEXPECT_TRUE\(true\)"), "a test that can't fail"),
]
IN_PRODUCT = [
    (re.compile(r"\b(?:sto(?:i|l|ul|ll|ull|d|f)|ato(?:i|l|ll)|strto(?:l|ul|ll|ull))\s*\("),
     "throws or accepts rubbish: std::from_chars"),
    (re.compile(r"(?<![\w:.>])(?:system|popen)\s*\("), "no shell from the product"),
]
# The content policy forbids inline styles, and what guests say is text, never markup.
IN_CONSOLE = [
    (re.compile(r"dangerouslySetInnerHTML|\binnerHTML\b|\bouterHTML\b"), "what guests say is text"),
    (re.compile(r"\bstyle=|\bsetAttribute\(\"style\""), "a class: the policy allows no other"),
    (re.compile(r"\beval\(|\bnew Function\("), "the content policy forbids it"),
    (re.compile(r"\bdocument\.cookie\b"), "the session is in sessionStorage"),
    (re.compile(r"(?::|\bas|<) ?any\b"), "unknown, and a check"),
]
MACRO = re.compile(r"^\s*#\s*define\s+(\w+)")
MACROS_FILE = "api/types/problem.hpp"  # VFMGR_TRY, VFMGR_CHECK and their parts


def banned_words(tree):
    found = []
    for name in tree.names:
        if tree.captured(name) or name == "LICENSE":
            continue
        patterns = list(ANYWHERE)
        if name.endswith((".cpp", ".hpp")):
            patterns += IN_CPP if name.startswith("tests/") else IN_CPP + IN_PRODUCT
        if name.startswith("service/web/src/"):
            patterns += IN_CONSOLE
        for number, line in enumerate(tree.lines(name), 1):
            found += [f"{name}:{number}: '{pattern.search(line)[0].strip()}': {why}"
                      for pattern, why in patterns if pattern.search(line)]
    return found


def events_not_sleeps(tree):
    """Scenarios and contract tests wait for an event, with a deadline."""
    pattern = re.compile(r"\btime\.[s]leep\(|\basyncio\.[s]leep\(")
    return [f"{name}:{number}: wait for an event with a deadline"
            for name in tree.python()
            if name.startswith(("tests/lab/scenarios/", "tests/contract/"))
            for number, line in enumerate(tree.lines(name), 1) if pattern.search(line)]


def macros(tree):
    return [f"{name}:{number}: a macro, {match[1]}"
            for name in tree.cpp() for number, line in enumerate(tree.lines(name), 1)
            for match in [MACRO.match(line)]
            if match and name != MACROS_FILE and name.endswith((".cpp", ".hpp"))]


S, W = "s", "w"
RULES = [
    Rule("banned-words", banned_words,
         good={"api/a.cpp": "auto parsed = from_chars(first, last, value);\nrun_system(x);\n"},
         bad=[{"README.md": "T" + "ODO: more\n"}, {"tests/run": f"cd /{W}ork/main\n"},
              {"tests/run": "curl http://deb." + "debian.org/\n"},
              {"api/a.cpp": f"std::this_thread::{S}leep_for(1s);\n"},
              {"api/a.cpp": "int a = std::sto" + "i(text);\n"},
              {"api/a.cpp": "auto a = n" + "ew Thing;\n"},
              {"api/a.cpp": "#ifdef TEST\n"}, {"api/a.cpp": "int x; // N" + "OLINT\n"},
              {"tests/a.cpp": "TEST(A, DISA" + "BLED_b) {}\n"},
              {"api/a.cpp": "auto r = system(cmd);\n"},
              {"service/web/src/a.tsx": "const a = <p style={b} />;\n"},
              {"service/web/src/a.ts": "a.innerHTML = b;\n"},
              {"service/web/src/a.ts": "document.cookie = b;\n"},
              {"service/web/src/a.ts": "e" + "val(b);\n"},
              {"service/web/src/a.ts": "const a = b as any;\n"}]),
    Rule("events-not-sleeps", events_not_sleeps,
         good={"tests/lab/scenarios/a.py": "host.wait_for(link_up, seconds=10)\n"},
         bad=[{"tests/lab/scenarios/a.py": f"time.{S}leep(1)\n"}]),
    Rule("macros", macros,
         good={"api/types/problem.hpp": "#define VFMGR_TRY(a, b)\n"},
         bad=[{"api/a.hpp": "#define LIMIT 4\n"}]),
]
