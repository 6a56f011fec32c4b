# SPDX-License-Identifier: Apache-2.0
"""Builds kernel modules that Debian does not have, once for each kernel, and loads them."""

import shutil

from vflab import apt
from vflab.parts import hash_of, part
from vflab.paths import LabError
from vflab.shell import call
from vflab.trees import HOST, base_tree, copy_tree

LOAD = """
for needed in $(modinfo -F depends {module} | tr , ' '); do modprobe $needed; done
insmod {module} && rm {module}
"""


def built(name, suite, kernel, script, packages=(), sources=None):
    """Returns {name}.ko for a kernel, (release, version of its package).

    The script builds it in /var/tmp of a tree with that kernel's headers and with the folder of
    sources, if any, and leaves it as /var/tmp/{name}/{name}.ko.
    """
    release, version = kernel
    expected = ["make", f"linux-headers-{release}={version}", *packages]

    def build(folder):
        tree = folder / "tree"
        tree.mkdir()
        copy_tree(base_tree("host", suite, HOST), tree)
        try:
            apt.install_in_tree(tree, ["install", *expected])
        except LabError as error:
            raise LabError(f"{name} needs {' '.join(expected[1:])}; if Debian has a newer kernel "
                           f"by now, remove parts/host-base-{suite}-*, so that the emulated host "
                           f"gets it, too:\n{error}") from None
        if sources:
            shutil.copytree(sources, tree / "var/tmp" / name)
        apt.in_tree(tree, ["sh", "-ec", script])
        shutil.copy(tree / f"var/tmp/{name}/{name}.ko", folder)
        call(["rm", "-rf", "--one-file-system", str(tree)])
    key = hash_of("1", suite, release, version, script, *([sources] if sources else []))
    return part(f"{name}-{suite}", key, build) / f"{name}.ko"


def kernel_of(lab):
    """Returns (release, version of its package) of the emulated host's kernel."""
    return lab.host.run(
        "uname -r; dpkg-query -W -f '${Version}' linux-image-$(uname -r)").lines()


def load(lab, name, module):
    inside = f"/root/{name}.ko"
    lab.host.copy_in(module, inside)
    lab.host.run(LOAD.format(module=inside))
