# SPDX-License-Identifier: Apache-2.0
"""A tree of files as the rules see it, and the definition of a rule."""

import os
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

CPP = (".cpp", ".hpp", ".c", ".h")
# Captured from real programs, or made by fuzzers: not in this repository's format.
CAPTURED = ("corpus", "seeds")


@dataclass
class Rule:
    name: str
    find: object                              # Tree -> ["file:line: what is wrong"]
    good: dict = field(default_factory=dict)  # a tree that passes: {name: content}
    bad: list = field(default_factory=list)   # files that each make it fail


class Tree:
    def __init__(self, root):
        self.root = Path(root)
        self.names = sorted(self._list())
        self._texts = {}

    def _list(self):
        if (self.root / ".git").exists():
            shown = subprocess.run(
                ["git", "-C", str(self.root), "ls-files", "-z", "--cached", "--others",
                 "--exclude-standard"], stdout=subprocess.PIPE, check=True).stdout
            names = set(shown.decode().split("\0")) - {""}
            return [name for name in names if os.path.lexists(self.root / name)]
        return [str(path.relative_to(self.root)) for path in self.root.rglob("*")
                if path.is_file()]

    def head_message(self):
        """Returns (number of parents, message) of HEAD; a planted tree has its message in a
        file."""
        if not (self.root / ".git").exists():
            planted = self.root / "HEAD_MESSAGE"
            return 1, planted.read_text() if planted.exists() else ""
        shown = subprocess.run(["git", "-C", str(self.root), "log", "-1", "--format=%P%n%B"],
                               stdout=subprocess.PIPE, check=True).stdout.decode()
        parents, _, message = shown.partition("\n")
        return len(parents.split()), message

    def text(self, name):
        if name not in self._texts:
            data = (self.root / name).read_bytes()
            self._texts[name] = data.decode("utf-8", "replace").lstrip("\ufeff")
        return self._texts[name]

    def lines(self, name):
        return self.text(name).split("\n")

    def shebang(self, name):
        first = self.lines(name)[0]
        return first[2:].strip() if first.startswith("#!") else ""

    def captured(self, name):
        return any(part in CAPTURED for part in name.split("/")[:-1])

    def cpp(self, folders=None):
        return [name for name in self.names if name.endswith(CPP) and not self.captured(name)
                and (folders is None or name.split("/")[0] in folders)]

    def python(self):
        return [name for name in self.names if not self.captured(name) and
                (name.endswith(".py") or "python" in self.shebang(name))]

    def shell(self):
        return [name for name in self.names if not self.captured(name) and
                (name.endswith(".sh") or self.shebang(name).endswith("sh"))]

    def typescript(self):
        return [name for name in self.names if not self.captured(name)
                and name.endswith((".ts", ".tsx", ".mjs"))]

    def code(self):
        return sorted({*self.cpp(), *self.python(), *self.shell(), *self.typescript()})
