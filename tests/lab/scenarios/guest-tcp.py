# SPDX-License-Identifier: Apache-2.0
"""A VM without a vsock device is proved over TCP on its VF, over a reboot, too; a forger is not."""

import json

from vflab.product import Product

LONG = True

PORT = 8471
GIVEN = "/run/mute.enrolment"
SYSINFO = (f"<sysinfo type='fwcfg'><entry name='opt/org.vfmgr/enrolment' file='{GIVEN}'/>"
           "</sysinfo><cpu ")
FILE = "/etc/vf-guest/enrolment.json"
SILENT_SECONDS = 20


def run(lab):
    lab.expect("closed at first", "silence explained", "proved over TCP", "proved after a reboot",
               "forged token", "forged address", "forged key", "closed afterwards")
    product = Product(lab)
    product.manage(num_vfs=3)
    mute = lab.vm("mute", image="debian", vsock=False, start=False)
    forger = lab.vm("forger", command_line="vf-guest=off").wait_ready()
    unheard(lab, product)
    attachment = proved(lab, product, mute)
    mute.shutdown(deadline_seconds=240)
    forged(lab, product, forger, attachment)
    mute.start().wait_ready()
    verify(lab, product, attachment, "proved after a reboot")
    closed(lab, product, mute, attachment)
    product.leave()


def enrolment(lab, attachment):
    answer = lab.api("POST", f"/v1/attachments/{attachment['id']}/enrolment", {})
    lab.check_equal(answer.status, 201, f"an enrolment: {answer}")
    return answer.body


def let_in(lab):
    """Returns the addresses to which the host's filter opens the port."""
    shown = lab.host.run("nft -j list set inet vfmgr guests4", check=False)
    if shown.status != 0:
        return []
    sets = [each["set"] for each in json.loads(shown.stdout)["nftables"] if "set" in each]
    return sorted((each["concat"][1], each["concat"][2]) for one in sets
                  for each in one.get("elem", []))


def own(attachment):
    return attachment["settings"]["mac"], attachment["address"]


def unheard(lab, product):
    lab.step("a VM with guest_plane tcp that runs no vf-guest")
    lab.check_equal(let_in(lab), [], "guests before")
    lab.count("closed at first")
    problem = product.refused(vm="forger", network="plain", guest_plane="tcp", verify="required",
                              verify_timeout_seconds=SILENT_SECONDS)
    detail = problem["detail"]
    lab.check_equal(problem["code"], "timed_out", f"the problem: {problem}")
    if lab.check("was never given an enrolment" in detail
                 and ("sent" in detail or "counts no packets" in detail),
                 f"the host's evidence: {detail}"):
        lab.count("silence explained")


def proved(lab, product, mute):
    lab.step("a VM that is shut off gets a VF, and by fw_cfg what it needs to reach the host")
    attachment = product.attach("mute", network="plain", guest_plane="tcp")
    lab.check_equal(let_in(lab), [own(attachment)], "to whom the port is open")
    lab.host.run(f"umask 077; vfctl attachment enrolment {attachment['id']} >{GIVEN}")
    blob = json.loads(lab.host.run(f"cat {GIVEN}").stdout)
    lab.check_equal((blob["attachment"]["mac"], blob["port"]), (own(attachment)[0], PORT),
                    "the enrolment")
    described = lab.host.run("virsh -q dumpxml --inactive mute").stdout
    described = described.replace("<cpu ", SYSINFO, 1)
    lab.host.run("virsh -q define /dev/stdin", input=described)
    lab.check(lab.observe.domain("mute", "config").find("devices/vsock") is None, "it has a vsock")
    mute.start().wait_ready()
    verify(lab, product, attachment, "proved over TCP")

    lab.step("the VM is started again: its token was used, its key is good")
    mute.shutdown(deadline_seconds=240)
    mute.start().wait_ready()
    verify(lab, product, attachment, "proved after a reboot")
    return attachment


def verify(lab, product, attachment, what):
    verdict = product.verify(attachment, timeout_seconds=300)
    by_host = [test for test in verdict["tests"] if test["by"] == "host"]
    if lab.check(verdict["verdict"] == "pass" and by_host, f"{what}: {verdict}"):
        lab.count(what)


def forged(lab, product, forger, victim):
    lab.step("another VM with a VF of its own tries to be the first, which is shut off meanwhile")
    attachment = product.attach("forger", network="plain", guest_plane="tcp")
    blob, victims = enrolment(lab, attachment), enrolment(lab, victim)
    told = ask_as(forger, {**blob, "token": victims["token"]})
    if lab.check("this enrolment token was used" in told, f"the other's token: {told}"):
        lab.count("forged token")
    with_its = {**victims, "attachment": {**victims["attachment"], "mac": own(attachment)[0],
                                          "attachment": attachment["id"]}}
    told = ask_as(forger, with_its)
    if lab.check("no connection in time" in told and "host: 0 attachments" in told,
                 f"the other's token and address: {told}"):
        lab.count("forged address")
    # Its own works, so that the refusals above are not for another reason.
    told = ask_as(forger, enrolment(lab, attachment))
    lab.check("host: 1 attachments" in told, f"its own token: {told}")
    path = f"/var/lib/vf-guest/keys/{attachment['id']}.json"
    forger.run(f"sed -i 's/\"key\": *\"[0-9a-f]*\"/\"key\": \"{'0' * 64}\"/' {path}; "
               f"grep -q {'0' * 64} {path}")
    told = forger.run("vf-guest status 2>&1", check=False).stdout
    if lab.check("host: 0 attachments" in told, f"a key that it made up: {told}"):
        lab.count("forged key")
    product.detach(attachment)
    lab.check_equal(let_in(lab), [own(victim)], "after the forger's attachment")


def ask_as(forger, blob):
    """Gives the VM this enrolment alone, and returns what vf-guest says."""
    forger.run("rm -rf /var/lib/vf-guest/keys; mkdir -p /etc/vf-guest")
    forger.run(f"cat >{FILE} <<'END'\n{json.dumps(blob)}\nEND\n")
    said = forger.run("vf-guest status 2>&1", check=False, timeout=300).stdout
    forger.run(f"rm {FILE}")
    return said


def closed(lab, product, mute, attachment):
    lab.step("after its end the port is closed to it")
    product.detach(attachment)
    lab.check_equal(let_in(lab), [], "guests afterwards")
    listening = lab.host.run(f"ss -Hltn sport = :{PORT}").stdout.strip()
    if lab.check_equal(listening, "", "who listens"):
        lab.count("closed afterwards")
    mute.destroy()
