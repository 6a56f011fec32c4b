# SPDX-License-Identifier: Apache-2.0
"""Each block of deploy/INSTALL.md is one that the lab's scenario types, or says why not.

What vfctl is asked for where the lab can't, for want of a card, is asked of a daemon on fakes.
"""

import re
import shlex
import subprocess
from xml.etree import ElementTree

import pytest
from live_daemon import BUILD, Daemon
from pages import PACKAGES, blocks_of, load
from vfctl import vfctl

PAGE = "deploy/INSTALL.md"
BLOCKS = blocks_of(PAGE)
TYPED = [block for block in BLOCKS if not block.why]
LEFT_OUT = [block for block in BLOCKS if block.why]
GUIDE = load("install-guide")


def named(block):
    return f"{block.heading}: {block.text.splitlines()[0]}"


def test_the_scenario_is_for_this_page():
    assert GUIDE.PAGE == PAGE


@pytest.mark.parametrize("block", TYPED, ids=named)
def test_the_scenario_types_it(block):
    assert block.language == "sh" and block.where in GUIDE.PLACES


def test_the_scenario_types_in_each_place():
    assert {block.where for block in TYPED} == GUIDE.PLACES.keys()


@pytest.mark.parametrize("block", LEFT_OUT, ids=named)
def test_a_reason_says_something(block):
    assert len(block.why.split()) >= 5


@pytest.mark.parametrize("block", BLOCKS, ids=named)
def test_its_syntax_is_right(block):
    if block.language == "xml":
        ElementTree.fromstring(block.text)
        return
    assert block.language == "sh"
    done = subprocess.run(["bash", "-n"], input=block.text, text=True, capture_output=True)
    assert done.returncode == 0, done.stderr


def test_it_installs_the_packages_that_are_built():
    said = {name for block in BLOCKS
            for name in re.findall(r"\./(vfmgr[a-z-]*?)[_-][*\[]", block.text)}
    assert said == set(PACKAGES)


def lines_of(program):
    return [line.split("#")[0] for block in LEFT_OUT for line in block.text.splitlines()
            if line.startswith(program + " ")]


@pytest.fixture(scope="module")
def daemon(tmp_path_factory):
    pf, infiniband = "0000:01:00.0", "0000:02:00.0"
    settings = {"SRIOV_EN": False, "NUM_OF_VFS": 0, "LINK_TYPE_P1": "ETH", "ATS_ENABLED": False}
    card = {"pci": pf, "functions": [pf], "device_type": "ConnectX6", "counts_per_port": False,
            "tool": {"name": "mstconfig", "version": "mstflint 4.21.0"}, "default": settings,
            "current": settings, "next": settings, "devlink": [], "problem": None,
            "boot_id": "5f0cb0d4-0d3c-4f7a-9d39-9e0b8b1a3a11"}
    host = {"pfs": [{"model": "mlx5", "pci": pf, "ifname": "enp1s0"},
                    {"model": "mlx5_infiniband", "pci": infiniband, "ifname": "ibp1s0"}],
            "firmware": [card]}
    started = Daemon(tmp_path_factory.mktemp("install"), host)
    for each in (pf, infiniband):
        started.do("PUT", f"/v1/pfs/{each}/spec", {"mode": "manage"})
    partition = {"prefix": "10.4.0.0/24", "mtu": 2044, "pkey": {"key": 1},
                 "pfs": [{"pf": infiniband, "host_address": "10.4.0.1"}]}
    assert started.ask("PUT", "/v1/networks/fabric", partition)[0].status < 300
    yield started
    started.end()


@pytest.fixture(scope="module")
def beyond_libvirt(tmp_path_factory):
    """A daemon whose root lets VMs that libvirt does not run have VFs."""
    pf = "0000:01:00.0"
    started = Daemon(tmp_path_factory.mktemp("beyond_libvirt"),
                     {"pfs": [{"model": "igb", "pci": pf, "ifname": "enp1s0"}]},
                     '[bounds.external_holders]\nallowed = true\nuids = ["64055"]\n')
    started.do("PUT", f"/v1/pfs/{pf}/spec", {"mode": "manage", "num_vfs": 2})
    network = {"prefix": "192.168.100.0/24", "pfs": [{"pf": pf, "host_address": "192.168.100.1"}]}
    assert started.ask("PUT", "/v1/networks/train", network)[0].status < 300
    yield started
    started.end()


OF_HOLDERS = [line for line in lines_of("vfctl") if "qm-104" in line]


def test_vfctl_attaches_as_written(beyond_libvirt):
    assert OF_HOLDERS
    for line in OF_HOLDERS:
        assert vfctl(beyond_libvirt, *shlex.split(line)[1:]).stdout


@pytest.mark.parametrize("line", sorted({*lines_of("vfctl")} - {"vfctl doctor", *OF_HOLDERS}))
def test_vfctl_accepts_what_the_lab_does_not_type(daemon, line):
    words = shlex.split(line.split(">")[0])[1:]
    done = vfctl(daemon, *words, *(["--dry-run"] if "set" in words else []))
    assert done.stdout


@pytest.mark.parametrize("line", lines_of("vf-guest"))
def test_vf_guest_has_what_the_lab_does_not_type(line):
    words = shlex.split(line)[1:]
    done = subprocess.run([BUILD / "guest-tools/vf-guest", *words, "--help"], text=True,
                          stdout=subprocess.PIPE)
    commands = " ".join(word for word in words if word not in ("gpudirect",))
    assert done.returncode == 0 and f"vf-guest {commands} [" in done.stdout


def test_bounds_name_the_pf_of_the_other_blocks():
    """What the page has an admin allow covers what it types afterwards."""
    bounds, = (block.text for block in TYPED if "[bounds]" in block.text)
    network, = (block.text for block in TYPED if "vfctl network set" in block.text)
    address = re.search(r"--pf enp1s0=([\d.]+)\.\d+", network)[1]
    assert f'addresses = ["{address}.0/24"]' in bounds
