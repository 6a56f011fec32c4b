# SPDX-License-Identifier: Apache-2.0
"""After a reboot VFs, settings, RDMA links and the VM's device are back before libvirt's VM."""

from vflab.product import SERVICES, Product

MAC = "52:54:00:11:22:44"
# Checks as openibd's gate does, earlier than vfmgr's own units.
GATE, SAID = "asks-drained.service", "/var/lib/asks-drained"
GATE_UNIT = f"""[Unit]
DefaultDependencies=no
After=local-fs.target
Before=vfmgr-restore.service vfmgrd.socket vfmgrd.service vfmgr-broker.socket
[Service]
Type=oneshot
ExecStart=/bin/sh -c 'vfctl drained; echo $? >{SAID}'
[Install]
WantedBy=multi-user.target
"""
LINK, NETDEV = "rxe_lab", "labnet"
FILES = {
    f"/etc/systemd/network/20-{NETDEV}.netdev": f"[NetDev]\nName={NETDEV}\nKind=dummy\n",
    f"/etc/systemd/network/20-{NETDEV}.network":
        f"[Match]\nName={NETDEV}\n[Network]\nAddress=192.168.78.1/24\n",
    "/etc/vfmgr/conf.d/rdma-links.toml": f'[rdma_links]\ntrusted_netdevs = ["{NETDEV}"]\n',
}


def rdma_link(lab):
    """On a netdev that another program creates at boot."""
    for path, text in FILES.items():
        lab.host.write(path, text)
    lab.host.run("networkctl reload && systemctl restart vfmgrd")
    lab.host.wait_for(f"{NETDEV} is up", f"ip link show up dev {NETDEV} | grep {NETDEV}", 30)
    lab.vfctl("rdma", "link", "add", LINK, "type", "rxe", "netdev", NETDEV)
    lab.check_equal(lab.observe.rdma_links().get(LINK), NETDEV, "the RDMA link")


def rdma_link_again(lab):
    lab.host.wait_for(f"{LINK} is back", lambda: lab.observe.rdma_links().get(LINK) == NETDEV, 60)
    lab.count("RDMA link back")
    lab.vfctl("rdma", "link", "delete", LINK)
    lab.host.run(f"rm {' '.join(FILES)}; networkctl reload; ip link del {NETDEV}; "
                 "systemctl restart vfmgrd")


def members_connect(lab):
    """The socket is the group's, and nobody else's."""
    nobody = "setpriv --reset-env --reuid=65534 --regid=65534 {} vfctl pf list"
    for groups, status in (("--groups=vfmgr", 0), ("--clear-groups", 5)):
        done = lab.host.run(nobody.format(groups), check=False)
        if lab.check_equal(done.status, status, f"vfctl with {groups}: {done}"):
            lab.count("group judged")


def run(lab):
    lab.expect("rebooted", "restored before libvirt", "verified again", "RDMA link back",
               "drained at boot", "group judged")
    product, observe = Product(lab), lab.observe
    rdma_link(lab)
    product.manage(num_vfs=5, vf_driver="vfio-pci")
    lab.check_equal(observe.vf_drivers(product.pf), ["vfio-pci"] * 5, "the VFs' drivers")
    vm = lab.vm("keeper").wait_ready()
    attachment = product.attach("keeper", network="train", settings={"mac": MAC, "trust": True},
                         verify="required")
    lab.host.run("virsh -q autostart keeper")
    shown = observe.ip_link_vf(product.pf, attachment["vf"]["index"])

    lab.step("the host reboots, and asks at boot whether drivers may be loaded")
    lab.host.write(f"/etc/systemd/system/{GATE}", GATE_UNIT)
    lab.host.run(f"systemctl daemon-reload; systemctl enable {GATE} 2>&1; rm -f {SAID}")
    lab.check_equal(lab.vfctl("drained", check=False).status, 4, "drained, with a VF attached")
    lab.reboot()
    lab.count("rebooted")
    lab.host.wait_for("vfmgrd serves", "systemctl is-active vfmgrd", 120)
    members_connect(lab)
    lab.check_equal(observe.numvfs(product.pf), 5, "VFs after the reboot")
    lab.check_equal(observe.ip_link_vf(product.pf, attachment["vf"]["index"]), shown, "settings")
    lab.check_equal(observe.vf_drivers(product.pf), ["vfio-pci"] * 5, "the VFs' drivers again")
    ended, started = (int(lab.host.run(command).stdout.strip() or 0) for command in (
        "systemctl show -P ExecMainExitTimestampMonotonic vfmgr-restore.service",
        "systemctl show -P ExecMainStartTimestampMonotonic libvirtd.service"))
    lab.check(0 < ended < started or started == 0,
              f"restore ended at {ended} us, libvirtd started at {started} us")
    lab.count("restored before libvirt", int(ended > 0))
    lab.host.wait_for("the VM runs again", "virsh -q domstate keeper | grep running", 120)
    lab.check_equal([dev["pci"] for dev in observe.hostdevs("keeper")], [attachment["vf_pci"]],
                    "the VM's device")
    vm.wait_ready()
    if lab.check_equal(product.verify(attachment)["verdict"], "pass", "verdict"):
        lab.count("verified again")
    # Before vfmgrd's first start of a boot only holders decide, or no driver would ever load.
    if lab.check_equal(lab.host.read(SAID).split(), ["0"], "drained at boot, before vfmgrd"):
        lab.count("drained at boot")
    lab.check_equal(lab.vfctl("drained", check=False).status, 4,
                    "drained, with a VF attached again")
    lab.host.run(f"systemctl stop {SERVICES}")
    held = lab.vfctl("drained", check=False)
    lab.check(held.status == 4 and "keeper" in held.stderr, f"drained without vfmgrd: {held}")
    lab.host.run(f"systemctl start {SERVICES}; systemctl disable {GATE} 2>&1; "
                 f"rm {SAID} /etc/systemd/system/{GATE}; systemctl daemon-reload")
    rdma_link_again(lab)
    lab.host.run("virsh -q autostart --disable keeper")
    product.leave()
