# SPDX-License-Identifier: Apache-2.0
"""A captured vfmgrd gets from the broker what is listed; forbidden acts inside the units fail."""

import json

from vflab import captured
from vflab.captured import perform
from vflab.product import STORE, TRAIN, Product

BOUNDS = "/etc/vfmgr/conf.d/abuse.toml"
RULES = """[bounds]
addresses = ["192.168.100.0/24"]
[bounds.pfs.default]
num_vfs_max = 4
vlans = ["0", "100"]
trust = false
spoofchk_off = false
drivers = ["vfio-pci"]
firmware = false
"""
AS_FRONT = "setpriv --reuid vfmgrd --regid vfmgrd --clear-groups python3"
UNITS = {"vfmgrd.service": "front", "vfmgr-restore.service": "front",
         "vfmgr-guestd.service": "front", "vfmgr-broker.service": "broker"}
DENIALS_MIN = 12
REQUESTS_MAX, FRONTS_MAX = 64, 4


def run(lab):
    lab.expect("tries", "refused", "acts denied", "allowed")
    product = Product(lab)
    lab.host.write(BOUNDS, RULES)
    restart(lab)
    product.manage(num_vfs=4, networks=[TRAIN])
    owner, other = (lab.vm(name).wait_ready() for name in ("owner", "other"))
    attachment = product.attach("owner", vf=0, network="train")
    lab.host.write(captured.FRONT_FILE, captured.FRONT)
    front = Front(lab, product)

    lab.step("beyond the bounds, and what is not a VF, or another VM's")
    before = lab.observe.clean_state()
    for name, request, words in tries(lab, product):
        front.refused(name, request, words)
    at_boot(lab)
    front.refused("a VF that was not reset", *not_reset(lab, front, product, attachment))
    lab.step("what is no request")
    for name, request in nonsense():
        front.ended(name, request)
    lab.step("many requests, many connections, another user")
    limits(lab)
    after = lab.observe.clean_state()
    lab.check_equal(sorted(after - before), [], "what was added to the host")
    lab.check_equal(lab.observe.hostdevs("other"), [], "devices of the VM that asked for none")
    product.ask("DELETE", f"/v1/attachments/{attachment['id']}")
    product.leave()
    for vm in (owner, other):
        vm.destroy()
    acts(lab, product.pf)
    lab.host.run(f"rm -f {BOUNDS} {captured.FRONT_FILE} {captured.ACTS_FILE}")
    restart(lab)


def restart(lab):
    lab.host.run("systemctl restart vfmgrd", timeout=180)


class Front:
    """The captured front, on connections of its own."""

    def __init__(self, lab, product):
        self.lab, self.product = lab, product

    def ask(self, request):
        said = self.lab.host.run(f"{AS_FRONT} {captured.FRONT_FILE}", timeout=150,
                                 input=json.dumps([request]))
        return said.json()

    def refused(self, name, request, words):
        answer = self.ask(request)
        self.lab.count("tries")
        detail = answer.get("error", {}).get("detail", "")
        if self.lab.check(words in detail, f"{name}: {words!r} is not said: {answer}"):
            self.lab.step(f"{name}: {detail}")
            self.lab.count("refused")

    def ended(self, name, request):
        answer = self.ask(request)
        self.lab.count("tries")
        if self.lab.check("ended" in answer, f"{name}: answered {answer}"):
            self.lab.step(f"{name}: {answer['ended']}")
            self.lab.count("refused")

    def allowed(self, name, request):
        answer = self.ask(request)
        self.lab.check("error" not in answer and "ended" not in answer, f"{name}: {answer}")
        self.lab.step(f"allowed, as SECURITY.md lists: {name}")
        self.lab.count("allowed")


def tries(lab, product):
    """Returns name, request, and words of the refusal."""
    pf = product.pci
    owner, other = (lab.observe.domain(name, "live").findtext("uuid")
                    for name in ("owner", "other"))
    vf0, vf1 = (lab.observe.vf_pci(product.pf, index) for index in (0, 1))

    def attach(**members):
        return captured.attach(1, other, **{"vf": 1, "pf": pf, "pci": vf1, **members})

    def configure(**settings):
        return perform(1, "configure_vfs", pf=pf, best_effort=[],
                       changes=[{"index": 1, "settings": settings}])

    def address(text):
        return perform(1, "add_address", interface={"pf": pf, "vlan": 100}, address=text)

    return [
        ("the PF itself for a VM", attach(pci=pf), "is not at"),
        ("the host's disk controller for a VM", attach(pci="0000:00:1f.2"), "is not at"),
        ("another VM's VF", attach(vf=0, pci=vf0), "was not reset since VM"),
        ("XML as an attachment's id", json.dumps({**json.loads(attach()), "step": {
            **json.loads(attach())["step"], "attachment": "'/><disk/>"}}),
         "is no id of an attachment"),
        ("a path as a driver", perform(1, "bind_vfs", pf=pf, vfs=[1], driver="../../../x"),
         "is no name of a driver"),
        ("a driver that is not allowed", perform(1, "bind_vfs", pf=pf, vfs=[1], driver="igbvf"),
         "igbvf is not allowed"),
        ("more VFs than allowed", perform(1, "set_num_vfs", pf=pf, count=7), "7 VFs"),
        ("no VFs while a VM has one", perform(1, "set_num_vfs", pf=pf, count=0),
         "is in the XML of VM owner"),
        ("a trusted VF", configure(trust=True), "trust on is not allowed"),
        ("a VF without spoof check", configure(spoofchk=False), "spoofchk off is not allowed"),
        ("a VF in another VLAN", configure(vlan={"id": 200, "qos": 0, "proto": "802.1q"}),
         "VLAN 200 is not allowed"),
        ("firmware", perform(1, "set_firmware", pf=pf, settings={}, was={}), "firmware settings"),
        ("an address of another network", address("10.0.0.1"), "may not be an address"),
        ("an RDMA link on an untrusted netdev",
         perform(1, "add_soft_rdma_link",
                 link={"name": "rxe9", "type": "rxe", "ifname": "lo"}), "no trusted network"),
        ("a reset of a VF that a VM has", perform(1, "reset_vf", vf={"pf": pf, "index": 0}),
         "VF 0"),
    ]


def at_boot(lab):
    """What is restored is planned from the front's database: here one with another address."""
    def write(prefix, address):
        lab.host.run("systemctl stop vfmgrd vfmgr-restore")
        lab.host.run([*AS_FRONT.split()[:-1], "sqlite3", STORE, "UPDATE networks SET document = "
                      f"json_set(document, '$.network.prefix', '{prefix}', "
                      f"'$.network.pfs[0].host_address', '{address}')"])
    write("10.0.0.0/24", "10.0.0.1")
    mark = lab.host.journal_cursor()
    lab.host.run("systemctl start vfmgr-restore", check=False)
    said = lab.host.wait_for_journal("10.0.0.1 may not be an address", mark, unit="vfmgr-restore")
    lab.count("tries")
    lab.step(f"another address, from the database, at boot: {said}")
    if lab.check_equal(lab.host.run("ip -br addr | grep -w 10.0.0.1 || :").stdout, "",
                       "the address after a restore from a false database"):
        lab.count("refused")
    write(TRAIN["prefix"], TRAIN["host_address"])
    lab.host.run("systemctl start vfmgr-restore vfmgrd", timeout=180)


def not_reset(lab, front, product, attachment):
    """Takes the VF from its VM, which is listed; returns the try to give it to another VM."""
    pf, vf = product.pci, attachment["vf_pci"]
    owner, other = (lab.observe.domain(name, "live").findtext("uuid")
                    for name in ("owner", "other"))
    front.allowed("a detach without a reset",
                  perform(1, "detach_hostdev", vm_uuid=owner, attachment=attachment["id"],
                          vf={"pf": pf, "index": 0}, pci=vf, live=True, config=True, vm="owner"))
    lab.check_equal(lab.observe.hostdevs("owner"), [], "devices of the VM that had the VF")
    return captured.attach(1, other, vf=0, pf=pf, pci=vf), "was not reset since VM"


def nonsense():
    return [("an unknown call", json.dumps({"id": 1, "call": "exec", "step": "reboot"})),
            ("a step of no kernel", perform(1, "await_verification", attachment="0badbad0",
                                            timeout_seconds=1)),
            ("facts with an argument", json.dumps({"id": 1, "call": "collect_host",
                                                   "vm_uuid": "/etc/shadow"})),
            ("a line of 17 MiB", "x" * (17 << 20)),
            ("no JSON", "format c:")]


def limits(lab):
    program = "/run/captured-limit.py"
    lab.host.write(program, captured.FLOOD)
    limited = int(lab.host.run(f"{AS_FRONT} {program} {REQUESTS_MAX * 4}", timeout=150).stdout)
    lab.check(limited > 0, "no request of 256 at once was refused")
    lab.host.write(program, captured.CROWD)
    greeted = int(lab.host.run(f"{AS_FRONT} {program} {FRONTS_MAX * 5}", timeout=300).stdout)
    lab.check(0 < greeted <= FRONTS_MAX, f"{greeted} connections were served at once")
    lab.step(f"{limited} of {REQUESTS_MAX * 4} requests and {FRONTS_MAX * 5 - greeted} of "
             f"{FRONTS_MAX * 5} connections were refused")
    lab.check_equal(lab.api("GET", "/v1/pfs").status, 200, "vfmgrd meanwhile")
    stranger = lab.host.run(f"setpriv --reuid nobody --regid vfmgr --clear-groups python3 "
                            f"{program} 1", check=False)
    lab.check("PermissionError" in stranger.stderr, f"group vfmgr connects: {stranger}")
    lab.host.run(f"rm {program}")
    lab.count("tries", 3)
    lab.count("refused", 3)


def acts(lab, pf):
    lab.host.write(captured.ACTS_FILE, captured.ACTS)
    for unit, kind in UNITS.items():
        lab.step(f"forbidden acts from inside {unit}")
        shown = inside(lab, unit, kind, pf)
        done = [line for line in shown if line.endswith(": done")]
        denied = [line for line in shown if ": E" in line]
        lab.check_equal(done, [], f"{unit}: acts that were not denied")
        lab.check(len(denied) >= DENIALS_MIN, f"{unit}: only {denied} were denied")
        lab.step(f"{len(denied)} denied: {', '.join(denied)}")
        lab.count("acts denied", len(denied))


def inside(lab, unit, kind, pf):
    """Runs the acts in place of the unit's program; returns what they printed."""
    drop_in = f"/run/systemd/system/{unit}.d/acts.conf"
    # One act tries to kill this process.
    broker = lab.host.run("systemctl show -P MainPID vfmgr-broker").stdout.strip()
    state = {"front": "/var/lib/vfmgr", "broker": "/var/lib/vfmgr-broker"}[kind]
    lab.host.write(drop_in, "[Unit]\nRequires=\n[Service]\nType=oneshot\nRestart=no\n"
                            "WatchdogSec=0\nRemainAfterExit=no\nExecStart=\n"
                            f"ExecStart=/usr/bin/python3 {captured.ACTS_FILE} {kind} {pf} {state} "
                            f"{broker}\n")
    mark = lab.host.run("date +%s.%N").stdout.strip()
    try:
        lab.host.run(f"systemctl daemon-reload; systemctl stop {unit}; systemctl start {unit}",
                     timeout=120)
        return lab.host.run(f"journalctl -q -o cat -u {unit} --since @{mark} | grep ': '").lines()
    finally:
        lab.host.run(f"rm {drop_in}; systemctl daemon-reload; systemctl start "
                     f"vfmgr-broker.socket vfmgr-guestd.socket vfmgrd.socket "
                     "vfmgrd.service", timeout=180)
