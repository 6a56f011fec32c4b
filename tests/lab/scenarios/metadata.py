# SPDX-License-Identifier: Apache-2.0
"""A VM declares VFs in its libvirt metadata: it has them at each start, and leaves none behind."""

from vflab.product import PLAIN, Before, Product

LONG = True
VM, CLONE = "declares", "clone"
METADATA = """<metadata><vfmgr:attachments xmlns:vfmgr='urn:vfmgr:attachments'>
<vfmgr:attachment pool='{}' count='2' profile='quick'/></vfmgr:attachments></metadata>"""


def run(lab):
    lab.expect("proved", "ended with the VM", "clone", "refused")
    product = Product(lab)
    product.manage(num_vfs=6, networks=[PLAIN])
    before = Before(product)
    pool = {"defaults": {"network": "plain", "verify": "background"}}
    product.must("PUT", "/v1/pools/open", {**pool, "from_metadata": True})
    product.must("PUT", "/v1/pools/closed", pool)
    vm = declaring(lab, VM, "open")
    for start in ("the first", "the second"):
        lab.step(f"{start} start")
        vm.start().wait_ready()
        two_proved(lab, product, VM)
        vm.shutdown()
        lab.host.wait_for("they end with the VM", lambda: not product.attachments(), 120)
        lab.check_equal(product.quarantined(), [], "quarantine")
        lab.count("ended with the VM")
    cloned(lab, product, vm)
    refused(lab, product)
    before.check_again("the VMs are gone")
    for name in ("open", "closed"):
        product.must("DELETE", f"/v1/pools/{name}")
    product.leave()


def declaring(lab, name, pool):
    vm = lab.vm(name, start=False)
    vm.xml = vm.xml.replace("</name>", "</name>" + METADATA.format(pool), 1)
    lab.host.run(f"virsh -q undefine {name}")  # libvirt chose its UUID
    return vm.define()


def two_proved(lab, product, name):
    def both():
        found = [one for one in product.attachments() if one["vm"] == name]
        return len(found) == 2 and all((one["verification"] or {}).get("verdict") == "pass"
                                       for one in found) and found

    found = lab.host.wait_for(f"VM {name} proves two VFs", both, 240)
    lab.check_equal(len(lab.observe.hostdevs(name)), 2, "devices of the running VM")
    lab.check_equal(lab.observe.hostdevs(name, "config"), [], "devices of its persistent XML")
    lab.count("proved", 2)
    return {one["settings"]["mac"] for one in found}


def cloned(lab, product, vm):
    lab.step("a clone")
    vm.start().wait_ready()
    own = two_proved(lab, product, VM)
    clone = declaring(lab, CLONE, "open")
    clone.start().wait_ready()
    if lab.check(not own & two_proved(lab, product, CLONE), "the clone has addresses of the VM"):
        lab.count("clone")
    clone.destroy()
    vm.destroy()
    lab.host.wait_for("all end", lambda: not product.attachments(), 180)


def refused(lab, product):
    lab.step("a pool that is closed")
    vm = declaring(lab, "hopes", "closed")
    vm.start().wait_ready()
    lab.host.wait_for("the event", "timeout 5 vfctl events --after 0 --kind declaration_refused | "
                      "grep -e 'hopes.*--from-metadata on'", 60)
    lab.check_equal(product.attachments(), [], "attachments")
    lab.count("refused")
    vm.destroy()
