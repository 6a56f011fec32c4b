# SPDX-License-Identifier: Apache-2.0
"""doctor on this machine: it only reads, any user may run it, and a bundle gives the same
verdicts."""

import json
import os
import re
import subprocess
from pathlib import Path

import jsonschema
import pytest
import yaml

ROOT = Path(__file__).resolve().parent.parent.parent
BUILD = Path(os.environ.get("VFMGR_BUILD_DIR", ROOT / "build/asan"))
VFCTL = BUILD / "service/vfctl"
VF_GUEST = BUILD / "guest-tools/vf-guest"
# LeakSanitizer and ptrace exclude each other.
TRACED = {**os.environ, "ASAN_OPTIONS": "detect_leaks=0"}
DOCTORS = {"host": [VFCTL, "doctor", "--local", "-o", "json"],
           "guest": [VF_GUEST, "doctor", "-o", "json"]}


def report(command, **how):
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, **how)
    found = json.loads(done.stdout)
    results = {one["result"] for one in found["findings"]}
    if found["machine"] == "guest":
        assert done.returncode == ("failed" in results), done.stderr
    else:
        assert done.returncode == (2 if "failed" in results else "warning" in results), done.stderr
    return found


def verdicts(found):
    return [(one["rule"], one["subject"], one["result"]) for one in found["findings"]]


@pytest.mark.parametrize("machine", DOCTORS)
def test_says_what_the_document_says(machine):
    document = yaml.safe_load((ROOT / "api/openapi.yaml").read_text())
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema",
              "$ref": "#/components/schemas/CheckReport", **document}
    found = report(DOCTORS[machine])
    jsonschema.Draft202012Validator(schema).validate(found)
    assert found["machine"] == machine and found["findings"]
    assert found["kernel"] == os.uname().release


@pytest.mark.parametrize("machine", DOCTORS)
def test_a_bundle_gives_the_same_verdicts(machine, tmp_path):
    bundle = tmp_path / "bundle.json"
    write = {"host": [VFCTL, "-q", "support-bundle", "--local", bundle],
             "guest": [VF_GUEST, "report", "--bundle", bundle]}[machine]
    subprocess.run([str(word) for word in write], check=True)
    here = [word for word in DOCTORS[machine] if word != "--local"]
    assert verdicts(report([*here, "--from", bundle])) == verdicts(report(DOCTORS[machine]))


def test_a_vm_judges_no_host(tmp_path):
    bundle = tmp_path / "bundle.json"
    subprocess.run([VFCTL, "-q", "support-bundle", "--local", bundle], check=True)
    done = subprocess.run([VF_GUEST, "doctor", "--from", bundle], capture_output=True, text=True)
    assert done.returncode != 0 and "vfctl doctor --from" in done.stderr


CHANGES = ("open,openat,openat2,creat,mkdir,mkdirat,mknod,mknodat,unlink,unlinkat,rmdir,rename,"
           "renameat,renameat2,link,linkat,symlink,symlinkat,chmod,fchmod,fchmodat,chown,fchown,"
           "lchown,fchownat,truncate,ftruncate,mount,umount2,init_module,finit_module,"
           "delete_module,setxattr,utimensat,kill,tkill,tgkill,reboot,sendto,sendmsg,bind")
FOR_WRITING = re.compile(r"O_(WRONLY|RDWR|CREAT|TRUNC|APPEND)")
# RTM_GET…, RDMA_NLDEV_CMD_…GET, CTRL_CMD_GETFAMILY and ETHTOOL_MSG_PAUSE_GET as strace shows them.
NETLINK_QUESTION = re.compile(r'nlmsg_type=(RTM_GET\w+|RDMA_NL_GET_TYPE\(\w+, \w+_GET\)|'
                              r'nlctrl, .*?\}, "\\x03|ethtool, .*?\}, "\\x15)')
ASKS_SYSTEMD_TO_ACT = re.compile(r"(Start|Stop|Restart|Reload|Kill|Mask|Enable|Disable)\w*Unit")


def harmless(call):
    """Returns whether a traced call changed nothing."""
    name = call.split("(", 1)[0]
    if name.startswith("open"):
        return not FOR_WRITING.search(call) or '"/dev/null"' in call
    if name in ("sendto", "sendmsg"):  # to the kernel, or systemctl's to systemd
        return bool(NETLINK_QUESTION.search(call)) or not (
            "nlmsg_type" in call or ASKS_SYSTEMD_TO_ACT.search(call))
    return name == "bind" and ("AF_NETLINK" in call or "AF_UNIX" in call)


@pytest.mark.parametrize("machine", DOCTORS)
def test_only_reads(machine, tmp_path):
    trace = tmp_path / "trace"
    report(["strace", "-f", "-qq", "-z", "-e", "signal=none", "-e", f"trace={CHANGES}", "-o", trace,
            *DOCTORS[machine]], env=TRACED)
    calls = [re.sub(r"^\d+ +", "", line) for line in trace.read_text().splitlines()]
    assert any(call.startswith("openat(") and "/proc/cmdline" in call for call in calls), "traced"
    assert [call for call in calls if not harmless(call)] == []


@pytest.mark.parametrize("machine", DOCTORS)
def test_any_user_may(machine):
    if os.geteuid() != 0:
        pytest.skip("only root can become somebody else")
    program = DOCTORS[machine][0]
    if not os.access(program, os.X_OK):
        pytest.fail(f"there is no {program}")
    found = report(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups",
                    *DOCTORS[machine]])
    asked = {one["rule"] for one in report(DOCTORS[machine])["findings"]}
    assert {one["rule"] for one in found["findings"]} == asked


def test_a_bundle_that_is_none_is_refused_with_the_reason(tmp_path):
    for text, said in (("", "not valid JSON"), ("{}", "vfmgr_bundle"), ("[1]", "object")):
        bundle = tmp_path / "bundle.json"
        bundle.write_text(text)
        done = subprocess.run([str(VFCTL), "doctor", "--from", str(bundle)],
                              stderr=subprocess.PIPE, text=True)
        assert done.returncode == 2 and said in done.stderr and "remedy:" in done.stderr


def test_an_unknown_symptom_lists_those_there_are():
    done = subprocess.run([str(VFCTL), "doctor", "--local", "--symptom", "warp"],
                          stderr=subprocess.PIPE, text=True)
    assert done.returncode == 2 and "no-vfs" in done.stderr


def guides():
    """Returns the rows of the table of the guides' commands: (what exists here, what shows it)."""
    text = (ROOT / "vfmgr/checks/README.md").read_text()
    table = text.split("| the guides' command |", 1)[1].split("\n\n", 1)[0]
    rows = [re.split(r"(?<!\\)\|", line) for line in table.splitlines()[2:]]
    return [(row[2], row[3]) for row in rows]


def test_the_guides_table_names_what_there_is():
    shown = subprocess.run([str(VFCTL), "doctor", "--rules"], stdout=subprocess.PIPE, text=True,
                           check=True).stdout
    rules = {line.split(":", 1)[0] for line in shown.splitlines()}
    rows = guides()
    assert len(rows) >= 30 and len(rules) >= 50
    for here, shown_by in rows:
        named = re.findall(r"`([a-z_]+\.[a-z0-9_]+)`", here)
        assert set(named) <= rules, set(named) - rules
        for kind, folder, ending in (("cases", "tests/fixtures/bundles/cases", ".json"),
                                     ("scenarios?", "tests/lab/scenarios", ".py")):
            for names in re.findall(rf"\b{kind} ((?:`[a-z_-]+`(?:, )?)+)", shown_by):
                for name in re.findall(r"`([a-z_-]+)`", names):
                    assert (ROOT / folder / (name + ending)).is_file(), f"{kind} {name}"
        assert shown_by.strip() or "not built" in here or "waits" in here, here
