# SPDX-License-Identifier: Apache-2.0
"""Debian packages: on this machine, in new trees, and added to trees."""

import hashlib
import os
import re
import shutil
import subprocess
from contextlib import contextmanager
from pathlib import Path

from vflab.paths import LabError
from vflab.shell import call, say, timed

NEEDED_HERE = ["mmdebstrap", "e2fsprogs", "cpio", "zstd", "xz-utils", "kmod", "openssh-client",
               "gcc", "libc6-dev", "git"]
NONINTERACTIVE = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8"}


def missing_here(packages):
    shown = subprocess.run(["dpkg-query", "-W", "-f", "${Package} ${db:Status-Status}\n",
                            *packages], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                           text=True).stdout
    present = {line.split()[0] for line in shown.splitlines() if line.endswith(" installed")}
    return [name for name in packages if name not in present]


def install_here(packages):
    missing = missing_here(packages)
    if not missing:
        return
    if os.geteuid() != 0:
        raise LabError("the lab needs root, and these packages: " + " ".join(missing))
    install = ["apt-get", "install", "-y", "-q", "--no-install-recommends", *missing]
    with timed("installing " + " ".join(missing)):
        try:
            call(install, env=NONINTERACTIVE)
        except LabError:
            # Package lists may be absent or older than the mirror; they are refreshed only if that
            # matters.
            call(["apt-get", "update", "-q"], env=NONINTERACTIVE)
            call(install, env=NONINTERACTIVE)


def index_targets():
    shown = call(["apt-get", "indextargets", "--format",
                  "$(REPO_URI)|$(CODENAME)|$(COMPONENT)|$(ORIGIN)|$(LABEL)",
                  "Created-By: Packages"])
    return [line.split("|") for line in shown.splitlines()
            if line.count("|") == 4 and line.split("|")[3] == "Debian"]


def sources_for(suite):
    """Returns the machine's own Debian mirrors, as source lines for another release."""
    targets = index_targets()
    if not targets:
        call(["apt-get", "update", "-q"], env=NONINTERACTIVE)
        targets = index_targets()
    lines = []
    for uri, codename, component, _, label in targets:
        if component != "main":
            continue
        for suffix in ("-security", "-updates", ""):
            if codename.endswith(suffix):
                break
        if suffix == "" and "-" in codename:
            continue  # backports and similar
        if (label == "Debian-Security") != (suffix == "-security"):
            continue
        line = f"deb {uri.rstrip('/')} {suite}{suffix} main"
        if line not in lines:
            lines.append(line)
    return lines  # empty: mmdebstrap uses its default


def proxy_options():
    """mmdebstrap ignores the machine's apt configuration, but needs a proxy that is set there."""
    shown = call(["apt-config", "dump"])
    return [f"--aptopt={name} \"{value}\"" for name, value in
            re.findall(r'^(Acquire::https?::Proxy(?:::[^ ]+)?) "([^"]+)";$', shown, re.M)]


def make_tree(tree, suite, packages, hooks=()):
    """Makes a minimal Debian tree; mmdebstrap runs the hooks before it configures packages."""
    command = ["mmdebstrap", "--quiet", "--mode=root", "--variant=minbase",
               "--include=" + ",".join(packages),
               "--aptopt=Apt::Install-Recommends \"false\"",
               "--aptopt=Acquire::Languages \"none\"",
               "--dpkgopt=force-unsafe-io",
               *proxy_options(), *hooks,
               # Only for this tree's creation: later packages are installed as on any machine.
               "--customize-hook=rm -f \"$1/etc/dpkg/dpkg.cfg.d/99mmdebstrap\"",
               suite, str(tree), *sources_for(suite)]
    call(command, env=NONINTERACTIVE)


def in_tree(tree, command, binds=()):
    return call(in_tree_command(tree, command, binds), env=NONINTERACTIVE)


def in_tree_command(tree, command, binds=()):
    """Prefix to run a program in a tree, with /proc and /dev mounted in its own mount namespace."""
    mounts = ['set -e', 't=$1; shift', 'mount -t proc proc "$t/proc"',
              'mount -t sysfs sys "$t/sys"', 'mount --rbind /dev "$t/dev"']
    for source, target in binds:
        mounts.append(f'mkdir -p "$t{target}"; mount --bind "{source}" "$t{target}"')
    mounts.append('exec chroot "$t" "$@"')
    return ["unshare", "--mount", "--propagation", "private", "--fork", "--kill-child",
            "env", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "LC_ALL=C.UTF-8",
            "sh", "-c", "\n".join(mounts), "sh", str(tree), *command]


def install_in_tree(tree, arguments):
    """Runs apt-get in a tree; its package lists are fetched only when they are needed."""
    policy = tree / "usr/sbin/policy-rc.d"
    policy.write_text("#!/bin/sh\nexit 101\n")  # no daemon starts in a tree
    policy.chmod(0o755)
    resolv = tree / "etc/resolv.conf"
    had = resolv.read_bytes() if resolv.exists() else None
    resolv.unlink(missing_ok=True)
    with open("/etc/resolv.conf", "rb") as ours:
        resolv.write_bytes(ours.read())
    options = ["-y", "-q", "--no-install-recommends", "-o", "Dpkg::Options::=--force-unsafe-io"]
    try:
        try:
            in_tree(tree, ["apt-get", *arguments, *options])
        except LabError:
            say(f"  needs packages from the mirror: {tree.name}")
            in_tree(tree, ["apt-get", "update", "-q"])
            in_tree(tree, ["apt-get", *arguments, *options])
        in_tree(tree, ["sh", "-c", "apt-get clean; rm -rf /var/lib/apt/lists/*"])
    finally:
        policy.unlink()
        resolv.unlink(missing_ok=True)
        if had is not None:
            resolv.write_bytes(had)


@contextmanager
def lists_of(suite, folder, kind="deb"):
    """Yields apt-get with a release's own lists, in a folder; this machine's lists don't change.

    `kind`: of packages, or "deb-src" of sources.
    """
    state = Path(folder) / "apt"
    for name in ("lists/partial", "cache/archives/partial"):
        (state / name).mkdir(parents=True)
    lines = [line.replace("deb ", f"{kind} ", 1) for line in sources_for(suite)]
    (state / "sources.list").write_text("\n".join(lines) + "\n")
    options = ["-q", "-o", f"Dir::Etc::sourcelist={state}/sources.list",
               "-o", "Dir::Etc::sourceparts=-", "-o", f"Dir::State::lists={state}/lists",
               "-o", f"Dir::Cache={state}/cache", "-o", "APT::Sandbox::User=root"]

    def apt_get(*arguments):
        call(["apt-get", *options, *arguments], env=NONINTERACTIVE, cwd=folder)
    apt_get("update")
    yield apt_get
    shutil.rmtree(state)


def download(folder, suite, package, version):
    """Downloads a package of a release into a folder."""
    with lists_of(suite, folder) as apt_get:
        apt_get("download", f"{package}={version}")


def download_source(folder, suite, package, version):
    """Downloads a package's source, as it is packed, into a folder."""
    with lists_of(suite, folder, "deb-src") as apt_get:
        apt_get("source", "--download-only", f"{package}={version}")


def download_missing(folder, suite, status, packages):
    """Downloads packages and dependencies that a dpkg status file's text lacks into a folder."""
    with lists_of(suite, folder) as apt_get:
        (folder / "apt/status").write_text(status)
        apt_get("install", "-y", "--download-only", "--no-install-recommends",
                "-o", f"Dir::State::status={folder}/apt/status", *packages)
        for deb in (folder / "apt/cache/archives").glob("*.deb"):
            shutil.move(deb, folder)


def index(folder):
    """Makes a folder of packages a source for apt: deb [trusted=yes] file:FOLDER ./"""
    entries = []
    for deb in sorted(Path(folder).glob("*.deb")):
        content = deb.read_bytes()
        entries.append(call(["dpkg-deb", "-f", str(deb)]).rstrip("\n") +
                       f"\nFilename: ./{deb.name}\nSize: {len(content)}"
                       f"\nSHA256: {hashlib.sha256(content).hexdigest()}\n")
    (Path(folder) / "Packages").write_text("\n".join(entries))
