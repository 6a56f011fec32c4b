# SPDX-License-Identifier: Apache-2.0
"""Virtual machines inside the emulated host, through libvirt, with the lab's agent in them."""

import shlex

from vflab.host import COMMAND_SECONDS, CommandFailed, NotInTime, as_text, tried

IMAGES = "/var/lib/vfmgr-lab"
LOGS = "/var/log/vfmgr-lab"
NO_AGENT = 255  # vm-exec's status when nothing answers
# A NIC's driver that waits for its PF's answer spins for up to 1 s at a time (igbvf's mailbox);
# until then nothing else runs in a VM of one CPU.
BUSY_SECONDS = 30

# Without pci=lastbus=0 the kernel probes 256 buses by port I/O for host bridges that ACPI did not
# name, and each of those 8,192 reads exits the VM: 3.4 s of a boot. The ciphers' self-tests,
# disabled here, take 1.2 s more.
COMMAND_LINE = "console=ttyS0 mitigations=off quiet pci=lastbus=0 cryptomgr.notests"
DOMAIN = """<domain type='kvm'><name>{name}</name>
<memory unit='MiB'>{memory}</memory><vcpu>{vcpus}</vcpu><cputune>{pins}</cputune>
<os><type arch='x86_64' machine='q35'>hvm</type>
<kernel>{images}/{image}/vmlinuz</kernel><initrd>{images}/{image}/initrd</initrd>
<cmdline>{command_line}</cmdline></os>
<cpu mode='host-passthrough'/><features><acpi/><apic/></features>
<on_poweroff>destroy</on_poweroff><on_reboot>restart</on_reboot><on_crash>destroy</on_crash>
<devices><emulator>/usr/bin/qemu-system-x86_64</emulator>
<serial type='file'><source path='{logs}/{name}.log' append='on'/></serial>
<controller type='usb' model='none'/><memballoon model='none'/>
<controller type='pci' model='pcie-root'/>{ports}
{devices}</devices></domain>
"""
PIN = "<vcpupin vcpu='{vcpu}' cpuset='{cpus}'/>"
PORT = "<controller type='pci' model='pcie-root-port'/>"
VSOCK = "<vsock model='virtio'><cid auto='yes'/></vsock>"
DISK = """<disk type='file' device='disk'><driver name='qemu' type='qcow2' cache='unsafe'/>
<source file='{images}/{name}.qcow2'/><target dev='vda' bus='virtio'/></disk>"""
READY_SECONDS = {"tiny": 180, "debian": 420}
PRESS_AGAIN_SECONDS = 15


class VM:
    """`image` is tiny or debian; `pcie_ports` stay free for devices that are plugged in later."""

    def __init__(self, host, name, image="tiny", memory=None, vcpus=1, pcie_ports=4, vsock=True,
                 devices="", command_line=""):
        self.host, self.name, self.image, self.vsock = host, name, image, vsock
        self.log = f"{LOGS}/{name}.log"  # also after it was renamed
        self.known_cid = None
        own = devices.count("<interface") + devices.count("<disk")
        parts = [VSOCK] if vsock else []
        command_line = f"{COMMAND_LINE} {command_line}"
        if image == "debian":
            parts.append(DISK.format(images=IMAGES, name=name))
            command_line += " root=/dev/vda rw"
        self.xml = DOMAIN.format(
            name=name, image=image, memory=memory or (1024 if image == "debian" else 512),
            vcpus=vcpus, images=IMAGES, logs=LOGS, command_line=command_line,
            pins="".join(PIN.format(vcpu=vcpu, cpus=host.vm_cpus) for vcpu in range(vcpus)),
            ports=PORT * (pcie_ports + own + len(parts)), devices="".join(parts) + devices)

    def define(self):
        if self.image == "debian":
            self.host.run(f"qemu-img create -q -f qcow2 -F raw -b /dev/disk/by-id/virtio-vm-debian"
                          f" {IMAGES}/{self.name}.qcow2")
        # An earlier VM of that name in this boot may have left its console.
        self.host.run(f"rm -f {self.log}; virsh -q define /dev/stdin", input=self.xml)
        return self

    def start(self):
        self.known_cid = None
        self.host.run(f"virsh -q start {self.name}")
        return self

    def state(self):
        shown = self.host.run(f"virsh -q domstate {self.name}", check=False)
        return shown.stdout.strip() if shown.status == 0 else None

    def cid(self):
        """Returns the vsock address of this start, from the live XML."""
        if self.known_cid is None:
            shown = f"virsh dumpxml {self.name} | grep -oP \"<cid .*address='\\K\\d+\""
            found = self.host.run(shown, check=False).stdout.strip()
            if not found:
                raise CommandFailed(f"VM {self.name} has no vsock address: not running, or made "
                                    "without vsock; the agent can't be reached")
            self.known_cid = int(found)
        return self.known_cid

    def run(self, command, check=True, timeout=COMMAND_SECONDS, wait=0):
        """Runs a shell command inside the VM; waits `wait` seconds for the agent to appear."""
        text = as_text(command)

        def ask(seconds):
            waiting = f"--wait {seconds} " if seconds else ""
            return self.host.run(f"vm-exec {waiting}{self.cid()} {shlex.quote(text)}",
                                 check=False, timeout=timeout + seconds)

        def unanswered():
            return result.status == NO_AGENT and "no agent" in result.stderr
        result = ask(wait)
        if unanswered():
            self.known_cid = None  # restarted by another program: another address
            result = ask(BUSY_SECONDS)
        if unanswered():
            result.stderr += f"; the VM's console ends: {self.console()[-600:]}"
        result.command = f"[{self.name}] {text}"
        if check and result.status != 0:
            raise CommandFailed(str(result))
        return result

    def wait_ready(self, deadline_seconds=None):
        """Waits until the agent inside answers; without vsock, until init reports its end."""
        seconds = deadline_seconds or READY_SECONDS[self.image]
        if self.vsock:
            result = self.run("true", check=False, wait=seconds)
            if result.status != 0:
                raise NotInTime(f"VM {self.name} did not answer within {seconds} s: {result}")
        else:
            done = "init: done" if self.image == "tiny" else "vm-exec: ready"
            self.wait_console(done, seconds)
        return self

    def wait_console(self, pattern, deadline_seconds=60):
        return self.host.wait_for(f"'{pattern}' on the console of VM {self.name}",
                                  f"grep -m1 -aE -e {shlex.quote(pattern)} {self.log}",
                                  deadline_seconds)

    def wait_for(self, description, probe, deadline_seconds=60):
        """Like host.wait_for, for a shell command that is tried inside the VM."""
        result = self.run(tried(probe, deadline_seconds), check=False,
                          timeout=deadline_seconds + 30)
        if result.status != 0:
            raise NotInTime(f"not within {deadline_seconds} s in VM {self.name}: {description}; "
                            f"last: {str(result)[-500:]}")
        return result.stdout.strip() or True

    def wait_netdev(self, mac, deadline_seconds=60):
        """Waits for the network device in the VM that has this MAC, and returns it."""
        self.wait_for(f"the netdev with MAC {mac}", f"grep -l {mac} /sys/class/net/*/address",
                      deadline_seconds)
        return self.netdev(mac)

    def netdev(self, mac):
        """Returns the network device in the VM that has this MAC; "" if there is none."""
        return self.run(f"for d in /sys/class/net/*; do grep -q {mac} $d/address && "
                        "basename $d; done; true").stdout.strip()

    def console(self):
        return self.host.run(f"cat {self.log}", check=False).stdout

    def reboot_from_inside(self, wait=0):
        """Has the VM reboot; returns before it has booted again, see wait_booted().

        The agent must answer before the VM goes, or its command is tried again after the boot. The
        VM can't see that the answer has left, so it leaves it a second.
        """
        self.run("(sleep 1; reboot -f) >/dev/null 2>&1 &", wait=wait)

    def wait_booted(self, times, deadline_seconds=180):
        """Waits until the init of a tiny VM has ended for the `times`-th time."""
        self.host.wait_for(f"VM {self.name} has booted {times} times",
                           f"[ $(grep -c 'init: done' {self.log}) -ge {times} ]", deadline_seconds)

    def shutdown(self, deadline_seconds=120):
        """Presses the power button, again if nothing happens, and waits.

        systemd listens to the button only once logind has found it, and misses earlier presses.
        """
        press = (f"virsh -q domstate {self.name} | grep 'shut off' || "
                 f"{{ virsh -q shutdown {self.name}; "
                 f"timeout {PRESS_AGAIN_SECONDS} sh -c 'until virsh -q domstate {self.name} | "
                 "grep -q \"shut off\"; do sleep 0.2; done'; }")
        self.host.wait_for(f"VM {self.name} is shut off", press, deadline_seconds)

    def destroy(self):
        """Cuts the VM's power and removes it; succeeds if it is already gone."""
        self.host.run(f"virsh -q destroy {self.name} 2>/dev/null; "
                      f"virsh -q undefine {self.name} 2>/dev/null; "
                      f"rm -f {IMAGES}/{self.name}.qcow2", check=False)
        self.known_cid = None
