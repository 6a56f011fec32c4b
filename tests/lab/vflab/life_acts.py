# SPDX-License-Identifier: Apache-2.0
"""The acts of vflab.life as a user types them: vfctl, virsh, ip and kill.

An act returns its Outcome, or raises where the host did what nobody may expect.
"""

import time
from dataclasses import dataclass
from shlex import quote

from vflab.crashes import served_again, unfinished
from vflab.host import CommandFailed
from vflab.life import VFS_OF_VM_MAX
from vflab.vfio import hostdev

OPERATION_SECONDS = 240
SAVE_SECONDS = 500
BOOT_SECONDS = 300
REFUSED = 4  # vfctl's exit status for what contradicts something that exists (problems.md)
DEVICE, PRINTED, XML = "/run/life-vf.xml", "/run/life.out", "/run/life.xml"
# A command's process is killed amid it, after so many seconds: that moment is what is random.
KILLED = r"""systemctl reset-failed UNIT; systemctl start UNIT
old=$(systemctl show -P MainPID UNIT)
[ $old != 0 ] || exit
COMMAND >PRINTED 2>&1 & op=$!
sleep MOMENT; amid=0; kill -0 $op 2>/dev/null && amid=1
kill -9 $old || exit; wait $op
printf '%s\n' $old $amid $?; tail -n 5 PRINTED"""
# Prints the process of the unit, once it is another one.
REPLACED = r"""new=$(systemctl show -P MainPID UNIT); systemctl -q is-active UNIT &&
[ $new != 0 ] && [ $new != OLD ] && echo $new"""


@dataclass(frozen=True)
class Outcome:
    done: bool
    text: str


class Slot:
    """A place for a VM: its name changes, and another VM follows one that is undefined."""

    def __init__(self, lab, name):
        self.lab, self.first, self.name = lab, name, name
        self.vm = lab.vm(name, start=False)
        self.boots = 0         # that the log will have when the guest is ready
        self.gone_since = None
        self.lost_link = False  # runs since before the PF went down
        self.learn()

    def learn(self):
        self.uuid = self.lab.host.run(f"virsh -q domuuid {self.name}").stdout.strip()
        self.known()

    def known(self):
        """Until then vfmgr refuses what names the VM, and says so."""
        self.lab.host.wait_for(f"vfmgr knows VM {self.name}", "vfctl vm list -c VM --no-headers | "
                               f"grep -x '{self.name} *'", 60)

    def define_again(self):
        self.name = self.vm.name = self.first
        self.vm.define()
        self.boots, self.gone_since = 0, None
        self.learn()

    def ready(self):
        """The guest answers an unplug only once it has booted."""
        self.vm.wait_booted(self.boots, BOOT_SECONDS)

    def counted_boots(self):
        return f"grep -c 'init: done' {self.vm.log} || :"


class Acts:
    """One for each run. `random` and `now` are of the current act."""

    def __init__(self, lab, product, slots):
        self.lab, self.product, self.slots, self.host = lab, product, slots, lab.host
        self.number, self.random, self.now = 0, None, None

    def act(self, kind, target, number, random, now):
        self.number, self.random, self.now = number, random, now
        return getattr(self, kind.replace(" ", "_").lower())(target)

    # --- what a user types ---

    def vfctl(self, *words, seconds=OPERATION_SECONDS):
        return self.lab.vfctl(*words, check=False, timeout=seconds)

    def must(self, *words, seconds=OPERATION_SECONDS):
        result = self.vfctl(*words, seconds=seconds)
        if result.status != 0:
            raise CommandFailed(str(result))
        return Outcome(True, " ".join(words))

    def refused(self, *words):
        """What contradicts something that exists is refused, with a remedy."""
        result = self.vfctl(*words)
        if result.status != REFUSED or "remedy: " not in result.stderr:
            raise CommandFailed(f"not refused with exit status {REFUSED} and a remedy: {result}")
        return Outcome(False, f"refused: {result.stderr.splitlines()[0]}")

    def vf(self, index):
        return f"{self.product.pf}/{index}"

    def slot_of(self, index):
        uuid = self.now.attachment_of(index)["vm_uuid"]
        return next(slot for slot in self.slots if slot.uuid == uuid)

    def runs(self, slot):
        domain = self.now.domain(slot.name)
        return domain is not None and domain.active

    def attach_words(self, slot):
        network = self.random.choice(["plain", "train", "train"])
        words = ["attach", slot.name, "--pf", self.product.pf, "--network", network]
        if network == "train" and self.random.random() < 0.5:
            words += ["--trust", "on"]
        return words

    # --- attachments ---

    def attach(self, number):
        slot = self.slots[number]
        words = self.attach_words(slot)
        taken = [index for each in self.now.domains for index in self.now.indexes_of(each.uuid)]
        if taken and self.random.random() < 0.1:
            return self.refused(*words, "--vf", str(self.random.choice(sorted(taken))))
        return self.must(*words)

    def attach_a_set(self, number):
        return self.must(*self.attach_words(self.slots[number]), "--count", "2")

    def change(self, index):
        attachment = self.now.attachment_of(index)
        words = ["attachment", "set", self.vf(index)]
        if attachment["spec"].get("network") != "plain":
            return self.must(*words, "--trust",
                             "off" if attachment["settings"].get("trust") else "on")
        if self.random.random() < 0.1:  # not in an untagged network
            return self.refused(*words, "--trust", "on")
        rate = attachment["settings"].get("max_tx_rate_mbps")
        return self.must(*words, "--max-tx-rate",
                         str(self.random.choice([one for one in (100, 200, 300) if one != rate])))

    def detach(self, index):
        slot = self.slot_of(index)
        if self.runs(slot):
            slot.ready()
        return self.detached("detach", self.vf(index))

    def detach_a_set(self, number):
        slot = self.slots[number]
        if self.runs(slot):
            slot.ready()
        return self.detached("detach", slot.name, "--all")

    def detached(self, *words):
        result = self.vfctl(*words)
        if result.status == 0:
            return Outcome(True, " ".join(words))
        if "remedy: " not in result.stderr:
            raise CommandFailed(f"no remedy: {result}")
        return Outcome(False, f"kept: {result.stderr.splitlines()[0]}")

    def adopt(self, number):
        """In the persistent XML as well, so that the VM has it at its next start."""
        slot, index = self.slots[number], self.random.choice(self.now.free())
        mac = f"02:16:fe:00:{self.number >> 8:02x}:{self.number & 255:02x}"
        slot.ready()
        self.host.write(DEVICE, hostdev(self.now.vfs[index].pci, "yes"))
        self.host.run(f"ip link set {self.product.pf} vf {index} mac {mac} && "
                      f"virsh -q attach-device {slot.name} {DEVICE} --live --config")
        self.host.wait_for("vfmgr knows of the device", f"vfctl vm show {slot.name} | "
                           f"grep -F {self.now.vfs[index].pci}", 60)
        words = ["attachment", "adopt", slot.name]
        if self.random.random() < 0.7:  # without a VLAN, as the VF is
            words += ["--network", "plain"]
        return self.must(*words)

    # --- VMs ---

    def start(self, number):
        slot = self.slots[number]
        if slot.gone_since:
            slot.define_again()
        shown = self.host.run(f"{slot.counted_boots()}; virsh -q start {slot.name}").lines()
        slot.boots, slot.vm.known_cid = int(shown[0] if shown else 0) + 1, None
        slot.lost_link = False
        return Outcome(True, f"virsh start {slot.name}")

    def destroy(self, number):
        slot = self.slots[number]
        self.host.run(f"virsh -q destroy {slot.name}")
        return Outcome(True, f"virsh destroy {slot.name}")

    def reboot(self, number):
        slot = self.slots[number]
        slot.ready()
        slot.boots, slot.lost_link = slot.boots + 1, False
        if self.random.random() < 0.5:
            self.host.run(f"virsh -q reset {slot.name}")
            return Outcome(True, f"virsh reset {slot.name}")
        slot.vm.reboot_from_inside(wait=60)
        slot.ready()
        return Outcome(True, f"reboot in {slot.name}")

    def undefine(self, number):
        slot = self.slots[number]
        stop = f"virsh -q destroy {slot.name}; " if self.runs(slot) else ""
        if self.random.random() < 0.5:
            self.host.run(f"virsh dumpxml --inactive {slot.name} >{XML} && {{ {stop}virsh -q "
                          f"undefine {slot.name}; }} && virsh -q define {XML}")
            slot.known()
            return Outcome(True, f"virsh undefine {slot.name}, and defined again at once")
        self.host.run(f"{stop}virsh -q undefine {slot.name}")
        slot.gone_since = time.monotonic()
        return Outcome(True, f"virsh undefine {slot.name}")

    def rename(self, number):
        slot = self.slots[number]
        old, new = slot.name, f"{slot.first}-{self.number}"
        self.host.run(f"virsh -q domrename {old} {new}")
        slot.name = slot.vm.name = new
        slot.known()
        if self.now.indexes_of(slot.uuid):
            self.host.wait_for(f"attachments have the name {new}", "vfctl attachment list -c VM "
                               f"--no-headers | grep -x '{new} *'", 60)
        return Outcome(True, f"virsh domrename {old} {new}")

    def save(self, number):
        """With VFs libvirt refuses it, which is the reason for without-vfs."""
        slot, file = self.slots[number], f"/var/tmp/{self.slots[number].first}.save"
        slot.ready()
        save = f"virsh -q save {slot.name} {file}"
        if self.now.indexes_of(slot.uuid) and self.random.random() < 0.2:
            result = self.host.run(save, check=False)
            if result.status == 0:
                raise CommandFailed(f"libvirt saved a VM that has a VF: {result}")
        command = f"{save} && virsh -q restore {file}"
        outcome = self.must("vm", "without-vfs", slot.name, "--", "sh", "-c", command,
                            seconds=SAVE_SECONDS)
        self.host.run(f"rm {file}")
        slot.vm.known_cid = None
        return outcome

    # --- trouble ---

    def libvirtd_killed(self, number):
        return self.killed("libvirtd", number)

    def vfmgrd_killed(self, number):
        return self.killed("vfmgrd", number)

    def killed(self, unit, number):
        """Amid an attach or a detach, which ends as before it, as asked for, or reported."""
        slot = self.slots[number]
        own = self.now.indexes_of(slot.uuid)
        if own and (self.random.random() < 0.5 or not self.now.free() or len(own) >= VFS_OF_VM_MAX):
            words = ["detach", self.vf(self.random.choice(own))]
            if self.runs(slot):
                slot.ready()
        else:
            words = self.attach_words(slot)
        script = KILLED.replace("COMMAND", " ".join(map(quote, ["vfctl", *words])))
        script = script.replace("UNIT", unit).replace("PRINTED", PRINTED)
        moment = f"{self.random.uniform(0.1, 2.5):.2f}"
        old, amid, status, *printed = self.host.run(
            script.replace("MOMENT", moment), timeout=2 * OPERATION_SECONDS).lines()
        self.host.wait_for(f"{unit}, killed as process {old}, runs as another",
                           REPLACED.replace("UNIT", unit).replace("OLD", old), 120)
        self.lab.count(f"{unit} killed")
        if amid == "1":
            self.lab.count(f"{unit} killed amid an operation")
        if unit == "vfmgrd":
            served_again(self.lab, old)
        self.host.wait_for("no operation is underway", lambda: not unfinished(self.lab),
                           OPERATION_SECONDS)
        self.host.wait_for("vfmgrd is ready, libvirt answers it",
                           lambda: self.lab.api("GET", "/readyz").status == 200, 120)
        if status != "0" and not any("remedy: " in line for line in printed):
            raise CommandFailed(f"{' '.join(words)}: exit status {status} without a remedy: "
                                f"{printed}")
        return Outcome(True, f"{' '.join(words)}, {unit} killed after {moment} s"
                             f"{'' if amid == '1' else ' (after its end)'}: exit status {status}")

    def pf_down(self, _):
        """An attach meanwhile sets the PF up, or is refused."""
        pf, text = self.product.pf, ""
        down = self.host.run(f"ip link set {pf} down && cat /sys/class/net/{pf}/flags").stdout
        if int(down, 16) & 1:
            raise CommandFailed(f"{pf} is not down: its flags are {down}")
        self.lab.count("PF down")
        for slot in self.slots:
            slot.lost_link = slot.lost_link or self.runs(slot)
        room = [slot for slot in self.slots if self.now.domain(slot.name)
                and len(self.now.indexes_of(slot.uuid)) < VFS_OF_VM_MAX]
        if room and self.now.free() and self.random.random() < 0.5:
            result = self.vfctl(*self.attach_words(self.random.choice(room)))
            if result.status != 0 and "remedy: " not in result.stderr:
                raise CommandFailed(f"no remedy: {result}")
            text = f", an attach meanwhile ended with {result.status}"
        self.host.run(f"ip link set {pf} up")
        self.host.wait_for(f"{pf} has a carrier", f"grep 1 /sys/class/net/{pf}/carrier", 60)
        # The kernel removed the host's routes to VFs: drift that mode manage reports and leaves.
        self.must("pf", "set", pf, "--mode", "enforce")
        self.host.wait_for("the drift is over", self.product.calm, 120)
        self.must("pf", "set", pf, "--mode", "manage")
        return Outcome(True, f"ip link set {pf} down, and up{text}")

    # --- what a remedy asks for ---

    def repair(self, now):
        """Stops the VM that kept a VF, and lifts quarantines; returns whether there was any."""
        known = {one.uuid: one.name for one in now.domains}
        kept = {known[one["vm_uuid"]] for one in now.attachments
                if one["state"] == "detaching" and one["vm_uuid"] in known}
        for vf in now.vfs:
            if vf.index in now.quarantined:
                kept |= {one.name for one in now.domains
                         if vf.pci in {pci for pci, _ in one.live}}
                kept |= {self.vm_of_process(pid) for pid in vf.holders}
        for name in sorted(kept):
            self.host.run(f"virsh -q destroy {name}", check=False)  # it may be shut off
        if kept:
            self.host.wait_for("detaches end by themselves", lambda: not any(
                one["state"] == "detaching" and one["vm_uuid"] in known
                for one in self.product.attachments()), OPERATION_SECONDS)
        for index in sorted(now.quarantined):
            self.must("vf", "lift-quarantine", self.vf(index))
        return bool(kept or now.quarantined)

    def vm_of_process(self, pid):
        """Of a QEMU that libvirt may have lost sight of."""
        return self.host.run(f"tr '\\0' '\\n' </proc/{pid}/cmdline | "
                             "grep -m1 -oP '^guest=\\K[^,]+'").stdout.strip()
