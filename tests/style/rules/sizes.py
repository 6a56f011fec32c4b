# SPDX-License-Identifier: Apache-2.0
"""Two lines fit side by side, a function fits a screen, a file is one thing."""

import ast
import re

from rules import typescript
from rules.tree import Rule

LINE_CHARACTERS_MAX = 100
FILE_LINES_MAX = 400
FUNCTION_LINES_MAX = 70

# Comments, strings and characters are blanked first, which leaves only real braces.
COMMENT = r"(?P<comment>//[^\n]*|/\*.*?\*/)"
LITERAL = (r'R"(?P<mark>[^(\s]*)\(.*?\)(?P=mark)"|"(?:\\.|[^"\\\n])*"'
           r"|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'")
TOKEN = re.compile(rf"{COMMENT}|{LITERAL}|^[ \t]*#(?:[^\n\\]|\\.)*", re.S | re.M)
CONTROL = re.compile(r"\b(if|for|while|switch|catch|else|do)\b")
SCOPE = re.compile(r"^\s*(?:template\s*<.*>\s*)?(?:inline\s+)?"
                   r"(?:namespace|struct|class|union|enum|extern|export)\b", re.S)
MEMBER_INITIALISER = re.compile(r"\)\s*(?:noexcept\s*)?:[^:].*[\w>]\s*$", re.S)


def blank(match):
    return re.sub(r"[^\n]", " ", match[0])


def cpp_functions(text):
    """Returns (first line, last line) of each function body in a namespace or a class."""
    text = TOKEN.sub(blank, text)
    begin, depth, opened = 0, 0, None
    kinds = []
    for position, character in enumerate(text):
        if character == "{":
            header = text[begin:position]
            kind = "body" if "body" in kinds else brace_kind(header)
            if kind == "body" and "body" not in kinds:
                opened = begin + len(header) - len(header.lstrip())
            kinds.append(kind)
            if kind != "value":
                begin = position + 1
        elif character == "}" and kinds:
            kind = kinds.pop()
            if kind == "body" and "body" not in kinds:
                yield text.count("\n", 0, opened) + 1, text.count("\n", 0, position) + 1
            if kind != "value":
                begin = position + 1
        elif character == "(":
            depth += 1
        elif character == ")":
            depth -= 1
        elif character == ";" and depth <= 0:
            begin, depth = position + 1, 0


def brace_kind(header):
    if MEMBER_INITIALISER.search(header) and "->" not in header.rsplit(")", 1)[1]:
        return "value"
    if SCOPE.match(header) and not header.rstrip().endswith(")"):
        return "scope"
    if "(" in header and not CONTROL.search(header):
        return "body"
    return "value"


def functions(tree):
    found = []
    for name in tree.cpp():
        spans = [(first, last, "function") for first, last in cpp_functions(tree.text(name))]
        found += too_long(name, spans)
    for name in tree.python():
        try:
            module = ast.parse(tree.text(name))
        except SyntaxError as error:
            found.append(f"{name}:{error.lineno}: {error.msg}")
            continue
        found += too_long(name, [(node.lineno, node.end_lineno, node.name)
                                 for node in ast.walk(module)
                                 if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))])
    for name in tree.shell():
        found += too_long(name, shell_functions(tree.lines(name)))
    for name in tree.typescript():
        found += too_long(name, [(first, last, "function")
                                 for first, last in typescript.functions(tree.text(name))])
    return found


def shell_functions(lines):
    first = None
    for number, line in enumerate(lines, 1):
        match = re.match(r"(\w+)\(\) [{(]$", line)
        if match:
            first, function = number, match[1]
        elif first and line in ("}", ")"):
            yield first, number, function
            first = None


def too_long(name, spans):
    return [f"{name}:{first}: {what} of {last - first + 1} lines, {FUNCTION_LINES_MAX} may be"
            for first, last, what in spans if last - first + 1 > FUNCTION_LINES_MAX]


def line_length(tree):
    measured = [*tree.code(), *[name for name in tree.names
                                if name.endswith(("CMakeLists.txt", ".cmake", ".css"))]]
    return [f"{name}:{number}: {len(line)} characters" for name in measured
            for number, line in enumerate(tree.lines(name), 1) if len(line) > LINE_CHARACTERS_MAX]


def file_length(tree):
    return [f"{name}:{FILE_LINES_MAX + 1}: {len(tree.lines(name)) - 1} lines"
            for name in tree.code() if len(tree.lines(name)) - 1 > FILE_LINES_MAX]


STATEMENTS = "    f();\n" * FUNCTION_LINES_MAX
TRICKY = ("namespace a {\nchar const* open = \"{\"; // {\nchar brace = '{';\nint const n = 1'000;\n"
          "struct S {\n    S() : a_{1},\n          b_(2) {" + "}\n    int a_;\n    int b_;\n};\n"
          "auto x = R\"j({ \"a\": 1 )j\";\n" + "int v = 1;\n" * 80 + "}\n")
# A table of values and a class are no functions, however long.
TRICKY_TYPESCRIPT = ("const open = /[\"'{]/.test(a) ? '{' : `${b} {`; // {\nconst a = {\n"
                     + "  b: { c: 1 },\n" * 80 + "};\nexport class D {\n"
                     + "  f(): void {\n    g();\n  }\n" * 30 + "}\n")
RULES = [
    Rule("line-length", line_length,
         good={"api/a.cpp": "/" * 100 + "\n"},
         bad=[{"api/a.cpp": "/" * 101 + "\n"}, {"service/web/src/a.tsx": "/" * 101 + "\n"}]),
    Rule("file-length", file_length,
         good={"api/a.cpp": "\n" * 400}, bad=[{"api/a.cpp": "\n" * 401},
                                              {"tests/run": "#!/bin/bash\n" + "\n" * 400},
                                              {"service/web/src/a.ts": "\n" * 401}]),
    Rule("function-length", functions,
         good={"api/a.cpp": TRICKY, "tests/a.py": "def f():\n" + "    f()\n" * 69,
               "service/web/src/a.tsx": TRICKY_TYPESCRIPT},
         bad=[{"api/b.cpp": "namespace a {\nint f(int b) {\n" + STATEMENTS + "}\n}\n"},
              {"api/b.cpp": "struct S {\n S() : a_{1}, b_(2) {\n" + STATEMENTS + "}\n};\n"},
              {"api/b.cpp": "auto f(T<int> t) -> std::string {\n" + STATEMENTS + "}\n"},
              {"api/b.cpp": TRICKY + "void X::f(std::function<void()> g) const {\n if (x) {\n}\n"
               + STATEMENTS + "}\n"},
              {"tests/a_test.cpp": "TEST(A, B) {\n" + STATEMENTS + "}\n"},
              {"tests/b.py": "def f():\n" + "    f()\n" * 70},
              {"tests/run": "#!/bin/bash\nf() {\n" + STATEMENTS + "}\n"},
              *[{"service/web/src/a.tsx": TRICKY_TYPESCRIPT + head + STATEMENTS + tail}
                for head, tail in (("function f(a: { b: C }): { d: E } {\n", "}\n"),
                                   ("export const f = async (a: B) => {\n", "};\n"),
                                   ("class A {\n  private f<T>(a: T): void {\n", "  }\n}\n"),
                                   ("g(`a ${b}`, () => {\n", "});\n"),
                                   ("const a = <p onClick={() => {\n", "}} />;\n"))]]),
]
