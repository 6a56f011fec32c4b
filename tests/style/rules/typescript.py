# SPDX-License-Identifier: Apache-2.0
"""Functions and literals of TypeScript, found well enough to measure them."""

import re

# A regular expression follows what can't end a value.
REGEX = r"(?<=[(,=:?!&|\[{;])\s*/(?![/*])(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\n\[])+/[a-z]*"
STRING = r'"(?:\\.|[^"\\\n])*"' + r"|'(?:\\.|[^'\\\n])*'"
TEMPLATE = r"`(?:\\.|\$\{[^`{}]*\}|[^`\\])*?`"
TOKEN = re.compile(rf"//[^\n]*|/\*.*?\*/|(?P<regex>{REGEX})|(?P<literal>{STRING}|{TEMPLATE})", re.S)
CONTROL = re.compile(r"(?:^|[\s;])(?:if|for|while|switch|catch|with)\s*\([^{]*$|\b(?:else|try|do|"
                     r"finally)\s*$")
SCOPE = re.compile(r"^\s*(?:export\s+)?(?:default\s+)?(?:declare\s+)?(?:abstract\s+)?"
                   r"(?:class|interface|enum|namespace|type|import)\b")
FUNCTION = re.compile(r"^\s*(?:export\s+)?(?:default\s+)?(?:async\s+)?function\b.*\)[^()]*$", re.S)
METHOD = re.compile(r"^\s*(?:(?:private|protected|public|static|override|readonly|async|get|set)"
                    r"\s+)*[\w$#]+\s*(?:<[^()]*>)?\(.*\)(?:\s*:[^=]*)?\s*$", re.S)
CLASS_EXPRESSION = re.compile(r"\bclass\b[^(]*$")


def blank(match):
    return re.sub(r"[^\n]", " ", match[0])


def without_comments_and_literals(text):
    return TOKEN.sub(blank, text)


def kind_of(header):
    if SCOPE.match(header) or CLASS_EXPRESSION.search(header):
        return "scope"
    if header.rstrip().endswith("=>"):
        return "function"
    if CONTROL.search(header):
        return "block"
    if FUNCTION.match(header) or METHOD.match(header):
        return "function" if not re.search(r"[:&|<,(]\s*$", header) else "value"
    return "value"


def functions(text):
    """Yields (first line, last line) of each function with a block, inner ones too."""
    text = without_comments_and_literals(text)
    begin, opened = 0, []
    for position, character in enumerate(text):
        if character == "{":
            header = text[begin:position]
            kind = kind_of(header)
            opened.append((kind, begin + len(header) - len(header.lstrip()), begin))
            begin = position + 1
        elif character == "}" and opened:
            kind, start, before = opened.pop()
            if kind == "function":
                yield text.count("\n", 0, start) + 1, text.count("\n", 0, position) + 1
            # After a type or a value the statement that it is part of goes on.
            begin = before if kind == "value" else position + 1
        elif character == ";":
            begin = position + 1


def literals(text):
    """Yields (line, content) of strings and templates, without what templates insert."""
    for match in TOKEN.finditer(text):
        if match["literal"]:
            content = re.sub(r"\$\{[^{}]*\}", "", match["literal"][1:-1])
            yield text.count("\n", 0, match.start()) + 1, content
