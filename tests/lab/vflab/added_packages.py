# SPDX-License-Identifier: Apache-2.0
"""Debian packages that only one scenario needs in the emulated host.

They are fetched from the machine's mirrors once for each state of that host, and installed from
files, since the host has no network.
"""

from shlex import quote

from vflab import apt
from vflab.parts import hash_of, part

INSIDE = "/var/tmp/added-packages"
INSTALL_SECONDS = 900  # packages' scripts are slow on an emulated CPU
NAMES = "dpkg-query -W -f '${binary:Package}\\n'"


class AddedPackages:
    """Installs the packages while the context lasts; their configuration is removed with them."""

    def __init__(self, lab, packages):
        self.lab, self.host, self.packages = lab, lab.host, packages

    def debs(self):
        suite = self.lab.machine.settings["suite"]
        status = self.host.read("/var/lib/dpkg/status")
        # apt would fetch a newer version of one that is there.
        missing = [name for name in self.packages if f"Package: {name}\n" not in status]
        key = hash_of("2", suite, missing, status)

        def build(folder):
            if missing:
                apt.download_missing(folder, suite, status, missing)
        return part(f"added-{suite}", key, build)

    def names(self):
        return set(self.host.run(NAMES).lines())

    def __enter__(self):
        debs = sorted(self.debs().glob("*.deb"))
        self.before = self.names()
        if not debs:
            return self
        self.host.run(f"mkdir {INSIDE}")
        for deb in debs:
            self.host.copy_in(deb, f"{INSIDE}/{deb.name}")
        self.host.run(f"DEBIAN_FRONTEND=noninteractive dpkg --force-unsafe-io --install "
                      f"{INSIDE}/*.deb && rm -r {INSIDE}", timeout=INSTALL_SECONDS)
        return self

    def __exit__(self, failed, *_):
        if failed:
            return  # the boot ends with it, and its state is evidence
        added = " ".join(map(quote, sorted(self.names() - self.before)))
        if added:
            # Without that, sudo stays on a host whose root has no password.
            self.host.run("DEBIAN_FRONTEND=noninteractive SUDO_FORCE_REMOVE=yes "
                          f"dpkg --purge {added}", timeout=INSTALL_SECONDS)
