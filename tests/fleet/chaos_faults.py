# SPDX-License-Identifier: Apache-2.0
"""What happens to a fleet under chaos. Each fault takes some seconds, ends healed, and returns
evidence that it happened; empty evidence is a violation (checker.py).

Not tried: jumps of etcd's clock (its members are processes of this machine), slow disks, and a host
that lies about others' identities, which vfmgrd on fakes can't do.
"""

import json
import signal
import time
from pathlib import Path

from live_daemon import until

VFS = 4               # of each PF
JUNK = "/chaos-junk/"  # of no fleet: what fills etcd


class Faults:
    def __init__(self, fleet, world, network, rng, stop):
        self.fleet, self.world, self.network = fleet, world, network
        self.rng, self.stop = rng, stop
        self.all = {
            "kill-host": self.kill_host, "stop-host": self.stop_host,
            "power-host": self.power_host, "kill-replica": self.kill_replica,
            "stop-replica": self.stop_replica, "kill-member": self.kill_member,
            "pause-member": self.pause_member, "lose-quorum": self.lose_quorum,
            "cut-host": self.cut_host, "cut-etcd": self.cut_etcd, "lost-answers": self.lost_answers,
            "compact": self.compact, "no-space": self.no_space,
        }

    def happen(self, name, record):
        begun_at = time.monotonic()
        of, evidence = self.all[name]()
        record.fault(name, of, begun_at, evidence)

    def wait(self, least, most):
        """The fault lasts so long, or until the chaos ends."""
        self.stop.wait(self.rng.uniform(least, most))

    def some_host(self):
        return self.rng.choice(list(self.world.hosts.values()))

    def some_replica(self):
        return self.rng.choice(self.fleet.replicas)

    def some_member(self):
        return self.rng.choice(self.fleet.members)

    # Hosts.

    def kill_host(self):
        host = self.some_host()
        evidence = host.kill()
        self.wait(0, 4)
        host.start()
        return host.name, evidence

    def stop_host(self):
        host = self.some_host()
        evidence = host.stop()
        self.wait(1, 12)
        host.go_on()
        return host.name, evidence

    def power_host(self):
        """Its VMs lose their VFs, and whoever runs them detaches what they had."""
        host = self.some_host()
        had = [one["id"] for one in host.ask("GET", "/v1/attachments")[1]["items"]]
        evidence = host.lose_power()
        self.wait(0, 3)
        host.start()
        host.make_vfs(VFS)  # what vfmgr-restore.service does after a boot
        for name in had:
            answer, operation = host.ask("DELETE", f"/v1/attachments/{name}")
            if answer.status == 202:
                host.ended(operation)
        return host.name, evidence

    # Replicas.

    def kill_replica(self):
        replica = self.some_replica()
        replica.process.kill()
        evidence = f"{replica.name} ended with {replica.process.wait(60)}"
        self.wait(0, 5)
        replica.start()
        return replica.name, evidence

    def stop_replica(self):
        """At times so long that the other replica is elected."""
        replica = self.some_replica()
        evidence = pause(replica)
        self.wait(2, 20)
        go_on(replica)
        return replica.name, evidence

    # etcd.

    def kill_member(self):
        member = self.some_member()
        evidence = f"{member.name} ended with {member.kill()}"
        self.wait(1, 8)
        member.start()
        return member.name, evidence

    def pause_member(self):
        member = self.some_member()
        evidence = pause(member)
        self.wait(1, 12)
        go_on(member)
        return member.name, evidence

    def lose_quorum(self):
        lost = self.rng.sample(self.fleet.members, 2)
        evidence = ", ".join(f"{member.name} ended with {member.kill()}" for member in lost)
        self.wait(4, 15)
        for member in lost:
            member.start()
        return "etcd", evidence

    def compact(self):
        member = self.some_member()
        got = member.control("endpoint", "status", "-w", "json")
        if got.returncode != 0:
            return member.name, "compaction was not tried: " + got.stderr.splitlines()[-1][:200]
        revision = json.loads(got.stdout)[0]["Status"]["header"]["revision"]
        done = member.control("compact", str(revision))
        return member.name, (done.stdout + done.stderr).strip()[-200:]

    def no_space(self):
        """Fills etcd up to its quota, by keys of nobody; then makes room as an admin does."""
        member, value, full = self.some_member(), "x" * 900_000, ""
        for number in range(64):
            done = member.control("put", f"{JUNK}{number}", input=value)
            if "space exceeded" in done.stderr:
                full = done.stderr.strip().splitlines()[-1][:200]
                break
        self.wait(2, 6)
        until(lambda: self.made_room(member), "etcd has room again", 120)
        return "etcd", full

    def made_room(self, member):
        if member.control("del", "--prefix", JUNK).returncode != 0:
            return False
        got = member.control("endpoint", "status", "-w", "json")
        if got.returncode != 0:
            return False
        revision = json.loads(got.stdout)[0]["Status"]["header"]["revision"]
        member.control("compact", str(revision))
        for each in self.fleet.members:
            each.control("defrag")
        return (member.control("alarm", "disarm").returncode == 0
                and "NOSPACE" not in member.control("alarm", "list").stdout)

    # Links.

    def cut(self, pairs, least, most):
        """Cuts each (sender, receiver); returns how many packets that dropped."""
        for sender, receiver in pairs:
            self.network.cut(sender, receiver)
        self.wait(least, most)
        dropped = sum(self.network.heal(sender, receiver) for sender, receiver in pairs)
        return f"{dropped} packets were dropped" if dropped else ""

    def ways(self, one, other):
        """One way, the other, or both."""
        return self.rng.choice([[(one, other)], [(other, one)], [(one, other), (other, one)]])

    def cut_host(self):
        host, replica = self.some_host(), self.some_replica()
        pairs = self.ways(host.party, replica.party)
        # A replica that can't send says something at least every few seconds.
        return f"{host.name} and {replica.name}", self.cut(pairs, 16, 25)

    def cut_etcd(self):
        replica = self.some_replica()
        pairs = [pair for member in self.fleet.members
                 for pair in self.ways(replica.party, member.party)]
        return f"{replica.name} and etcd", self.cut(pairs, 11, 25)

    def lost_answers(self):
        """etcd does what a replica asks, and its answers don't come."""
        replica = self.some_replica()
        pairs = [(member.party, replica.party) for member in self.fleet.members]
        return f"etcd to {replica.name}", self.cut(pairs, 11, 25)


def pause(one):
    """Of a replica or a member: returns the evidence that its process is stopped."""
    one.process.send_signal(signal.SIGSTOP)
    until(lambda: state_of(one) == "T", f"{one.name} stops")
    return f"{one.name} is in state T"


def go_on(one):
    one.process.send_signal(signal.SIGCONT)


def state_of(one):
    return Path(f"/proc/{one.process.pid}/stat").read_text().rpartition(")")[2].split()[0]
