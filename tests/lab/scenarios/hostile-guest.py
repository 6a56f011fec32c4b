# SPDX-License-Identifier: Apache-2.0
"""A VM reaches the responder and nothing else; a claim or another NIC's tests are no pass."""

import json

from vflab.product import TRAIN, Product
from vflab.programs import built, send

PROGRAM = "/run/hostile_guest"


def run(lab):
    lab.expect("unheard knocks", "heard without the filter", "claims refused",
               "other NICs refused", "hoarding refused", "honest pass")
    program = built(lab, "hostile_guest").read_bytes()
    product = Product(lab)
    product.manage(num_vfs=3)
    vm = lab.vm("liar").wait_ready()
    lab.step("the VM is lent a VF of network train, and knocks at the host's ssh")
    first = product.lend("liar", network="train", verify="required")
    knock(lab, vm, "unheard knocks", "")
    lab.step("again after somebody flushed the host's packet filter")
    lab.host.run("nft flush ruleset")
    knock(lab, vm, "heard without the filter", "SSH")
    lab.step("and when it was lent a second VF")
    second = product.lend("liar", network="train", verify="required")
    knock(lab, vm, "unheard knocks", "")
    send(vm, program, PROGRAM)

    lab.step("it claims a pass without traffic")
    verdict = lie(vm, "claim", first["id"])
    lab.check_equal(verdict["verdict"], "fail", "the verdict on a bare claim")
    lab.check("no datagram of this run came from" in verdict["detail"], verdict["detail"])
    tests = {test["name"]: test for test in verdict["tests"]}
    for name in ("reachability", "path_mtu", "rc_ping", "rdma_write", "rdma_read"):
        lab.check_equal((tests[name]["verdict"], tests[name]["by"]), ("fail", "host"), name)
    lab.check_equal(product.attachment(first["id"])["verification"]["verdict"], "fail",
                    "what the API says of it")
    lab.count("claims refused")

    lab.step("it tests the first VF's run over the second VF")
    netdev = vm.netdev(second["settings"]["mac"])
    refused = lie(vm, "other-nic", first["id"], netdev, second["address"])
    lab.check("the GID of the VF's address" in refused.get("refused", ""), f"own GID: {refused}")
    lab.count("other NICs refused")
    verdict = lie(vm, "masked-nic", first["id"], netdev, second["address"])
    lab.check_equal(verdict.get("verdict"), "fail", f"the VF's GID claimed: {verdict}")
    lab.count("other NICs refused")

    lab.step("it moves the first VF's address to the second VF")
    vm.run(f"ip addr del {first['address']}/24 dev {vm.netdev(first['settings']['mac'])}; "
           f"ip addr add {first['address']}/24 dev {netdev}")
    verdict = lie(vm, "masked-nic", first["id"], netdev, first["address"])
    lab.check_equal(verdict.get("verdict"), "fail", f"the VF's address on another NIC: {verdict}")
    lab.count("other NICs refused")
    vm.run(f"ip addr del {first['address']}/24 dev {netdev}; "
           f"ip addr add {first['address']}/24 dev {vm.netdev(first['settings']['mac'])}")

    lab.step("it wants more of the host's streams than one session needs")
    refused = lie(vm, "hoard", first["id"], vm.netdev(first["settings"]["mac"]))
    if lab.check("the session measures already" in refused.get("refused", ""), f"{refused}"):
        lab.count("hoarding refused")

    lab.step("and is believed when it is honest again")
    honest = json.loads(vm.run(f"vf-guest verify --attachment {first['id']} -o json",
                               timeout=300).stdout)
    lab.check_equal(honest[0]["verdict"], "pass", f"the honest verdict: {honest[0]['detail']}")
    lab.count("honest pass")
    product.leave()


def knock(lab, vm, count, wanted):
    """sshd says its name at once; "Connection refused" would be an answer, too."""
    said = vm.run(f"nc -w 5 {TRAIN['host_address']} 22 </dev/null 2>&1 | "
                  "grep -o -e ^SSH -e refused", check=False, timeout=60).stdout.strip()
    if lab.check_equal(said, wanted, "the host's answer to the knock"):
        lab.count(count)


def lie(vm, *arguments):
    return json.loads(vm.run(f"{PROGRAM} {' '.join(arguments)}", check=False,
                             timeout=300).stdout.splitlines()[-1])
