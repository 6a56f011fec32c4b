# SPDX-License-Identifier: Apache-2.0
"""Paced streams lose nothing at half of ib_send_bw's rate, and report an injected loss exactly.

This also holds when the ring is in a GPU's memory. The GPU is a stand-in (tests/fakes/gpu), as is
the NIC's registration of such memory; the rest of the NIC is SoftRoCE.
"""

import json

from vflab import programs
from vflab.product import TRAIN, Product

VM = "vm1"
PROGRAM = "/root/vf-guest"  # on the host, which plays the VM's part of the product here
PACKET = 1024
SECONDS = 5
ROUNDS = 3
EVERY = 7  # this packet of each EVERY is dropped
PORTS = {"udp": 18525, "ud": 4791}
GPU = "0000:1b:00.0"  # the stand-in's
STANDIN = "/root/standin"  # on the host

# Transport, GPU and NIC, and how received packets get into the ring.
RINGS = [("ud", "h200", "both", "dma_buf"), ("ud", "peermem", "peermem", "peermem"),
         ("ud", "unordered", "both", "dma_buf"),  # observes only flushed data
         ("udp", "h200", "none", "staged"), ("udp", "geforce", "none", "staged")]
# The text for each, and the remedy.
REFUSALS = [
    ("geforce", "both", ("NVIDIA GeForce RTX 3090", "offers no GPUDirect RDMA"), "stream over udp"),
    ("h200", "none", (f"can't write to the memory of GPU {GPU}: by DMA-BUF: ", "EOPNOTSUPP",
                      "; by nvidia-peermem: ", "EFAULT"),
     "attach a VF whose driver does RDMA itself"),
    ("none", "both", ("there is no NVIDIA GPU",), "attach one"),
]


def run(lab):
    lab.expect("streams without a loss", "injected losses told exactly", "ends agree",
               "rings in a GPU", "damage in a GPU told", "refusals told")
    product = Product(lab)
    product.manage(num_vfs=1)
    vm = lab.vm(VM).wait_ready()
    attachment = product.attach(VM, network="train", settings={"trust": True}, verify="required",
                         verify_profile="quick")
    lab.host.copy_in(programs.built(lab, "vf-guest", "../guest-tools/vf-guest"), PROGRAM)
    # vfmgr closes perftest's TCP port and the stream's to the tenant.
    product.open_host()
    interface = next(link["ifname"] for link in lab.observe.links()
               if TRAIN["host_address"] in str(lab.observe.addresses(link["ifname"])))
    streams = Streams(lab, vm, attachment, interface)
    half = streams.ib_send_bw() / 2
    lab.step(f"half of ib_send_bw -c UD: {half:.1f} Mbit/s")
    for over in ("ud", "udp"):
        for _ in range(ROUNDS):
            ended = streams.send(over, half)
            lab.check_equal((ended["lost"], ended["end"]), (0, "sent"), f"over {over}: {ended}")
            lab.count("streams without a loss")
        streams.inject(over, half)
    in_gpu(lab, streams, half)
    lab.host.run(f"rm -r {PROGRAM} {STANDIN}")
    product.leave()
    product.close_host()


def in_gpu(lab, streams, half):
    lab.host.run(f"mkdir {STANDIN}")
    for target, output, name in (
            ("standin_cuda_newer", "standin/newer/libcuda.so.1", "libcuda.so.1"),
            ("standin_nic", "standin/libstandin_nic.so", "nic.so")):
        lab.host.copy_in(programs.built(lab, target, output), f"{STANDIN}/{name}")
    for over, gpu, nic, route in RINGS:
        ended = streams.send(over, half, Ring(gpu, nic))
        lab.check_equal((ended["lost"], ended["foreign"], ended["end"]), (0, 0, "sent"),
                        f"in {gpu} over {over}: {ended}")
        lab.check_equal((ended["memory"], ended["gpu"], ended["route"]), ("gpu", GPU, route),
                        f"in {gpu} over {over}: {ended}")
        lab.count("rings in a GPU")
    for over in ("ud", "udp"):
        streams.inject(over, half, Ring("h200", "both"))
        # One packet is complete in what the NIC sent, but not in the GPU's memory.
        ended = streams.send(over, half, Ring("damaged", "both"))
        lab.check_equal((ended["lost"], ended["foreign"]), (1, 1), f"damaged over {over}: {ended}")
        lab.count("damage in a GPU told")
    for gpu, nic, parts, remedy in REFUSALS:
        said = lab.host.run(f"{streams.receiver('ud', Ring(gpu, nic))} 2>&1", check=False)
        lab.step(f"{gpu}, {nic}: {said.stdout.strip()}")
        lab.check(said.status not in (0, 1), f"exit status {said.status}")
        for part in (*parts, remedy, "--memory host"):
            lab.check(part in said.stdout, f"'{part}' is not in: {said.stdout}")
        lab.count("refusals told")


class Ring:
    """The ring is in main memory or in a GPU's."""

    def __init__(self, gpu="", nic=""):
        self.environment = (f"LD_LIBRARY_PATH={STANDIN} LD_PRELOAD={STANDIN}/nic.so "
                            f"VFMGR_STANDIN_GPU={gpu} VFMGR_STANDIN_NIC={nic} " if gpu else "")
        self.words = " --memory gpu" if gpu else ""


class Streams:
    def __init__(self, lab, vm, attachment, interface):
        self.lab, self.vm, self.interface = lab, vm, interface
        self.host_address, self.vm_address = TRAIN["host_address"], attachment["address"]

    def ib_send_bw(self):
        """Returns what perftest reaches from the VM, in Mbit/s."""
        words = f"timeout 60 ib_send_bw -c UD -s {PACKET} -D 3 -F"
        device = self.device(self.lab.host, self.host_address)
        server = self.lab.host.background(f"{words} {device}")
        self.lab.host.wait_for("ib_send_bw listens", "ss -ltn | grep 18515", 20)
        command = f"{words} {self.device(self.vm, self.vm_address)} {self.host_address}"
        shown = self.vm.run(command, timeout=90).lines()
        server.wait(70)
        head = next(number for number, line in enumerate(shown) if "#bytes" in line)
        self.lab.step(f"{command}: {shown[head + 1].split()}")
        return float(shown[head + 1].split()[3]) * 8 * 1.048576  # MiB/s, the average

    def device(self, machine, address):
        """Returns perftest's options for the RoCE v2 GID of that address."""
        octets = "".join(f"{int(part):02x}" for part in address.split("."))
        found = machine.run("cd /sys/class/infiniband; for g in */ports/1/gids/*; do "
                            f"grep -q 'ffff:{octets[:4]}:{octets[4:]}$' $g && grep -qs 'RoCE v2' "
                            "${g%/gids/*}/gid_attrs/types/${g##*/} && echo $g; done; true")
        name, *_, index = found.lines()[0].split("/")
        return f"-d {name} -x {index}"

    def receiver(self, over, ring):
        return (f"{ring.environment}{PROGRAM} stream receive --local {self.host_address} "
                f"--over {over} --seconds 60 -o json{ring.words}")

    def send(self, over, mbit, ring=Ring()):
        """Returns the summary of one stream, the same at both ends."""
        receiver = self.lab.host.background(self.receiver(over, ring))
        self.lab.host.wait_for("the receiver listens", f"ss -ltn | grep {PORTS['udp']}", 20)
        said = self.vm.run(
            f"vf-guest stream send --to {self.host_address} --over {over} --packet-bytes {PACKET} "
            f"--rate {mbit * 1e6:.0f}bit --seconds {SECONDS} -o json", check=False, timeout=90)
        theirs, ours = (summary(text) for text in (receiver.wait(70).stdout, said.stdout))
        self.lab.step(f"over {over}: {theirs['sent']['packets']} packets, {theirs['lost']} lost, "
                      f"{theirs['rate_mbps']} Mbit/s")
        self.lab.check(theirs["sent"]["packets"] > 100, f"too few packets: {theirs}")
        if self.lab.check_equal(ours, theirs, "the two ends' summaries"):
            self.lab.count("ends agree")
        return theirs

    def inject(self, over, mbit, ring=Ring()):
        """tc on the host drops every seventh packet, and counts them."""
        shown = f"tc -s filter show dev {self.interface} ingress"
        self.lab.host.run(
            f"tc qdisc add dev {self.interface} handle ffff: ingress; "
            f"tc filter add dev {self.interface} parent ffff: protocol ip flower ip_proto udp "
            f"dst_port {PORTS[over]} action ok random determ drop {EVERY}")
        try:
            ended = self.send(over, mbit, ring)
            counters = self.lab.host.run(shown).stdout
        finally:
            self.lab.host.run(f"tc qdisc del dev {self.interface} ingress")
        dropped = int(counters.partition("(dropped ")[2].partition(",")[0])
        self.lab.step(f"tc dropped {dropped}, the stream tells {ended['lost']}")
        self.lab.check(dropped >= ended["sent"]["packets"] // EVERY - 1, f"tc: {counters}")
        if self.lab.check_equal(ended["lost"], dropped, f"{ended} beside tc's {counters}"):
            self.lab.count("injected losses told exactly")


def summary(text):
    lines = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    return next(line for line in lines if line["type"] == "summary")
