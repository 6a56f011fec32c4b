# SPDX-License-Identifier: Apache-2.0
"""Another program changes and removes an attached VF: the history shows it, enforce repairs it."""

from datetime import datetime

from vflab.product import Product

STRANGE = "02:00:00:00:00:99"
FREE_MAC = "02:00:00:00:00:51"
EVENT_SECONDS = 60


def run(lab):
    lab.expect("named", "over", "thefts named", "returned to its VM", "free VF repaired",
               "certified")
    product = Product(lab)
    product.manage(num_vfs=2)
    vm = lab.vm("victim").wait_ready()
    # A network keeps the PF up; the kernel reports no change of VFs for a PF that is down.
    attachment = product.attach("victim", vf=0, network="train", settings={"trust": True})
    # The history belongs to the VF: events of earlier attachments follow below.
    lab.check_equal([one["kind"] for one in history(lab, product)][:2],
                    ["attached", "pf_configured"],
                    "the newest of the history of a new attachment")
    mac = attachment["settings"]["mac"]
    for what, strange, expected in (("mac", f"mac {STRANGE}", f"mac {mac}"),
                                  ("trust", "trust off", "trust on"),
                                  ("vlan", "vlan 300", "vlan 100")):
        changed(lab, product, what, strange, expected)
    theft = stolen(lab, product, vm)
    product.detach(attachment)
    over = event_after(lab, product, theft["number"], "settled", "is gone from that VM")
    lab.check_equal(over["because_of"], theft["number"], "which drift is over with the attachment")
    lab.check("detached" in [one["kind"] for one in history(lab, product)], "no detach")
    enforced(lab, product, vm)
    clean_again(lab, product)
    product.leave()


def history(lab, product):
    return lab.api("GET", f"/v1/pfs/{product.pci}/vfs/0/history").body["items"]


def by_hand(lab, product, command):
    """Runs another program's write; returns its start by the host's clock, and the last event."""
    last = history(lab, product)[0]["number"]
    began = float(lab.host.run(f"date +%s.%N; {command}", timeout=180).lines()[0])
    return began, last


def event_after(lab, product, last, kind, words):
    def found():
        for one in history(lab, product):
            if one["number"] > last and one["kind"] == kind and words in one["detail"]:
                return one
        return None
    event = lab.host.wait_for(f"the event {kind}: {words}", found, EVENT_SECONDS)
    lab.check_equal((event["vm"], event["vf"]), ("victim", 0), f"whom {words} concerns")
    return event


def seconds(time):
    return datetime.fromisoformat(time.replace("Z", "+00:00")).timestamp()


def host_time(lab):
    """Returns whole milliseconds, the resolution of the API's times."""
    return int(lab.host.run("date +%s%3N").stdout) / 1000


def seconds_between(began, event):
    return seconds(event["at"]) - began


def changed(lab, product, what, strange, expected):
    lab.step(f"somebody sets {strange}")
    ip = f"ip link set {product.pf} vf 0"
    began, last = by_hand(lab, product, f"{ip} {strange}")
    event = event_after(lab, product, last, "drift", f"has {strange}")
    lab.step(f"{event['detail']}: seen after {seconds_between(began, event):.2f} s")
    lab.count("named")
    _, last = by_hand(lab, product, f"{ip} {expected}")
    over = event_after(lab, product, last, "settled", f"has {strange}")
    lab.check_equal(over["because_of"], event["number"], f"which drift of {what} is over")
    lab.count("over")


def stolen(lab, product, vm):
    lab.step("somebody removes the VFs under the VM")
    netdevs = "ls /sys/class/net"
    before = vm.run(netdevs).lines()
    began, last = by_hand(lab, product,
                          f"echo 0 >/sys/bus/pci/devices/{product.pci}/sriov_numvfs")
    lab.check_equal(lab.observe.numvfs(product.pf), 0, "VFs that are left")
    event = event_after(lab, product, last, "lost", "is gone from that VM")
    lab.check(len(vm.run(netdevs).lines()) < len(before), "the VM did not lose its NIC")
    lab.step(f"{event['detail']}: seen {seconds_between(began, event):.2f} s after the write began")
    lab.count("thefts named")
    logged = lab.host.run("journalctl -b -u vfmgrd --no-pager -o cat", check=False).stdout
    lab.check(event["detail"] in logged, f"the log does not have: {event['detail']}")
    return event


def enforced(lab, product, vm):
    """The VM has its VF again, as it was, and proves it."""
    product.manage(num_vfs=2, mode="enforce")
    attachment = product.attach("victim", vf=0, network="train", settings={"trust": True},
                         verify="required", verify_profile="quick")
    attached = lab.observe.ip_link_vf(product.pf, 0)
    lab.step("somebody removes the VFs in mode enforce")
    began, last = by_hand(lab, product,
                          f"echo 0 >/sys/bus/pci/devices/{product.pci}/sriov_numvfs")
    lab.check_equal(lab.observe.hostdevs("victim"), [], "what the VM has after that")
    lost = event_after(lab, product, last, "lost", "is gone from that VM")
    back = event_after(lab, product, last, "repaired", "VM victim")
    lab.check_equal(back["because_of"], lost["number"], "why it was repaired")
    lab.check_equal(lab.observe.ip_link_vf(product.pf, 0), attached, "the VF that is back")
    pci = lab.observe.vf_pci(product.pf, 0)
    lab.check_equal([one["pci"] for one in lab.observe.hostdevs("victim")], [pci], "the VM's VFs")
    lab.check(lab.observe.vfio_holders(pci), "nobody holds the VF that is back")
    proved = event_after(lab, product, back["number"], "verified", "pass")
    lab.check(vm.netdev(attachment["settings"]["mac"]), "the VM has no netdev of the VF's MAC")
    lab.step(f"lost {seconds_between(began, lost):.2f} s after the write began, back after "
             f"{seconds_between(began, back):.2f} s, proved after "
             f"{seconds_between(began, proved):.2f} s")
    lab.count("returned to its VM")
    free_vf(lab, product)
    product.detach(attachment)


def free_vf(lab, product):
    """A VF that no VM has gets settings, and in mode enforce gets them back."""
    def is_set():
        shown = lab.observe.ip_link_vf(product.pf, 1)
        return (shown["mac"], shown["vlan"]) == (FREE_MAC, 300)
    lab.vfctl("vf", "set", f"{product.pf}/1", "--mac", FREE_MAC, "--vlan", "300")
    lab.check(is_set(), f"ip link's VF 1: {lab.observe.ip_link_vf(product.pf, 1)}")
    lab.step("somebody takes the VLAN of a VF that no VM has")
    lab.host.run(f"ip link set {product.pf} vf 1 vlan 0")

    def repaired():
        events = lab.api("GET", f"/v1/pfs/{product.pci}/vfs/1/history").body["items"]
        return is_set() and any(one["kind"] == "repaired" for one in events)
    if lab.host.wait_for("VF 1 to be repaired", repaired, EVENT_SECONDS):
        lab.count("free VF repaired")


def clean_again(lab, product):
    """An attachment that ends normally has its certificate in the history."""
    product.manage(num_vfs=0)
    product.manage(num_vfs=2)
    attachment = product.attach("victim", vf=0, settings={"trust": True})
    attached = lab.observe.ip_link_vf(product.pf, 0)
    began = host_time(lab)
    product.detach(attachment)
    over = host_time(lab)
    returned = history(lab, product)[0]
    lab.check_equal(returned["kind"], "detached", "the last event")
    certificate = lab.api("GET", f"/v1/attachments/{attachment['id']}/certificate").body
    lab.check_equal(returned["certificate"], certificate, "the history's certificate")
    certified(lab, attachment, certificate, attached, lab.observe.ip_link_vf(product.pf, 0))
    marks = [certificate["attached"], certificate["detached"]]
    times = [seconds(marks[0]["at"]), began, seconds(marks[1]["at"]),
             seconds(certificate["reset"]["done_at"]), seconds(certificate["observed_at"]), over]
    lab.check_equal(times, sorted(times), "the certificate's times, by the host's clock")
    lab.check_equal([mark["requested_by"] for mark in marks], ["uid:0"] * 2, "who asked")
    shown = lab.vfctl("vf", "history", product.pf, "0").stdout
    lab.check("VF 0, attached to VM victim, is gone from" in shown, f"vfctl vf history: {shown}")


def certified(lab, attachment, certificate, attached, now):
    """The certificate's values, was and is, are iproute2's; sysfs offers its reset method."""
    restored = [certificate["restored"][when] for when in ("was", "is")]
    said = [(of["mac"], of["trust"]) for of in restored]
    lab.check_equal(said, [(of["mac"], of["trust"]) for of in (attached, now)], "what was restored")
    mac = certificate["rotated"]["mac"]
    lab.check(mac["was"] == attached["mac"] and mac["is"] == now["mac"] != attached["mac"],
              f"the MAC that is no more: {mac}, of {attached} and {now}")
    methods = lab.host.read(f"/sys/bus/pci/devices/{attachment['vf_pci']}/reset_method").split()
    lab.check(certificate["reset"]["method"] in methods, f"sysfs offers the resets {methods}")
    # igb counts nothing for its VFs; the kernel reports zeros for them.
    lab.check_equal(certificate["counters"], None, "counters of igb's")
    shown = lab.vfctl("attachment", "certificate", attachment["id"]).stdout
    if lab.check(f"{attached['mac']}  {now['mac']}" in shown,
                 f"vfctl attachment certificate: {shown}"):
        lab.count("certified")
