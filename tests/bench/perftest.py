# SPDX-License-Identifier: Apache-2.0
"""RDMA between a VM and its host over a VF, measured with vf-guest and with perftest."""

import json
from statistics import median

from figures import Figures
from vflab.host import CommandFailed, NotInTime
from vflab.product import TRAIN, Product

VM = "bench-vm"
MTU = 4096  # RDMA's MTU on a netdev of 9000 bytes
ROUNDS = 15
TRIALS = 3  # with each set of flags
IB_LISTENS, RPING_LISTENS = "ss -ltn | grep 18515", "rdma res show cm_id | grep LISTEN"
# ib_send_lat -e sometimes hangs: vfmgr/rdma/RDMA.md#completion-queues.
PEER_SECONDS = 40


class Rdma:
    def __init__(self, lab, command_line=""):
        self.lab, self.product = lab, Product(lab)
        self.product.manage(num_vfs=1)
        self.vm = lab.vm(VM, command_line=command_line).wait_ready()
        attachment = self.product.attach(VM, network="train", settings={"trust": True})
        self.vm.wait_for("the VF",
                         f"grep -l {attachment['settings']['mac']} /sys/class/net/*/address")
        self.netdev = self.vm.netdev(attachment["settings"]["mac"])
        if "vf-guest=off" in command_line:
            self.vm.run("vf-guest up", timeout=120)
        else:
            self.vm.wait_for("the VF configured", "vf-guest status -o json | "
                             "grep '\"complete\": true'", 120)
        self.host_address, self.vm_address = TRAIN["host_address"], attachment["address"]
        # perftest exchanges its queue pairs over TCP, which vfmgr blocks for the tenant.
        self.product.open_host()
        self.on_host = device_of(lab.host.run, self.host_address)
        self.on_vm = device_of(self.vm.run, self.vm_address)

    def ours(self, words):
        """Returns the measurement of one vf-guest test."""
        shown = self.vm.run(f"vf-guest verify {words} -o json", timeout=300).stdout
        verification, = json.loads(shown)
        test = verification["tests"][-1]
        if (verification["verdict"], test["verdict"]) != ("pass", "pass"):
            raise AssertionError(f"vf-guest verify {words}: {verification}")
        return test["figures"]

    def peer(self, words):
        """Returns the fields of perftest's result line."""
        limited = f"timeout {PEER_SECONDS} {words}"
        server = self.server(f"{limited} {self.on_host}", IB_LISTENS)
        try:
            shown = self.vm.run(f"{limited} {self.on_vm} {self.host_address}").lines()
        finally:
            server.wait(PEER_SECONDS + 10)
        head = next(number for number, line in enumerate(shown) if "#bytes" in line)
        return shown[head + 1].split()

    def seconds(self, command, timeout=300):
        """Returns a command's time in the VM, by the VM's clock, in hundredths of a second."""
        shown = self.vm.run(f"read began idle </proc/uptime; {command} >/run/bench.out 2>&1 || "
                            "{ cat /run/bench.out >&2; exit 1; }; "
                            "read ended idle </proc/uptime; echo $ended $began", timeout=timeout)
        ended, began = shown.stdout.split()
        return float(ended) - float(began)

    def rping_seconds(self, count):
        """Times `count` pings of rping in the VM, excluding the server's start."""
        words = f"-C {count} -a {self.host_address}"
        server = self.server(f"rping -s {words}", RPING_LISTENS)
        took = self.seconds(f"rping -c {words}")
        server.wait(30)
        return took

    def server(self, words, port):
        """Starts a server on the host and waits until it listens."""
        server = self.lab.host.background(words)
        self.lab.host.wait_for(f"{words} listens", port, 20)
        return server

    def leave(self):
        self.product.leave()
        self.product.close_host()


def device_of(run, address):
    """Returns perftest's options for the RoCE v2 GID of that address."""
    octets = "".join(f"{int(part):02x}" for part in address.split("."))
    tail = f"{octets[:4]}:{octets[4:]}"
    found = run("cd /sys/class/infiniband; for g in */ports/1/gids/*; do "
                f"grep -q 'ffff:{tail}$' $g && "
                "grep -qs 'RoCE v2' ${g%/gids/*}/gid_attrs/types/${g##*/} && echo $g; "
                "done; true").lines()[0].split("/")
    return f"-d {found[0]} -x {found[-1]}"


def compare(lab, name, ours, peer, variants, better, limit):
    """`ours` and `peer` are (command, its figure); the peer runs with the best of its variants."""
    lab.expect("rounds")
    rdma = Rdma(lab)
    command_ours, take_ours = ours
    command_peer, take_peer = peer
    best = max if better == "higher" else min
    trials = {}
    for flags in variants:
        try:
            trials[flags] = median(take_peer(rdma.peer(f"{command_peer} {flags}"))
                                   for _ in range(TRIALS))
        except (CommandFailed, NotInTime) as failed:
            lab.step(f"{command_peer} {flags} fails: {failed}")
    flags = best(trials, key=trials.get)
    lab.step(f"{command_peer}, medians of {TRIALS} by flags: {trials}")
    unit = "MiB/s" if better == "higher" else "us"
    bound = {"ratio_min" if better == "higher" else "ratio_max": limit}
    figures = Figures(lab, name, unit, f"vf-guest verify {command_ours}",
                      f"{command_peer} {flags}", better=better, **bound)
    for _ in range(ROUNDS):
        figures.round(take_ours(rdma.ours(command_ours)),
                      take_peer(rdma.peer(f"{command_peer} {flags}")))
    figures.report()
    rdma.leave()


def bandwidth(lab, name, test, program, messages):
    size = f"-s 65536 -n {messages} -t 128 -q 1 -m {MTU}"
    compare(lab, name,
            (f"{test} --size 65536 --depth 128 --queue-pairs 1 --messages {messages}",
             lambda figures: figures["bandwidth_mib_per_s"]),
            (f"{program} {size} -F", lambda words: float(words[3])),
            ("", "-e"), "higher", 0.95)


def latency(lab, name, test, program, messages, variants):
    compare(lab, name,
            (f"{test} --size 8 --messages {messages}", lambda figures: figures["p50_us"]),
            (f"{program} -s 8 -n {messages} -m {MTU} -F", lambda words: float(words[4])),
            variants, "lower", 1.05)
