# SPDX-License-Identifier: Apache-2.0
"""vfmgr reports a NIC's switch and its VFs' ports as devlink does, in both modes."""

import json

from vflab.netdevsim import ID, Netdevsim
from vflab.programs import built


PROBE = "/root/kernel_probe"
DEVICE = f"netdevsim{ID}"
VFS = 4


def run(lab):
    lab.expect("modes read", "ports read", "RoCE refused")
    lab.host.copy_in(built(lab, "kernel_probe"), PROBE)
    port = Netdevsim(lab, VFS)
    for mode, ports in (("legacy", 0), ("switchdev", VFS), ("legacy", 0)):
        lab.host.run(f"devlink dev eswitch set netdevsim/{DEVICE} mode {mode}")
        ours, theirs = asked(lab, "eswitch"), devlink_says(lab)
        lab.check_equal(theirs["mode"], mode, "the mode that devlink reads back")
        lab.check_equal(len(theirs["ports"]), ports, f"VF ports that devlink shows in {mode} mode")
        lab.check_equal(ours, theirs, f"what we say in {mode} mode")
        lab.count("modes read")
        lab.count("ports read", ports)
        if mode == "switchdev":
            refuse_roce(lab)
    port.remove()
    lab.host.run(f"rm {PROBE}")


def refuse_roce(lab):
    """netdevsim's port functions have no capabilities, so the kernel's refusal is passed on."""
    before = devlink_says(lab)
    answer = asked(lab, "roce", f"{VFS - 1} off")
    lab.check(answer["error"] != 0 and answer["text"], f"the kernel refused and said why: {answer}")
    lab.check_equal(devlink_says(lab), before, "the ports after the refusal")
    lab.count("RoCE refused")


def asked(lab, what, more=""):
    return lab.host.run(f"echo '{what} netdevsim {DEVICE} {more}' | {PROBE}").json()


def devlink_says(lab):
    device = f"netdevsim/{DEVICE}"
    dev = json.loads(lab.host.run(f"devlink -j dev eswitch show {device}").stdout)["dev"]
    ports = json.loads(lab.host.run("devlink -j port show").stdout)["port"]
    return {"mode": dev[device]["mode"],
            "ports": [{"index": int(name.rsplit("/", 1)[1]), "vf": port["vfnum"],
                       "roce": {"enable": True, "disable": False, None: None}[
                           port.get("function", {}).get("roce")]}
                      for name, port in ports.items()
                      if name.startswith(device + "/") and port["flavour"] == "pcivf"]}
