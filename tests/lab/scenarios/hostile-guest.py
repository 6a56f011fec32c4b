# SPDX-License-Identifier: Apache-2.0
"""A VM reaches only the responder on its host; a claim or another NIC's tests are no pass."""

import json

from vflab.knocks import ROUTER_MAC, Knocks
from vflab.product import PLAIN, TRAIN, Product
from vflab.programs import built, send

SLICES = 2
PROGRAM = "/run/hostile_guest"


def run(lab):
    product = Product(lab)
    product.manage(num_vfs=3)
    vm = lab.vm("liar").wait_ready()
    for part in lab.sliced([about_its_proof, at_every_door], SLICES):
        part(lab, product, vm)
    product.leave()


def about_its_proof(lab, product, vm):
    """Also sends to the host's ssh in a network that it shares with the host."""
    lab.expect("unheard knocks", "heard without the filter", "filters restored", "claims refused",
               "other NICs refused", "hoarding refused", "honest pass")
    lab.step("the VM is attached a VF of network train, and knocks at the host's ssh")
    first = product.attach("liar", network="train", verify="required")
    knock(lab, vm, "unheard knocks", "")
    lab.step("knocks arrive while vfmgrd can't restore what was flushed")
    product.open_host()
    knock(lab, vm, "heard without the filter", "SSH")
    product.close_host()
    filter_is_back(lab)
    lab.step("and not after a flush that is repaired at once")
    flush(lab)
    knock(lab, vm, "unheard knocks", "")
    lab.step("nor when it was attached a second VF")
    second = product.attach("liar", network="train", verify="required")
    knock(lab, vm, "unheard knocks", "")
    send(vm, built(lab, "hostile_guest").read_bytes(), PROGRAM)

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
    if lab.check("the session already has a stream" in refused.get("refused", ""), f"{refused}"):
        lab.count("hoarding refused")

    lab.step("and is believed when it is honest again")
    honest = json.loads(vm.run(f"vf-guest verify --attachment {first['id']} -o json",
                               timeout=300).stdout)
    lab.check_equal(honest[0]["verdict"], "pass", f"the honest verdict: {honest[0]['detail']}")
    lab.count("honest pass")
    for attachment in (second, first):
        product.detach(attachment)


def flush(lab):
    """Mode is manage, so only vfmgrd can restore it."""
    lab.host.run("nft flush ruleset")
    filter_is_back(lab)
    lab.count("filters restored")


def filter_is_back(lab):
    lab.host.wait_for("the filter is back", "nft list table netdev vfmgr | grep -q talks4 && "
                      "nft list table inet vfmgr | grep -q responder", 60)


def at_every_door(lab, product, vm):
    """Sends to every address and every open port of the host, tagged and not, and through it."""
    lab.expect("filters restored", "knocks that arrive", "closed to all knocks",
               "claims of an address", "listeners named")
    knocks = Knocks(lab, product, vm)
    with knocks.witness():
        lab.step("a VM whose host is not in its network knocks at all of it: that arrives")
        attachment = product.attach("liar", vf=0)
        knocks.begin(attachment)
        knocks.at_all()
        lab.host.wait_for("a knock arrives", lambda: knocks.counted("input") > 0)
        knocks.through()
        lab.host.wait_for("one is forwarded", lambda: knocks.counted("forward") > 0)
        knocks.claim()
        lab.host.wait_for("it is believed to be the router",
                          lambda: knocks.router() == attachment["settings"]["mac"])
        lab.count("knocks that arrive")
        product.detach(attachment)

    lab.step("an rping that listens everywhere keeps VMs out, and is named when it comes later")
    with Rping(lab, product):
        problem = product.refused(vm="liar", network="plain")
        lab.check_equal(problem["code"], "conflict", "the code of the refusal")
        lab.check("rping (pid " in problem["detail"], f"the refusal: {problem}")
        lab.check("vfctl attach liar" in problem["remedy"], f"what opens it: {problem}")
    attachment = product.attach("liar", vf=0, network="plain", verify="required")
    lab.check(lab.observe.ip_link_vf(product.pf, 0)["spoofchk"], "the VF's spoof check is off")
    cursor = lab.host.journal_cursor()
    with Rping(lab, product):
        lab.host.wait_for_journal(r"rping \(pid [0-9]+\) listens with RDMA CM", cursor, "vfmgrd",
                                  90)
    lab.count("listeners named")

    knocks.begin(attachment)
    for when in ("", ", after somebody flushed the filter"):
        lab.step(f"a VM in the untagged network knocks at all of the host{when}")
        if when:
            flush(lab)
        with knocks.witness():
            knocks.at_all(besides=PLAIN["host_address"])
            knocks.through()
            knocks.claim()
            knocks.end()
            lab.check_equal(knocks.counted("input"), 0, "knocks that arrive")
            lab.check_equal(knocks.counted("forward"), 0, "what the host forwarded")
            lab.count("closed to all knocks")
            lab.check_equal(knocks.router(), ROUTER_MAC, "who has the router's address")
            lab.count("claims of an address")
    product.detach(attachment)


class Rping:
    """Starts the host's rping server at every address, with an RDMA device on the PF for it."""

    def __init__(self, lab, product):
        self.lab, self.pf = lab, product.pf
        self.server = None

    def __enter__(self):
        self.lab.host.run("modprobe rdma_rxe; rdma link | grep -q 'netdev %s ' || "
                          "rdma link add knocked type rxe netdev %s" % (self.pf, self.pf))
        self.server = self.lab.host.background("rping -s -v -P -p 7199")
        self.lab.host.wait_for("rping listens", "rdma res show cm_id | grep LISTEN", 30)

    def __exit__(self, *_):
        self.server.stop()
        self.lab.host.run("rdma link del knocked", check=False)


def knock(lab, vm, count, expected):
    """sshd sends its name at once; "Connection refused" would be an answer, too."""
    said = vm.run(f"nc -w 5 {TRAIN['host_address']} 22 </dev/null 2>&1 | "
                  "grep -o -e ^SSH -e refused", check=False, timeout=60).stdout.strip()
    if lab.check_equal(said, expected, "the host's answer to the knock"):
        lab.count(count)


def lie(vm, *arguments):
    return json.loads(vm.run(f"{PROGRAM} {' '.join(arguments)}", check=False,
                             timeout=300).stdout.splitlines()[-1])
