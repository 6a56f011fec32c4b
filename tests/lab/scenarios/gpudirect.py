# SPDX-License-Identifier: Apache-2.0
"""A VM proves GPUDirect by each route, or reports why not, with stand-ins for GPU and NIC."""

from vflab import programs
from vflab.product import Product

VM = "vm1"
FOLDER = "/tmp/gpu"  # in the VM
ROUNDS = 10_000
DMA_BUF, PEERMEM, STAGED = "DMA-BUF", "nvidia-peermem", "staged through main memory"
VIRTUAL = "DMA-BUF of virtual memory"
SLICES = 3

# For each GPU and NIC (tests/fakes/gpu): the verdict, its text, and the routes that carried bytes.
ROUTES = [
    ("h200", "both", "pass", f"the NIC reaches the GPU by {DMA_BUF}",
     (DMA_BUF, VIRTUAL, PEERMEM, STAGED)),
    ("h200", "dma_buf", "pass", f"{PEERMEM}: not available", (DMA_BUF, VIRTUAL, STAGED)),
    ("peermem", "peermem", "pass", f"the NIC reaches the GPU by {PEERMEM}", (PEERMEM, STAGED)),
]
REFUSALS = [
    ("refused", "both", "pass", "NVIDIA's driver returns no DMA-BUF", (PEERMEM, STAGED)),
    ("old-driver", "both", "pass", "has no DMA-BUF", (PEERMEM, STAGED)),
    ("h200", "none", "skip", "can't register a DMA-BUF", (STAGED,)),
    ("h200", "chipset", "skip", "does not let this NIC reach the GPU", (STAGED,)),
    ("geforce", "none", "not_applicable", "a limit of the product", (STAGED,)),
    ("none", "both", "not_applicable", "there is no NVIDIA GPU", ()),
    ("no-driver", "both", "not_applicable", "there is no NVIDIA GPU", ()),
]
FAULTS = [
    ("h200", "misplaced", "fail", "chunk 0 was never written", ()),
    ("no-flush", "misplaced", "fail", "chunk 0 was never written", ()),
    ("stuck-bit", "both", "fail", "that the host read from the VM's memory differ", ()),
    ("no-ptx", "both", "fail", "could not compile the kernels", ()),
]


def run(lab):
    rows = [(what, row) for what, table in (("routes proved", ROUTES), ("refusals told", REFUSALS),
                                            ("faults found", FAULTS)) for row in table]
    points = lab.sliced([*rows, ("rounds", None), ("topologies", None)], SLICES)
    lab.expect(*{what for what, _ in points})
    product = Product(lab)
    product.manage(num_vfs=1)
    vm = lab.vm(VM).wait_ready()
    attachment = product.attach(VM, network="train", verify="required", verify_profile="quick")
    vm.run(f"mkdir -p {FOLDER}/older {FOLDER}/nothing")
    for target, output, name in (
            ("standin_cuda_newer", "standin/newer/libcuda.so.1", "libcuda.so.1"),
            ("standin_cuda_older", "standin/older/libcuda.so.1", "older/libcuda.so.1"),
            ("standin_nic", "standin/libstandin_nic.so", "nic.so")):
        library = programs.built(lab, target, output)
        programs.send(vm, library.read_bytes(), f"{FOLDER}/{name}")
    netdev = vm.netdev(attachment["settings"]["mac"])
    for what, row in points:
        if not row:
            {"rounds": rounds, "topologies": topology}[what](lab, vm)
        elif judge(lab, vm, netdev, *row):
            lab.count(what)
    product.leave()


def standin(gpu, nic):
    # A driver older than CUDA 11, or none; otherwise the newest, with such a GPU.
    folder = {"old-driver": f"{FOLDER}/older", "no-driver": f"{FOLDER}/nothing"}.get(gpu, FOLDER)
    personality = "h200" if folder != FOLDER else gpu
    return (f"LD_LIBRARY_PATH={folder} LD_PRELOAD={FOLDER}/nic.so "
            f"VFMGR_STANDIN_GPU={personality} VFMGR_STANDIN_NIC={nic}")


def carried(vm, netdev):
    """Returns the bytes in both directions, as the VM's kernel counts them."""
    counted = f"cat /sys/class/net/{netdev}/statistics/[rt]x_bytes"
    return sum(int(line) for line in vm.run(counted).lines())


def judge(lab, vm, netdev, gpu, nic, verdict, text, routes):
    """Returns whether all checks held."""
    before = carried(vm, netdev)
    answer = vm.run(f"{standin(gpu, nic)} vf-guest verify -o json --seconds 0.1 gpudirect",
                    check=False, timeout=240)
    found = next(test for test in answer.json()[0]["tests"] if test["name"] == "gpudirect")
    detail, figures = found.get("detail", ""), found.get("figures", {})
    lab.step(f"{gpu}, {nic}: {found['verdict']}: {detail}")
    held = [
        lab.check_equal(found["verdict"], verdict, f"verdict of {gpu} with NIC {nic}: {detail}"),
        lab.check(text in detail, f"'{text}' is not in: {detail}"),
        lab.check(verdict == "pass" or found.get("remedy")
                  or gpu in ("geforce", "none", "no-driver"), f"no remedy in {found}")]
    for route in routes:
        held.append(lab.check(f"{route}: " in detail and f"{route}: not available" not in detail,
                              f"{route} carried nothing: {detail}"))
    if routes:
        held.append(lab.check("over RC: " in detail, f"by which transport is not in: {detail}"))
        moved, told = carried(vm, netdev) - before, figures.get("bytes", 0)
        held.append(lab.check(moved > told > 0, f"{moved} bytes on {netdev} of {told}"))
    return all(held)


def topology(lab, vm):
    """A document is printed whether the host answers or not; this VM has no GPU in its PCI tree."""
    for words, said in (("", ""), ("--host-port 1", "the host did not report where")):
        answer = vm.run(f"{standin('h200', 'both')} vf-guest {words} gpu topology -o json "
                        f"2>{FOLDER}/warned")
        lab.check_equal(answer.json()["pairs"], [], f"pairs of {words} gpu topology")
        warned = " ".join(vm.run(f"cat {FOLDER}/warned").lines())
        if lab.check(said in warned if said else not warned, f"'{said}' is not in '{warned}'"):
            lab.count("topologies")


def rounds(lab, vm):
    """Rounds of exporting, and of registering by each way, with the test that reports them."""
    table = [
        ("h200", "both", ROUNDS, "export_rounds", "pass", f"{ROUNDS} rounds of"),
        ("h200", "both", ROUNDS, "registration", "pass",
         f"by {DMA_BUF}, by {VIRTUAL}, by {PEERMEM}; 4 KiB to 32 MiB, {ROUNDS} rounds left"),
        ("h200", "dma_buf", 20, "registration", "pass", f"by {VIRTUAL}, not by {PEERMEM}: "),
        ("h200", "none", 20, "registration", "skip", f"not by {DMA_BUF}: "),
        ("leaky", "both", 20, "export_rounds", "fail", "descriptors were open before"),
        ("leaky", "both", 20, "registration", "fail", "descriptors were open before"),
        ("h200", "leaky", 20, "registration", "fail", "bytes of memory were pinned before"),
    ]
    reports = {}
    for gpu, nic, count, name, verdict, text in table:
        if (gpu, nic) not in reports:
            lab.step(f"{gpu}, {nic}: {count} rounds")
            test = f"vf-guest gpu test -o json --size 1048576 --rounds {count}"
            answer = vm.run(f"{standin(gpu, nic)} {test}", check=False, timeout=400).json()
            reports[gpu, nic] = {one["name"]: one for one in answer["tests"]}
        found = reports[gpu, nic][name]
        lab.step(f"{gpu}, {nic}: {name}: {found['verdict']}: {found.get('detail', '')}")
        held = [lab.check_equal(found["verdict"], verdict, str(found)),
                lab.check(text in found["detail"], f"'{text}' is not in: {found['detail']}")]
        if verdict == "pass":
            done = found.get("figures", {}).get("rounds", 0)
            held.append(lab.check_equal(done, count, f"rounds of {name} with {gpu}, {nic}"))
            if all(held):
                # Registration ran this number of rounds for each way that the detail names.
                ways = found["detail"].partition(";")[0].partition(", not by")[0].count("by ")
                lab.count("rounds", int(done) * (ways if name == "registration" else 1))
