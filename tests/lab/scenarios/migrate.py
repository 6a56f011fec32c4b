# SPDX-License-Identifier: Apache-2.0
"""A running VM with a VF is migrated to another host and back, with the same addresses, proved.

libvirt refuses to migrate a host device. `vfctl vm without-vfs` detaches the VF, has virsh migrate
the VM, and attaches a VF that the other host has reserved.
"""

from vflab.product import Before
from vflab.second_host import MANAGEMENT, Management, SecondHost
from vflab.two_hosts import CONTEXTS, introduce, leave, prepared
from vflab.vm import VM

LONG = True
BOOT = "own"
DEADLINE_SECONDS = 2400
MOVER, STAYS = "mover", "stays"
VM_MEMORY = 512
MIGRATE_SECONDS = 900
MIGRATE = ("virsh -q migrate --live --persistent --undefinesource --migrateuri tcp://{address} "
           "{vm} qemu+ssh://root@{address}/system")
POOL = {"select": {}, "defaults": {"network": "train"}}
RESERVATION = {"pool": "train", "network": "train", "count": 1, "seconds": 900}
# What the VM knows itself by. The boot's ID shows that it was not started anew.
OWN = ("cat /proc/sys/kernel/random/boot_id; cat /sys/class/net/{0}/address; "
       "ip -4 -o addr show {0} | tr -s ' ' | cut -d ' ' -f 4; ibv_devinfo | grep -w node_guid; "
       "ibv_devinfo -v | grep -w 'GID\\[ *[01]\\]'")


def run(lab):
    lab.expect("refused by libvirt", "stays when it fails", "migrated", "proved again",
               "same in the VM", "reached over the wire", "nothing left behind")
    with SecondHost(lab) as second, Management(second):
        labs = (lab, second.lab)
        products = prepared(labs, num_vfs=2)
        introduce(labs)
        before = [Before(product) for product in products]
        pings = lab.vm(STAYS, memory=VM_MEMORY)
        vms = [lab.vm(MOVER, memory=VM_MEMORY), VM(second.lab.host, MOVER, memory=VM_MEMORY)]
        lab.step("a VM with a VF")
        attachment = products[0].attach(MOVER, network="train", verify="required",
                                        verify_profile="quick")
        products[0].attach(STAYS, network="train", verify="required", verify_profile="quick")
        known = own(vms[0], attachment)
        lab.step(f"{known}")
        reached(lab, second.hub, pings, attachment, None)
        refused(lab, labs)
        attachment = fails(lab, products, attachment)
        for here, there in ((0, 1), (1, 0)):
            reserved = migrated(lab, labs, products, here, there)
            again = arrived(lab, products[there], attachment)
            lab.check_equal(again["vf"], reserved, "its VF, of those that were reserved")
            lab.check_equal(own(vms[there].wait_ready(), again), known, "what the VM knows")
            lab.count("same in the VM", len(known))
            reached(lab, second.hub, pings, attachment, "ab"[there])
            gone(lab, products[here], before[here], here)
        for each in (pings, vms[0]):
            each.destroy()
        for product in products:
            lab.host.wait_for("no attachments", lambda: not product.attachments(), 150)
            lab.host.wait_for("the used reservation is gone", lambda: not product.lab.api(
                "GET", "/v1/reservations").body["items"], 150)
            product.must("DELETE", "/v1/pools/train")
        leave(products)


def own(vm, attachment):
    netdev = vm.netdev(attachment["settings"]["mac"])
    return vm.run(OWN.format(netdev)).lines()


def reached(lab, hub, vm, attachment, port):
    """From a VM that stays on the first host. The hub knows from which port the mover answers."""
    mac = attachment["settings"]["mac"]
    before = hub.sent(mac, 100)
    vm.wait_for(f"{MOVER} answers {STAYS}", f"ping -c1 -W2 {attachment['address']}", 60)
    vm.run(f"ping -c5 -i0.3 -W5 {attachment['address']}")
    grown = {name: now - before.get(name, 0) for name, now in hub.sent(mac, 100).items()}
    lab.step(f"{MOVER} answers, by the wire's count from {grown}")
    # A PF sends to its own VFs by its switch, and may repeat it on the wire.
    if port == "b":
        answered = lab.check(grown.get("b", 0) > 5 * 64 and not grown.get("a"),
                             f"{mac} answers from port b alone: {grown}")
        lab.count("reached over the wire", int(answered))
    elif port == "a":
        lab.check(not grown.get("b"), f"{mac} no longer answers from port b: {grown}")


def migrate_to(there):
    return MIGRATE.format(vm=MOVER, address=MANAGEMENT[there])


def refused(lab, labs):
    lab.step("libvirt refuses")
    done = labs[0].host.run(migrate_to(1), check=False, timeout=180)
    lab.step(done.stderr.strip())
    if lab.check(done.status != 0 and "VFIO" in done.stderr, f"virsh migrate: {done}"):
        lab.count("refused by libvirt")
    lab.check_equal(labs[1].observe.vms(), [], "VMs of the second host")
    lab.vfctl("--host", CONTEXTS[1], "vm", "list")
    done = lab.vfctl("vm", "without-vfs", MOVER, "--then-on", CONTEXTS[1], "--reservation",
                     "none-such", "--", "false", check=False)
    lab.check(done.status != 0 and "none-such" in done.stderr, f"an unknown reservation: {done}")
    lab.check_equal(len(lab.observe.hostdevs(MOVER)), 1, "the VM's VFs after that")


def fails(lab, products, attachment):
    """Returns the attachment that the VM then has on its own host."""
    lab.step("a migration that fails")
    products[1].must("PUT", "/v1/pools/train", POOL)
    products[1].must("PUT", "/v1/reservations/arriving", RESERVATION)
    done = lab.vfctl("vm", "without-vfs", MOVER, "--then-on", CONTEXTS[1], "--reservation",
                     "arriving", "--", "sh", "-c", "exit 7", check=False)
    lab.check_equal(done.status, 7, f"vfctl's end: {done}")
    again = arrived(lab, products[0], attachment)
    lab.check_equal(again["vf"]["pf"], attachment["vf"]["pf"], "its PF")
    lab.count("stays when it fails")
    return again


def migrated(lab, labs, products, here, there):
    """Returns the VF that the other host had reserved."""
    lab.step(f"from {labs[here].name} to {labs[there].name}")
    products[there].must("PUT", "/v1/pools/train", POOL)
    answer, _ = products[there].must("PUT", "/v1/reservations/arriving", RESERVATION)
    done = labs[here].vfctl("vm", "without-vfs", MOVER, "--then-on", CONTEXTS[there],
                            "--reservation", "arriving", "--", "sh", "-c", migrate_to(there),
                            timeout=MIGRATE_SECONDS)
    lab.step(f"vfctl: {done.stderr.strip()}")
    lab.check(MOVER not in labs[here].observe.vms(), "the VM is still defined where it was")
    state = labs[there].host.run(f"virsh -q domstate {MOVER}").stdout.strip()
    if lab.check_equal(state, "running", f"{MOVER} on {labs[there].name}"):
        lab.count("migrated")
    return answer.body["vfs"][0]


def arrived(lab, product, attachment):
    """Returns the attachment that the VM has there."""
    found = [one for one in product.attachments() if one["vm"] == MOVER]
    lab.check_equal(len(found), 1, "its attachments there")
    again = found[0]
    for what, of in (("MAC", lambda one: one["settings"]["mac"]),
                     ("address", lambda one: one["address"])):
        lab.check_equal(of(again), of(attachment), f"its {what}")
    for which in ("live", "config"):
        lab.check_equal([device["pci"] for device in product.lab.observe.hostdevs(MOVER, which)],
                        [again["vf_pci"]], f"its {which} XML")
    shown = product.lab.observe.ip_link_vf(product.pf, again["vf"]["index"])
    lab.check_equal((shown["mac"], shown["vlan"]), (attachment["settings"]["mac"], 100),
                    "its VF by iproute2")
    proof = again["verification"] or {}
    if lab.check_equal(proof.get("verdict"), "pass", f"proved again: {proof}"):
        lab.count("proved again")
    return again


def gone(lab, product, before, here):
    """The host that the VM left has a clean VF, and nothing of the VM."""
    lab.check_equal([one["vm"] for one in product.attachments() if one["vm"] == MOVER], [],
                    "attachments where it was")
    lab.check_equal(product.quarantined(), [], "quarantine where it was")
    if here == 1:  # the first host still has the VM that stays
        before.check_again("the second host, as before")
    else:
        drivers = product.lab.observe.vf_drivers(product.pf)
        free = [before.seen["vfs"][index]["driver"] for index in before.seen["vfs"]]
        lab.check_equal(sorted(map(str, drivers)), sorted(map(str, [*free[1:], "vfio-pci"])),
                        "drivers of its VFs: one is still attached")
    lab.count("nothing left behind")
