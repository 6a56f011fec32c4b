# SPDX-License-Identifier: Apache-2.0
"""The sub-commands of `lab`."""

import argparse
import os
import shlex
import signal
import subprocess
import sys

from vflab import plan, scenario, ssh
from vflab.browser import UPDATE_PICTURES
from vflab.build import locked_build
from vflab.evidence import gather
from vflab.machine import Machine
from vflab.paths import SUITES, LabError, machine_suite, new_results_dir, remove_dead_runs
from vflab.runner import Runner
from vflab.shell import call, fail, say


def build(options):
    locked_build(options.suite, not options.without_packages)
    return 0


def up(options):
    machine = Machine(options.name)
    machine.prepare(options.suite, options.cpus, not options.without_packages, options.api_port)
    machine.start(in_background=True)
    try:
        seconds = machine.wait_ready()
    except (LabError, KeyboardInterrupt):
        machine.stop()
        raise
    ports = machine.settings
    say(f"the lab '{options.name}' is up after {seconds:.1f} s: ssh on 127.0.0.1:"
        f"{ports['ssh_port']}, the API's port 8470 on 127.0.0.1:{ports['api_port']}; "
        f"console: {machine.folder}/console.log")
    return 0


def running(options):
    machine = Machine(options.name)
    if not machine.connect():
        raise LabError(f"no lab '{options.name}' is up (lab up starts it)")
    return machine


def run_command(options):
    machine = running(options)
    # ssh joins its words with blanks for the host's shell; quoted, they arrive unchanged.
    command = ssh.command(machine.folder, *(["host", shlex.join(options.words)]
                                            if options.words else ["-t", "host"]))
    return subprocess.run(command).returncode


def copy(options):
    if options.source.startswith("host:") == options.target.startswith("host:"):
        fail("copy: one of the two paths starts with 'host:'", 2)
    call(ssh.copy_command(running(options).folder, options.source, options.target))
    return 0


def logs(options):
    machine = running(options)
    print(gather(machine, new_results_dir(f"logs-{options.name}")))
    return 0


def down(options):
    machine = Machine(options.name)
    if machine.stop():
        say(f"the lab '{options.name}' is down")
    machine.remove()
    return 0


def run(options):
    known = scenario.names()
    unknown = plan.unknown(options.scenarios)
    if unknown:
        fail(f"no scenario {', '.join(unknown)}; there are: {', '.join(known)}", 2)
    names = options.scenarios or plan.names(options.long)
    if not options.scenarios:
        say(plan.sentence(options.long))
    if options.update_pictures:
        os.environ[UPDATE_PICTURES] = "1"
    options.name = options.name or ("default" if options.live else f"run-{os.getpid()}")
    remove_dead_runs()
    # A terminated run stops its machine cleanly; if the run is killed, the machine dies with it.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    return Runner(options).run(names)


def show_plan(options):
    print(plan.sentence(options.long))
    print("\n".join(plan.names(options.long)))
    return 0


def list_scenarios(_):
    width = max(map(len, scenario.names()))
    for name in scenario.names():
        print(f"{name:{width}}  {scenario.description(name)}")
    return 0


def cpu_count(text):
    if not text.isdigit() or int(text) < 2:
        raise argparse.ArgumentTypeError(f"{text}: at least 2, VMs run on all but the first")
    return int(text)


def parser():
    def common(target, absent):
        target.add_argument("--suite", choices=[*SUITES, "other"], default=absent(None),
                            help="Debian release of the emulated host (default: this machine's)")
        target.add_argument("--name", default=absent(None), help="one of several labs")
        target.add_argument("--cpus", type=cpu_count, default=absent(2),
                            help="CPUs of the emulated host (default: 2)")
        target.add_argument("--without-packages", action="store_true", default=absent(False),
                            help="leave our packages out: for work on the lab itself")

    top = argparse.ArgumentParser(prog="lab", description="An emulated SR-IOV host.")
    common(top, lambda value: value)
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def add(name, action, text):
        sub = commands.add_parser(name, help=text, description=text)
        common(sub, lambda _: argparse.SUPPRESS)  # the same options after the command
        sub.set_defaults(action=action)
        return sub

    add("build", build, "build all parts that are missing")
    add("up", up, "boot a lab and leave it running").add_argument(
        "--api-port", type=int, help="port of 127.0.0.1 for the API (default: a free one)")
    add("exec", run_command, "run a command in the emulated host (none: a shell)").add_argument(
        "words", nargs=argparse.REMAINDER, metavar="CMD")
    sub = add("copy", copy, "copy a file or folder; host: marks the emulated host's side")
    sub.add_argument("source", metavar="SRC")
    sub.add_argument("target", metavar="DST")
    add("logs", logs, "gather consoles, journals and states in a folder and print its name")
    add("down", down, "end a lab")
    sub = add("run", run, "run scenarios")
    sub.add_argument("scenarios", nargs="*", metavar="SCENARIO",
                     help="which; NAME/K: its slice K (none: core.txt and this commit's slice)")
    sub.add_argument("--long", action="store_true", help="all there are, whole")
    sub.add_argument("--repeat", type=int, default=1, help="so many times, each on a fresh boot")
    sub.add_argument("--live", action="store_true", help="in the lab that is up, without a boot")
    sub.add_argument("--update-pictures", action="store_true",
                     help="write the READMEs' pictures anew, from those that scenarios take")
    add("plan", show_plan, "say what a run without names runs at this commit").add_argument(
        "--long", action="store_true", help="all there are, whole")
    add("scenarios", list_scenarios, "list the scenarios")
    return top


def main(arguments):
    if arguments[:1] == ["--supervise"]:
        from vflab.supervisor import Supervisor
        Supervisor(arguments[1]).run()
        return 0
    options = parser().parse_args(arguments)
    try:
        options.suite = options.suite or machine_suite()
        if options.suite == "other":
            options.suite = next(suite for suite in SUITES if suite != machine_suite())
        if options.command != "run":
            options.name = options.name or "default"
        if os.geteuid() != 0 and options.command not in ("scenarios", "plan"):
            raise LabError("the lab needs root: it makes Debian trees and mount namespaces")
        return options.action(options)
    except LabError as error:
        fail(error)
    except KeyboardInterrupt:
        return 130
