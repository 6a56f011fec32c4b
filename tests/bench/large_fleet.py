# SPDX-License-Identifier: Apache-2.0
"""A large fleet on this machine: three members of etcd, two replicas of vfmgr-fleetd and 1,000
simulated hosts that have joined, 200 of whose VFs change in a second."""

import http.client
import ssl
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from event_readers import let_open_files
from vflab.programs import built_here

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "fleet"))

import fleet as fleets  # noqa: E402
import simulation  # noqa: E402
from live_daemon import until  # noqa: E402

HOSTS = 1000
EVENTS_PER_SECOND = 200
JOINING = 4  # at a time
MEMORY_MIB_MAX = 512
START_SECONDS_MAX = 60
CLIENT = "bench"
CONFIG = f"""[tls.clients]
"{CLIENT}" = "viewer"
[limits]
changes_burst = 100000
changes_per_second = 10000
"""


def certified(folder, authority):
    """Returns the files of a client's certificate, which the fleet's CA signs."""
    key, request, certificate = (folder / f"{CLIENT}.{end}" for end in ("key", "csr", "crt"))
    for words in (
            ["req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout",
             key, "-out", request, "-subj", f"/CN={CLIENT}", "-addext",
             "extendedKeyUsage=clientAuth"],
            ["x509", "-req", "-copy_extensions", "copy", "-in", request, "-CA",
             authority / "ca.pem", "-CAkey", authority / "ca.key", "-set_serial", "99", "-days",
             "1", "-out", certificate]):
        subprocess.run(["openssl", *map(str, words)], check=True, capture_output=True)
    return certificate, key


class LargeFleet:
    def __init__(self, lab, folder):
        let_open_files()
        self.lab = lab
        # The packages' own flags, as the simulation's.
        fleets.FLEETD = built_here("vfmgr-fleetd", "../service/fleet/vfmgr-fleetd")
        fleets.VFCTL = built_here("vfctl", "../service/vfctl")
        program = built_here("host_views")
        self.fleet = fleets.Fleet(folder, members=3, config=CONFIG)
        try:
            made = self.fleet.folder
            self.simulation = simulation.Simulation(
                folder / "hosts", HOSTS, ca_file=made / "ca.pem",
                fleet=(made / "fleet-id").read_text().strip(), program=program)
        except BaseException:
            self.fleet.end()
            raise
        lab.step(self.simulation.figures())
        self.context = ssl.create_default_context(cafile=made / "ca.pem")
        self.context.check_hostname, self.context.verify_mode = False, ssl.CERT_NONE
        self.context.load_cert_chain(*certified(folder, made))
        self.started_in = []

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        try:
            self.fleet.end()
        except AssertionError:
            if kind is None:  # it must not hide the first error
                raise
        self.simulation.end()

    @property
    def replicas(self):
        return self.fleet.replicas

    def join_all(self):
        began, replica = time.monotonic(), self.replicas[0]

        def ask(path, body):
            """Each takes the next free number: of many at once some are to be sent again."""
            while True:
                answer, made = replica.ask("POST", path, body)
                if answer.status < 300:
                    return made
                assert answer.status == 503, made

        def join(host):
            token = ask("/v1/join-tokens", {"host": host.name})["token"]
            ask("/v1/hosts", {"token": token, "name": host.name, "url": host.url,
                              "public_key": host.public_key()})
        with ThreadPoolExecutor(JOINING) as pool:
            list(pool.map(join, self.simulation.hosts.values()))
        took = time.monotonic() - began
        for one in self.replicas:
            self.await_all(one)
        self.lab.step(f"{HOSTS} hosts have joined after {took:.1f} s, and are all observed after "
                      f"{time.monotonic() - began:.1f} s")

    @staticmethod
    def await_all(replica, seconds=600):
        def observed():
            info = replica.get("/v1/fleet")
            return (info["hosts"] == HOSTS and info["unreachable_hosts"] == 0
                    and replica.call("GET", "/readyz").status == 200)
        until(observed, f"{replica.name} observes {HOSTS} hosts", seconds)

    def busy(self):
        self.simulation.events_per_second(EVENTS_PER_SECOND)

    def kill(self, replica):
        replica.process.kill()
        replica.process.wait(60)

    def start(self, replica):
        """Starts one that knows nothing; notes how long it takes until it knows all hosts."""
        began = time.monotonic()
        replica.start()
        self.await_all(replica)
        self.started_in.append(time.monotonic() - began)

    def connect(self, url):
        host, _, port = url.removeprefix("https://").rpartition(":")
        return http.client.HTTPSConnection(host, int(port), context=self.context, timeout=60)

    def check(self):
        """What has to hold at the end."""
        for replica in self.replicas:
            memory = memory_mib(replica.process)
            self.lab.step(f"{replica.name} takes {memory:.0f} MiB")
            self.lab.check(memory < MEMORY_MIB_MAX, f"{replica.name} takes {memory:.0f} MiB, less "
                                                    f"than {MEMORY_MIB_MAX} are required")
        worst = max(self.started_in)
        self.lab.step("from nothing to all hosts: " +
                      ", ".join(f"{one:.1f} s" for one in self.started_in))
        self.lab.check(worst < START_SECONDS_MAX, f"a start took {worst:.1f} s, less than "
                                                  f"{START_SECONDS_MAX} are required")


def memory_mib(process):
    status = Path(f"/proc/{process.pid}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) / 1024


class Clients:
    """So many connections, each of which asks again as soon as it has its answer."""

    def __init__(self, number, connect, paths):
        """`paths`: makes what a client asks for, one after the other, from the last answer."""
        self.number, self.connect, self.paths = number, connect, paths

    def load(self, seconds):
        """Returns the milliseconds of all answers, in order of size."""
        times, failures, lock = [], [], threading.Lock()
        ends = time.monotonic() + seconds

        def ask(number):
            connection, own, path = self.connect(number), [], self.paths(number, None)
            connection.connect()
            try:
                while time.monotonic() < ends:
                    began = time.perf_counter()
                    connection.request("GET", path)
                    answer = connection.getresponse()
                    body = answer.read()
                    own.append((time.perf_counter() - began) * 1000)
                    assert answer.status == 200, f"{path}: {answer.status} {body[:300]}"
                    path = self.paths(number, body)
            except (AssertionError, OSError) as error:
                failures.append(f"{type(error).__name__}: {error}")
            finally:
                connection.close()
            with lock:
                times.extend(own)
        threads = [threading.Thread(target=ask, args=(number,)) for number in range(self.number)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failures, failures[:3]
        return sorted(times)


def percentile(times, hundredth):
    return times[min(len(times) - 1, len(times) * hundredth // 100)]
