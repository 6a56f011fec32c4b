# SPDX-License-Identifier: Apache-2.0
"""Where the emulated host has what was plugged into it by QMP."""


def pci_address(lab, name):
    """Returns the PCI address of QEMU's device of this id, which the host's firmware decides."""
    return "0000:{bus:02x}:{slot:02x}.{function}".format(**with_id(name, lab.qmp("query-pci")))


def with_id(name, buses):
    """Finds QEMU's device of this name, behind any bridges."""
    for device in (device for bus in buses for device in bus["devices"]):
        if device["qdev_id"] == name:
            return device
        bridge = device.get("pci_bridge", {})
        if below := with_id(name, [bridge] if "devices" in bridge else []):
            return below
    return None
