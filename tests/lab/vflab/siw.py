# SPDX-License-Identifier: Apache-2.0
"""siw: software iWARP, RDMA over TCP. Debian's kernels lack it, so it is built like netdevsim.

rdma-core's provider of it is in Debian's ibverbs-providers, in host and VMs.
"""

from vflab import kernel_module

BUILD = """
cd /var/tmp
tar -xf /usr/src/{source}.tar.xz --strip-components=4 {source}/drivers/infiniband/sw/siw
make -C /lib/modules/{release}/build M=/var/tmp/siw CONFIG_RDMA_SIW=m -j$(nproc) modules
strip --strip-debug siw/siw.ko
"""


def module(suite, kernel):
    """Returns siw.ko for a kernel, (release, version of its package)."""
    release, version = kernel
    source = "linux-source-" + ".".join(release.split(".")[:2])
    return kernel_module.built("siw", suite, kernel, BUILD.format(source=source, release=release),
                               [f"{source}={version}"])


def load(lab):
    suite = lab.machine.settings["suite"]
    kernel_module.load(lab, "siw", module(suite, kernel_module.kernel_of(lab)))


def unload(lab):
    lab.host.run("rmmod siw")
