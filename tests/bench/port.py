# SPDX-License-Identifier: Apache-2.0
"""A netdevsim port in the emulated host, and the five attributes that benchmarks set on its VFs."""

from figures import seconds
from vflab.netdevsim import Netdevsim
from vflab.programs import built

FOLDER = "/root/bench"
BATCH = f"{FOLDER}/vfs.batch"


REPEATS = 5


class Port(Netdevsim):
    """Rounds are numbered; consecutive rounds differ in every value of every VF."""

    def __init__(self, lab, vfs):
        programs = {name: built(lab, name) for name in ("configure_vfs", "bare_vfs")}
        super().__init__(lab, vfs)
        lab.host.run(["mkdir", FOLDER])
        for name, program in programs.items():
            lab.host.copy_in(program, f"{FOLDER}/{name}")

    def program(self, words, number):
        """Runs rounds from this number on in one of the bench's programs, which prints medians."""
        # The journal must be on the host's disk, and /tmp may be memory.
        return self.host.run(f"TMPDIR={FOLDER} {FOLDER}/{words} {self.netdev} {self.vfs} {number} "
                             f"{REPEATS}", timeout=300).json()

    def check(self, number):
        """Checks that every VF has this round's values, whichever program ran it."""
        self.host.run(f"{FOLDER}/configure_vfs check {self.netdev} {self.vfs} {number}")

    def batch(self, number):
        """Writes a file for `ip -batch` that sets the five attributes, one line for each VF."""
        on = "on" if number % 2 == 0 else "off"
        self.host.write(BATCH, "".join(
            f"link set dev {self.netdev} vf {vf} "
            f"mac 02:{number:02x}:00:00:{vf // 256:02x}:{vf % 256:02x} vlan {100 + number % 2} "
            f"spoofchk {on} trust {on} query_rss {on}\n" for vf in range(self.vfs)))

    def seconds_of_ip(self, lab, number):
        self.batch(number)
        took = seconds(lab, f"ip -batch {BATCH}")
        self.check(number)
        return took

    def remove(self):
        super().remove()
        self.host.run(["rm", "-r", FOLDER])
