# SPDX-License-Identifier: Apache-2.0
"""RDMA proved from a VM against `vf-guest serve` elsewhere: in another VM, on another machine.

The verdict is that of the responder, which checked the bytes in its own memory.
"""

import json
from dataclasses import dataclass

from vflab.host import tried

FOLDER = "/run/serve"
SERVE = "vf-guest serve --address {} --listen {} --state " + FOLDER
START = (f"mkdir -p {FOLDER} && ({{}} -o json >{FOLDER}/first-line 2>&1 & "
         f"echo $! >{FOLDER}/pid); ")
READY = tried(f"grep -m1 fingerprint {FOLDER}/first-line", 50)
STOP = f"kill $(cat {FOLDER}/pid)"
VERIFY = ("echo {token} >/run/token; vf-guest verify --responder {address}:{port} "
          "--fingerprint {fingerprint} --token-file /run/token --profile quick -o json; "
          "done=$?; rm /run/token; exit $done")
VERIFY_SECONDS = 300


@dataclass
class Responder:
    address: str
    port: int
    fingerprint: str
    token: str


def serve(run, address, listen=None, command=None):
    """Starts one there; `run` runs a shell command there and returns what it printed."""
    printed = run(START.format(command or SERVE.format(address, listen or address)) + READY)
    ready = json.loads(next(line for line in printed.splitlines() if line.startswith("{")))
    token = run(f"cat {ready['token_file']}").strip()
    return Responder(listen or address, ready["port"], ready["fingerprint"], token)


def in_vm(vm):
    """Returns `run` for a VM or an emulated host."""
    return lambda command: vm.run(command).stdout


def proved(lab, vm, responder, what):
    """Has the VM prove RDMA against it; returns whether all tests passed, with bytes checked."""
    shown = vm.run(VERIFY.format(**vars(responder)), check=False, timeout=VERIFY_SECONDS)
    if not lab.check(shown.status == 0, f"{what}: {shown}"):
        return False
    proof = json.loads(shown.stdout)[0]
    tests = {test["name"]: test for test in proof["tests"]}
    lab.step(f"{what}: " + ", ".join(
        f"{name} {test['verdict']} by {test['by']}, {test['bytes_checked']} bytes checked"
        for name, test in tests.items()))
    lab.check_equal(proof["verdict"], "pass", what)
    return all(lab.check_equal((tests[name]["verdict"], tests[name]["mismatches"]), ("pass", 0),
                               f"{what}: {name}")
               for name in ("reachability", "rc_ping", "rdma_write", "rdma_read"))
