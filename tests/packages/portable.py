# SPDX-License-Identifier: Apache-2.0
"""Checks by `objdump -p` that a program starts on Debian 12 and 13, Ubuntu 22.04 and RHEL 9.

The oldest version of each library decides: glibc 2.34 is RHEL 9's; OpenSSL 3.0, libnl 3.5 and
systemd 249 are Ubuntu 22.04's; libibverbs 1.13 is that of rdma-core 37, RHEL 9.0's; both have
libvirt 8.0 and pciutils 3.7.
"""

import re

# All four have these. libibverbs, librdmacm and libnl must be the machine's own, beside its
# providers.
LIBRARIES = {"libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2", "libcrypto.so.3", "libssl.so.3",
             "libibverbs.so.1", "librdmacm.so.1", "libnl-3.so.200"}
# What only a host has: libvirt and systemd must be those that run.
HOST_LIBRARIES = LIBRARIES | {"libvirt.so.0", "libsystemd.so.0", "libudev.so.1", "libpci.so.3"}
NEWEST = {"GLIBC": (2, 34), "OPENSSL": (3, 0, 0), "IBVERBS": (1, 13), "RDMACM": (1, 3),
          "libnl": (3, 5), "LIBVIRT": (8, 0, 0), "LIBSYSTEMD": (249,), "LIBUDEV": (249,),
          "LIBPCI": (3, 7)}
MIB = 1024 * 1024


def needed(dump):
    return re.findall(r"^ +NEEDED +(\S+)$", dump, re.M)


def versions(dump):
    """Returns the versions of the symbols from libraries, such as "GLIBC_2.34"."""
    _, _, references = dump.partition("Version References:")
    return re.findall(r"^ +0x[0-9a-f]+ 0x[0-9a-f]+ \d+ (\S+)$", references, re.M)


def too_new(version):
    name, _, number = version.partition("_")
    if name not in NEWEST or not re.fullmatch(r"\d+(?:[._]\d+)*", number):
        return True  # GLIBC_PRIVATE, GLIBC_ABI_DT_RELR, GLIBCXX_3.4: unreliable
    return tuple(map(int, re.split(r"[._]", number))) > NEWEST[name]


def obstacles(dump, size, libraries=LIBRARIES, bytes_max=5 * MIB):
    """Takes a program's `objdump -p` and stripped size; returns why some system rejects it."""
    found = [f"needs {library}, which not every distribution has under this name"
             for library in needed(dump) if library not in libraries]
    found += [f"needs a symbol of {version}" for version in versions(dump) if too_new(version)]
    if not needed(dump) or not versions(dump):
        found.append("is not a dynamically linked program")
    if size > bytes_max:
        found.append(f"is larger than {bytes_max} bytes: {size}")
    return found
