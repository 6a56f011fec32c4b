# SPDX-License-Identifier: Apache-2.0
"""Run by deploy/demo: builds, boots, runs the story, writes a report."""

import argparse
import shlex
import signal
import sys
import traceback
from pathlib import Path

HERE = Path(__file__).resolve().parent
REPO = HERE.parent.parent
sys.path[:0] = [str(HERE), str(REPO / "tests/lab")]

from report import NotObserved, Report  # noqa: E402
from story import VM as DEMO_VM  # noqa: E402
from story import Story  # noqa: E402

from vflab import panic  # noqa: E402
from vflab.evidence import gather  # noqa: E402
from vflab.host import Host  # noqa: E402
from vflab.machine import Machine  # noqa: E402
from vflab.observe import Observe  # noqa: E402
from vflab.paths import LabError, machine_suite, new_results_dir  # noqa: E402
from vflab.vm import VM  # noqa: E402

API_PORT = 8470
# The package's own configuration does not serve the API on the network.
CONFIGURATION = '[listen.tls]\nenabled = true\naddress = "0.0.0.0"\n'


def options():
    parser = argparse.ArgumentParser(
        prog="deploy/demo", description="Runs the whole system in an emulated host.")
    parser.add_argument("--keep", action="store_true",
                        help="leave the host up, with its console and API on "
                             f"https://127.0.0.1:{API_PORT}")
    parser.add_argument("--suite", choices=("bookworm", "trixie"),
                        help="Debian release of the emulated host (default: this machine's)")
    return parser.parse_args()


def boot(machine, suite, keep, report):
    with report.step("built", "The packages and images are built") as observed:
        machine.prepare(suite, cpus=2, with_packages=True, api_port=API_PORT if keep else None)
        observed.update(suite=suite, packages=machine.settings["packages"])
    with report.step("host_booted", "The emulated SR-IOV host is up") as observed:
        machine.start(in_background=keep)
        machine.wait_ready()
        host = Host(machine)
        verdict = host.wait_booted()
        if verdict != "running":
            failed = host.run("systemctl --failed --plain --no-legend", check=False).stdout
            raise NotObserved(f"systemd reports the host as {verdict}: {failed.strip()}")
        host.write("/etc/vfmgr/conf.d/demo.toml", CONFIGURATION)
        host.run("systemctl restart vfmgrd.service")
        observed.update(kernel=host.run("uname -r").stdout.strip(),
                        libvirt=host.run("virsh version --daemon | "
                                         "sed -n 's/.*daemon: //p'").stdout.strip(),
                        vfmgr=host.run("dpkg-query -W vfmgr").stdout.split()[1])
    return host


def tell(machine, suite, keep, report):
    host = boot(machine, suite, keep, report)
    story = Story(host, Observe(host), lambda name: VM(host, name), report,
                  machine.settings["api_port"])
    story.tell(keep)
    return story


def leave_up(machine, story):
    """Prints how to use the running host."""
    certificate, token = machine.folder / "certificate.pem", machine.folder / "token"
    certificate.write_text(story.host.read("/var/lib/vfmgr/tls.crt"))
    token.touch(mode=0o600)
    token.write_text(story.api.token)
    lab = f"tests/lab/lab --name {machine.name}"
    port = machine.settings["api_port"]
    url = f"https://127.0.0.1:{port}"
    attach = (f"attach demo-vm --pf {story.pci} --network demo --mac 52:54:00:de:00:02 --trust on "
              "--verify")
    print(f"""
The emulated host stays up. Its console shows VM {DEMO_VM} with a proved VF:
  {url}/#/vms/{DEMO_VM}
  Sign in with the token in {shlex.quote(str(token))}
  The browser warns of the certificate, which the host made itself. Its SHA-256:
  {story.api.fingerprint}
  From another machine, first: ssh -L {port}:127.0.0.1:{port} root@THIS_MACHINE

In the emulated host:
  {lab} exec vfctl pf list
  {lab} exec vfctl {attach}
  {lab} exec virsh list

The API, from this machine:
  curl --cacert {shlex.quote(str(certificate))} \\
       -H "Authorization: Bearer $(cat {shlex.quote(str(token))})" {url}/v1/pfs

To stop it:
  {lab} down""", flush=True)


def once(machine, chosen, report):
    """True when every step was confirmed; otherwise gathers the evidence."""
    try:
        story = tell(machine, chosen.suite or machine_suite(), chosen.keep, report)
    except (AssertionError, LabError, OSError, ValueError, KeyError) as error:
        if not isinstance(error, (AssertionError, LabError)):
            traceback.print_exc()
        report.say(f"FAILED: {error}")
        if machine.connection is not None:
            report.say(f"evidence in {gather(machine, new_results_dir('demo'))}")
        return False
    report.write("pass")
    report.say(f"every step was confirmed; {report.path.name} holds the observations")
    if chosen.keep:
        leave_up(machine, story)
    return True


def main():
    chosen = options()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    machine = Machine("demo")
    if machine.connect():
        print("a demo is already running; stop it: tests/lab/lab --name demo down", file=sys.stderr)
        return 1
    seen = retried = False
    try:
        while True:
            report = Report(REPO / "demo-report.json")
            seen = once(machine, chosen, report)
            if seen:
                return 0
            report.write("fail")
            if retried or not panic.emulator_is_to_blame(machine.console_text()):
                return 1
            # Not vfmgr's fault: the emulated kernel died without a process of vfmgr on its stack.
            report.say("emulator-retry: the emulated host's kernel panicked; starting again")
            machine.stop()
            machine, retried = Machine("demo"), True
    except KeyboardInterrupt:
        return 130
    finally:
        if not (seen and chosen.keep):
            if machine.is_running():
                machine.stop()
            machine.remove()


if __name__ == "__main__":
    sys.exit(main())
