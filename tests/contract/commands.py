# SPDX-License-Identifier: Apache-2.0
"""What a program's --help lists, and the commands that documents show. Neither is executed here,
except --help."""

import re
import subprocess
from dataclasses import dataclass, field

OPTION = re.compile(r"(?<![\w-])--?[A-Za-z][\w-]*")
OPTION_LINE = re.compile(r"^ +(-[\w-]+(?:, ?-[\w-]+)*)", re.MULTILINE)
COMMANDS = re.compile(r"^(?:Subcommands:|  COMMAND)\n((?:  .*\n)+)", re.MULTILINE)
PARTS = re.compile(r"^  PART +(.*)\n", re.MULTILINE)
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"^(?: {4}|\$ )(.*)$|`([^`\n]+)`", re.MULTILINE)
ENDS = re.compile(r"[|;&<>()#]|  +")
QUOTED = re.compile(r'"([^"]*)"|(\S+)')
PASSES_ON = ("exec", "--")  # what follows is another program's


@dataclass
class Command:
    """A program, or one of its commands: the options that it lists itself, and its commands."""
    options: set = field(default_factory=set)
    commands: dict = field(default_factory=dict)
    words: tuple = ()           # that may follow it, if it says so

    def all_options(self):
        return self.options.union(*(one.all_options() for one in self.commands.values()))

    def leaves(self, path=()):
        """Yields the path of each command that has no commands of its own."""
        for name, command in self.commands.items():
            if command.commands:
                yield from command.leaves((*path, name))
            else:
                yield (*path, name)

    def groups(self, path=()):
        """Yields (path, names of its commands) of the program and of each command that has any."""
        if self.commands:
            yield path, set(self.commands)
        for name, command in self.commands.items():
            yield from command.groups((*path, name))


def listed(text):
    """Reads the text of --help, as CLI11, argparse or tests/run print it: a Command whose commands
    have nothing yet."""
    options = {option for line in OPTION_LINE.findall(text) for option in OPTION.findall(line)}
    section = COMMANDS.search(text)
    names = re.findall(r"^ {2,4}(\S+)(?: |$)", section[1], re.MULTILINE) if section else []
    parts = PARTS.search(text)
    return Command(options, {name: Command() for name in names},
                   tuple(re.findall(r"\w+", re.sub(r"\(.*\)", "", parts[1]))) if parts else ())


def asked(program, *path):
    """Asks a program, and each of its commands, for --help."""
    shown = subprocess.run([str(program), *path, "--help"], capture_output=True, text=True,
                           timeout=60)
    assert shown.returncode == 0, (program, path, shown)
    command = listed(shown.stdout)
    for name in command.commands:
        command.commands[name] = asked(program, *path, name)
    return command


NAMES_FOLLOW = {"--host"}  # options whose value can be a command's name, too


def wrong_words(program, words):
    """What of these words, which follow the program's name, it does not know."""
    known, here, value, named = set(program.options), program, False, False
    for word in words:
        if named:
            named = value = False
            continue
        if word in PASSES_ON and (word == "--" or word in here.commands):
            return
        option = OPTION.match(word)
        if option:
            if option[0] not in known:
                yield f"no option {option[0]}"
            value, named = True, word in NAMES_FOLLOW
        elif word in here.commands:
            here = here.commands[word]
            known |= here.options
            value = False
        elif here.commands and not value and re.fullmatch(r"[a-z][a-z-]*", word):
            yield f"no command {word}"
            return
        else:
            value = False


def shown_in(document, names):
    """Yields (line, program, words) of each command line of a Markdown document, in code spans and
    in code blocks, that begins with one of these programs."""
    begin = re.compile(rf"(?:^|(?<=[\s(]))({'|'.join(map(re.escape, names))})(?=\s|$)(.*)")
    text = re.sub(r" *\\\n *", "\v", document)  # counts as an end of a line
    text = FENCE.sub(lambda match: match[0].replace("\n", "\n    "), text)
    for code in CODE.finditer(text):
        found = begin.search(code[1] or code[2] or "")  # a block may have empty lines
        if found:
            words = ENDS.split(found[2].strip(), maxsplit=1)[0].split()
            before = text[:code.start()]
            yield before.count("\n") + before.count("\v") + 1, found[1], words


def plain(roff):
    """A line of a man page without its font changes and, if it is a macro, without the macro."""
    line = re.sub(r"\\f.|\\&|\\/", "", roff).replace("\\-", "-")
    macro = re.match(r"\.([A-Z]{1,2}) +(.*)", line)
    if not macro:
        return line
    between = "" if len(macro[1]) == 2 else " "  # .BI alternates two fonts, without spaces
    return between.join(quoted or bare for quoted, bare in QUOTED.findall(macro[2]))


def headings(page):
    """Yields (line, text) of what a man page explains: the macro lines that follow a .TP. What is
    internal is not listed by --help."""
    heads, lines = False, page.split("\n")
    for number, (line, then) in enumerate(zip(lines, [*lines[1:], ""]), 1):
        if re.match(r"\.T[PQ]\b", line):
            heads = True
        elif heads and re.match(r"\.(B|BI|BR)\b", line) and then != "Internal:":
            yield number, plain(line)
        else:
            heads = False
