# SPDX-License-Identifier: Apache-2.0
"""Each command of vfctl that prints a list or an object does so in every format, and the formats
agree."""

import csv
import io
import json

import pytest
import yaml
from commands import asked
from described import API, example
from live_daemon import Daemon
from vfctl import VFCTL, vfctl

PF = "0000:01:00.0"
# Names that a reader of YAML takes for something else if they have no quotes.
NAMES = ["on", "No", "null", "~", "12", "1e3", "0x10", "12:30:45", "2026-01-31",
         "2026-01-31T12:00:00Z", ".inf", " blank ", "a: b", "a #b", "- a", "{a}", "'a'",
         "\"a\"", "%a", "`a`", "@a", "*a",
         "Zoë", "\u4e2d\u6587", "tab\tand\nline", "\u202eturned", "\U000e0001tagged", "\u2028line",
         "\x7f\x9b", "back\\slash", "\U0001f600"]
VMS = ["vm1", "vm2", *NAMES]
IB = "0000:02:00.0"
HOST = {"pfs": [{"model": "igb", "pci": PF, "ifname": "enp1s0"},
                {"model": "mlx5_infiniband", "pci": IB, "ifname": "ibp2s0"}],
        "vms": [{"name": name, "uuid": f"{number:08}-1111-1111-1111-111111111111",
                 "free_pcie_ports": 8} for number, name in enumerate(VMS)]}

TENANT = str(API / "examples/tenant.json")
GPU_HOST = str(API.parent / "tests/fixtures/bundles/gpudirect-amd-no-iommu.json")

# Words that make each command print something; None: what it prints needs a VM or a card, or does
# not end. A command that only reports what it did is in SILENT.
PRINTS = {"pf list": [], "pf show": ["enp1s0"], "pf set": [PF, "--num-vfs", "4"],
          "firmware list": [], "firmware show": None, "firmware set": None,
          "ib partitions": [],
          "network list": [], "network show": ["lab"], "network set": ["lab", "--dscp", "26"],
          "pool list": [], "pool show": ["fast"], "pool set": ["fast", "--network", "lab"],
          "reservation list": [], "reservation show": ["job"],
          "reservation make": ["job", "--pool", "fast"],
          "identities show": [], "identities set": ["--mac", "02:00:00:00:00:01-02:00:00:00:00:ff"],
          "vf list": [], "vf show": [f"{PF}/0"],
          "vf set": [f"{PF}/1", "--trust", "off"], "vf history": [PF, "0"],
          "vf verifications": [PF, "0"], "vm list": [], "vm show": ["vm1"],
          "attach": ["vm2", "--pf", PF, "--dry-run"], "verify": None,
          "attachment list": [], "attachment show": ["vm1"], "attachment verifications": ["vm1"],
          "attachment set": ["vm1", "--unset", "spoofchk"],
          "attachment adopt": None, "attachment certificate": None,
          "attachment enrolment": None,
          "interop open": None, "interop show": None,
          "op list": [], "op show": ["ID"], "op wait": ["ID"], "audit": [], "events": None,
          "top": ["--interval", "0.2", "--count", "1"],
          "fleet show": [],
          # Of vfmgr-fleetd: tests/fleet/test_fleet.py.
          "fleet token": None, "fleet tokens": None, "fleet identities": None,
          "host list": None, "host show": None,
          "host set": None, "host cordon": None, "host uncordon": None, "host fence": None,
          "host unfence": None, "host confirm": None,
          "tenant list": [], "tenant show": ["blue"], "tenant set": ["blue", "-f", TENANT],
          "token list": [], "token create": [], "token rotate": None,
          "rdma list": [], "rdma link list": [], "topology": ["--from", GPU_HOST],
          "export": None, "diff": None,
          "rdma link show": None, "doctor": ["--rules"], "version": [],
          "context list": [], "context show": []}
SILENT = {"detach", "apply", "network remove", "pool remove", "tenant remove",
          "reservation release", "pf forget", "pf gone", "pf confirm-gone", "pf rekey",
          "vf lift-quarantine", "interop close", "op cancel", "token revoke", "rdma link add",
          "fleet leave", "fleet confirm", "store restore", "fleet init", "fleet join",
          "fleet revoke", "host expel",
          "rdma link delete", "vm without-vfs", "drained", "support-bundle", "query", "context use"}
SHOWN = [command for command, words in PRINTS.items() if words is not None]
# Its rows have no names that another command accepts.
NAMELESS = {"token create", "identities show", "identities set"}
# Each run makes or finds something else.
CHANGING = {"attach", "reservation make", "audit", "top", "op list", "token create", "token list"}


@pytest.fixture(scope="module")
def daemon(tmp_path_factory):
    started = Daemon(tmp_path_factory.mktemp("output"), HOST)
    started.do("PUT", f"/v1/pfs/{PF}/spec", {"mode": "manage", "num_vfs": 4})
    started.do("POST", "/v1/attachments", {"vm": "vm1", "pf": PF, "vf": 0})
    for path, body in (("/v1/networks/lab", {"prefix": "10.1.0.0/24", "pfs": [
                           {"pf": PF, "host_address": "10.1.0.1"}]}),
                       ("/v1/networks/ib", {"prefix": "10.2.0.0/24", "pkey": {"key": 1}, "pfs": [
                           {"pf": IB, "host_address": "10.2.0.1"}]}),
                       ("/v1/pools/fast", {"select": {"pfs": [f"{PF}/3"]}}),
                       ("/v1/tenants/blue", example("tenant")),
                       ("/v1/reservations/job", {"pool": "fast"})):
        assert started.ask("PUT", path, body)[0].status == 200
    yield started
    started.end()


@pytest.fixture(scope="module")
def operation(daemon):
    return daemon.ask("GET", "/v1/operations")[1]["items"][0]["id"]


def test_every_command_is_listed_here():
    there = {" ".join(path) for path in asked(VFCTL).leaves()}
    assert there == set(PRINTS) | SILENT


def shown(daemon, operation, command, *how):
    words = [operation if word == "ID" else word for word in PRINTS[command]]
    return vfctl(daemon, *command.split(), *words, *how).stdout


def unobserved(document):
    """Without the times of observations: the host may be observed between two commands."""
    if isinstance(document, list):
        return [unobserved(each) for each in document]
    if not isinstance(document, dict):
        return document
    return {key: unobserved(each) for key, each in document.items() if key != "observed_at"}


@pytest.mark.parametrize("command", SHOWN)
def test_formats_agree(daemon, operation, command):
    document = unobserved(json.loads(shown(daemon, operation, command, "-o", "json")))
    same = unobserved(yaml.safe_load(shown(daemon, operation, command, "-o", "yaml")))
    if command not in CHANGING:
        assert same == document
        assert unobserved(json.loads(shown(daemon, operation, command, "-j"))) == document
    heads, *rows = csv.reader(io.StringIO(shown(daemon, operation, command, "-o", "csv"), ""))
    assert all(len(row) == len(heads) for row in rows)
    bare = shown(daemon, operation, command, "-o", "csv", "--no-headers")
    if command not in CHANGING:
        assert list(csv.reader(io.StringIO(bare, ""))) == rows
    if command in NAMELESS:
        return
    names = shown(daemon, operation, command, "-o", "name")
    one = shown(daemon, operation, command, "-o", "csv", "-c", heads[0].upper(), "--no-headers")
    if command not in CHANGING:
        assert [row[0] or "-" for row in csv.reader(io.StringIO(one, ""))] == names.splitlines()
    turned = shown(daemon, operation, command, "-c", f"{heads[-1]},{heads[0]}").split("\n")[0]
    assert turned.lower().replace("_", " ").split() == \
        f"{heads[-1]} {heads[0]}".replace("_", " ").split()


@pytest.mark.parametrize("command", SHOWN)
def test_an_unknown_column_lists_those_there_are(daemon, operation, command):
    heads = shown(daemon, operation, command, "-o", "csv").split("\n")[0].split(",")
    words = [operation if word == "ID" else word for word in PRINTS[command]]
    refused = vfctl(daemon, *command.split(), *words, "-c", "nonsense", status=2)
    assert refused.stdout == ""
    assert "there is no column 'nonsense'" in refused.stderr
    assert "choose among " + ", ".join(heads) in refused.stderr


def test_partitions_are_lines_for_opensm(daemon):
    daemon.do("PUT", f"/v1/pfs/{IB}/spec", {"mode": "manage", "num_vfs": 1})
    daemon.do("POST", "/v1/attachments", {
        "vm": "vm2", "pf": IB, "network": "ib",
        "settings": {"port_guid": "02:02:c9:ff:fe:11:00:99"}})
    lines = vfctl(daemon, "ib", "partitions").stdout.splitlines()
    assert lines == [
        "vfmgr-0001=0x0001,indx0,ipoib:0x0002c9fffe110002=full; # network ib, PF ibp2s0",
        "vfmgr-0001=0x0001,indx0,ipoib:0x0202c9fffe110099=full; # network ib, VM vm2"]


def test_yaml_has_every_name_as_it_is(daemon):
    listed = yaml.safe_load(vfctl(daemon, "vm", "list", "-o", "yaml").stdout)
    assert sorted(vm["name"] for vm in listed["items"]) == sorted(VMS)


def test_no_progress_without_a_terminal(daemon):
    done = vfctl(daemon, "attach", "vm2", "--pf", PF, "--vf", "1")
    assert done.stderr == "vfctl: VM vm2 has its VF\n"
    quiet = vfctl(daemon, "-q", "detach", f"{PF}/1", "-o", "name")
    assert quiet.stderr == "" and daemon.ask(
        "GET", "/v1/operations/" + quiet.stdout.strip())[1]["kind"] == "detach"


def test_what_lists_print_is_accepted(daemon):
    """As names, one by one; and each VF in every form that it is printed in."""
    for listed, command in (("pf list", "pf show"), ("vf list", "vf show"), ("vm list", "vm show"),
                            ("attachment list", "attachment show"), ("op list", "op show")):
        names = vfctl(daemon, *listed.split(), "-o", "name").stdout.splitlines()
        assert names
        for name in names:
            vfctl(daemon, *command.split(), name)
    row = next(csv.DictReader(io.StringIO(vfctl(daemon, "vf", "list", "-o", "csv").stdout)))
    expected = vfctl(daemon, "-j", "vf", "history", row["vf"]).stdout
    for words in ([row["pci"]], [f"{row['ifname']}/{row['index']}"], [row["pf"], row["index"]],
                  [row["ifname"], row["index"]]):
        assert vfctl(daemon, "-j", "vf", "history", *words).stdout == expected
    attachment = vfctl(daemon, "attachment", "show", "vm1", "-o", "name").stdout
    for name in (attachment.strip(), row["vf"], "enp1s0/0", "00000000-1111-1111-1111-111111111111"):
        assert vfctl(daemon, "attachment", "show", name, "-o", "name").stdout == attachment


@pytest.mark.parametrize("form", ["yaml", "json"])
@pytest.mark.parametrize(("noun", "name"), [("network", "lab"), ("pool", "fast"),
                                            ("tenant", "blue")])
def test_a_document_that_is_printed_is_accepted(daemon, tmp_path, noun, name, form):
    shown = vfctl(daemon, noun, "show", name, "-o", form).stdout
    (tmp_path / "document").write_text(shown)
    vfctl(daemon, noun, "set", name, "-f", str(tmp_path / "document"))
    assert vfctl(daemon, noun, "show", name, "-o", form).stdout == shown


def test_the_spec_of_a_pf_is_taken_in_yaml(daemon, tmp_path):
    (tmp_path / "spec").write_text("mode: manage\nnum_vfs: 4\nlabels: {rail: \"0\"}\n")
    vfctl(daemon, "pf", "set", PF, "-f", str(tmp_path / "spec"))
    assert daemon.ask("GET", f"/v1/pfs/{PF}/spec")[1]["labels"] == {"rail": "0"}


def test_a_vf_is_attached_by_its_name(daemon):
    for words in (["--vf", "enp1s0/2"], ["--vf", f"{PF}/2"], ["--pf", "enp1s0", "--vf", "2"],
                  ["--pf", "enp1s0", "--vf", f"{PF}/2"]):
        plan = json.loads(vfctl(daemon, "-j", "attach", "vm2", *words, "--dry-run").stdout)
        assert plan["attachment"]["vf"] == {"pf": PF, "index": 2}, words
    for words in ([], ["--vf", "2"], ["--vf", "enp1s0"],
                  ["--pf", "0000:02:00.0", "--vf", f"{PF}/2"]):
        vfctl(daemon, "attach", "vm2", *words, "--dry-run", status=2)
