# SPDX-License-Identifier: Apache-2.0
"""Mutants name code that exists; otherwise one that can't be planted would fail hours later."""

import json

from rules.tree import Rule

LIST = "tests/mutants/mutants.json"


def plantable(tree):
    if LIST not in tree.names:
        return []
    found = []
    for mutant in json.loads(tree.text(LIST)):
        name = mutant["file"]
        times = tree.text(name).count(mutant["from"]) if name in tree.names else 0
        if times != 1:
            found.append(f"{LIST}: {mutant['name']}: its line is {times} times in {name}")
    return found


ONE = '[{"name": "a", "file": "api/a.cpp", "from": "a < b", "to": "a > b"}]\n'
RULES = [
    Rule("mutants", plantable,
         good={LIST: ONE, "api/a.cpp": "return a < b;\n"},
         bad=[{"api/a.cpp": "return a <= b;\n"}, {"api/a.cpp": "return a < b || a < b;\n"},
              {LIST: ONE.replace("api/a.cpp", "api/gone.cpp")}]),
]
