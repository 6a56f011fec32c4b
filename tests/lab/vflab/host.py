# SPDX-License-Identifier: Apache-2.0
"""Commands in the emulated host, and waits for its events."""

import json
import shlex
import subprocess
import time
from dataclasses import dataclass

from vflab import ssh
from vflab.machine import HostGone
from vflab.shell import die_with_parent

COMMAND_SECONDS = 120
PROBE_SECONDS = 0.2
ALIVE_SECONDS = 30


class CommandFailed(AssertionError):
    pass


class NotInTime(AssertionError):
    pass


@dataclass
class Result:
    command: str
    status: int
    stdout: str
    stderr: str

    def json(self):
        return json.loads(self.stdout)

    def lines(self):
        return self.stdout.splitlines()

    def __str__(self):
        output = (self.stdout + self.stderr).strip()[-2000:]
        return f"`{self.command[:300]}` ended with {self.status}: {output}"


class Background:
    """A command that runs beside the scenario until stop(), with a known pid."""

    def __init__(self, host, command):
        self.host = host
        self.command = as_text(command)
        wrapped = f"echo $$; exec sh -c {shlex.quote(self.command)}"
        self.process = subprocess.Popen(
            ssh.command(host.machine.folder, "host", wrapped), stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            preexec_fn=die_with_parent())
        self.pid = int(self.process.stdout.readline() or 0)

    def wait(self, timeout=COMMAND_SECONDS):
        try:
            output, _ = self.process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            raise NotInTime(f"`{self.command}` still runs after {timeout} s") from None
        return Result(self.command, self.process.returncode, output, "")

    def stop(self, signal="TERM"):
        # The process group: the shell may not have replaced itself by the command.
        self.host.run(f"kill -{signal} -- -{self.pid}", check=False)
        return self.wait()


def as_text(command):
    return command if isinstance(command, str) else shlex.join(map(str, command))


def tried(probe, deadline_seconds):
    """Returns a shell command that tries the probe until it succeeds, and fails at the deadline.

    It prints what the last try printed.
    """
    return (f"(end=$(( $(date +%s) + {int(deadline_seconds)} )); "
            f"while :; do out=$({{ {probe}; }} 2>&1) && {{ echo \"$out\"; exit 0; }}; "
            f"[ $(date +%s) -lt $end ] || {{ echo \"$out\"; exit 1; }}; "
            f"sleep {PROBE_SECONDS}; done)")


class Host:
    def __init__(self, machine):
        self.machine = machine

    def run(self, command, check=True, timeout=COMMAND_SECONDS, input=None):
        """Runs a shell command (or a list of words) as root and returns its Result."""
        text = as_text(command)
        arguments = ssh.command(self.machine.folder, "host", text)
        given = {"stdin": subprocess.DEVNULL} if input is None else {"input": input}
        try:
            done = subprocess.run(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                  text=True, errors="replace", timeout=timeout, **given)
        except subprocess.TimeoutExpired:
            self.ensure_alive(f"`{text[:200]}` did not end within {timeout} s")
            raise NotInTime(f"`{text[:300]}` did not end within {timeout} s") from None
        if done.returncode == 255:
            self.ensure_alive(f"`{text[:200]}` was cut off: {done.stderr.strip()}")
        result = Result(text, done.returncode, done.stdout, done.stderr)
        if check and result.status != 0:
            raise CommandFailed(str(result))
        return result

    @property
    def vm_cpus(self):
        """Returns the emulated CPUs that VMs may use: not the first, because of a defect of the
        emulator (README.md, "Facts that cost time to find")."""
        return f"1-{self.machine.settings['cpus'] - 1}"

    def ensure_alive(self, story):
        """Distinguishes a command's failure from the end of the machine that ran it."""
        state = self.machine.refresh()
        if state["phase"] != "ready":
            raise HostGone(f"the emulated host is '{state['phase']}' {state['detail']}; {story}")
        try:
            subprocess.run(ssh.command(self.machine.folder, "host", "true"), check=True,
                           stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL, timeout=ALIVE_SECONDS)
        except (subprocess.TimeoutExpired, subprocess.CalledProcessError):
            told = self.machine.tell_where_it_hangs()
            raise HostGone(f"the emulated host hangs, {told}; {story}") from None

    def background(self, command):
        return Background(self, command)

    def read(self, path):
        return self.run(["cat", path]).stdout

    def write(self, path, text, mode="0644"):
        quoted = shlex.quote(path)
        self.run(f"mkdir -p $(dirname {quoted}) && cat >{quoted} && chmod {mode} {quoted}",
                 input=text)

    def copy_in(self, source, target):
        self.copy(str(source), f"host:{target}")

    def copy_out(self, source, target):
        self.copy(f"host:{source}", str(target))

    def copy(self, source, target):
        done = subprocess.run(ssh.copy_command(self.machine.folder, source, target),
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=600)
        if done.returncode != 0:
            raise CommandFailed(f"copy {source} {target}: {done.stdout.strip()}")

    def wait_for(self, description, probe, deadline_seconds=60):
        """Waits until the probe holds, and returns what it returned.

        A string is a shell command that is tried in the host, where a try costs least; anything
        else is called here. At the deadline it fails with the description.
        """
        if isinstance(probe, str):
            return self.wait_for_command(description, probe, deadline_seconds)
        end = time.monotonic() + deadline_seconds
        while True:
            found = probe()
            if found:
                return found
            if time.monotonic() >= end:
                raise NotInTime(f"not within {deadline_seconds} s: {description}")
            time.sleep(PROBE_SECONDS)  # no event of the observed thing reaches this side

    def wait_for_command(self, description, probe, deadline_seconds):
        result = self.run(tried(probe, deadline_seconds), check=False,
                          timeout=deadline_seconds + ALIVE_SECONDS)
        if result.status != 0:
            raise NotInTime(f"not within {deadline_seconds} s: {description}; "
                            f"last: {result.stdout.strip()[-500:]}")
        return result.stdout.strip() or True

    def journal_cursor(self):
        """Returns the journal's current end, from which wait_for_journal starts."""
        shown = self.run("journalctl -n 0 --show-cursor").stdout
        return shown.split("cursor: ")[1].strip()

    def wait_for_journal(self, pattern, cursor, unit=None, deadline_seconds=60):
        """Blocks on the journal until a line matches the extended regular expression."""
        which = f"-u {shlex.quote(unit)}" if unit else ""
        # The journal's follower notices only at its next line that its reader has gone.
        script = (f"exec 3< <(exec journalctl -f -n all -o cat {which}"
                  f" --after-cursor={shlex.quote(cursor)} 2>/dev/null); follower=$!; "
                  f"grep -m1 -E {shlex.quote(pattern)} <&3; kill $follower")
        follow = f"timeout {deadline_seconds} bash -c {shlex.quote(script)}"
        result = self.run(follow, check=False, timeout=deadline_seconds + ALIVE_SECONDS)
        if not result.stdout:
            raise NotInTime(f"no journal line like '{pattern}' within {deadline_seconds} s")
        return result.stdout.strip()

    def wait_booted(self, deadline_seconds=180):
        """Waits until systemd has started; returns its verdict, `running` or `degraded`."""
        return self.run(f"timeout {deadline_seconds} systemctl is-system-running --wait",
                        check=False, timeout=deadline_seconds + ALIVE_SECONDS).stdout.strip()

    def reboot(self, deadline_seconds=500, command="systemctl --no-block reboot"):
        """Restarts cleanly: services stop, the command line is read again, ssh comes back."""
        boot = self.machine.refresh()["boot"]
        try:
            self.run(command, check=False)
        except HostGone:
            pass  # the connection may end before the command's answer
        return self.machine.wait_ready(boot + 1, deadline_seconds)

    def power_cycle(self, deadline_seconds=500, slots=None):
        """Cuts and restores the power, without a shutdown. `slots`, from then on: the slot of each
        NIC, as in qemu.SLOTS.
        """
        boot = self.machine.refresh()["boot"]
        self.machine.request(do="power-cycle", slots=slots)
        return self.machine.wait_ready(boot + 1, deadline_seconds)
