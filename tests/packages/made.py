# SPDX-License-Identifier: Apache-2.0
"""The packages that tests/packages/make made, in VFMGR_PACKAGES, and what is in them."""

import os
import subprocess
import tarfile
from pathlib import Path

FOLDER = Path(os.environ["VFMGR_PACKAGES"])


def run(*command, **options):
    return subprocess.run([*map(str, command)], check=True, stdout=subprocess.PIPE,
                          **options).stdout


def only(pattern):
    found = list(FOLDER.glob(pattern))
    assert len(found) == 1, f"{pattern}: {found}"
    return found[0]


def unpacked(package, folder):
    """Unpacks a package of any format into the folder, which it returns."""
    if package.suffix == ".deb":
        run("dpkg-deb", "-x", package, folder)
    elif package.suffix == ".rpm":
        subprocess.run(["cpio", "-idm", "--quiet"], cwd=folder, input=run("rpm2cpio", package),
                       check=True)
    else:
        with tarfile.open(package) as archive:
            archive.extractall(folder)
    return folder


def files_below(folder):
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
