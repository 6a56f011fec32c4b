# SPDX-License-Identifier: Apache-2.0
"""The packages in VFMGR_PACKAGES: vf-guest's install and start everywhere, vfmgrd's has the
documents of its interfaces."""

import gzip
import json
import re
from pathlib import Path

import pytest
from made import FOLDER, files_below, only, run, unpacked
from portable import obstacles

CONSOLE = Path(__file__).resolve().parents[2] / "service/routes/console.cpp"
FILES = {"bin/vf-guest", "lib/systemd/system/vf-guest.service",
         "lib/systemd/system/vf-guest-peermem.service", "share/man/man1/vf-guest.1",
         "share/bash-completion/completions/vf-guest", "share/doc/vfmgr-guest/README.md"}
DEBIAN = {"share/doc/vfmgr-guest/copyright", "share/doc/vfmgr-guest/changelog",
          "share/lintian/overrides/vfmgr-guest"}
PORTABLE = """
Dynamic Section:
  NEEDED               libibverbs.so.1
  NEEDED               libnl-3.so.200
  NEEDED               libc.so.6

Version definitions:

Version References:
  required from libibverbs.so.1:
    0x0365ab21 0x00 11 IBVERBS_1.11
  required from libc.so.6:
    0x06969188 0x00 26 GLIBC_2.28
    0x069691b4 0x00 15 GLIBC_2.34
"""


@pytest.mark.parametrize("package, top, legal", [
    ("vf-guest-*.tar.gz", "vf-guest-*", {"share/doc/vfmgr-guest/LICENSE"}),
    ("vfmgr-guest-*.rpm", "usr", {"share/doc/vfmgr-guest/LICENSE"}),
    ("vfmgr-guest_*.deb", "usr", DEBIAN)])
def test_it_holds_the_same_and_starts_anywhere(package, top, legal, tmp_path):
    top, = unpacked(only(package), tmp_path).glob(top)
    assert {name.removesuffix(".gz") for name in files_below(top)} == FILES | legal
    program = top / "bin/vf-guest"
    assert re.fullmatch(r"vf-guest \d+\.\d+\.\d+\n", run(program, "version").decode())
    assert obstacles(run("objdump", "-p", program).decode(), program.stat().st_size) == []


def test_the_cli_completes_in_three_shells(tmp_path):
    run("dpkg-deb", "-x", only("vfmgr-cli_*.deb"), tmp_path)
    assert {"share/bash-completion/completions/vfctl", "share/zsh/vendor-completions/_vfctl",
            "share/fish/vendor_completions.d/vfctl.fish"} <= files_below(tmp_path / "usr")


def test_the_daemons_package_has_its_documents_and_rules(tmp_path):
    run("dpkg-deb", "-x", only("vfmgr_*.deb"), tmp_path)
    assert files_below(tmp_path / "usr/share/vfmgr") == {
        "openapi.json", "openapi.yaml", "openapi-guest.yaml", "openapi-responder.yaml",
        "problems.md", "prometheus/vfmgr.rules.yml", "grafana/vfmgr.json"}


def test_the_fleets_package_is_apart_from_a_hosts(tmp_path):
    run("dpkg-deb", "-x", only("vfmgr-fleet_*.deb"), tmp_path)
    assert {name.removesuffix(".gz") for name in files_below(tmp_path)} == {
        "etc/vfmgr/fleetd.toml", "usr/libexec/vfmgr/vfmgr-fleetd",
        "usr/lib/systemd/system/vfmgr-fleetd.service", "usr/lib/sysusers.d/vfmgr-fleet.conf",
        "usr/share/man/man8/vfmgr-fleetd.8", "usr/share/vfmgr/openapi-fleet.json",
        "usr/share/vfmgr/openapi-fleet.yaml",
        "usr/share/vfmgr/prometheus/vfmgr-fleet.rules.yml", "usr/share/doc/vfmgr-fleet/copyright",
        "usr/share/doc/vfmgr-fleet/changelog", "usr/share/lintian/overrides/vfmgr-fleet"}
    needed = set(re.findall(r"NEEDED +(\S+)", run(
        "objdump", "-p", tmp_path / "usr/libexec/vfmgr/vfmgr-fleetd").decode()))
    assert "libssl.so.3" in needed
    # It reaches hosts by their API alone.
    assert not {"libvirt.so.0", "libsqlite3.so.0", "libnl-3.so.200", "libibverbs.so.1"} & needed


@pytest.mark.parametrize("pattern", ["vfmgr-web_*_all.deb", "portable/vfmgr-web-*.noarch.rpm"])
def test_the_console_is_whole(pattern, tmp_path):
    unpacked(only(pattern), tmp_path)
    names = files_below(tmp_path / "usr/share/vfmgr/web")
    page = (tmp_path / "usr/share/vfmgr/web/index.html").read_text()
    named = set(re.findall(r'(?:src|href)="([^"]+)"', page))
    assert len(named) == 3 and names == named | {"index.html"}
    assert (tmp_path / "usr/share/doc/vfmgr-web/LICENCES.txt").is_file()


@pytest.mark.parametrize("pattern", ["vfmgr-cockpit_*_all.deb",
                                     "portable/vfmgr-cockpit-*.noarch.rpm"])
def test_cockpits_page_is_the_same_console_after_cockpits_script(pattern, tmp_path):
    for name, package in (("cockpit", pattern), ("web", "vfmgr-web_*_all.deb")):
        (tmp_path / name).mkdir()
        unpacked(only(package), tmp_path / name)
    page = tmp_path / "cockpit/usr/share/cockpit/vfmgr"
    console = tmp_path / "web/usr/share/vfmgr/web"
    index = (page / "index.html").read_text()
    own = (console / "index.html").read_text()
    script = '<script src="../base1/cockpit.js"></script>\n'
    assert index.replace(script, "") == own and index.index(script) < index.index('src="app-')
    names = files_below(console) - {"index.html"}
    found = {name.removesuffix(".gz") for name in files_below(page)}
    assert found == names | {"index.html", "manifest.json"}
    for name in names:
        packed = page / f"{name}.gz"
        content = gzip.decompress(packed.read_bytes()) if packed.exists() \
            else (page / name).read_bytes()
        assert content == (console / name).read_bytes(), name
    assert (tmp_path / "cockpit/usr/share/doc/vfmgr-cockpit/LICENCES.txt").is_file()


def test_cockpits_page_keeps_the_consoles_content_policy(tmp_path):
    run("dpkg-deb", "-x", only("vfmgr-cockpit_*.deb"), tmp_path)
    manifest = json.loads((tmp_path / "usr/share/cockpit/vfmgr/manifest.json").read_text())
    policy = dict(directive.split(" ", 1) for directive in
                  manifest["content-security-policy"].split("; "))
    said = re.search(r"content_policy =\s+(.*?);\n", CONSOLE.read_text(), re.S)[1]
    own = dict(directive.split(" ", 1) for directive in
               "".join(re.findall(r'"([^"]*)"', said)).split("; "))
    # Cockpit frames its pages, and says itself what they may connect to.
    own["frame-ancestors"] = "'self'"
    del own["connect-src"]
    assert policy == {**own, "font-src": "'none'"}
    condition, = manifest["conditions"]
    run("dpkg-deb", "-x", only("vfmgr_*.deb"), tmp_path)
    assert (tmp_path / condition["path-exists"].lstrip("/")).is_file()


def test_the_broker_links_what_it_needs_as_root_and_no_more(tmp_path):
    run("dpkg-deb", "-x", only("vfmgr_*.deb"), tmp_path)
    programs = tmp_path / "usr/libexec/vfmgr"
    assert {path.name for path in programs.iterdir()} == {
        "vfmgrd", "vfmgr-broker", "vfmgr-guestd", "vfmgrd-worker"}
    needed = {name: set(re.findall(r"NEEDED +(\S+)", run("objdump", "-p", path).decode()))
              for name in ("vfmgrd", "vfmgr-broker", "vfmgr-guestd") for path in [programs / name]}
    front = {"libssl.so.3", "libcrypto.so.3", "libsqlite3.so.0"}
    assert front <= needed["vfmgrd"]
    assert not front & needed["vfmgr-broker"]
    assert "libvirt.so.0" in needed["vfmgr-broker"]
    # VMs reach neither libvirt nor the store.
    assert not {"libvirt.so.0", "libsqlite3.so.0"} & needed["vfmgr-guestd"]
    assert "libvirt.so.0" not in needed["vfmgrd"]
    names = {name: run("strings", programs / name).decode() for name in needed}
    assert "5boost5beast" in names["vfmgrd"] and "5boost5beast" not in names["vfmgr-broker"]


def test_the_rpm_names_its_dependencies_by_soname():
    expected = set(run("rpm", "-qp", "--requires", only("vfmgr-guest-*.rpm")).decode().split("\n"))
    assert {"libibverbs.so.1()(64bit)", "librdmacm.so.1()(64bit)", "libnl-3.so.200()(64bit)",
            "libcrypto.so.3()(64bit)", "kmod", "systemd"} <= expected
    assert not [name for name in expected if name.startswith(("libstdc++", "libfmt", "libgcc_s"))]


def test_the_rpm_owns_no_folder_of_the_system():
    listed = run("rpm", "-qlp", only("vfmgr-guest-*.rpm")).decode().split()
    assert "/usr/bin/vf-guest" in listed
    assert not {"/usr", "/usr/bin", "/usr/lib", "/usr/lib/systemd", "/usr/share"} & set(listed)


def test_the_rpm_starts_and_stops_the_unit():
    scripts = run("rpm", "-qp", "--scripts", only("vfmgr-guest-*.rpm")).decode()
    for line in ("systemctl preset vf-guest.service", "systemctl disable --now vf-guest.service",
                 "systemctl try-restart vf-guest.service"):
        assert line in scripts


def test_a_portable_program_passes():
    assert obstacles(PORTABLE, 4_000_000) == []


@pytest.mark.parametrize("was, now, said", [
    ("GLIBC_2.34", "GLIBC_2.35", "GLIBC_2.35"),
    ("GLIBC_2.34", "GLIBC_2.38", "GLIBC_2.38"),
    ("GLIBC_2.28", "GLIBC_PRIVATE", "GLIBC_PRIVATE"),
    ("GLIBC_2.28", "GLIBC_ABI_DT_RELR", "GLIBC_ABI_DT_RELR"),
    ("GLIBC_2.28", "GLIBCXX_3.4.11", "GLIBCXX_3.4.11"),
    ("IBVERBS_1.11", "IBVERBS_PRIVATE_44", "IBVERBS_PRIVATE_44"),
    ("IBVERBS_1.11", "IBVERBS_1.14", "IBVERBS_1.14"),
    ("libnl-3.so.200", "libfmt.so.9", "libfmt.so.9"),
    ("libnl-3.so.200", "libstdc++.so.6", "libstdc++.so.6"),
    ("libnl-3.so.200", "libgcc_s.so.1", "libgcc_s.so.1"),
])
def test_what_is_not_everywhere_is_named(was, now, said):
    found = obstacles(PORTABLE.replace(was, now), 4_000_000)
    assert len(found) == 1 and said in found[0]


def test_a_large_or_static_program_is_named():
    assert "larger" in obstacles(PORTABLE, 5 * 1024 * 1024 + 1)[0]
    assert "dynamically" in obstacles("no dynamic section", 1)[0]
