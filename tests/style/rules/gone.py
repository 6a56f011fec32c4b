# SPDX-License-Identifier: Apache-2.0
"""Words that are gone from names, JSON, commands, messages, documents and comments.

Each meaning has one word in this repository, as a rule the one of the kernel, libvirt or systemd.
Written such that this file does not contain the words that it looks for.
"""

import re
from dataclasses import dataclass

from rules.tree import Rule


@dataclass
class Gone:
    pattern: re.Pattern
    instead: str
    is_name: bool = False                # only as an identifier, not as words of a sentence
    allowed: re.Pattern | None = None    # a line in which it means something else
    at_home: re.Pattern | None = None    # files in which it means something else


def gone(pattern, instead, allowed=None, is_name=False, at_home=None):
    return Gone(re.compile(rf"(?<![A-Za-z])(?:{pattern})(?![A-Za-z])"), instead, is_name,
                re.compile(allowed) if allowed else None,
                re.compile(at_home) if at_home else None)


WORDS = [
    gone("l[e]as(?:e|es|ed|ing)", "attach, attachment", allowed=r"\b(?:dhcp|etcd|dnsmasq)\b",
         at_home=r"service/fleet/etcd/|tests/unit/service/fleet/etcd/|tests/fleet/|"
                 r"tests/fakes/(?:etcd_claims|fake_etcd|fake_watch)"),
    gone("le[n](?:d|ds|der|ding|t)", "attach, attached"),
    gone("l[e]gs?", "interface, host interface"),
    gone("s[t]ock", "interop; the programs by name", allowed=r"\bs[t]ock kernels?\b"),
    gone("c[u]r(?:e|es|ed|ing)", "remedy"),
    gone("bu[r](?:y|ies|ied|ying)", "reap, close"),
    gone("h[a]nd(?:s|ed|ing)? ?overs?", "pass, send, attach, return", allowed=r"\bkexec\b"),
    gone("(?:h[a]nd(?:s|ed|ing)?|g[i]v(?:e|es|en|ing)|g[a]ve|t[a]k(?:e|es|en|ing)|t[o]ok|"
         "p[u]t(?:s|ting)?) back", "detach, return, restore"),
    gone("p[u]t(?:s|ting)? right(?! (?:after|at|before|behind|in|into|on))", "repair"),
    gone("w[i]sh(?:es|ed)?", "spec, request; desired, requested"),
    gone("is c[o]ntent", "passes"),
    gone("s[e]en_at", "observed_at", is_name=True),
    gone("v[m]_names?|v[m]Names?", "vm", is_name=True),
]
# What stores of earlier forms hold; facts captured from whole machines.
OLD_STORES = re.compile(r"vfmgr/store/schema\.cpp|tests/unit/vfmgr/store/forms_test\.cpp|"
                        r"tests/fixtures/store-forms/.*")
MACHINES = re.compile(r"tests/fixtures/bundles/(?:lab/)?[^/]+\.json")
CHANGES = "CHANGELOG.md"


def words_of(text):
    """Lower-case words, also those that an identifier is made of."""
    return re.sub(r"[_-]+", " ", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", text)).lower()


def is_ours(tree, name):
    return not (tree.captured(name) or name == "LICENSE" or name.startswith("tests/style/")
                or OLD_STORES.fullmatch(name) or MACHINES.fullmatch(name))


def unreleased(lines):
    """Blanks the sections of releases: they name what there was."""
    released = False
    for line in lines:
        if line.startswith("## "):
            released = "unreleased" not in line
        yield "" if released else line


def finds(text, name):
    words = words_of(text)
    for one in WORDS:
        if one.at_home and one.at_home.match(name):
            continue
        match = one.pattern.search(text if one.is_name else words)
        if match and not (one.allowed and one.allowed.search(words)):
            yield f"'{match[0]}': say {one.instead}"


def words_gone(tree):
    found = []
    for name in tree.names:
        if not is_ours(tree, name):
            continue
        found += [f"{name}:1: the file's name, {why}" for why in finds(name, name)]
        lines = tree.lines(name)
        found += [f"{name}:{number}: {why}"
                  for number, line in enumerate(unreleased(lines) if name == CHANGES else lines, 1)
                  for why in finds(line, name)]
    return found


E = "e"
GOOD = {
    "api/a.hpp": "void detach(VmId vm);  // legacy: a DHCP l" + "ease, read by the kernel\n"
                 "bool is_legal(std::string_view elegant_name, Secure content);\n",
    CHANGES: "# Changes\n\n## 0.2.0, unreleased\n\n- `vfctl attach`.\n\n## 0.1.0\n\n- `vfctl le"
             + "nd`.\n",
    "vfmgr/store/schema.cpp": "ALTER TABLE l" + "eases\n",
    "service/fleet/etcd/a.hpp": "using L" + "easeId = int;\n",
    "tests/fixtures/bundles/host.json": '"set l' + 'egs"\n',
    "README.md": "It hangs a st" + "ock kernel. Put the card back in; it was seen at boot.\n",
}
RULES = [
    Rule("words-gone", words_gone, good=GOOD,
         bad=[{"api/a.json": f'{{"l{E}ase_id": 1}}\n'}, {"service/fleet/a.hpp": f"L{E}ase a;\n"},
              {"README.md": f"VFs are l{E}nt to VMs.\n"},
              {"vfmgr/a.cpp": f"VlanL{E}g const& host_interface;\n"},
              {"vfmgr/a.cpp": f"auto host_l{E}gs = 2;\n"},
              {f"tests/bench/l{E}nd.py": ""}, {"service/a.cpp": f'"vfctl st{"o"}ck open"\n'},
              {"api/a.yaml": f"description: the cur{E} of a finding\n"},
              {"vfmgr/a.cpp": f"// Buri{E}s its children.\n"},
              {"vfmgr/a.cpp": f"void hand{'_'}over(Vf const& vf);\n"},
              {"deploy/man/a.1": f"Its settings are put{' '}back.\n"},
              {"vfmgr/a.cpp": f"struct Give{'B'}ack;\n"},
              {"vfmgr/a.cpp": f"// Puts drift r{'i'}ght.\n// It puts{' '}right what drifts.\n"},
              {"tests/a.py": f"def attach(**wi{'s'}h):\n"},
              {"vfmgr/checks/README.md": f"The rule is{' '}content.\n"},
              {"api/a.json": f'{{"se{E}n_at": 1}}\n'}, {"api/a.json": f'{{"v{"m"}_name": 1}}\n'},
              {CHANGES: f"## 0.2.0, unreleased\n\n- `vfctl l{E}nd`.\n"}]),
]
