# SPDX-License-Identifier: Apache-2.0
"""vfmgr reports VFs as `ip -d link show` does, field by field, also beyond 64 KiB."""

from functools import reduce

from vflab.netdevsim import Netdevsim
from vflab.observe import flat_vf
from vflab.programs import built


PROBE = "/root/kernel_probe"
BATCH = "/root/vfs.batch"
IGB_VFS, IGB_ROUNDS = 7, 3
SIMULATED_VFS = 200    # iproute2 also requests statistics, and shows 221 at most
TOO_MANY_FOR_IP = 1000

# The one table of what is compared: vfmgr's field, and iproute2's name in vflab.observe.
FIELDS = {
    "mac": "mac",
    "vlan.id": "vlan",
    "vlan.qos": "qos",
    "vlan.proto": "proto",
    "spoofchk": "spoofchk",
    "trust": "trust",
    "link_state": "link_state",
    "query_rss": "query_rss_en",
    "min_tx_rate_mbps": "min_tx_rate",
    "max_tx_rate_mbps": "max_tx_rate",
}
# iproute2's arguments for each, which differ from the names in its reports.
WORDS = {"mac": "mac", "vlan": "vlan", "qos": "qos", "proto": "proto", "spoofchk": "spoofchk",
         "trust": "trust", "link_state": "state", "query_rss_en": "query_rss",
         "min_tx_rate": "min_tx_rate", "max_tx_rate": "max_tx_rate"}
OTHER = {"802.1q": "802.1ad", "802.1ad": "802.1q", "auto": "enable", "enable": "disable",
         "disable": "auto"}


def run(lab):
    lab.expect("fields compared", "differences noticed", "VFs beyond iproute2")
    lab.host.copy_in(built(lab, "kernel_probe"), PROBE)
    igb(lab)
    port = Netdevsim(lab, SIMULATED_VFS)
    simulated(lab, port)
    beyond_iproute2(lab, port)
    port.remove()
    lab.host.run(f"rm {PROBE} {BATCH}")


# --- comparing ---

def differences(ours, theirs):
    """Returns {(VF, field)} that differ; `ours` is settings by VF, `theirs` flat VFs."""
    found = {(vf, "presence") for vf in set(ours) ^ {vf["vf"] for vf in theirs}}
    for vf in theirs:
        for field, name in FIELDS.items():
            if vf["vf"] in ours and member(ours[vf["vf"]], field) != vf.get(name):
                found.add((vf["vf"], field))
    return found


def member(settings, field):
    """`vlan.id` is the member `id` of the member `vlan`; a member of null is null."""
    return reduce(lambda value, key: None if value is None else value.get(key), field.split("."),
                  settings)


def check_same(lab, ours, theirs, what):
    reports = {vf["vf"]: vf for vf in theirs}
    different = sorted(differences(ours, theirs))
    some = [f"VF {vf} {field}: {member(ours.get(vf), field)!r}, "
            f"ip says {reports.get(vf, {}).get(FIELDS.get(field))!r}"
            for vf, field in different[:4]]
    lab.check(not different, f"{what}: {len(different)} fields differ: {'; '.join(some)}")
    lab.count("fields compared", len(theirs) * len(FIELDS))


def by_index(vfs):
    return {vf["index"]: vf["settings"] for vf in vfs}


def ip_reports(lab, netdev, vfs):
    shown = lab.observe.link(netdev).get("vfinfo_list", [])
    lab.check_equal(len(shown), vfs, f"VFs of {netdev} that ip shows")
    return [flat_vf(vf) for vf in shown]


def write_with_ip(lab, netdev, configured):
    """Sets flat VFs, which contain only what is to be set; ip ends at the first refusal."""
    lab.host.write(BATCH, "".join(f"link set dev {netdev} vf {spec['vf']} {words(spec)}\n"
                                  for spec in configured))
    lab.host.run(f"ip -batch {BATCH}", timeout=300)


def words(spec):
    return " ".join(f"{word} {text(spec[name])}" for name, word in WORDS.items() if name in spec)


def text(value):
    return ("off", "on")[value] if isinstance(value, bool) else value


# --- igb, reported by the daemon ---

def igb(lab):
    host, observe = lab.host, lab.observe
    pf = observe.pf()
    pci, device = observe.pf_pci(pf), f"/sys/class/net/{pf}/device"
    # Rates are refused while the link is down.
    host.run(f"ip link set {pf} up; echo 0 >{device}/sriov_drivers_autoprobe; "
             f"echo {IGB_VFS} >{device}/sriov_numvfs")
    host.wait_for("the PF's carrier", f"grep -q 1 /sys/class/net/{pf}/carrier", 60)
    for number in range(IGB_ROUNDS):
        write_with_ip(lab, pf, [igb_spec(vf, number) for vf in range(IGB_VFS)])
        look_twice(lab, pci)
        theirs = ip_reports(lab, pf, IGB_VFS)
        rest = lab.api("GET", f"/v1/pfs/{pci}/vfs").body["items"]
        check_same(lab, by_index(rest), theirs, f"igb {number}, REST")
        shown = lab.vfctl("vf", "list", pf, "-o", "json").json()["items"]
        check_same(lab, by_index(shown), theirs, f"igb {number}, vfctl")
    host.run(f"echo 0 >{device}/sriov_numvfs; echo 1 >{device}/sriov_drivers_autoprobe; "
             f"ip link set {pf} down")


def igb_spec(vf, number):
    """Returns values that igb accepts. Those of the first round have no VLAN and no rate."""
    return {"vf": vf, "mac": f"02:00:00:0c:{number:02x}:{vf:02x}",
            "vlan": number and 100 * number + vf, "qos": number and vf,
            "spoofchk": (vf + number) % 2 == 0, "trust": (vf // 2 + number) % 2 == 0,
            "min_tx_rate": 0, "max_tx_rate": number and 100 + vf}


def look_twice(lab, pci):
    """Waits for an observation that began after now: one may be in progress."""
    def observed_at():
        return lab.api("GET", f"/v1/pfs/{pci}").body["observed_at"]
    for _ in range(2):
        last = observed_at()
        lab.host.wait_for("another look at the host", lambda: observed_at() != last, 60)


# --- netdevsim, which is no PCI device, reported by a probe ---

def probed(lab, port):
    return by_index(lab.host.run(PROBE, input=f"vfs {port.netdev}\n").json())


def spec_for(vf):
    return {"vf": vf, "mac": f"02:00:00:0d:{vf // 256:02x}:{vf % 256:02x}",
            "vlan": 1 + vf, "qos": vf % 7, "proto": "802.1ad" if vf % 3 == 0 else "802.1q",
            "spoofchk": vf % 2 == 0, "trust": vf // 2 % 2 == 0,
            "link_state": ("auto", "enable", "disable")[vf % 3], "query_rss_en": vf % 5 < 2,
            "min_tx_rate": vf, "max_tx_rate": 2000 + vf}


def simulated(lab, port):
    lab.step(f"netdevsim's {SIMULATED_VFS} VFs")
    check_same(lab, probed(lab, port), ip_reports(lab, port.netdev, SIMULATED_VFS), "new VFs")
    write_with_ip(lab, port.netdev, [spec_for(vf) for vf in range(SIMULATED_VFS)])
    ours = probed(lab, port)
    check_same(lab, ours, ip_reports(lab, port.netdev, SIMULATED_VFS), "netdevsim")
    lab.step("each field with another value: what we read before differs there, and only there")
    expected = set()
    for vf, (field, name) in enumerate(FIELDS.items()):
        spec = spec_for(vf)
        write_with_ip(lab, port.netdev, [{**spec, name: other(spec[name])}])
        expected.add((vf, field))
        found = differences(ours, ip_reports(lab, port.netdev, SIMULATED_VFS))
        lab.check_equal(found, expected, f"what differs now that VF {vf} has another {field}")
    lab.count("differences noticed", len(found & expected))
    check_same(lab, probed(lab, port), ip_reports(lab, port.netdev, SIMULATED_VFS), "read again")


def other(value):
    if isinstance(value, bool):
        return not value
    return value + 1 if isinstance(value, int) else OTHER.get(value, "02:00:00:ff:ff:ff")


def beyond_iproute2(lab, port):
    lab.step(f"{TOO_MANY_FOR_IP} VFs, which do not fit the 64 KiB of an attribute")
    port.resize(TOO_MANY_FOR_IP)
    configured = [spec_for(vf) for vf in range(TOO_MANY_FOR_IP)]
    write_with_ip(lab, port.netdev, configured)
    shown = lab.host.run(f"ip -d link show dev {port.netdev}", check=False)
    lab.count("VFs beyond iproute2", TOO_MANY_FOR_IP - shown.stdout.count("\n    vf "))
    check_same(lab, probed(lab, port), configured, f"{TOO_MANY_FOR_IP} VFs")
