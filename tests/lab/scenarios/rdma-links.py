# SPDX-License-Identifier: Apache-2.0
"""RDMA links on a PF and a bond: on trusted networks only, kept while in use, created again.

Scenario `reboot` shows that they are restored after a boot, scenario `siw` the same for iWARP.
"""

import json

CONFIG = "/etc/vfmgr/conf.d/rdma-links.toml"
BOND, PORT, ADDRESS = "labbond", "labdummy", "192.168.77.1"
ON_PF, ON_BOND = "soft_pf", "soft_bond"
# What the advice names that every machine reaches, by the link's type.
REACHED = {"rxe": "UDP port 4791", "siw": "TCP ports"}


def run(lab, kind="rxe"):
    lab.expect("refused untrusted", "made", "kept while in use", "back", "waited", "deleted")
    host, observe = lab.host, lab.observe
    pf = observe.pf()
    was_up = "UP" in observe.link(pf)["flags"]
    make_bond(host)
    host.run(f"ip link set {pf} up")

    lab.step("nobody is trusted unasked")
    for netdev in (pf, BOND):
        refused(lab, add(lab, kind, "soft0", netdev), 5, "trusted_netdevs", "refused untrusted")
    lab.check_equal(observe.rdma_links(), {}, "RDMA links")
    trust(lab, [pf, BOND])
    refused(lab, add(lab, kind, "soft0", "lo"), 5, "trusted_netdevs", "refused untrusted")
    dry = lab.vfctl("--dry-run", "rdma", "link", "add", ON_BOND, "type", kind, "netdev", BOND)
    lab.check(REACHED[kind] in dry.stdout, f"the dry run says what to look at: {dry}")
    lab.check_equal(observe.rdma_links(), {}, "RDMA links after a dry run")

    lab.step("a link on a netdev, and one on a bond")
    for name, netdev in ((ON_PF, pf), (ON_BOND, BOND)):
        done = add(lab, kind, name, netdev)
        lab.check(done.status == 0 and REACHED[kind] in done.stderr, f"made, with advice: {done}")
        lab.count("made", int(observe.rdma_links().get(name) == netdev))
        lab.check(host.run(f"ls /sys/class/infiniband/{name}", check=False).status == 0,
                  f"/sys/class/infiniband/{name}")
    lab.check_equal(add(lab, kind, ON_PF, pf).status, 0, "a second time nothing is to be done")
    lab.check_equal(add(lab, kind, ON_PF, BOND).status, 4, "another netdev under its name")
    lab.check_equal(add(lab, kind, "soft7", PORT).status, 5, "the bond's port is not trusted")

    checks_know_them(lab)
    in_use(lab)
    others_are_left_alone(lab, kind)

    both = {ON_PF: pf, ON_BOND: BOND}
    made_again(lab, both)
    goes_and_comes(lab, both)

    lab.step("deleted, they stay away; untrusted, none is made again")
    lab.vfctl("rdma", "link", "delete", ON_BOND)
    host.run(f"rm {CONFIG} && systemctl restart vfmgrd")
    lab.check_equal(observe.rdma_links(), {ON_PF: pf}, "a link is not taken with the trust")
    host.run(f"rdma link delete {ON_PF}")
    host.wait_for("it is seen", lambda: shown(lab)[ON_PF]["state"] == "untrusted", 60)
    lab.vfctl("rdma", "link", "delete", ON_PF)
    lab.check_equal(shown(lab), {}, "links that are shown")
    lab.count("deleted", int(observe.rdma_links() == {}))
    host.run(f"ip link del {BOND}; ip link del {PORT}; "
             f"ip link set {pf} {'up' if was_up else 'down'}; modprobe -r bonding dummy; :")


def made_again(lab, both):
    lab.step("somebody deletes them by hand: the daemon, and a start of it, make them again")
    lab.host.run(f"rdma link delete {ON_PF}")
    await_links(lab, both, "back")
    lab.host.run(f"systemctl stop vfmgrd && rdma link delete {ON_BOND}")
    lab.check_equal(lab.observe.rdma_links(), {ON_PF: both[ON_PF]}, "RDMA links without a daemon")
    lab.host.run("systemctl start vfmgrd")
    await_links(lab, both, "back")
    lab.step("vfmgrd --restore does without a daemon")
    lab.host.run(f"systemctl stop vfmgrd && rdma link delete {ON_PF} && "
                 f"rdma link delete {ON_BOND} && systemctl restart vfmgr-restore.service")
    lab.check_equal(lab.observe.rdma_links(), both, "RDMA links after vfmgrd --restore")
    lab.host.run("systemctl start vfmgrd")


def goes_and_comes(lab, both):
    lab.step("the bond goes, and comes back")
    lab.host.run(f"ip link del {BOND}")
    lab.host.wait_for("the link waits", lambda: shown(lab)[ON_BOND]["state"] == "waiting", 60)
    lab.check_equal(lab.observe.rdma_links(), {ON_PF: both[ON_PF]}, "RDMA links without the bond")
    lab.count("waited")
    make_bond(lab.host)
    await_links(lab, both, "back")


def checks_know_them(lab):
    """vfctl runs itself what the daemon gets from the command."""
    command = "vfctl -q -o csv --no-headers rdma link list"
    printed = lab.host.run(command).lines()
    lab.check_equal([line.split(",")[0] for line in printed], [ON_BOND, ON_PF], command)
    for whose in ([], ["--local"]):
        bundle = lab.vfctl("-q", "support-bundle", "-", *whose).json()
        told = bundle["commands"][command]["out"]  # CRLF, as in RFC 4180: no plain text
        lab.check_equal(bytes.fromhex(told["hex"]).decode().splitlines(), printed,
                        f"the links in a bundle {' '.join(whose)}")


def in_use(lab):
    """A process that listens for RDMA connections keeps its link, even against --force."""
    lab.step("rping -s uses the link on the bond")
    server = lab.host.background(f"rping -s -v -C 1 -a {ADDRESS}")
    lab.host.wait_for("rping listens", "rdma res show cm_id | grep LISTEN", 30)
    lab.host.wait_for("its use is seen", lambda: any(
        user["comm"] == "rping" for user in shown(lab)[ON_BOND]["observed"]["users"]), 60)
    for force in ([], ["--force"]):
        done = lab.vfctl("rdma", "link", "delete", ON_BOND, *force, check=False)
        refused(lab, done, 4, "rping (pid ", "kept while in use")
    lab.check_equal(lab.observe.rdma_links().get(ON_BOND), BOND, "the link in use")
    server.stop()
    # It is no longer in the view, but still configured.
    lab.host.wait_for("nobody uses it",
                      lambda: not shown(lab)[ON_BOND]["observed"]["users"], 60)


def others_are_left_alone(lab, kind):
    lab.step("a link that somebody else made is shown, and stays")
    lab.host.run("ip link add labother type dummy && ip link set labother up && "
                 f"rdma link add others0 type {kind} netdev labother")
    lab.host.wait_for("it is shown", lambda: "others0" in shown(lab), 60)
    lab.check_equal(shown(lab)["others0"]["owner"], "other", "its owner")
    for force in ([], ["--force"]):
        done = lab.vfctl("rdma", "link", "delete", "others0", *force, check=False)
        lab.check_equal(done.status, 4, f"deleting it: {done}")
    lab.check_equal(lab.observe.rdma_links().get("others0"), "labother", "the other's link")
    lab.host.run("rdma link delete others0 && ip link del labother")


def make_bond(host):
    host.run(f"ip link show {PORT} >/dev/null 2>&1 || ip link add {PORT} type dummy; "
             f"ip link add {BOND} type bond mode active-backup; ip link set {PORT} down; "
             f"ip link set {PORT} master {BOND} && ip link set {BOND} up && "
             f"ip link set {PORT} up && ip addr add {ADDRESS}/24 dev {BOND}")
    host.wait_for(f"{BOND} has carrier", f"grep 1 /sys/class/net/{BOND}/carrier", 30)


def trust(lab, netdevs):
    lab.host.write(CONFIG, f"[rdma_links]\ntrusted_netdevs = {json.dumps(netdevs)}\n")
    lab.host.run("systemctl restart vfmgrd")


def add(lab, kind, name, netdev):
    return lab.vfctl("rdma", "link", "add", name, "type", kind, "netdev", netdev, check=False)


def shown(lab):
    return {link["name"]: link for link in lab.api("GET", "/v1/rdma-links").body["items"]}


def refused(lab, done, status, words, what):
    said = lab.check(words in done.stderr, f"{words!r} is not said: {done}")
    if lab.check_equal(done.status, status, f"vfctl's end: {done}") and said:
        lab.count(what)


def await_links(lab, expected, what):
    lab.host.wait_for(f"the links {expected} are there",
                      lambda: lab.observe.rdma_links() == expected, 60)
    lab.count(what)
