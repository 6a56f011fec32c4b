# SPDX-License-Identifier: Apache-2.0
"""200 removals of VFs race with the start of the VM that owns one: no VM loses its VF."""

import json

from vflab.product import BROKER, SERVICES, Product
from vflab.programs import built

DEADLINE_SECONDS = 3600
ROUNDS = 200
VM = "racer"
PROBE = "/root/kernel_probe"

# Starts both, the removal LATE ms later than the VM; prints when each began and ended, and how.
RACE = """
now() { date +%s%N; }
one() { b=$(now); "$@" >/run/race.$1.out 2>&1; s=$?; echo "$b $(now) $s"; }
remove() { REMOVE; }
start() { virsh -q start --paused VM; }
if [ LATE -lt 0 ]; then one remove >/run/race.removal & sleep LATER; one start >/run/race.start
else one start >/run/race.start & sleep LATER; one remove >/run/race.removal; fi
wait; cat /run/race.removal /run/race.start
"""


def run(lab):
    lab.expect("rounds", "overlaps", "removal won", "VM won")
    product = Product(lab)
    lab.host.run(f"systemctl stop {SERVICES} {BROKER}")  # only the kernel's guard
    lab.host.copy_in(built(lab, "kernel_probe"), PROBE)
    remake(lab, product)
    lab.vm(VM, start=False)
    lab.host.run(f"virsh -q attach-device {VM} /dev/stdin --config",
                 input=hostdev(lab.observe.vf_pci(product.pf, 0)))
    for number in range(ROUNDS):
        # From 250 ms before the start to 1.7 s after it: QEMU opens the group within this time.
        one_round(lab, product, (number * 37 % 100) * 20 - 250)
        if number % 20 == 19:
            lab.step(f"{number + 1} rounds: {lab.counts_text()}")
    lab.check_equal(lab.counts.get("VFs lost", 0), 0, "VFs lost from a running VM")
    lab.count("VFs lost", 0)
    step(lab, {"step": "set_num_vfs", "pf": product.pci, "count": 0})
    lab.host.run(f"rm -f {PROBE} /run/race.*; systemctl start {BROKER.split()[0]} {SERVICES}")


def one_round(lab, product, late):
    removal = json.dumps({"step": "set_num_vfs", "pf": product.pci, "count": 0})
    script = (RACE.replace("REMOVE", f"echo '{removal}' | {PROBE}").replace("VM", VM)
              .replace("LATER", f"{abs(late) / 1000:.3f}").replace("LATE", str(late)))
    shown = [[int(part) for part in line.split()] for line in lab.host.run(script).lines()]
    (remove_began, remove_ended, removed), (start_began, start_ended, started) = shown
    lab.count("rounds")
    if remove_began < start_ended and start_began < remove_ended:
        lab.count("overlaps")
    there = lab.observe.numvfs(product.pf)
    running = started == 0
    if running and not (there and lab.observe.vfio_holders(lab.observe.vf_pci(product.pf, 0))):
        lab.count("VFs lost")
        lab.check(False, f"the VM runs and its VF is gone: {late} ms, {shown}")
    lab.check((removed == 0) == (there == 0),
              f"the removal's outcome {removed} is not what is: {there} VFs, {late} ms")
    lab.count("removal won" if removed == 0 else "VM won" if running else "neither won")
    if running:
        lab.host.run(f"virsh -q destroy {VM}")
    if there == 0:
        remake(lab, product)


def remake(lab, product):
    """Creates the VFs, with VF 0 bound to vfio-pci, as an attachment has it."""
    step(lab, {"step": "set_num_vfs", "pf": product.pci, "count": 7})
    step(lab, {"step": "bind_vfs", "pf": product.pci, "vfs": [0], "driver": "vfio-pci"})


def step(lab, value):
    lab.host.run(PROBE, input=json.dumps(value) + "\n")


def hostdev(pci):
    domain, bus, rest = pci.split(":")
    slot, function = rest.split(".")
    return (f"<hostdev mode='subsystem' type='pci' managed='no'><source><address "
            f"domain='0x{domain}' bus='0x{bus}' slot='0x{slot}' function='0x{function}'/>"
            "</source></hostdev>")
