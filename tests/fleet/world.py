# SPDX-License-Identifier: Apache-2.0
"""Hosts of a fleet: each the real vfmgrd over TLS on a host of fakes that outlives it.

    with World(folder, hosts=20) as world:
        world.hosts["h3"].kill()

A host is seen from two sides: by its API, and by the log of its fake kernel and hypervisor
(tests/contract/kept_host.hpp), which tests read as the truth. Hosts are parties of the network that
the world is given: network.Network, whose links can be cut, or network.Loopback.
"""

import contextlib
import json
import os
import shutil
import signal
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "contract")]

import live_daemon  # noqa: E402
from client import Server, trusting  # noqa: E402
from network import Loopback  # noqa: E402

PORT = 8470
STORE = "vfmgr.db*"
# Each request of the tests comes from one address.
LIMITS = """[limits]
connections_per_peer_max = 64
changes_burst = 10000
changes_per_second = 1000
"""


def pf_address(number):
    return f"0000:{number + 1:02x}:00.0"


def vm_uuid(host, number):
    return f"{host:08x}-0000-4000-8000-{number:012x}"


def a_vm(host, number):
    return {"name": f"vm{host}-{number}", "uuid": vm_uuid(host, number), "free_pcie_ports": 16}


class Host(live_daemon.Daemon):
    """`number`: of the host in its world, from 1."""

    def __init__(self, folder, number, party, pfs, vfs, vms, config="", model="igb",
                 port=PORT, program=None):
        self.number, self.name, self.party, self.port = number, f"h{number}", party, port
        self.pfs = [pf_address(pf) for pf in range(pfs)]
        self.vms = [vm_uuid(number, vm) for vm in range(vms)]
        self.kept, self.started_in, self.stopped = folder / f"{self.name}.json", [], False
        folder.mkdir(parents=True, exist_ok=True)
        document = {"pfs": [{"model": model, "pci": pci, "ifname": f"enp{index + 1}s0",
                             "total_vfs": vfs} for index, pci in enumerate(self.pfs)],
                    "vms": [a_vm(number, vm) for vm in range(vms)]}
        tls = f'[listen.tls]\nenabled = true\naddress = "{party.address}"\nport = {port}\n'
        super().__init__(folder, document, f"{config}{LIMITS if '[limits]' not in config else ''}"
                         f"{tls}", words=["--kept", self.kept],
                         **({"program": program} if program else {}))

    def start(self):
        began = time.monotonic()
        whole, self.command = self.command, self.party.command(self.command)
        try:
            super().start()
        finally:
            self.command = whole
        self.started_in.append(time.monotonic() - began)

    # Faults. Each returns evidence that it happened.

    def kill(self):
        self.process.kill()
        return f"{self.name} ended with {self.process.wait(60)}"

    def stop(self):
        """Holds the process as it is: it answers nobody, and its connections stay."""
        self.process.send_signal(signal.SIGSTOP)
        live_daemon.until(lambda: self.state() == "T", f"{self.name} stops")
        self.stopped = True
        return f"{self.name} is in state T"

    def go_on(self):
        self.process.send_signal(signal.SIGCONT)
        live_daemon.until(lambda: self.state() != "T", f"{self.name} goes on")
        self.stopped = False

    def state(self):
        text = Path(f"/proc/{self.process.pid}/stat").read_text()
        return text.rpartition(")")[2].split()[0]

    def lose_power(self):
        """Ends the daemon, the VMs and the VFs. start() boots the host, which has none of them."""
        evidence = self.kill()
        with self.log_file().open("a") as log:
            log.write(json.dumps({"host": self.name, "at": time.monotonic(), "off": True,
                                  "vfs": []}) + "\n")
        self.kept.unlink()
        return evidence

    def copy_store(self, to):
        """Copies the store as a snapshot of the disk would: at one moment, without asking."""
        stopped = self.process.poll() is None and not self.stopped
        if stopped:
            self.stop()
        shutil.rmtree(to, ignore_errors=True)
        to.mkdir(parents=True)
        for file in (self.folder / "state").glob(STORE):
            shutil.copy2(file, to)
        if stopped:
            self.go_on()
        return to

    def replace_store(self, copy=None):
        """Ends the daemon and gives it the store of copy_store(), or none. start() continues."""
        evidence = self.kill()
        for file in (self.folder / "state").glob(STORE):
            file.unlink()
        for file in copy.iterdir() if copy else ():
            shutil.copy2(file, self.folder / "state")
        return evidence

    # What it is.

    def log_file(self):
        return self.kept.with_suffix(".log")

    def lines(self):
        return [json.loads(line) for line in self.log_file().read_text().splitlines(True)
                if line.endswith("\n")]

    def now(self):
        """Returns the VFs that have an identity or a VM, as kernel and hypervisor know it."""
        return self.lines()[-1]["vfs"]

    def server(self, party=None, **more):
        return Server(party or self.party, self.party.address, self.port, trusting(), **more)

    def token(self, role="admin"):
        answer, token = self.ask("POST", "/v1/tokens", {"role": role})
        assert answer.status == 201, token
        return token["token"]

    def memory_mib(self):
        """Its own part of the memory: what it shares with other hosts counts by shares."""
        rollup = Path(f"/proc/{self.process.pid}/smaps_rollup").read_text()
        return int(rollup.split("\nPss:")[1].split()[0]) / 1024

    def make_vfs(self, vfs):
        for pf in self.pfs:
            self.do("PUT", f"/v1/pfs/{pf}/spec", {"mode": "manage", "num_vfs": vfs})

    def end(self):
        if self.process.poll() is None:
            if self.stopped:
                self.go_on()
            super().end()
        self.log.close()


class World:
    def __init__(self, folder, hosts=3, pfs=2, vfs=4, vms=4, network=None, config="", port=PORT,
                 program=None):
        """Returns when all hosts serve and have their VFs. `vfs`: of each PF."""
        self.folder, self.network = Path(folder), network or Loopback()
        self.client = self.network.join("client")
        parties = {number: self.network.join(f"h{number}") for number in range(1, hosts + 1)}
        self.hosts, began = {}, time.monotonic()

        def start(number):
            host = Host(self.folder / f"h{number}", number, parties[number], pfs, vfs, vms,
                        config, port=port, program=program)
            self.hosts[host.name] = host
            host.make_vfs(vfs)
        try:
            with ThreadPoolExecutor(os.cpu_count() * 2) as starting:
                for started in [starting.submit(start, number) for number in parties]:
                    started.result()
        except BaseException:
            self.close()
            raise
        self.hosts = dict(sorted(self.hosts.items(), key=lambda one: one[1].number))
        self.started_in = time.monotonic() - began

    def histories(self):
        """Returns the hosts' logs, which the checker reads."""
        return [host.log_file() for host in self.hosts.values()]

    def figures(self):
        memory = [host.memory_mib() for host in self.hosts.values()]
        return (f"{len(self.hosts)} hosts have served after {self.started_in:.1f} s and take "
                f"{sum(memory):.0f} MiB, {max(memory):.1f} MiB at most each")

    def close(self):
        """Ends what still runs; fails if a host that nobody ended did not end with 0."""
        failed = []
        for host in self.hosts.values():
            try:
                host.end()
            except Exception as error:
                with contextlib.suppress(ProcessLookupError):
                    host.process.kill()
                failed.append(f"{host.name}: {error}")
        self.network.close()
        assert not failed, "\n".join(failed)

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        if kind is None:
            return self.close()
        with contextlib.suppress(AssertionError):  # it must not hide the first error
            self.close()
