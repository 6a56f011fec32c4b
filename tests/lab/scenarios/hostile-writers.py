# SPDX-License-Identifier: Apache-2.0
"""Ten minutes of another program's writes against VMs that hold VFs, in mode enforce."""

import os
import random
import re
import statistics
import threading
import time
from datetime import datetime

from vflab.hostile import Attacker, Losses
from vflab.product import Product, Refused

DEADLINE_SECONDS = 2400
MINUTES = float(os.environ.get("VFMGR_HOSTILE_MINUTES", "10"))
SEED = int(os.environ.get("VFMGR_HOSTILE_SEED", "1"))
HOLDERS = ("holder0", "holder1", "holder2")
CHURN = "churn"
BACK_SECONDS = 240


def run(lab):
    lab.expect("acts", "losses", "returns", "attachments of the churn", "returned clean",
               "VMs that proved their VF again")
    product = Product(lab)
    product.manage(mode="enforce")
    vms = {name: lab.vm(name) for name in (*HOLDERS, CHURN)}
    for vm in vms.values():
        vm.wait_ready()
    attachments = {name: product.attach(name, vf=index, network="train", settings={"trust": True},
                                 verify="required", verify_profile="quick")
              for index, name in enumerate(HOLDERS)}
    losses = Losses(lab, HOLDERS)
    devices = [(name, f"ua-vfmgr-{attachment['id']}") for name, attachment in attachments.items()]
    attacker = Attacker(lab, product, devices, random.Random(SEED))
    churn = Churn(lab, product, attacker)
    lab.step(f"seed {SEED}, {MINUTES:g} minutes")
    watched_since = max(one["number"] for one in history(lab, product, 0))
    churn.start()
    try:
        whole_after = attack(lab, product, attacker, attachments)
    finally:
        churn.ends.set()
        churn.join(300)
    churn.judge_end()
    attacker.make_peace()
    lab.count("acts", attacker.acts)
    lab.step(f"the attacker is done: {attacker.told()}")
    whole_after.append(all_back(lab, attacker, attachments))
    lab.step(f"from an act to all VFs in their VMs, configured: median "
             f"{statistics.median(whole_after):.1f} s, most {max(whole_after):.1f} s, "
             f"of {len(whole_after)}")
    proved_again(lab, product, attachments, vms)
    judge_events(lab, product, attachments, losses.end(), watched_since)
    lab.check_equal(churn.unclean, [], "VFs that were returned unclean")
    product.leave()


def attack(lab, product, attacker, attachments):
    until = time.monotonic() + MINUTES * 60
    whole_after = []
    while time.monotonic() < until:
        attacker.strike()
        nothing_twice(lab, product)
        # A VM that never gets its VF back can't lose it.
        if attacker.chance.random() < 0.5:
            whole_after.append(all_back(lab, attacker, attachments))
    return whole_after


def history(lab, product, index):
    return lab.api("GET", f"/v1/pfs/{product.pci}/vfs/{index}/history").body["items"]


def nothing_twice(lab, product):
    """No VF is in two VMs, by libvirt and by the holder of its group."""
    seen = {}
    for vm in (*HOLDERS, CHURN):
        for device in lab.observe.hostdevs(vm):
            if device["pci"] in seen:
                lab.check(False, f"{device['pci']} is in {vm} and in {seen[device['pci']]}")
            seen[device["pci"]] = vm
    items = product.attachments()
    vfs = [(one["vf"]["pf"], one["vf"]["index"]) for one in items]
    lab.check_equal(len(set(vfs)), len(vfs), "VFs of the attachments, each once")
    lab.count("looks for a VF attached twice")


def all_back(lab, attacker, attachments):
    """Waits until each VM has the VF of its attachment, QEMU holds it, and its settings match;
    returns the seconds since the last act."""
    def back(name, attachment):
        netdev, index = attacker.netdev(), attachment["vf"]["index"]
        pci = lab.observe.vf_pci(netdev, index)
        if not pci or [one["pci"] for one in lab.observe.hostdevs(name)] != [pci]:
            return False
        now = lab.observe.ip_link_vf(netdev, index)
        expected = (attachment["settings"]["mac"], 100, True)
        return (now["mac"], now["vlan"], now["trust"]) == expected and lab.observe.vfio_holders(pci)

    for name, attachment in attachments.items():
        lab.host.wait_for(f"the VF in {name} again", lambda name=name, attachment=attachment:
                          back(name, attachment), BACK_SECONDS)
    return float(lab.host.run("date +%s.%N").stdout) - attacker.last_act


def proved_again(lab, product, attachments, vms):
    # The last act may also have removed the host's own routes and neighbour entries, which no
    # kernel event reports: they are restored after the next observation.
    lab.host.wait_for("nothing drifts any more", product.calm, BACK_SECONDS)
    for name, attachment in attachments.items():
        # A reset by another program leaves the guest's driver with a dead device: open it anew.
        mac = attachment["settings"]["mac"]
        netdev = lab.host.wait_for(f"the VF's netdev in {name}", lambda: vms[name].netdev(mac), 60)
        vms[name].run(f"ip link set {netdev} down; ip link set {netdev} up")
        product.verify(attachment, profile="quick")
        lab.count("VMs that proved their VF again")


def judge_events(lab, product, attachments, lost, since):
    """Compares libvirt's count of devices that left those VMs with vfmgrd's events."""
    delays = []
    for name, attachment in attachments.items():
        events = [one for one in reversed(history(lab, product, attachment["vf"]["index"]))
                  if one["number"] > since and one["attachment"] == attachment["id"]]
        told = [seconds(one["at"]) for one in events if one["kind"] == "lost"]
        lab.check_equal(len(told), len(lost[name]), f"losses of {name}: events of vfmgrd, and "
                        f"libvirt's at {lost[name]}: {told}")
        delays += [late - when for when, late in zip(lost[name], told)]
        lab.count("losses", len(lost[name]))
        lab.count("returns", sum(one["kind"] == "repaired" for one in events))
    if delays:
        delays.sort()
        p99 = delays[min(len(delays) - 1, int(len(delays) * 0.99))]
        lab.step(f"from the loss, by libvirt, to its event: median {statistics.median(delays):.3f}"
                 f" s, p99 {p99:.3f} s, most {delays[-1]:.3f} s, of {len(delays)}")


def seconds(text):
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


class Churn(threading.Thread):
    """Attachments begin and end all the time, in a VM of their own."""

    def __init__(self, lab, product, attacker):
        super().__init__(daemon=True)
        self.lab, self.product, self.attacker = lab, product, attacker
        self.ends = threading.Event()
        self.unclean = []
        self.refusals = {}

    def run(self):
        while not self.ends.is_set():
            try:
                self.one()
            except Refused as refused:
                text = re.sub(r"evil\d+|\d+", "…", str(refused))[:150]
                self.refusals[text] = self.refusals.get(text, 0) + 1

    def judge_end(self):
        self.lab.check(not self.is_alive(), "an attachment of the churn hangs")
        for text, count in self.refusals.items():
            self.lab.step(f"churn, {count} times: {text}")

    def one(self):
        for quarantined in self.product.quarantined():
            vf = quarantined["index"]
            self.product.ask("DELETE", f"/v1/pfs/{self.product.pci}/vfs/{vf}/quarantine")
            self.lab.count("quarantines lifted")
        attachment = self.product.attach(CHURN)
        self.lab.count("attachments of the churn")
        while True:
            _, operation = self.product.ask("DELETE", f"/v1/attachments/{attachment['id']}")
            if operation and operation["state"] == "succeeded":
                break
            if self.product.attachment(attachment["id"]) is None:
                return  # its VF is in quarantine
        self.judge(attachment, operation)

    def judge(self, attachment, operation):
        """iproute2 shows nothing of the attachment on the returned VF, unless an act fell on it."""
        index = attachment["vf"]["index"]
        with self.attacker.lock:
            now = self.lab.observe.ip_link_vf(self.attacker.netdev(), index)
            if self.attacker.last_act > seconds(operation["finished_at"]) - 1 or now is None:
                return self.lab.count("returns that an act fell on")
        if now["mac"] == attachment["settings"]["mac"] or now["vlan"] or now["trust"]:
            self.unclean.append({"attachment": attachment, "now": now})
        self.lab.count("returned clean")
