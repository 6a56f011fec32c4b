# SPDX-License-Identifier: Apache-2.0
"""The host's packages for Ubuntu and RHEL, in VFMGR_PACKAGES/portable: the same files as Debian's,
with programs that start on all of them. They are unpacked and judged here, not installed."""

import re

import pytest
from made import files_below, only, run, unpacked
from portable import HOST_LIBRARIES, MIB, obstacles

FORMATS = ["deb", "rpm", "tar.gz"]
HOSTS = ["vfmgr", "vfmgr-cli", "vfmgr-web", "vfmgr-cockpit"]
# And their size in MiB, at most.
PROGRAMS = {"usr/bin/vfctl": 7, "usr/libexec/vfmgr/vfmgrd": 11, "usr/libexec/vfmgr/vfmgr-broker": 5,
            "usr/libexec/vfmgr/vfmgr-guestd": 7, "usr/libexec/vfmgr/vfmgrd-worker": 2}
# Ubuntu 22.04's versions, which RHEL 9's programs, judged by symbols, need not know.
UBUNTU = {"libc6": "2.35", "libibverbs1": "39.0", "libnl-3-200": "3.5.0", "libpci3": "1:3.7.0",
          "librdmacm1": "39.0", "libssl3": "3.0.2", "libsystemd0": "249.11", "libudev1": "249.11",
          "libvirt0": "8.0.0"}
# Where formats differ: legal texts, zsh's folder, what lintian reads.
OF_A_FORMAT = re.compile(r"usr/share/(doc|zsh|lintian)/")


def packages(form, folder="portable"):
    names = ["vfmgr-[0-9]*"] if form == "tar.gz" else [f"{name}[-_][0-9]*" for name in HOSTS]
    return [only(f"{folder}/{name}.{form}") for name in names]


def only_folder(folder):
    top, = folder.iterdir()
    return top


def files_of(form, tmp_path, folder="portable"):
    """Returns the folder that stands for /, and the names of the files in it."""
    for package in packages(form, folder):
        unpacked(package, tmp_path)
    top = only_folder(tmp_path) if form == "tar.gz" else tmp_path
    return top, {name.removesuffix(".gz") for name in files_below(top)}


def is_program(path):
    with path.open("rb") as file:
        return file.read(4) == b"\x7fELF"


@pytest.mark.parametrize("form", FORMATS)
def test_it_has_debians_files(form, tmp_path):
    (tmp_path / "debian").mkdir()
    (tmp_path / "other").mkdir()
    _, debians = files_of("deb", tmp_path / "debian", ".")
    _, others = files_of(form, tmp_path / "other")
    assert "etc/vfmgr/vfmgr.toml" in others
    assert {name for name in debians ^ others if not OF_A_FORMAT.match(name)} == set()


@pytest.mark.parametrize("form", FORMATS)
def test_each_program_starts_anywhere(form, tmp_path):
    top, names = files_of(form, tmp_path)
    found = {name: top / name for name in names
             if (top / name).is_file() and is_program(top / name)}
    assert found.keys() == PROGRAMS.keys(), "each program is also linked in deploy/portable"
    for name, path in found.items():
        dump, size = run("objdump", "-p", path).decode(), path.stat().st_size
        assert obstacles(dump, size, HOST_LIBRARIES, PROGRAMS[name] * MIB) == [], name
        print(f"{name}: {size / MIB:.2f} MiB")
    for name, words in (("bin/vfctl", "version"), ("libexec/vfmgr/vfmgrd", "--version"),
                        ("libexec/vfmgr/vfmgr-broker", "--version")):
        assert re.search(r"\d+\.\d+\.\d+", run(top / "usr" / name, words).decode())


def test_the_deb_can_be_installed_on_ubuntu():
    for package in packages("deb"):
        depends = run("dpkg-deb", "-f", package, "Depends").decode()
        for name, version in re.findall(r"(\S+) \(>= (\S+?)\)", depends):
            # Fails for a package that is not in the list, too: is its name the same on Ubuntu?
            run("dpkg", "--compare-versions", UBUNTU[name], "ge", version.rstrip("."))


def test_the_rpm_names_its_dependencies_by_soname():
    host = packages("rpm")[0]
    required = set(run("rpm", "-qp", "--requires", host).decode().split("\n"))
    assert {"libvirt.so.0()(64bit)", "libsystemd.so.0()(64bit)", "libpci.so.3()(64bit)",
            "libibverbs.so.1()(64bit)", "libssl.so.3()(64bit)", "kmod", "nftables", "systemd",
            "libvirt-daemon-driver-qemu"} <= required
    static = ("libstdc++", "libgcc_s", "libfmt", "libyaml", "libpugixml", "libsqlite", "libprom")
    assert [name for name in required if name.startswith(static)] == []


def test_the_rpm_keeps_what_an_admin_configured_and_owns_no_folder_of_the_system():
    host = packages("rpm")[0]
    assert run("rpm", "-qp", "--configfiles", host).decode().split() == ["/etc/vfmgr/vfmgr.toml"]
    for package in packages("rpm"):
        folders = [line.split()[-1] for line in
                   run("rpm", "-qlpv", package).decode().splitlines() if line.startswith("d")]
        assert folders
        assert [name for name in folders if "vfmgr" not in name and "openibd" not in name] == []


def test_the_rpm_has_debians_description():
    for package, debians in zip(packages("rpm"), packages("deb", ".")):
        said = run("rpm", "-qp", "--qf", "%{DESCRIPTION}", package).decode().split()
        first, *lines = run("dpkg-deb", "-f", debians, "Description").decode().splitlines()
        assert said == " ".join(lines).split(), first


def test_the_rpm_makes_users_and_runs_units():
    scripts = run("rpm", "-qp", "--scripts", packages("rpm")[0]).decode()
    for line in ("systemd-sysusers vfmgr.conf", "systemd-tmpfiles --create vfmgr.conf",
                 "systemctl preset vfmgr-broker.socket",
                 "systemctl disable --now vfmgrd.socket", "systemctl try-restart vfmgrd.service"):
        assert line in scripts


def test_sysusers_makes_the_users_of_the_units(tmp_path):
    files_of("rpm", tmp_path)
    run("systemd-sysusers", f"--root={tmp_path}", "vfmgr.conf")
    names = {kind: {line.split(":")[0] for line in (tmp_path / "etc" / kind).read_text().split()}
             for kind in ("passwd", "group")}
    units = "".join(path.read_text() for path in tmp_path.rglob("*.service")) \
        + "".join(path.read_text() for path in tmp_path.rglob("*.socket"))
    assert set(re.findall(r"^(?:Socket)?User=(\S+)", units, re.M)) - {"root"} <= names["passwd"]
    assert set(re.findall(r"^(?:Socket)?Group=(\S+)", units, re.M)) <= names["group"]
    assert "vfmgr" in names["group"]


def test_the_units_know_both_of_libvirts_daemons_and_start_neither(tmp_path):
    top, names = files_of("rpm", tmp_path)
    units = {name: (top / name).read_text() for name in names
             if name.startswith("usr/lib/systemd/") and "vfmgr" in name}
    ordered = [line for text in units.values() for line in text.splitlines()
               if re.match("(Before|After)=.*(libvirtd|virtqemud)", line)]
    assert len(ordered) >= 3
    for line in ordered:
        for kind in ("service", "socket"):
            assert (f"libvirtd.{kind}" in line) == (f"virtqemud.{kind}" in line), line
    # It could be the one that does not run this host's VMs.
    assert not re.search("^(?:Wants|Requires|BindsTo)=.*(?:libvirtd|virtqemud)",
                         "\n".join(units.values()), re.M)
