# SPDX-License-Identifier: Apache-2.0
"""Documents show the commands and options that the programs' --help lists: none that is no longer
there, and the tables of all commands lack none."""

import re
import subprocess

import pytest

from commands import Command, asked, headings, listed, plain, shown_in, wrong_words
from live_daemon import BUILD, ROOT

PROGRAMS = {"vfctl": BUILD / "service/vfctl", "vfmgrd": BUILD / "service/vfmgrd",
            "vfmgr-broker": BUILD / "service/vfmgr-broker",
            "vfmgr-guestd": BUILD / "service/vfmgr-guestd",
            "vf-guest": BUILD / "guest-tools/vf-guest", "tests/run": ROOT / "tests/run",
            "tests/lab/lab": ROOT / "tests/lab/lab"}
FOLDERS = ("api", "vfmgr", "guest-tools", "service", "tests", "deploy")
# The change log names what was.
DOCUMENTS = [*(path for path in ROOT.glob("*.md") if path.name != "CHANGELOG.md"),
             *(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.md"))]
PAGES = {"vfctl": "vfctl.1", "vfmgrd": "vfmgrd.8", "vfmgr-broker": "vfmgr-broker.8",
         "vfmgr-guestd": "vfmgr-guestd.8",
         "vf-guest": "vf-guest.1"}
LAB_ROW = re.compile(r"^    tests/lab/lab ([a-z]+)", re.MULTILINE)
PART_ROW = re.compile(r"^\| ([a-z, ]+) \|", re.MULTILINE)


@pytest.fixture(scope="session")
def programs():
    return {name: asked(path) for name, path in PROGRAMS.items()}


def stale(programs, text):
    """What a Markdown document shows and the programs do not have."""
    return [f"{line}: {name}: {wrong}" for line, name, words in shown_in(text, programs)
            for wrong in wrong_words(programs[name], words)]


def wrong_page(program, page):
    """What a man page explains and the program does not have, and the reverse."""
    explained, found = [], []
    for line, text in headings(page):
        if text.startswith("-"):
            found += [f"{line}: no option {option}" for option in re.findall(r"--[\w-]+", text)
                      if option not in program.all_options()]
        elif program.commands:
            explained.append(text)
    for path in program.leaves():
        if not any(re.match(rf"{' '.join(path)}(?![\w-])", text) for text in explained):
            found.append(f"it does not explain {' '.join(path)}")
    said = plain(page.replace("\\-", "-"))
    return found + [f"it does not explain {option}"
                    for option in sorted(program.all_options() - {"-h", "--help"})
                    if not re.search(rf"(?<![\w-]){option}(?![\w-])", said)]


def wrong_completion(program, script):
    """A completion offers the commands of each group, and only options that there are."""
    found = []
    offered = {tuple(path.split()): set(names.split())
               for path, names in re.findall(r'"([\w -]*) "\) choices="([^"]*)"', script)}
    for path, names in program.groups():
        if len(path) < 2 and offered.get(path, set()) != names:
            found.append(f"{' '.join(path) or 'first'}: {names ^ offered.get(path, set())}")
    known = program.all_options()
    return found + [f"no option {option}"
                    for option in re.findall(r"(?<![\w-])--[a-z][\w-]+", script)
                    if option not in known]


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_document_shows_what_there_is(path, programs):
    assert stale(programs, path.read_text()) == []


@pytest.mark.parametrize("name", PAGES)
def test_man_page_explains_what_there_is(name, programs):
    assert wrong_page(programs[name], (ROOT / "deploy/man" / PAGES[name]).read_text()) == []


def test_man_page_has_the_exit_codes_of_the_help():
    shown = subprocess.run([PROGRAMS["vfctl"], "--help"], capture_output=True, text=True,
                           check=True).stdout
    codes = re.findall(r"^  (\d+) +(.+)$", shown.split("Exit codes", 1)[1], re.MULTILINE)
    page = (ROOT / "deploy/man/vfctl.1").read_text().split(".SH EXIT STATUS", 1)[1]
    assert re.findall(r"^\.B (\d+)\n(.+)$", page.split(".SH", 1)[0], re.MULTILINE) == codes
    assert [code for code, _ in codes] == [*map(str, range(9)), "130"]


def test_completion_offers_what_there_is(programs):
    script = (ROOT / "deploy/completion/vf-guest").read_text()
    assert wrong_completion(programs["vf-guest"], script) == []


def test_lab_has_a_row_for_each_command(programs):
    rows = set(LAB_ROW.findall((ROOT / "tests/lab/README.md").read_text()))
    assert rows == set(programs["tests/lab/lab"].commands)


def test_tests_have_a_row_for_each_part(programs):
    rows = {name for row in PART_ROW.findall((ROOT / "tests/README.md").read_text())
            for name in row.split(", ")} - {"part"}
    assert rows == set(programs["tests/run"].words)


# --- each of these finds what it is for ---

HELP = """Does things.
Options:
  -h,--help                   Print this help message and exit
  --url TEXT (Env:X) Excludes: --socket
                              an address

Subcommands:
  pf                          physical functions
"""
SAMPLE = {"vfctl": Command({"--help", "--url"}, {
    "pf": Command({"--help"}, {"list": Command({"--all"}), "set": Command({"--mode"})}),
    "attach": Command({"--vf"})})}


def test_help_is_read():
    program = listed(HELP)
    assert program.options == {"-h", "--help", "--url"}
    assert list(program.commands) == ["pf"]


def test_stale_commands_are_found():
    good = ("`vfctl pf list --all`, `vfctl --url x pf set PF --mode y`\n\n"
            "    vfctl attach vm1 --vf 1\n")
    assert stale(SAMPLE, good) == []
    for bad, wrong in (("`vfctl pf drop`", "1: vfctl: no command drop"),
                       ("a\n`vfctl pf list --mode x`", "2: vfctl: no option --mode"),
                       ("    vfctl gone  # it was", "1: vfctl: no command gone"),
                       ("```\nvfctl attach \\\n   --gone\n```", "2: vfctl: no option --gone"),
                       ("| `vfctl --socket` |", "1: vfctl: no option --socket")):
        assert stale(SAMPLE, bad) == [wrong], bad


def test_a_context_may_have_the_name_of_a_command():
    program = Command({"--host"}, SAMPLE["vfctl"].commands)
    assert list(wrong_words(program, ["--host", "pf", "attach", "vm1"])) == []
    assert list(wrong_words(program, ["--host", "pf", "gone"])) == ["no command gone"]


def test_stale_man_pages_are_found():
    good = [".TP", ".B pf list", ".BI \"pf set \" PF", "text with \\-\\-help, \\-\\-all", ".TP",
            ".BI \\-\\-mode \" X\"", ".TP", ".BR \\-\\-vf \", \" \\-\\-url",
            ".TP", ".BI attach \" VM\""]
    assert wrong_page(SAMPLE["vfctl"], "\n".join(good)) == []
    without = "\n".join(good).replace(".B pf list\n", "")
    assert wrong_page(SAMPLE["vfctl"], without) == ["it does not explain pf list"]
    more = "\n".join([*good, ".TP", ".B \\-\\-gone"])
    assert wrong_page(SAMPLE["vfctl"], more) == ["12: no option --gone"]
    assert wrong_page(SAMPLE["vfctl"], more + "\nInternal:\n.B x") == []


def test_stale_completions_are_found():
    good = '" ") choices="pf attach" ;;\n"pf ") choices="list set"\neverywhere="--url --vf"'
    assert wrong_completion(SAMPLE["vfctl"], good) == []
    assert wrong_completion(SAMPLE["vfctl"], good.replace("list", "")) == ["pf: {'list'}"]
    assert wrong_completion(SAMPLE["vfctl"], good + " --gone") == ["no option --gone"]
