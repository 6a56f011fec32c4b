# SPDX-License-Identifier: Apache-2.0
"""virtqemud, the modular daemon of libvirt for QEMU's VMs, in place of libvirtd.

Debian builds libvirt's modular daemons and packages none (debian/not-installed). So the program is
built from Debian's source of the emulated host's libvirt, once for each version, and linked with
the libraries of its packages. It loads their QEMU driver: the program alone is new.
"""

import shutil

from vflab import apt
from vflab.held_step import unit
from vflab.parts import hash_of, part
from vflab.paths import LabError
from vflab.shell import call
from vflab.trees import HOST, base_tree, copy_tree

# What `meson setup` of a libvirt with nothing but its QEMU driver asks for. JSON is libyajl's, in
# later releases json-c's.
NEEDED = ["dpkg-dev", "gcc", "libc6-dev", "meson", "pkgconf", "libglib2.0-dev", "libgnutls28-dev",
          "libxml2-dev", "libxml2-utils", "xsltproc", "libtirpc-dev", "rpcsvc-proto",
          "libyajl-dev", "libjson-c-dev"]
# Paths are those of debian/rules. ninja would build libvirt.so first, and with it the headers that
# the program's files include. The link takes the packages' libraries instead, and fails if they
# lack a symbol.
BUILD = """
cd /var/tmp/libvirt && dpkg-source --no-check -x libvirt_*.dsc source && cd source
json=$(grep -oE "'(yajl|json_c)'" meson_options.txt | tr -d "'")
meson setup build --prefix=/usr --libdir=lib/x86_64-linux-gnu --sysconfdir=/etc \
  --localstatedir=/var --libexecdir=/usr/lib/libvirt -Drunstatedir=/run --optimization=1 \
  -Dauto_features=disabled -Dremote_default_mode=legacy -Dinit_script=systemd -Dpolkit=enabled \
  -Dqemu_user=libvirt-qemu -Dqemu_group=libvirt-qemu -Ddriver_remote=enabled \
  -Ddriver_libvirtd=enabled -Ddriver_qemu=enabled -D$json=enabled
cd build
for library in virt virt-lxc virt-qemu; do
  real=$(readlink -f /usr/lib/x86_64-linux-gnu/lib$library.so.0)
  ln -s $real src/ && ln -s $real src/lib$library.so.0 && ln -s $real src/lib$library.so; done
ninja $(ninja -t targets all | grep -oE '^src/\\S+protocol[.]h')
ninja $(ninja -t query src/virtqemud | grep -oE 'src/\\S+[.](o|a)$')
sh -ec "$(ninja -t commands src/virtqemud | tail -1)"
strip src/virtqemud
"""
SOCKETS = ["virtqemud.socket", "virtqemud-ro.socket", "virtqemud-admin.socket"]
UNITS = [*SOCKETS, "virtqemud.service"]
LIBVIRTD = "libvirtd.socket libvirtd-ro.socket libvirtd-admin.socket libvirtd.service"
PROGRAM, UNIT_FOLDER, CONFIG = "/usr/sbin/virtqemud", "/etc/systemd/system", "/etc/libvirt"


def built(suite, version):
    """Returns the folder with the program, its units and its configuration."""
    def build(folder):
        tree = folder / "tree"
        tree.mkdir()
        copy_tree(base_tree("host", suite, HOST), tree)
        source = tree / "var/tmp/libvirt"
        source.mkdir()
        try:
            apt.download_source(source, suite, "libvirt", version)
        except LabError as error:
            raise LabError(f"no source of libvirt {version}: if Debian has a newer libvirt by now, "
                           f"remove parts/host-base-{suite}-*, so that the emulated host gets it, "
                           f"too:\n{error}") from None
        apt.install_in_tree(tree, ["install", *NEEDED])
        apt.in_tree(tree, ["sh", "-ec", BUILD])
        for name in ["virtqemud", "virtqemud.conf", *UNITS]:
            shutil.copy(source / "source/build/src" / name, folder)
        call(["rm", "-rf", "--one-file-system", str(tree)])
    key = hash_of("1", suite, version, NEEDED, BUILD, UNITS)
    return part(f"virtqemud-{suite}", key, build)


def take_over(lab):
    """Masks libvirtd and starts virtqemud's sockets, for the rest of the boot. No VM may run."""
    version = lab.host.run("dpkg-query -W -f '${source:Version}' libvirt0").stdout
    folder = built(lab.machine.settings["suite"], version)
    lab.host.run(f"systemctl mask --now {LIBVIRTD} 2>&1")
    lab.host.copy_in(folder / "virtqemud", PROGRAM)
    lab.host.copy_in(folder / "virtqemud.conf", CONFIG)
    for name in UNITS:
        lab.host.copy_in(folder / name, UNIT_FOLDER)
    # `virsh` alone names no driver: without a URI of the configuration it asks for libvirtd.
    lab.host.run(f"chmod 755 {PROGRAM}; sed -i 's/^#uri_default/uri_default/' {CONFIG}/libvirt.conf"
                 f" && grep '^uri_default = \"qemu:///system\"' {CONFIG}/libvirt.conf && "
                 f"systemctl daemon-reload && systemctl enable {' '.join(UNITS)} 2>&1 && "
                 f"systemctl start {' '.join(SOCKETS)}")


def pid(lab):
    """Returns the pid of the virtqemud that serves, which a request starts if none does."""
    lab.host.run("virsh -q -c qemu:///system list >/dev/null")
    return unit(lab, "virtqemud")
