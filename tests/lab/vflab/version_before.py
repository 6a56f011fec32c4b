# SPDX-License-Identifier: Apache-2.0
"""The packages of the version before: what hosts and VMs in use have."""

from vflab.packages import packages_of

VERSION = "0.1.0"
COMMIT = "e536e364091f94dc5060b116624cf039b0a77982"


def built(suite):
    """Returns the folder with that version's three .deb files for a release."""
    return packages_of(COMMIT, suite)


def hosts(folder):
    """Returns the .deb files that a host has."""
    return [only(folder, package) for package in ("vfmgr", "vfmgr-cli")]


def only(folder, package):
    """Returns a package's .deb file in a folder of packages."""
    return next(folder.glob(f"{package}_*.deb"))
