# SPDX-License-Identifier: Apache-2.0
"""Load on the API of vfmgrd on fakes, and on a bare Beast server, by nghttp2's h2load."""

import contextlib
import http.client
import multiprocessing
import re
import ssl
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from on_fakes import Daemon, TlsConnection, free_port

CONNECTIONS = 256
WARM_UP_SECONDS = 1
PATIENCE_SECONDS = 60  # h2load waits for each connection before it begins
TOGETHER = "-m 1"  # one request at a time on each connection
# One token uses all the connections of a measurement.
LIMITS = ("[limits]\nconnections_max = 512\nconnections_per_peer_max = 400\n"
          "changes_burst = 100000\nchanges_per_second = 10000\n")
VM = "11111111-1111-1111-1111-111111111111"
PUBLISHED_PER_SECOND = 10


def host(pfs, vfs):
    """Returns a host with PFs of so many VFs each, and a VM."""
    return {"pfs": [{"model": "mlx5", "pci": pci_of(n), "ifname": f"ens{n + 1}",
                     "total_vfs": vfs} for n in range(pfs)],
            "vms": [{"name": "vm1", "uuid": VM, "free_pcie_ports": 8}]}


def pci_of(n):
    return f"0000:{n + 1:02x}:00.0"


class LoadedDaemon(Daemon):
    def __init__(self, folder, pfs, vfs, limits=LIMITS):
        super().__init__(folder, limits, host(pfs, vfs))
        for n in range(pfs):
            self.do("PUT", f"/v1/pfs/{pci_of(n)}/spec", {"mode": "manage", "num_vfs": vfs})

    def memory_mib(self):
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"^VmRSS:\s+(\d+) kB$", status, re.M)[1]) / 1024

    def cpu_seconds(self):
        return cpu_seconds(self.process)


def cpu_seconds(process):
    fields = Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / 100


class BareServer:
    """It has the daemon's own certificate, and so its kind of key."""

    def __init__(self, daemon, program):
        self.port, state = free_port(), daemon.store.parent
        self.process = subprocess.Popen(
            [program, str(self.port), state / "tls.crt", state / "tls.key"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout.readline() == "ready\n"

    def cpu_seconds(self):
        return cpu_seconds(self.process)

    def end(self):
        self.process.stdin.close()
        self.process.wait(60)


@dataclass
class Load:
    per_second: float
    p99_ms: float
    cpu_us: float  # of the server, for each request


def command(port, path, seconds, connections=CONNECTIONS):
    return (f"h2load --h1 -c {connections} -t 1 {TOGETHER} -D {seconds:g} "
            f"--warm-up-time {WARM_UP_SECONDS} https://127.0.0.1:{port}{path}")


def load(server, path, seconds, headers=(), connections=CONNECTIONS):
    """Returns what so many connections get of a path, each asking again as soon as it may."""
    with tempfile.NamedTemporaryFile() as log:
        words = command(server.port, path, seconds, connections).split()
        for name, value in dict(headers).items():
            words += ["-H", f"{name}: {value}"]
        began = server.cpu_seconds()
        shown = subprocess.run([*words, f"--log-file={log.name}"], check=True, text=True,
                               capture_output=True, timeout=seconds + PATIENCE_SECONDS).stdout
        used = server.cpu_seconds() - began
        rows = [line.split() for line in Path(log.name).read_text().splitlines()]
    # At its end h2load drops what is under way, and logs it with status 0.
    rows = [row for row in rows if row[1] != "0"]
    wrong = [status for _, status, _ in rows if status != "200"]
    failed = re.search(r"(\d+) failed, (\d+) errored, (\d+) timeout", shown)
    assert rows and not wrong and set(failed.groups()) == {"0"}, f"{wrong[:5]}: {shown}"
    took = sorted(int(row[2]) for row in rows)
    # The processor's time includes the warm-up's.
    asked = len(rows) * (seconds + WARM_UP_SECONDS) / seconds
    return Load(len(rows) / seconds, took[len(took) * 99 // 100] / 1000, used / asked * 1e6)


def bearer(token, **headers):
    return {"Authorization": "Bearer " + token, **headers}


def fetch(daemon, path, token, source="127.0.0.1", **headers):
    """Returns an answer's status, headers and body; it comes over a connection of its own."""
    connection = TlsConnection(daemon.port, source)
    try:
        connection.request("GET", path, headers=bearer(token, **headers))
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read()
    finally:
        connection.close()


def attach_on_and_on(daemon, stop, attached):
    while not stop.is_set():
        ended = daemon.do("POST", "/v1/attachments", {"vm": VM, "pf": pci_of(0)})
        daemon.do("DELETE", ended["subject"])
        with attached.get_lock():
            attached.value += 1


def publish_on_and_on(daemon, stop, published):
    """A process comes to hold a VF, and goes. Each is published before the next."""
    vf = f"/v1/pfs/{pci_of(0)}/vfs/100"
    pci = daemon.ask("GET", vf)[1]["pci"]
    held, due = False, time.monotonic()
    while not stop.is_set():
        held = not held
        daemon.happen(**{"hold" if held else "release": {"pci": pci, "pid": 4711, "comm": "qemu"}})
        while (daemon.ask("GET", vf)[1]["holders"] != []) != held:
            time.sleep(0.005)
        with published.get_lock():
            published.value += 1
        due += 1 / PUBLISHED_PER_SECOND
        time.sleep(max(0.0, due - time.monotonic()))


@contextlib.contextmanager
def busy(lab, daemon):
    """Attaches and detaches, and publishes ten views a second, by processes of their own."""
    stop = multiprocessing.Event()
    counts = [multiprocessing.Value("q", 0) for _ in range(2)]
    work = [multiprocessing.Process(target=what, args=(daemon, stop, count))
            for what, count in zip((attach_on_and_on, publish_on_and_on), counts)]
    began = time.monotonic()
    for process in work:
        process.start()
    try:
        yield
    finally:
        stop.set()
        for process in work:
            process.join(60)
        seconds = time.monotonic() - began
        attached, published = (count.value for count in counts)
        lab.check(all(process.exitcode == 0 for process in work), "attaching or publishing failed")
        lab.step(f"meanwhile {attached} VFs attached and detached, and views published "
                 f"{published / seconds:.1f} times a second beside that")
        lab.count("attached", attached)
        lab.count("published", published)
