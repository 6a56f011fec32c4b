# SPDX-License-Identifier: Apache-2.0
"""Reservations of one VF each, by 32 clients of two replicas, on 1,000 simulated hosts and 3 etcds.

Each is one transaction of etcd, a decision among all hosts, and the host's own commit. The peer is
the slower of the two others, alone and at the same concurrency: transactions of etcd, and commits
of hosts. All of it shares this machine.
"""

import json
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median

from figures import ROUNDS, Figures
from vflab.programs import BUILD, built_here

NEEDS_LAB = False
SECONDS = 1
HOSTS = 1000
CONCURRENCY = 32
RATIO_MIN = 0.5
COUNT_MAX = 960  # a client may have 1,024
CONFIG = """[limits]
changes_burst = 100000
changes_per_second = 100000
worker_threads = 128
waiting_per_principal_max = 512
"""


def joined(fleet, host, fleet_id, keys):
    """Has a simulated host join, as vfctl fleet join does it for a real one."""
    replica = fleet.replicas[0]
    answer, token = replica.ask("POST", "/v1/join-tokens", {})
    assert answer.status == 201, token
    answer, problem = replica.ask("POST", "/v1/hosts", {
        "token": token["token"], "name": host.name, "url": host.url,
        "public_key": host.public_key()})
    assert answer.status == 200, problem
    body = json.dumps({"membership": {"fleet": fleet_id, "host": host.name, "urls": []},
                       "store": f"store-{host.name}", "last_event": 0, "restored_at": None})
    subprocess.run(["curl", "-sSfk", "--cert", keys / "replica.pem", "--key", keys / "replica.key",
                    "-X", "PUT", "-H", "Content-Type: application/json", "-d", body,
                    f"{host.url}/v1/fleet"], check=True, stdout=subprocess.DEVNULL)


def begun(folder):
    """Returns the fleet and its simulated hosts, all of them observed by both replicas."""
    from fleet import Fleet
    from live_daemon import until
    from simulation import Simulation
    fleet = Fleet(folder, members=3, config=CONFIG)
    keys = fleet.replicas[0].keys
    hosts = Simulation(folder / "hosts", HOSTS, ca_file=keys / "ca.pem",
                       program=built_here("host_views"))
    fleet_id = fleet.replicas[0].get("/v1/fleet")["fleet"]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda host: joined(fleet, host, fleet_id, keys), hosts.hosts.values()))
    for replica in fleet.replicas:
        replica.ready()
        until(lambda one=replica: all(
            host["state"] == "active" and host["observed"]
            for host in one.get("/v1/hosts?limit=500")["items"]), "hosts are active", 120)
    return fleet, hosts


class Program:
    def __init__(self, folder, fleet, hosts):
        keys = fleet.replicas[0].keys
        settings = folder / "settings.json"
        settings.write_text(json.dumps({
            "concurrency": CONCURRENCY, "ca": str(keys / "ca.pem"),
            "certificate": str(keys / "replica.pem"), "key": str(keys / "replica.key"),
            "sockets": [str(replica.socket) for replica in fleet.replicas],
            "endpoints": [member.url() for member in fleet.members],
            "hosts": [{"address": host.address, "port": host.port,
                       "public_key": host.public_key()} for host in hosts.hosts.values()]}))
        self.process = subprocess.Popen([built_here("fleet_reserve"), settings], text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def per_second(self, what, count):
        self.process.stdin.write(f"{what} {count}\n")
        self.process.stdin.flush()
        return count / float(self.process.stdout.readline())


def run(lab, seconds=SECONDS):
    lab.expect("rounds")
    os.environ["VFMGR_BUILD_DIR"] = str(BUILD)
    sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "fleet"))
    for target, output in (("vfmgr-fleetd", "../service/fleet/vfmgr-fleetd"),
                           ("vfctl", "../service/vfctl")):
        built_here(target, output)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        fleet, hosts = begun(folder)
        try:
            program = Program(folder, fleet, hosts)
            count = min(COUNT_MAX, max(CONCURRENCY, int(
                seconds * program.per_second("fleet", CONCURRENCY))))
            figures = Figures(lab, f"fleet-reserve-{HOSTS}", "/s",
                              f"fleet_reserve: fleet {count}, {CONCURRENCY} at once",
                              "fleet_reserve: the slower of etcd and hosts, the same",
                              better="higher", ratio_min=RATIO_MIN)
            rounds = [[program.per_second(what, count) for what in ("fleet", "etcd", "hosts")]
                      for _ in range(ROUNDS)]
            slower = 1 if median(r[1] for r in rounds) < median(r[2] for r in rounds) else 2
            lab.step(f"etcd alone {median(r[1] for r in rounds):.0f}/s, hosts alone "
                     f"{median(r[2] for r in rounds):.0f}/s")
            for each in rounds:
                figures.round(each[0], each[slower])
            figures.report()
        finally:
            fleet.end()
            hosts.end()
