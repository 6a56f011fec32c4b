# SPDX-License-Identifier: Apache-2.0
"""The resources that a unit's processes use, as the kernel counts them."""

GROUP = "/sys/fs/cgroup/system.slice/{unit}.service"
PSS = f"""for pid in $(cat {GROUP}/cgroup.procs); do
  awk -v pid=$pid '/^Rss:/ {{{{rss = $2}}}} /^Pss:/ {{{{pss = $2}}}}
    END {{{{print pid, rss, pss}}}}' /proc/$pid/smaps_rollup
  grep VmHWM /proc/$pid/status; done"""
# Seconds since the boot; microseconds of CPU that the unit used; ticks of 10 ms by process name.
CPU = f"""cut -d' ' -f1 /proc/uptime; awk '/^usage_usec/ {{{{print $2}}}}' {GROUP}/cpu.stat
for pid in $(cat {GROUP}/cgroup.procs); do cat /proc/$pid/stat; done |
  awk '{{{{gsub(/[()]/, "", $2); took[$2] += $14 + $15}}}}
    END {{{{for (n in took) print n, took[n]}}}}'
"""


def memory(lab, unit):
    """Returns MiB of a unit's processes; shared memory is divided equally among its users."""
    lines = [line.split() for line in lab.observe.lines(PSS.format(unit=unit))]
    rows = [[int(word) for word in words] for words in lines if words[0] != "VmHWM:"]
    peak = sum(int(words[1]) for words in lines if words[0] == "VmHWM:")
    rss, pss = (sum(row[column] for row in rows) / 1024 for column in (1, 2))
    lab.step(f"{unit}: {len(rows)} processes, Pss {pss:.1f} MiB; Rss, which counts what they share "
             f"for each of them, {rss:.1f} MiB, at most {peak / 1024:.1f} MiB; of the largest "
             f"{max(row[1] for row in rows) / 1024:.1f} MiB")
    return pss


class CpuShare:
    """Measures how much of one CPU a unit uses, from now on."""

    def __init__(self, lab, unit):
        self.lab, self.unit = lab, unit
        self.began = self.look()

    def look(self):
        at, took, *rows = self.lab.observe.lines(CPU.format(unit=self.unit))
        names = dict(row.rsplit(" ", 1) for row in rows)
        return float(at), int(took) / 1e6, {name: int(n) / 100 for name, n in names.items()}

    def so_far(self):
        (began, before, names_before), (now, after, names) = self.began, self.look()
        took, seconds = after - before, now - began
        parts = ", ".join(f"{name} {spent - names_before.get(name, 0):.1f} s"
                          for name, spent in names.items())
        self.lab.step(f"{self.unit} took {took:.1f} s of CPU in {seconds:.1f} s, "
                      f"{took / seconds:.2f} of one: {parts}")
        return took / seconds
