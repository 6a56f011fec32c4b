# SPDX-License-Identifier: Apache-2.0
"""Completion of vfctl in real shells: bash and zsh on a terminal, fish by its own command."""

import contextlib
import os
import pty
import re
import signal
import socket
import subprocess
import threading
import time

import pytest
from commands import asked
from live_daemon import ROOT, Daemon
from vfctl import VFCTL, environment, run

SCRIPTS = ROOT / "deploy/completion"
PF, OTHER = "0000:01:00.0", "0000:02:00.0"
EVIL = "my vm$(touch x)`y`;'\"\\&é"
HOST = {"pfs": [{"model": "igb", "pci": PF, "ifname": "enp1s0"},
                {"model": "igb", "pci": OTHER, "ifname": "enp2s0"}],
        "vms": [{"name": name, "uuid": f"{number:08}-1111-1111-1111-111111111111"}
                for number, name in enumerate(("vm1", "vm2", EVIL))]}
NETWORK = {"name": "lab", "prefix": "192.168.100.0/24",
           "pfs": [{"pf": PF, "host_address": "192.168.100.1"}]}

# Presses TAB; then the line goes to $LINE, and what the script offered to $OFFERED.
BASH = r"""
bind 'set enable-bracketed-paste off'; bind 'set bell-style none'; PS1=; PS2=
source "$SCRIPTS/vfctl"
_recorded() { _vfctl "$@"; printf '%s\n' "${COMPREPLY[@]}" > "$OFFERED"; }
complete -F _recorded vfctl
_line() { printf '%s\n' "$READLINE_LINE" > "$LINE"; }
bind -x '"\C-x\C-l": _line'
echo ready > "$LINE"
"""
ZSH = r"""
PS1=; LISTMAX=-1; unset zle_bracketed_paste
fpath=("$SCRIPTS" $fpath); autoload -Uz compinit; compinit -D
bindkey -e; bindkey '^I' complete-word; unsetopt automenu; unsetopt listambiguous
compadd() { local -a each; builtin compadd -O each "$@"; print -rl -- $each >> "$OFFERED"
            builtin compadd "$@" }
line() { print -r -- "$BUFFER" > "$LINE" }; zle -N line; bindkey '^X^L' line
print ready > "$LINE"
"""


class Terminal:
    """A shell on a terminal of its own."""

    def __init__(self, command, script, folder, env):
        self.folder, self.offered = folder, folder / "offered"
        os.mkfifo(folder / "line")
        (folder / "init").write_text(script)
        env = {**env, "SCRIPTS": str(SCRIPTS), "OFFERED": str(self.offered),
               "LINE": str(folder / "line"), "TERM": "dumb", "LC_ALL": "C.UTF-8"}
        self.process, self.terminal = pty.fork()
        if self.process == 0:
            os.chdir(folder)
            os.execvpe(command[0], command, env)
        threading.Thread(target=self.drain, daemon=True).start()
        self.type(f". {folder}/init\r")
        assert self.line() == "ready"

    def drain(self):
        """Reads what it prints: a full terminal stops it."""
        with contextlib.suppress(OSError):
            while os.read(self.terminal, 4096):
                pass

    def type(self, text):
        os.write(self.terminal, text.encode())

    def line(self):
        return (self.folder / "line").read_text().rstrip("\n")

    def complete(self, before, after):
        self.offered.write_text("")
        self.type("\x05\x15" + before + after + "\x02" * len(after) + "\t\x18\x0c")
        return self.line(), set(self.offered.read_text().splitlines()) - {""}

    def end(self):
        os.kill(self.process, signal.SIGHUP)  # as when a terminal is closed
        # bash acts at the next key on a signal that comes just before it waits for one.
        with contextlib.suppress(OSError):
            self.type("\r")
        os.waitpid(self.process, 0)
        os.close(self.terminal)


class Bash(Terminal):
    name = "bash"

    def __init__(self, folder, env):
        super().__init__(["bash", "--norc", "--noprofile", "-i"], BASH, folder, env)

    def complete(self, before, after=""):
        line, offered = super().complete(before, after)
        word = before.split(" ")[-1]
        # What readline keeps of the word: it has a break at each colon.
        kept = word[:max(word.rfind(":"), word.rfind("=")) + 1]
        return line, {kept + one for one in offered}


class Zsh(Terminal):
    name = "zsh"

    def __init__(self, folder, env):
        super().__init__(["zsh", "-f", "-i"], ZSH, folder, env)

    def complete(self, before, after=""):
        return super().complete(before, after)


class Fish:
    """It has no terminal here: `complete --do-complete` is what its own tests use."""

    def __init__(self, folder, env):
        self.folder, self.env = folder, env

    def complete(self, before, after=""):
        done = subprocess.run(
            ["fish", "--no-config", "--command", f"source {SCRIPTS}/vfctl.fish; "
             "complete --do-complete $LINE"], capture_output=True, text=True, timeout=60,
            cwd=self.folder, env={**self.env, "LINE": before, "LC_ALL": "C.UTF-8"})
        assert (done.returncode, done.stderr) == (0, ""), done
        return None, {one.split("\t")[0] for one in done.stdout.splitlines()}

    def end(self):
        pass


SHELLS = {"bash": Bash, "zsh": Zsh, "fish": Fish}


@pytest.fixture(scope="module")
def daemon(tmp_path_factory):
    started = Daemon(tmp_path_factory.mktemp("completion"), HOST)
    started.do("PUT", f"/v1/pfs/{PF}/spec", {"num_vfs": 2})
    started.do("POST", "/v1/attachments", {"vm": "vm1", "pf": PF, "vf": 0})
    for path, body in (("/v1/networks/lab", NETWORK),
                       ("/v1/pools/fast", {"name": "fast", "select": {"pfs": [PF]}}),
                       ("/v1/reservations/job", {"pool": "fast"})):
        response, answer = started.ask("PUT", path, body)
        assert response.status == 200, answer
    yield started
    started.end()


def shell_environment(daemon, folder, **more):
    (folder / "bin").mkdir()
    (folder / "bin/vfctl").symlink_to(VFCTL)
    (folder / "vfmgr").mkdir()
    (folder / "vfmgr/contexts.toml").write_text(
        '[contexts.lab1]\naddress = "https://lab1:8470"\n')
    (folder / "spec one.json").touch()
    return environment(folder, PATH=f"{folder}/bin:{os.environ['PATH']}",
                       VFMGR_HOST=f"unix:{daemon.socket}", **more)


@pytest.fixture(scope="module", params=SHELLS)
def shell(request, daemon, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param)
    opened = SHELLS[request.param](folder, shell_environment(daemon, folder))
    yield opened
    opened.end()


@pytest.fixture(scope="module")
def attachment(daemon):
    return daemon.ask("GET", "/v1/attachments")[1]["items"][0]["id"]


@pytest.fixture(scope="module")
def program():
    return asked(VFCTL)


def offered(shell, before, after=""):
    return shell.complete(before, after)[1]


def test_commands_are_offered_at_every_level(shell, program):
    for path, names in program.groups():
        assert offered(shell, " ".join(("vfctl", *path, ""))) == names, path


def test_options_of_a_command_and_its_parents(shell, program):
    attach = {option for option in program.commands["attach"].options | program.options
              if option.startswith("--")}
    assert offered(shell, "vfctl attach --") == attach
    assert offered(shell, "vfctl attach vm1 --ver") == {
        "--version", "--verbose", "--verify", "--verify-timeout", "--verify-profile",
        "--verify-every"}
    assert offered(shell, "vfctl attach --verify vm1 --pf enp1s0 --verif") == {
        "--verify-timeout", "--verify-profile", "--verify-every"}, "each once"
    assert offered(shell, "vfctl attach --best-effort mac --best-") == {"--best-effort"}


def test_names_of_what_the_daemon_has(shell, daemon, attachment):
    both, newest = {PF, OTHER, "enp1s0", "enp2s0"}, daemon.ask("GET", "/v1/operations")[1]["items"]
    for line, expected in (
            ("pf show ", both), ("pf show 0000:0", {PF, OTHER}), ("pf show 0000:01:", {PF}),
            ("pf show e", {"enp1s0", "enp2s0"}), ("vf show 0000:01:00.0/", {f"{PF}/0", f"{PF}/1"}),
            ("vf history enp1s0/", {"enp1s0/0", "enp1s0/1"}), ("vf show ", {f"{PF}/0", f"{PF}/1"}),
            ("vm show vm", {"vm1", "vm2"}), ("vm show 00000001-", {HOST["vms"][1]["uuid"]}),
            ("attach vm1 --pf 0000:02", {OTHER}),
            ("attach vm1 --vf enp1", {"enp1s0/0", "enp1s0/1"}),
            ("attach vm1 --network ", {"lab"}), ("network show ", {"lab"}),
            ("attach vm1 --pool ", {"fast"}), ("pool set ", {"fast"}),
            ("reservation make new --pool=", {"--pool=fast"}), ("reservation release ", {"job"}),
            ("detach ", {attachment}), ("detach v", {"vm1"}),
            ("attachment show 0000:01:00.0/", {f"{PF}/0"}),
            ("op wait ", {one["id"] for one in newest})):
        assert offered(shell, "vfctl " + line) == expected, line


def test_values_of_options(shell):
    for line, expected in (
            ("-o ", {"table", "json", "yaml", "csv", "name"}), ("--output=y", {"--output=yaml"}),
            ("attach vm1 --trust=o", {"--trust=on", "--trust=off"}),
            ("attach vm1 --link-state ", {"auto", "enable", "disable"}),
            ("pf set enp1s0 --mode m", {"manage"}), ("token create --role a", {"admin"}),
            ("doctor --symptom no", {"no-vfs"}), ("verify x --profile=d", {"--profile=default",
                                                                          "--profile=deep"}),
            ("rdma link add rxe0 ", {"type"}), ("rdma link add rxe0 type ", {"rxe", "siw"}),
            ("--host l", {"lab1", "local"}), ("context use ", {"fleet", "lab1", "local"}),
            ("query ", {"GET", "PUT", "POST", "DELETE"}),
            ("firmware set enp1s0 LINK", {"LINK_TYPE_P1=", "LINK_TYPE_P2="}),
            ("attach vm1 --vlan ", set()), ("pf list ", set()), ("no such ", set())):
        assert offered(shell, "vfctl " + line) == expected, line


def test_values_of_options_are_no_words(shell, program):
    for line in ("--output json pf ", "-o json pf ", "-ojson pf ", "-qo json pf ", "pf -q -o json ",
                 "--dry-run pf --host=local "):
        assert offered(shell, "vfctl " + line) == set(program.commands["pf"].commands), line
    assert offered(shell, "vfctl attach --vf 3 --trust on vm2 ") == set()
    assert offered(shell, "vfctl attach --vf 3 vm") == {"vm1", "vm2"}
    assert offered(shell, "vfctl attach -- v") == {"vm1", "vm2"}


def test_a_word_in_the_middle(shell):
    assert offered(shell, "vfctl pf sh", " enp1s0") == {"show"}
    assert offered(shell, "vfctl pf show 0000:01", " --dry-run") == {PF}
    assert offered(shell, "vfctl attach vm", " --pf enp1s0") == {"vm1", "vm2"}


def test_what_is_typed_becomes_the_line(shell):
    for before, after, line in (
            ("pf sh", "", "pf show "), ("pf show 0000:01", "", f"pf show {PF} "),
            ("pf show 0000:01:", "", f"pf show {PF} "), ("pf show 0000:0", "", "pf show 0000:0"),
            ("vf show 0000:01:00.0/1", "", f"vf show {PF}/1 "),
            ("pf show 0000:01", " -j", f"pf show {PF} -j"), ("--output=y", "", "--output=yaml "),
            ("attach --pf=0000:02", "", f"attach --pf={OTHER} "),
            ("--host uni", "", "--host unix:"),
            ("firmware set enp1s0 NUM", "", "firmware set enp1s0 NUM_OF_VFS=")):
        shown, found = shell.complete("vfctl " + before, after)
        if isinstance(shell, Fish):  # it writes the line itself
            assert line == before or found == {line.removesuffix(after).split()[-1]}, before
        else:
            assert re.sub(" +", " ", shown) == "vfctl " + line, before


@pytest.mark.parametrize("typed", ["my", "my\\ vm", '"my', "'my", '"my vm'])
def test_a_name_with_special_characters_is_quoted(shell, typed):
    line, found = shell.complete("vfctl attach " + typed, "")
    if isinstance(shell, Fish):
        assert found == {EVIL}
    else:
        closed = line if line.endswith(" ") or typed[0] not in "\"'" else line + typed[0]
        reads = subprocess.run([shell.name, "-c", "vfctl() { printf '%s\\n' \"$@\"; }; " + closed],
                               capture_output=True, text=True, cwd=shell.folder)
        assert (reads.stdout, reads.stderr) == (f"attach\n{EVIL}\n", "")
    assert not (shell.folder / "x").exists(), "nothing of a name is executed"


def test_files_are_the_shells(shell):
    for before in ("pf set enp1s0 --file spec", "pf set enp1s0 -f spec", "doctor --from spec",
                   "support-bundle spec", "--token-file=spec", "--token-file spec"):
        line, found = shell.complete("vfctl " + before, "")
        if isinstance(shell, Fish):
            assert {one.split("=")[-1] for one in found} == {"spec one.json"}, before
        else:
            assert line.replace("\\ ", " ").rstrip().endswith("spec one.json"), before


def test_another_host_on_the_line_is_asked(daemon, tmp_path):
    env = environment(tmp_path, VFMGR_HOST="unix:/nonexistent")
    socket_of = f"unix:{daemon.socket}"
    assert run("__complete", "--host", socket_of, "vm", "show", "vm", env=env).stdout == \
        "vm1\trunning\nvm2\trunning\n"
    assert run("__complete", f"--host={socket_of}", "vm", "show", "vm1", env=env).stdout != ""
    assert run("__complete", "vm", "show", "vm", env=env).stdout == ""


def test_without_an_answer_it_is_silent_and_quick(tmp_path):
    with socket.socket(socket.AF_UNIX) as hanging:
        hanging.bind(str(tmp_path / "hanging"))
        hanging.listen(1)
        for host in ("unix:/nonexistent", f"unix:{tmp_path}/hanging", "https://127.0.0.1:1", "?",
                     "nobody"):
            began = time.monotonic()
            done = run("__complete", "attach", "", env=environment(tmp_path, VFMGR_HOST=host))
            assert (done.stdout, done.stderr) == ("", ""), host
            assert time.monotonic() - began < 10, host
