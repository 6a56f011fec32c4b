# SPDX-License-Identifier: Apache-2.0
"""The resources that the processes of units use, as the kernel counts them."""

VFMGR = ("vfmgrd", "vfmgr-broker", "vfmgr-guestd")
GROUP = "/sys/fs/cgroup/system.slice/{unit}.service"
PSS = """for pid in $(cat {procs}); do
  awk -v pid=$pid '/^Rss:/ {{rss = $2}} /^Pss:/ {{pss = $2}}
    END {{print pid, rss, pss}}' /proc/$pid/smaps_rollup
  grep VmHWM /proc/$pid/status; done"""
# Seconds since the boot; microseconds of CPU that the units used; ticks of 10 ms by process name.
CPU = """cut -d' ' -f1 /proc/uptime; awk '/^usage_usec/ {{sum += $2}} END {{print sum}}' {stats}
for pid in $(cat {procs}); do cat /proc/$pid/stat; done |
  awk '{{gsub(/[()]/, "", $2); took[$2] += $14 + $15}}
    END {{for (n in took) print n, took[n]}}'
"""


def files(units, name):
    return " ".join(f"{GROUP.format(unit=unit)}/{name}" for unit in units)


def memory(lab, *units):
    """Returns MiB of the units' processes; shared memory is divided equally among its users."""
    shown = lab.observe.lines(PSS.format(procs=files(units, "cgroup.procs")))
    lines = [line.split() for line in shown]
    rows = [[int(word) for word in words] for words in lines if words[0] != "VmHWM:"]
    peak = sum(int(words[1]) for words in lines if words[0] == "VmHWM:")
    rss, pss = (sum(row[column] for row in rows) / 1024 for column in (1, 2))
    lab.step(f"{' and '.join(units)}: {len(rows)} processes, Pss {pss:.1f} MiB; Rss, which counts "
             f"what they share for each of them, {rss:.1f} MiB, at most {peak / 1024:.1f} MiB; "
             f"of the largest {max(row[1] for row in rows) / 1024:.1f} MiB")
    return pss


class CpuShare:
    """Measures how much of one CPU the units use, from now on."""

    def __init__(self, lab, *units):
        self.lab, self.units = lab, units
        self.began = self.look()

    def look(self):
        at, took, *rows = self.lab.observe.lines(CPU.format(
            stats=files(self.units, "cpu.stat"), procs=files(self.units, "cgroup.procs")))
        names = dict(row.rsplit(" ", 1) for row in rows)
        return float(at), int(took) / 1e6, {name: int(n) / 100 for name, n in names.items()}

    def so_far(self):
        (began, before, names_before), (now, after, names) = self.began, self.look()
        took, seconds = after - before, now - began
        parts = ", ".join(f"{name} {spent - names_before.get(name, 0):.1f} s"
                          for name, spent in names.items())
        self.lab.step(f"{' and '.join(self.units)} took {took:.1f} s of CPU in {seconds:.1f} s, "
                      f"{took / seconds:.2f} of one: {parts}")
        return took / seconds
