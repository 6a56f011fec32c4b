# SPDX-License-Identifier: Apache-2.0
"""The message that sets one attribute of a VF is iproute2's, byte for byte."""

import json
import re

from vflab.programs import built

NEEDS_PACKAGES = False
VF = 3
# iproute2's arguments, and the same settings for vfmgr. igb refuses some, but they are sent.
SETTINGS = {
    "mac 52:54:00:11:22:33": {"mac": "52:54:00:11:22:33"},
    "vlan 100": {"vlan": {"id": 100}},
    "vlan 100 qos 5": {"vlan": {"id": 100, "qos": 5}},
    "vlan 100 proto 802.1ad": {"vlan": {"id": 100, "proto": "802.1ad"}},
    "rate 200": {"max_tx_rate_mbps": 200},
    "max_tx_rate 200 min_tx_rate 10": {"max_tx_rate_mbps": 200, "min_tx_rate_mbps": 10},
    "spoofchk off": {"spoofchk": False},
    "state enable": {"link_state": "enable"},
    "trust on": {"trust": True},
    "node_guid 00:11:22:33:44:55:66:77": {"node_guid": "00:11:22:33:44:55:66:77"},
    "port_guid 00:11:22:33:44:55:66:77": {"port_guid": "00:11:22:33:44:55:66:77"},
}
RTM_NEWLINK, RTM_SETLINK = 16, 19
TRACE = "strace -f -e trace=sendmsg -e write=all"


def run(lab):
    lab.expect("equal messages")
    host, observe = lab.host, lab.observe
    host.copy_in(built(lab, "kernel_probe"), "/root/kernel_probe")
    pf = observe.pf()
    device = f"/sys/class/net/{pf}/device"
    host.run(f"ip link set {pf} up; echo 0 >{device}/sriov_drivers_autoprobe; "
             f"echo {VF + 1} >{device}/sriov_numvfs")
    for words, settings in SETTINGS.items():
        step = {"step": "configure_vfs", "pf": observe.pf_pci(pf), "best_effort": [],
                "changes": [{"index": VF, "settings": settings}]}
        ours = messages(host.run(f"{TRACE} /root/kernel_probe", check=False,
                                 input=json.dumps(step) + "\n").stderr, RTM_SETLINK)
        peer = messages(host.run(f"{TRACE} ip link set dev {pf} vf {VF} {words}",
                                 check=False).stderr, RTM_NEWLINK)
        lab.check(ours and peer, f"{words}: {len(ours)} and {len(peer)} messages were seen")
        if not (ours and peer):
            continue
        # RTM_NEWLINK without NLM_F_CREATE and RTM_SETLINK do the same (net/core/rtnetlink.c,
        # do_setlink); vfmgr's is the explicit one.
        lab.check_equal(ours[0].hex(" "), peer[0].hex(" "), words)
        lab.count("equal messages", int(ours[0] == peer[0]))
    host.run(f"echo 0 >{device}/sriov_numvfs; echo 1 >{device}/sriov_drivers_autoprobe; "
             f"ip link set {pf} down; rm /root/kernel_probe")


def messages(trace, kind):
    """Returns strace's netlink messages of this type, without type, sequence and port."""
    found = []
    for dump in re.split(r"^ \* \d+ bytes in buffer 0$", trace, flags=re.M)[1:]:
        lines = re.findall(r"^ \| [0-9a-f]+  ((?:[0-9a-f]{2} {1,2})+)", dump, flags=re.M)
        message = bytes.fromhex("".join(lines).replace(" ", ""))
        if int.from_bytes(message[4:6], "little") == kind:
            found.append(message[:4] + bytes(2) + message[6:8] + bytes(8) + message[16:])
    return found
