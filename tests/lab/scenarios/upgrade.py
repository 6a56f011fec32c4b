# SPDX-License-Identifier: Apache-2.0
"""Upgraded from the version before, restarted, removed and purged: VMs keep their VFs meanwhile.

Numbered packets go over the VF all the time, to and from a machine on the wire, and none is lost.
Programs of both versions are used with each other. A downgrade is refused.
"""

import json
import time

from vflab import captured, packages, programs, version_before
from vflab.added_packages import AddedPackages
from vflab.captured import perform
from vflab.numbered import Streams
from vflab.product import Before, Product
from vflab.second_machine import SecondMachine
from vflab.skew import Pair, typed, vfctl_commands
from vflab.trees import dependencies

BOOT = "own"
# Without a compiler cache the version before alone takes 25 minutes to build.
DEADLINE_SECONDS = 5400
UNITS = {"vfmgrd.service", "vfmgr-broker.service", "vfmgr-guestd.service"}
VM, NEWER, FREE = "keeper", "newer", "other"
OLD, NEW = "/root/before", "/root/today"  # packages, and programs below usr/bin
SECOND_ADDRESS = "192.168.100.200"
WIRE = ("ip link set eth0 mtu 9000 up && ip link add link eth0 name eth0.100 type vlan id 100 && "
        f"ip link set eth0.100 up && ip addr add {SECOND_ADDRESS}/24 dev eth0.100")
# A worker of the version before, at a step that lasts 3 s longer than its vfmgrd.
LATE_WORKER = ("flock /var/lib/vfmgr/workers/late.lock sh -c 'while systemctl -q is-active vfmgrd; "
               "do sleep 0.2; done; sleep 3; cat /proc/uptime'")
QUIET_PACKETS_MIN = 3000
HOST_PACKAGES = ("vfmgr", "vfmgr-cli")
STATE, RECORDS = "/var/lib/vfmgr", "/var/lib/vfmgr-broker/vfs.json"
GUEST_TRIES = ["vf-guest version", "vf-guest status", "vf-guest status -o json", "vf-guest report",
               "vf-guest rdma", "vf-guest verify --profile quick"]
IN_ONE_OF = "vf-guest doctor; [ $? -le 2 ]"


def run(lab):
    lab.expect("skew pairs", "upgraded with VFs attached", "a worker awaited", "restarts",
               "moved without a reset refused", "detached to the baseline", "downgrades refused",
               "removed", "purged")
    before = version_before.built(lab.machine.settings["suite"])
    today, _ = packages.built(lab.machine.settings["suite"])
    program = programs.built(lab, "numbered")
    needed = [each.split()[0] for each in dependencies(version_before.hosts(before))]
    with AddedPackages(lab, needed), SecondMachine(lab, programs=[program]) as second:
        Upgrade(lab, before, today, second, program).run()


class Upgrade:
    def __init__(self, lab, before, today, second, program):
        self.lab, self.host, self.observe = lab, lab.host, lab.observe
        self.second, self.program = second, program
        self.debs = {OLD: before, NEW: today}
        self.versions = {OLD: version_before.VERSION, NEW: self.version_of(today)}
        lab.check(self.versions[OLD] != self.versions[NEW], f"the same version: {self.versions}")

    def version_of(self, folder):
        return version_before.only(folder, "vfmgr").name.split("_")[1]

    def run(self):
        self.bring_packages()
        self.purge()
        self.install_before()
        self.begin_with_before()
        self.skew("today's with the daemon before", NEW, OLD, NEWER)
        self.stream()
        self.upgrade()
        self.captured_front()
        self.skew("those before with today's daemon", OLD, NEW, VM)
        self.restart_all()
        self.upgrade_guest()
        self.detach_and_attach()
        self.refuse_downgrade()
        self.remove_and_install()
        self.streams.stop()
        self.figures()
        self.end()

    # --- packages ---

    def bring_packages(self):
        for folder, source in self.debs.items():
            self.host.run(f"mkdir -p {folder}")
            for deb in source.glob("*.deb"):
                self.host.copy_in(deb, f"{folder}/{deb.name}")
            self.host.run(f"dpkg-deb -x {folder}/vfmgr-cli_*.deb {folder}")

    def apt(self, words, folder=None, check=True):
        files = "" if folder is None else "".join(f" {folder}/{name}_*.deb"
                                                  for name in HOST_PACKAGES)
        return self.host.run(f"DEBIAN_FRONTEND=noninteractive apt-get -y -q {words}{files}",
                             check=check, timeout=600)

    def installed(self):
        shown = self.host.run("dpkg-query -W -f '${Package} ${Version} ${db:Status-Status}\\n' "
                              "'vfmgr*'", check=False)
        return sorted(line for line in shown.lines() if line.endswith(" installed"))

    def are_installed(self, folder):
        return [f"{name} {self.versions[folder]} installed" for name in HOST_PACKAGES]

    # --- the story ---

    def purge(self):
        """The lab's image has today's packages; what purge leaves is judged here, too."""
        self.lab.step("the host without vfmgr")
        self.apt("purge " + " ".join(HOST_PACKAGES))
        self.nothing_left("purged")
        # For the upgrade to make them.
        self.host.run("for u in vfmgrd vfmgr-guestd; do userdel $u; done 2>/dev/null; "
                      "groupdel vfmgr 2>/dev/null; ! getent passwd vfmgrd")

    def nothing_left(self, count):
        left = self.host.run(
            "ls -d /var/lib/vfmgr* /etc/vfmgr /run/vfmgr* /usr/libexec/vfmgr /usr/bin/vfctl "
            "/lib/systemd/system/vfmgr* /etc/systemd/system/*/vfmgr* 2>/dev/null | "
            "grep -v ^/var/lib/vfmgr-lab; pgrep -l vfmgr; nft list tables | grep vfmgr; :").lines()
        self.lab.check_equal(left, [], "what a purge leaves")
        self.lab.check_equal(self.installed(), [], "packages after a purge")
        self.lab.count(count)

    def install_before(self):
        self.lab.step(f"a host with version {self.versions[OLD]}")
        began = time.monotonic()
        self.apt("install", OLD)
        self.install_seconds = time.monotonic() - began
        self.host.wait_for("vfmgrd serves", "systemctl is-active vfmgrd", 120)
        self.lab.check_equal(self.installed(), self.are_installed(OLD), "installed")
        self.lab.check_equal(self.host.run("ps -o user= -C vfmgrd").lines(), ["root"],
                             "who vfmgrd is")

    def begin_with_before(self):
        """One VM's vf-guest is of the version before, the other one's is today's."""
        self.product = product = Product(self.lab)
        product.manage(num_vfs=4)
        self.baseline = Before(product)
        self.vm = self.lab.vm(VM, image="debian")
        self.newer, self.free = self.lab.vm(NEWER), self.lab.vm(FREE)
        self.second.wait_ready().run(WIRE)
        self.vm.wait_ready()
        self.install_guest(OLD)
        for vm in (self.newer, self.free):
            vm.wait_ready()
        self.attachments = {name: self.proved(name) for name in (VM, NEWER)}
        self.vf = self.attachments[VM]["vf_pci"]

    def install_guest(self, folder):
        """As any administrator does: by dpkg, in a VM without a network to a mirror."""
        name = version_before.only(self.debs[folder], "vfmgr-guest")
        programs.send(self.vm, name.read_bytes(), "/root/guest.deb")
        if folder == OLD:
            self.vm.run("dpkg --purge vfmgr-guest", timeout=300)
        self.vm.run("dpkg -i /root/guest.deb && rm /root/guest.deb", timeout=300)
        self.vm.wait_for("vf-guest runs", "systemctl is-active vf-guest", 60)
        self.lab.check_equal(self.vm.run("vf-guest version").stdout.strip(),
                             f"vf-guest {self.versions[folder]}", "in the VM")

    def proved(self, vm):
        attachment = self.product.attach(vm, network="train", verify="required",
                                         verify_profile="quick")
        self.lab.check_equal(attachment["verification"]["verdict"], "pass", f"verdict of {vm}")
        return attachment

    def verified(self, vm):
        """The guest's long poll brings it the run."""
        path = f"/v1/attachments/{self.attachments[vm]['id']}/verifications"
        self.product.must("POST", path, {"profile": "quick"})
        now = self.product.attachment(self.attachments[vm]["id"])["verification"]
        self.lab.check_equal(now["verdict"], "pass", f"verdict of {vm} again")
        return now["verdict"]

    # --- what must not change ---

    def kept(self):
        """What VMs have, by the host's own tools."""
        return {vm: {"xml": self.host.run(f"virsh dumpxml {vm}; virsh dumpxml --inactive {vm}"
                                          ).stdout,
                     "driver": self.observe.vf_driver(one["vf_pci"]),
                     "holders": self.observe.vfio_holders(one["vf_pci"]),
                     "settings": self.observe.ip_link_vf(self.product.pf, one["vf"]["index"])}
                for vm, one in self.attachments.items()}

    def keeps(self, was, text):
        now = self.kept()
        for vm, parts in was.items():
            self.lab.check(len(parts["holders"]) == 1, f"{vm}: {parts['holders']}")
            for part, value in parts.items():
                self.lab.check_equal(now[vm][part], value, f"{text}: {part} of {vm}")

    def same_attachments(self, text):
        self.host.wait_for("vfmgrd serves", "systemctl is-active vfmgrd", 120)
        listed = {one["vm"]: one["id"] for one in self.product.attachments()}
        self.lab.check_equal(listed, {vm: one["id"] for vm, one in self.attachments.items()},
                             f"attachments {text}")
        self.host.wait_for(f"no drift {text}", self.product.calm, 60)

    def stream(self):
        self.lab.step("numbered packets, and a quiet span to compare with")
        self.streams = Streams(self.lab, self.vm, self.second, self.program)
        self.streams.start(self.attachments[VM]["address"], SECOND_ADDRESS)
        packets = max(QUIET_PACKETS_MIN, int(self.install_seconds * 50 * 1.5))
        with self.streams.window("quiet"):
            self.streams.wait_sent(packets, 600)

    def through(self, name, action):
        """Nothing that a VM has changes by the action, and no packet is lost."""
        was = self.kept()
        with self.streams.window(name) as window:
            result = action()
        self.keeps(was, name)
        self.lab.check_equal(window.all_lost, 0, f"packets lost: {window}")
        return result

    # --- upgrade ---

    def upgrade(self):
        self.lab.step(f"upgraded to {self.versions[NEW]}")
        worker = self.host.background(LATE_WORKER)
        self.through("upgrade", lambda: (self.apt("install", NEW),
                                         self.same_attachments("after the upgrade")))
        self.lab.check_equal(self.installed(), self.are_installed(NEW), "installed")
        self.lab.check_equal(self.host.run(f"stat -c '%U %a' {STATE}; find {STATE} ! -user vfmgrd"
                                           ).lines(), ["vfmgrd 700"], "the state folder")
        self.lab.check_equal(sorted(self.host.run(
            "ps -o user:20=,comm= -C vfmgrd,vfmgr-broker,vfmgr-guestd").stdout.split()),
            ["root", "vfmgr-broker", "vfmgr-guestd", "vfmgr-guestd", "vfmgrd", "vfmgrd"],
            "who runs")
        self.lab.check_equal(self.host.run("stat -c '%G %a' /run/vfmgr/vfmgr.sock").stdout.strip(),
                             "vfmgr 660", "the API's socket")
        self.member_of_group_may_ask()
        for unit in ("vfmgr-broker.socket", "vfmgr-guestd.socket", "vfmgrd.socket",
                     "vfmgrd.service", "vfmgr-restore.service"):
            shown = self.host.run(f"systemctl is-enabled {unit}", check=False).stdout.strip()
            self.lab.check_equal(shown, "enabled", unit)
        ended = float(worker.wait(60).stdout.split()[0])
        started = self.host.run("systemctl show -P ExecMainStartTimestampMonotonic vfmgrd").stdout
        if self.lab.check(ended <= int(started) / 1e6, f"a worker of the version before ended at "
                          f"{ended} s, vfmgrd began at {int(started) / 1e6} s"):
            self.lab.count("a worker awaited")
        self.broker_knows()
        self.verified(VM)
        self.verified(NEWER)
        self.lab.count("upgraded with VFs attached", len(self.attachments))

    def member_of_group_may_ask(self):
        self.host.run("useradd -G vfmgr member")
        said = self.host.run("setpriv --reset-env --reuid member --init-groups --regid member "
                             "vfctl attachment list", check=False)
        self.lab.check_equal(said.status, 0, f"what a member of group vfmgr gets: {said}")
        self.host.run("userdel member")

    def broker_knows(self):
        records = {(one["vf"]["pf"], one["vf"]["index"]): one
                   for one in json.loads(self.host.read(RECORDS))["vfs"]}
        for vm, attachment in self.attachments.items():
            known = records.get((attachment["vf"]["pf"], attachment["vf"]["index"]), {})
            self.lab.check_equal((known.get("vm_uuid"), known.get("clean")),
                                 (attachment["vm_uuid"], False), f"the broker's record of {vm}")

    def captured_front(self):
        """It takes a VF, attached by the version before, to another VM without a reset."""
        self.lab.step("a captured vfmgrd moves a VF that the version before has attached")
        attachment = self.attachments.pop(NEWER)
        free = self.host.run(f"virsh domuuid {FREE}").stdout.strip()
        member = {"attachment": attachment["id"], "vf": attachment["vf"], "live": True,
                  "config": True, "pci": attachment["vf_pci"], "vm": "vm"}
        self.host.write(captured.FRONT_FILE, captured.FRONT)
        taken, moved = (json.loads(line) for line in self.host.run(
            f"setpriv --reuid vfmgrd --regid vfmgrd --clear-groups python3 {captured.FRONT_FILE}",
            input=json.dumps([
                perform(1, "detach_hostdev", vm_uuid=attachment["vm_uuid"], **member),
                perform(2, "attach_hostdev", vm_uuid=free, **member)]), timeout=240).lines())
        self.host.run(f"rm {captured.FRONT_FILE}")
        self.lab.check("error" not in taken, f"detaching: {taken}")
        detail = moved.get("error", {}).get("detail", "")
        if self.lab.check("was not reset since" in detail, f"moved: {moved}"):
            self.lab.count("moved without a reset refused")
        self.lab.check_equal(self.observe.hostdevs(FREE), [], "devices of the other VM")
        self.product.detach(attachment)
        self.at_baseline(attachment)

    def at_baseline(self, attachment):
        index = attachment["vf"]["index"]
        was = self.baseline.seen["vfs"][index]
        self.lab.check_equal({"pci": self.observe.vf_pci(self.product.pf, index),
                              "driver": self.observe.vf_driver(was["pci"]),
                              "ip_link": self.observe.ip_link_vf(self.product.pf, index)}, was,
                             "the VF after its detach")
        self.lab.count("detached to the baseline")

    # --- two versions ---

    def skew(self, text, programs_of, daemon_of, guest):
        self.lab.step(f"skew: {text}")
        vm = {VM: self.vm, NEWER: self.newer}[guest]
        pair = Pair(self.lab, "vf-guest", self.versions[programs_of], "vfmgrd",
                    self.versions[daemon_of])
        for command in [*GUEST_TRIES, IN_ONE_OF]:
            done = vm.run(command, check=False, timeout=300)
            pair.judge(done.status == 0, f"{command}: {done}")
        pair.judge(self.verified(guest) == "pass", "a run that the daemon begins")
        pair.close()
        pair = Pair(self.lab, "vfctl", self.versions[programs_of], "vfmgrd",
                    self.versions[daemon_of])
        vfctl_commands(pair, f"{programs_of}/usr/bin", pf=self.product.pf, attached=VM, free=FREE)
        pair.judge(f"vfctl {self.versions[programs_of]}" in
                   typed(pair, f"{programs_of}/usr/bin", "version", (0,)).stdout, "its version")
        pair.close()

    # --- restarts ---

    def restart_all(self):
        shown = self.host.run("systemctl list-units --type service --state running --plain "
                              "--no-legend 'vfmgr*'").lines()
        running = [line.split()[0] for line in shown]
        self.lab.check_equal(set(running), UNITS, "what of ours runs")
        for unit in running:
            was = self.main_pid(unit)
            self.through(f"restart of {unit}", lambda unit=unit: (
                self.host.run(f"systemctl restart {unit}", timeout=180),
                self.same_attachments(f"after a restart of {unit}")))
            self.lab.check(self.main_pid(unit) not in ("0", was), f"{unit} was not restarted")
            self.lab.count("restarts")
        self.verified(VM)

    def main_pid(self, unit):
        return self.host.run(f"systemctl show -P MainPID {unit}").stdout.strip()

    def upgrade_guest(self):
        self.lab.step("vf-guest in the VM")
        self.through("upgrade of vf-guest", lambda: (self.install_guest(NEW), self.verified(VM)))
        self.through("restart of vf-guest", lambda: (
            self.vm.run("systemctl restart vf-guest", timeout=120), self.verified(VM)))
        self.lab.count("restarts")

    def detach_and_attach(self):
        self.streams.stop()
        attachment = self.attachments.pop(VM)
        self.product.detach(attachment)
        self.at_baseline(attachment)
        self.attachments[VM] = self.proved(VM)
        self.streams.start(self.attachments[VM]["address"], SECOND_ADDRESS)

    # --- back, and away ---

    def refuse_downgrade(self):
        """vfctl keeps no state: its own package may return to any version."""
        self.lab.step("a downgrade")
        state = f"systemctl show -P MainPID {' '.join(sorted(UNITS))}; " \
                "md5sum /usr/libexec/vfmgr/*; systemctl is-active vfmgrd.socket vfmgrd"
        was = self.host.run(state).stdout
        for command in ("dpkg -i", "apt-get -y -q install --allow-downgrades"):
            said = self.through(f"downgrade by {command.split()[0]}", lambda command=command:
                                self.host.run(f"DEBIAN_FRONTEND=noninteractive {command} "
                                              f"{OLD}/vfmgr_*.deb", check=False, timeout=600))
            self.lab.check(said.status != 0, f"{command} succeeded: {said}")
            self.lab.check("this downgrade is refused" in said.stdout + said.stderr,
                           f"no reason is named: {said}")
            self.lab.check_equal(self.installed(), self.are_installed(NEW), "installed")
            self.lab.check_equal(self.host.run(state).stdout, was, "files and processes")
            self.lab.check_equal(self.host.run("dpkg --audit").stdout, "", "dpkg --audit")
            self.lab.count("downgrades refused")
        self.same_attachments("after a refused downgrade")

    def remove_and_install(self):
        self.lab.step("removed while a VM has a VF, and installed again")
        self.through("remove", lambda: self.apt("remove " + " ".join(HOST_PACKAGES)))
        left = self.host.run("pgrep -l vfmgr; ls /run/vfmgr/*.sock /run/vfmgr-*.sock "
                             "/lib/systemd/system/vfmgr* 2>/dev/null; :").lines()
        self.lab.check_equal(left, [], "what runs and listens")
        self.host.run(f"test -f {STATE}/vfmgr.db && test -f {RECORDS} && "
                      "test -f /etc/vfmgr/vfmgr.toml && nft list table inet vfmgr")
        self.lab.count("removed")
        self.through("install", lambda: (self.apt("install", NEW),
                                         self.same_attachments("after a removal")))
        self.verified(VM)

    def figures(self):
        quiet = self.streams.windows[0]
        self.lab.check_equal(quiet.all_lost, 0, f"the emulator itself loses packets: {quiet}")
        for window in self.streams.windows:
            self.lab.step(f"lost by us: {window}")
        self.lab.count("packets", sum(sum(one.sent.values()) for one in self.streams.windows))
        self.lab.check(all(sum(one.sent.values()) > 0 for one in self.streams.windows),
                       "a span without packets")

    def end(self):
        attachment = self.attachments.pop(VM)
        self.product.detach(attachment)
        self.at_baseline(attachment)
        self.baseline.check_again("after all detaches")
        self.product.leave()
        self.purge()
        self.host.run(f"rm -r {OLD} {NEW}")
