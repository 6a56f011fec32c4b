# SPDX-License-Identifier: Apache-2.0
"""deploy/examples/hydra as it is shipped: three nodes, two training VMs, RDMA between all of them.

The training node is the emulated host; control plane and inference node are small machines on
its PF's wire. Each becomes its node by the example's own script. After a reboot of the training
node all of it is there again.
"""

import re

from vflab import programs, responder
from vflab.added_packages import AddedPackages
from vflab.hub import Hub
from vflab.paths import REPO
from vflab.product import Product
from vflab.qemu import WIRE
from vflab.second_machine import SecondMachine
from vflab.shell import call

LONG = True
BOOT = "own"
DEADLINE_SECONDS = 2400
EXAMPLE = REPO / "deploy/examples/hydra"
INSIDE = "/root/hydra"  # the example in the emulated host
CONTROL, INFERENCE, TRAINING = "192.168.100.1", "192.168.100.2", "192.168.100.3"
MACS = {"control-plane": "52:54:00:c0:00:11", "inference": "52:54:00:c0:00:12"}
VMS = {"train1": "192.168.100.10", "train2": "192.168.100.11"}
# As Debian's package ifupdown leaves a machine; busybox of the small machines has no such program.
IFUPDOWN = ("mv /ifup /usr/sbin/ && ln -s ifup /usr/sbin/ifdown && mv /run-parts /usr/bin/ && "
            "mkdir -p /var/lib/vf-guest /etc/network/interfaces.d && "
            "for when in pre-up up down post-down; do mkdir /etc/network/if-$when.d; done && "
            "echo 'source /etc/network/interfaces.d/*' >/etc/network/interfaces")
NOBODY_LISTENS = "timeout 5 nc -w 3 {} 22 </dev/null; [ $? -ne 0 ]"
PINGS, BYTES = 10, 60000
STANDINS = (("standin_cuda_newer", "standin/newer/libcuda.so.1", "libcuda.so.1"),
            ("standin_nic", "standin/libstandin_nic.so", "nic.so"))
GPU = "/run/gpu"  # in a VM
RTX = (f"LD_LIBRARY_PATH={GPU} LD_PRELOAD={GPU}/nic.so VFMGR_STANDIN_GPU=geforce "
       "VFMGR_STANDIN_NIC=none")


def run(lab):
    lab.expect("applied", "verified", "between the VMs", "to the other nodes", "between the nodes",
               "closed", "not applicable", "back after the reboot")
    rack, tools = lab.machine.folder / "rack.sock", ifupdown(lab)
    with Hub({"training": lab.machine.folder / WIRE}, listen=rack) as hub, \
            machine(lab, "control-plane", rack, tools, ["bonding"]) as control, \
            machine(lab, "inference", rack, tools) as inference:
        vms = [lab.vm(name) for name in VMS]
        nodes = [node(lab, control, "control-plane"), node(lab, inference, "inference")]
        product = training(lab)
        for vm in vms:
            lab.host.run(f"virsh -q autostart {vm.name}")
            vm.wait_ready()
        lab.step("training/attach")
        lab.host.run(f"{INSIDE}/training/attach", timeout=600)
        whole(lab, product, vms)
        others = between_nodes(lab, nodes)
        everyone(lab, vms, others)
        closed(lab, product, nodes, vms)
        no_gpudirect(lab, vms[0])
        lab.step("the training node reboots")
        lab.reboot()
        lab.host.wait_booted()
        for vm in vms:
            vm.known_cid = None
            vm.wait_ready()
        proved_again(lab, product)
        whole(lab, product, vms)
        everyone(lab, vms, others)
        lab.count("back after the reboot")
        lab.step(f"frames that the wire lost: {hub.lost}")
        for vm in vms:
            lab.host.run(f"virsh -q autostart --disable {vm.name}")
        product.leave()
        lab.host.run("rm /etc/vfmgr/conf.d/hydra.toml /etc/systemd/network/05-hydra.network && "
                     "networkctl reload && systemctl restart vfmgr-broker vfmgrd")


def ifupdown(lab):
    """Returns Debian's programs that the small machines' images lack."""
    folder = lab.machine.folder / "ifupdown"
    deb, = AddedPackages(lab, ["ifupdown"]).debs().glob("ifupdown_*.deb")
    call(["dpkg-deb", "-x", str(deb), str(folder)])
    lab.host.copy_out("/usr/bin/run-parts", folder)
    return [next(file for file in folder.rglob("sbin/ifup")), folder / "run-parts"]


def machine(lab, name, rack, tools, modules=()):
    return SecondMachine(lab, [EXAMPLE, *tools], modules, name, MACS[name], rack)


def node(lab, where, name):
    """Makes a small machine the node; returns it."""
    lab.step(f"apply {name}")
    where.wait_ready()
    where.run(IFUPDOWN)
    where.run(f"/hydra/apply {name}")
    where.run(f"/hydra/apply {name}")  # a second time changes nothing
    if name == "inference":  # in place of its ConnectX NIC's RoCE
        where.run("rdma link add rxe0 type rxe netdev eth0")
    shown = where.run("ip -c=never -4 -o addr; rdma link")
    address, netdev = {"control-plane": (CONTROL, "bond0"), "inference": (INFERENCE, "eth0")}[name]
    if lab.check(f"{netdev}    inet {address}/24" in shown and f"netdev {netdev}" in shown,
                 f"address and RDMA device of {name}: {shown}"):
        lab.count("applied")
    return where


def training(lab):
    lab.step("apply training")
    product = Product(lab)
    lab.host.copy_in(EXAMPLE, INSIDE)
    for _ in range(2):  # a second time changes nothing
        lab.host.run(f"{INSIDE}/apply training {product.pf} rxe", timeout=300)
    lab.check_equal(lab.observe.numvfs(product.pf), 2, "VFs by sysfs")
    state = lab.host.run(f"networkctl list --no-legend {product.pf}").stdout.split()
    if lab.check_equal(state[-1], "unmanaged", f"what networkd does with it: {state}"):
        lab.count("applied")
    return product


def whole(lab, product, vms):
    """By libvirt, iproute2 and the VMs: each has its VF, untagged, its address and a pass."""
    host = lab.observe.addresses(product.pf)
    lab.check_equal(host, [f"{TRAINING}/32"], "the host's addresses on its PF, a route to each VM")
    found = {one["vm"]: one for one in product.attachments()}
    for vm in vms:
        attachment = found[vm.name]
        for which in ("live", "config"):
            lab.check_equal([device["pci"] for device in lab.observe.hostdevs(vm.name, which)],
                            [attachment["vf_pci"]], f"{vm.name}'s {which} XML")
        shown = lab.observe.ip_link_vf(product.pf, attachment["vf"]["index"])
        lab.check_equal((shown["mac"], shown["vlan"]), (attachment["settings"]["mac"], 0),
                        f"{vm.name}'s VF by iproute2")
        inside = vm.run("ip -c=never -4 -o addr show scope global; rdma link").stdout
        lab.check(f"{VMS[vm.name]}/24" in inside and "state ACTIVE" in inside, inside)
        if lab.check_equal((attachment["verification"] or {}).get("verdict"), "pass", vm.name):
            lab.count("verified")


def between_nodes(lab, nodes):
    """Returns the responders of both, once RDMA works between them."""
    control, inference = nodes
    lab.step("RDMA from the control plane's bond to the inference node")
    inference.run(f"(rping -s -v -a {INFERENCE} -C {PINGS} -S {BYTES} -V >/run/rping 2>&1 &)")
    inference.wait_for("rdma res show cm_id | grep LISTEN", 30)
    shown = control.run(f"rping -c -v -a {INFERENCE} -C {PINGS} -S {BYTES} -V 2>&1")
    if lab.check_equal(shown.count("ping data: rdma-ping"), PINGS, shown[-300:]):
        lab.count("between the nodes")
    unit = (EXAMPLE / "inference/vf-guest-serve.service").read_text()
    command = re.search(r"^ExecStart=(.*)$", unit, re.MULTILINE)[1]
    return {"the inference node": responder.serve(inference.run, INFERENCE, command=command),
            "the control plane": responder.serve(control.run, CONTROL)}


def everyone(lab, vms, others):
    """Each VM proves RDMA with the other one and with both other nodes."""
    for vm, peer in (vms, vms[::-1]):
        there = responder.serve(responder.in_vm(peer), VMS[peer.name])
        if responder.proved(lab, vm, there, f"{vm.name} with {peer.name}"):
            lab.count("between the VMs")
        peer.run(responder.STOP)
        for what, other in others.items():
            if responder.proved(lab, vm, other, f"{vm.name} with {what}"):
                lab.count("to the other nodes")


def closed(lab, product, nodes, vms):
    """The host answers its VMs' RDMA at .3 and nothing else, and nodes not at all: no exception."""
    lab.step("the training node is closed")
    rules = lab.host.run("nft list table inet vfmgr; nft list table netdev vfmgr").stdout
    lab.check(CONTROL + " " not in rules and INFERENCE not in rules, f"an exception: {rules}")
    inside = [responder.in_vm(vm) for vm in vms]
    for run in (*[node.run for node in nodes], *inside):
        run(NOBODY_LISTENS.format(TRAINING))
        lab.count("closed")
    lab.host.run(f"timeout 5 bash -c '</dev/tcp/127.0.0.1/22'")  # which does listen


def no_gpudirect(lab, vm):
    """The rack's cards are RTX: a limit of the product and no fault, and the verdict says so."""
    lab.step("GPUDirect with an RTX card")
    vm.run(f"mkdir -p {GPU}")
    for target, output, name in STANDINS:
        programs.send(vm, programs.built(lab, target, output).read_bytes(), f"{GPU}/{name}")
    shown = vm.run(f"{RTX} vf-guest verify -o json --seconds 0.1 gpudirect", check=False,
                   timeout=240)
    test = next(one for one in shown.json()[0]["tests"] if one["name"] == "gpudirect")
    lab.step(f"{test['verdict']}: {test['detail']}")
    said = lab.check("limit of the product" in test["detail"], test["detail"])
    if lab.check_equal(test["verdict"], "not_applicable", f"GPUDirect: {shown}") and said:
        lab.count("not applicable")


def proved_again(lab, product):
    for attachment in product.attachments():
        _, operation = product.ask("POST", f"/v1/attachments/{attachment['id']}/verifications",
                                   {"profile": "quick", "timeout_seconds": 240})
        lab.check_equal(operation["state"], "succeeded",
                        f"{attachment['vm']} after the reboot: {operation['problem']}")
