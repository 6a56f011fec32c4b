# SPDX-License-Identifier: Apache-2.0
"""A VM proves RDMA over the wire to a second machine, which answers in place of the host."""

import json
from contextlib import contextmanager

from vflab.product import TRAIN, Product
from vflab.second_machine import MAC, SecondMachine

HOST_ADDRESS, SECOND_ADDRESS, IN_TRAIN = "10.99.0.1", "10.99.0.2", "192.168.100.200"
NETWORK = (f"ip link set eth0 mtu 9000 up && ip addr add {SECOND_ADDRESS}/24 dev eth0 && "
           "ip link add link eth0 name eth0.100 type vlan id 100 && ip link set eth0.100 up && "
           f"ip addr add {IN_TRAIN}/24 dev eth0.100 && rdma link add rxe0 type rxe netdev eth0")
SERVE = f"(vf-guest serve --address {IN_TRAIN} --listen 0.0.0.0 --state /run/serve -o json &)"
A_LITTLE = 64 << 10  # may pass the host's interface while others test


def run(lab):
    lab.expect("proved on the wire", "bytes on the wire", "wrong fingerprint refused",
               "wrong token refused", "absence named", "without a daemon")
    product = Product(lab)
    product.manage(num_vfs=2)
    with SecondMachine(lab) as second:
        vm = lab.vm("vm1")
        lab.step("the second machine serves a responder")
        responder = serve(second)
        vm.wait_ready()
        attachment = product.attach("vm1", network="train", address="192.168.100.10",
                                    verify="required",
                             verify_profile="quick")
        lab.check_equal(attachment["verification"]["path"], "internal_switch",
                        "path to the own host")
        with host_address(lab, product.pf):
            refuse(lab, product, attachment, responder)
            prove(lab, product, attachment, second, responder)
            verify_without_daemon(lab, vm, responder)
            no_secret_kept(lab, responder["token"])
            lab.step("and is told to end")
            second.run("killall vf-guest")
            lab.host.wait_for("vf-guest serve has ended",
                              lambda: "none" in second.run("pidof vf-guest || echo none"), 20)
            problem = verification(product, attachment, responder)
            lab.check_equal(problem["code"], "unavailable", "the absent one's problem")
            lab.count("absence named", SECOND_ADDRESS in problem["detail"])
    product.leave()


def serve(second):
    """Returns the responder's address, from its own first line."""
    second.wait_ready().run(NETWORK)
    second.run(SERVE)
    ready = json.loads(second.wait_line(r'^\{.*"fingerprint"', 60))
    token = second.run(f"cat {ready['token_file']}").strip()
    return {"host": SECOND_ADDRESS, "port": ready["port"], "fingerprint": ready["fingerprint"],
            "token": token}


@contextmanager
def host_address(lab, pf):
    """Made after the VF was attached: vfmgr restores what a PF had before that."""
    lab.host.run(f"ip addr add {HOST_ADDRESS}/24 dev {pf}")
    try:
        lab.host.wait_for("the second machine answers", f"ping -c1 -W1 {SECOND_ADDRESS}", 30)
        yield
    finally:
        lab.host.run(f"ip addr del {HOST_ADDRESS}/24 dev {pf}")


def verification(product, attachment, responder):
    """Returns the problem of a run that fails; None when it passes."""
    _, operation = product.ask("POST", f"/v1/attachments/{attachment['id']}/verifications",
                               {"profile": "quick", "responder": responder})
    return operation["problem"]


def refuse(lab, product, attachment, responder):
    lab.step("wrong fingerprint, wrong token")
    other = "00" * 32
    problem = verification(product, attachment, {**responder, "fingerprint": other})
    lab.check_equal(problem["code"], "unavailable", "a wrong fingerprint's problem")
    lab.count("wrong fingerprint refused",
              responder["fingerprint"] in problem["detail"] and other in problem["detail"])
    problem = verification(product, attachment, {**responder, "token": "vfr_" + "0" * 64})
    lab.check_equal(problem["code"], "unauthorized", "a wrong token's problem")
    lab.count("wrong token refused", "not the responder's" in problem["detail"])
    again = product.attachment(attachment["id"])["verification"]
    lab.check_equal(again["run"], attachment["verification"]["run"], "the latest run")


def prove(lab, product, attachment, second, responder):
    lab.step("RDMA over the wire, asked for by vfctl")
    interface = next(link["ifname"] for link in lab.observe.links()
               if TRAIN["host_address"] in str(lab.observe.addresses(link["ifname"])))
    far, near = second_bytes(second), host_bytes(lab, interface)
    lab.host.write("/run/responder.token", responder["token"] + "\n", "0600")
    shown = lab.vfctl("verify", attachment["id"], "--profile", "quick",
                      "--responder", f"{SECOND_ADDRESS}:{responder['port']}",
                      "--responder-fingerprint", responder["fingerprint"],
                      "--responder-token-file", "/run/responder.token").stdout
    lab.host.run("rm /run/responder.token")
    lab.check("wire" in shown and SECOND_ADDRESS in shown, f"vfctl shows: {shown}")
    proof = product.attachment(attachment["id"])["verification"]
    lab.check_equal((proof["verdict"], proof["path"], proof["responder"]),
                    ("pass", "wire", f"{SECOND_ADDRESS}:{responder['port']}"), "the report")
    tests = {test["name"]: test for test in proof["tests"]}
    for name in ("reachability", "path_mtu", "rc_ping", "rdma_write", "rdma_read"):
        test = tests[name]
        lab.check_equal((test["verdict"], test["by"], test["mismatches"]), ("pass", "host", 0),
                        name)
    for name, test in tests.items():
        lab.step(f"{name}: {test['bytes_checked']} bytes checked, {test['figures']}")
    lab.count("proved on the wire", sum(test["verdict"] == "pass" for test in tests.values()))
    judge_bytes(lab, tests, grown(far, second_bytes(second)),
                grown(near, host_bytes(lab, interface)))


def judge_bytes(lab, tests, far, near):
    """Written bytes arrived at the second machine, read bytes left it; the host carried none."""
    written, read = (tests[name]["bytes_checked"] for name in ("rdma_write", "rdma_read"))
    lab.check(written >= 1 << 20 and read >= 1 << 20, f"checked too little: {written}, {read}")
    lab.check(far["rx"] >= written and far["tx"] >= read,
              f"the second machine's VLAN device: {far}, tested: {written} in, {read} out")
    lab.check(near["rx"] + near["tx"] < A_LITTLE, f"the host's interface: {near}")
    lab.step(f"{MAC} took {far['rx']} bytes and sent {far['tx']}; the host's interface {near}")
    lab.count("bytes on the wire", far["rx"] + far["tx"])


COUNTERS = "cat /sys/class/net/{}/statistics/rx_bytes /sys/class/net/{}/statistics/tx_bytes"


def second_bytes(second):
    return [int(number) for number in second.run(COUNTERS.format("eth0.100", "eth0.100")).split()]


def host_bytes(lab, interface):
    shown = lab.host.run(COUNTERS.format(interface, interface)).stdout
    return [int(number) for number in shown.split()]


def grown(before, after):
    return dict(zip(("rx", "tx"), (now - then for then, now in zip(before, after))))


def verify_without_daemon(lab, vm, responder):
    """In the VM, over its VF; the guest can't know whether that is the wire."""
    lab.step("vf-guest verify --responder, which no vfmgrd knows of")
    vm.run(f"echo {responder['token']} >/run/token")
    said = vm.run(f"vf-guest verify --responder {IN_TRAIN}:{responder['port']} --fingerprint "
                  f"{responder['fingerprint']} --token-file /run/token --profile quick -o json")
    proof = json.loads(said.stdout)[0]
    lab.check_equal((proof["verdict"], proof["path"], proof["attachment"]),
                    ("pass", None, "192.168.100.10"), "the report in the VM")
    lab.count("without a daemon", proof["verdict"] == "pass")
    vm.run("rm /run/token")


def no_secret_kept(lab, token):
    found = lab.host.run(f"grep -rlaF {token} /var/lib/vfmgr /run/vfmgr; "
                         f"journalctl -b -o cat | grep -F {token}", check=False)
    lab.check_equal(found.stdout, "", "places where the token was kept")
