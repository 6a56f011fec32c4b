# SPDX-License-Identifier: Apache-2.0
"""Collects what a failed scenario leaves in one folder, even from a dead host."""

import shutil
import subprocess

from vflab import disk, ssh

GATHER = r"""
mkdir -p /run/evidence; cd /run/evidence || exit
say() { echo "\$ $*"; timeout 20 "$@" 2>&1; echo; }
{ say ip -d link; say ip addr; say ip route; say ip neigh; say rdma link; say rdma resource
  say lspci -nn; for d in /sys/bus/pci/devices/*/virtfn*; do echo "$d $(readlink $d)"; done
  for f in /sys/bus/pci/devices/*/physfn; do d=${f%/physfn}
    echo "${d##*/} $(basename "$(readlink $d/driver)")"; done
  say lsmod; say ps -ef; say free -m; say systemctl --failed; say ss --vsock --listening --all -p
  for t in $(cat /sys/fs/cgroup/system.slice/vfmgr*.service/cgroup.procs); do
    for u in /proc/$t/task/*; do say cat $u/comm $u/wchan $u/stack; done; done; } >state.txt
{ say virsh list --all; for v in $(timeout 20 virsh -q list --all --name); do
    say virsh dumpxml $v; say virsh dumpxml --inactive $v; done; } >virsh.txt
for v in $(timeout 20 virsh -q list --name); do
  cid=$(virsh dumpxml $v | grep -oP "<cid .*address='\K\d+")
  [ -n "$cid" ] && timeout 60 vm-exec $cid 'ip -d addr; ip route; rdma link; lspci -nn; ps; dmesg;
    command -v journalctl >/dev/null && journalctl -b --no-pager' >vm-$v.txt 2>&1; done
timeout 60 journalctl -b --no-pager -o short-monotonic >journal.txt
timeout 60 journalctl -b -u 'vfmgr*' --no-pager -o short-monotonic >journal-vfmgr.txt
dmesg >dmesg.txt
cp -r /var/log/vfmgr-lab vm-consoles; cp -r /var/log/libvirt libvirt
tar -cf - . ; rm -rf /run/evidence
"""


def gather(machine, folder):
    """Collects consoles, journals, libvirt's logs, links and domains, as far as it can."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("console.log", "qemu.log", "supervisor.log", "settings.json"):
        if (machine.folder / name).exists():
            shutil.copy(machine.folder / name, folder)
    for console in machine.folder.glob("*-console.log"):  # of machines beside it
        shutil.copy(console, folder)
    alive = machine.refresh().get("phase") == "ready" and not machine.hangs
    if alive and gather_alive(machine, folder):
        return folder
    # The host can't answer any more: it is stopped, and its disk is read from outside.
    machine.stop()
    image = machine.folder / "disk.raw"
    if image.exists():
        disk.extract(image, "/var/log", folder)
        with open(folder / "journal.txt", "w") as text:
            subprocess.run(["journalctl", "-D", str(folder / "log/journal"), "--no-pager",
                            "-o", "short-monotonic"], stdout=text, stderr=subprocess.DEVNULL)
    return folder


def gather_alive(machine, folder):
    asking = subprocess.Popen(ssh.command(machine.folder, "host", GATHER),
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL)
    unpacking = subprocess.Popen(["tar", "-C", str(folder), "-xf", "-"], stdin=asking.stdout,
                                 stderr=subprocess.DEVNULL)
    asking.stdout.close()
    try:
        return unpacking.wait(180) == 0
    except subprocess.TimeoutExpired:
        return False
    finally:
        for process in (asking, unpacking):
            process.kill()
            process.wait()
