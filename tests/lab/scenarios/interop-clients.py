# SPDX-License-Identifier: Apache-2.0
"""rping, ibv_rc_pingpong and perftest in a VM are served; hostile clients do no harm."""

import json
import re

from vflab.product import TRAIN, Product
from vflab.programs import built, send

DEADLINE_SECONDS = 3000
VM = "client"
HOST = TRAIN["host_address"]
PROGRAM = "/run/hostile_clients"
HOSTILE = 10_000
PORT = 18515
MEMORY_GROWTH_MAX = 1.05
HONEST_SECONDS = 60
PAIRS_MAX = 64  # for one attachment's clients


def run(lab):
    lab.expect("closed by default", "honest clients", "two-byte messages",
               "beside our own tests", "our own tests",
               "hostile connections", "honest meanwhile", "honest after", "closed again")
    clients = Clients(lab)
    clients.closed("closed by default")
    clients.knock_on_another_program()
    clients.open()
    clients.every_kind()
    clients.two_bytes()
    clients.beside_our_own()
    clients.hostile()
    lab.host.run(f"vfctl interop close {clients.attachment['id']}")
    clients.closed("closed again")
    clients.product.leave()


class Clients:
    def __init__(self, lab):
        self.lab, self.product = lab, Product(lab)
        self.program = built(lab, "hostile_clients").read_bytes()
        self.product.manage(num_vfs=2)
        self.vm = lab.vm(VM).wait_ready()
        self.attachment = self.product.attach(VM, network="train", verify="required")
        self.device = self.vm.run("rdma link | sed -n 's/^link \\([^/]*\\).*/\\1/p'").stdout.strip()
        self.gid = self.gid_index()
        self.still = None
        self.honest = [f"rping -c -C 5 -a {HOST}", self.pingpong(50), self.perftest("ib_write_bw")]

    def gid_index(self):
        """Returns the index of the RoCE v2 GID that holds the VF's address."""
        at = f"/sys/class/infiniband/{self.device}/ports/1"
        octets = [int(octet) for octet in self.attachment["address"].split(".")]
        text = "ffff:{:02x}{:02x}:{:02x}{:02x}".format(*octets)
        return self.vm.run(f"cd {at}; for i in $(grep -l {text} gids/* 2>/dev/null); do "
                           "i=$(basename $i); grep -q v2 gid_attrs/types/$i && echo $i; done"
                           ).lines()[0]

    def pingpong(self, count):
        return f"ibv_rc_pingpong -d {self.device} -g {self.gid} -n {count} {HOST}"

    def perftest(self, program, options="-n 100"):
        return f"{program} -d {self.device} -x {self.gid} -F {options} {HOST}"

    def works(self, command, count):
        shown = self.vm.run(f"timeout {HONEST_SECONDS} {command}", check=False,
                            timeout=HONEST_SECONDS + 60)
        if self.lab.check(shown.status == 0, f"{count}: {shown}"):
            self.lab.count(count)
        return shown

    def closed(self, count):
        for command in self.honest[1:]:
            shown = self.vm.run(f"timeout 5 {command}", check=False)
            self.lab.check(shown.status != 0, f"{count}, and yet: {shown}")
        shown = self.vm.run(f"timeout 20 {self.honest[0]}", check=False)
        if self.lab.check(shown.status != 0, f"{count}, and yet: {shown}"):
            self.lab.count(count)

    def knock_on_another_program(self):
        """Another program's listener on all addresses stays closed to the VM."""
        self.lab.step("another program of the host's listens on perftest's port")
        server = self.lab.host.background(f"ib_write_bw -p {PORT}")
        try:
            self.lab.host.wait_for("it listens", f"ss -ltn | grep :{PORT}", 20)
            said = self.vm.run(f"echo | timeout 5 nc {HOST} {PORT}; echo $?").stdout.split()
            self.lab.check(said and said[-1] != "0", f"it answered the VM: {said}")
        finally:
            server.stop()

    def open(self, **members):
        path = f"/v1/attachments/{self.attachment['id']}/interop"
        answer = self.lab.api("PUT", path, {"seconds": 3600, **members})
        self.lab.check_equal(answer.status, 200, f"opened: {answer}")
        self.lab.check_equal(answer.body["rping"], "", "why rping is not served")

    def idle(self):
        """Returns what vfmgr-guestd holds without clients, once it has noticed that they ended."""
        def settled():
            now = self.resources()
            return now if not self.still or all(
                now[key] == self.still[key] for key in ("descriptors", "threads", "rdma")) else None
        self.still = self.lab.host.wait_for(
            f"descriptors, threads and RDMA resources as before: {self.still}", settled, 60)
        return self.still

    def every_kind(self):
        self.lab.step(f"each client that needs no more than the default; idle: {self.idle()}")
        for command in (*self.honest, self.perftest("ib_read_bw"), self.perftest("ib_read_lat"),
                        self.perftest("ib_write_bw", "-n 100 -q 2"),
                        self.perftest("ib_write_bw", "-a -n 5")):
            self.figures(self.works(command, "honest clients"))
        for test, command in (("send", self.perftest("ib_send_bw")),
                              ("send_echo", self.perftest("ib_send_lat", "-s 64 -n 100")),
                              ("write_echo", self.perftest("ib_write_lat", "-s 64 -n 100"))):
            self.open(test=test, message_bytes=64 if test == "write_echo" else 65536)
            self.figures(self.works(command, "honest clients"))
        self.open()

    def two_bytes(self):
        """A limit on bytes alone would allow eight million queue pairs of 2 bytes."""
        self.lab.step("messages of 2 bytes")
        self.open(message_bytes=2)
        self.figures(self.works(self.perftest("ib_write_bw", "-s 2 -n 100 -q 16"),
                                "two-byte messages"))
        command = self.perftest("ib_write_bw", f"-s 2 -n 100 -q {4 * PAIRS_MAX}")
        self.vm.run(f"(timeout 60 {command} >/run/many.txt 2>&1; echo $? >/run/many.status) "
                    "</dev/null >/dev/null 2>&1 &")
        most = 0
        while self.vm.run("cat /run/many.status", check=False).status != 0:
            shown = self.lab.host.run("rdma -j resource show qp").json()
            most = max(most, sum(one.get("comm") == "vfmgr-guestd" for one in shown))
        self.lab.step(f"{4 * PAIRS_MAX} queue pairs wanted, {most} seen at once")
        status = self.vm.run("cat /run/many.status").stdout.strip()
        self.lab.check(status != "0", f"{4 * PAIRS_MAX} queue pairs were all served")
        self.lab.check(most <= PAIRS_MAX, f"{most} queue pairs at once")
        self.works(self.honest[1], "two-byte messages")
        self.idle()
        self.open()

    def figures(self, shown):
        """Returns perftest's table, or the last line."""
        rows = [line for line in shown.lines() if re.match(r"^ *\d+ +\d+ ", line)]
        last = rows[-1:] or shown.lines()[-1:]
        self.lab.step(f"{shown.command[:90]}: {' '.join(' '.join(last).split())}")

    def beside_our_own(self):
        self.lab.step("while our own tests run")
        self.vm.run("(vf-guest verify --profile default -o json >/run/own.json 2>&1; "
                    "echo $? >/run/own.status) </dev/null >/dev/null 2>&1 &")
        rounds = 0
        while rounds == 0 or self.vm.run("cat /run/own.status", check=False).status != 0:
            for command in self.honest:
                self.works(command, "beside our own tests")
            rounds += 1
        verdict = json.loads(self.vm.run("cat /run/own.json").stdout)[0]
        if self.lab.check_equal(verdict["verdict"], "pass", f"our own tests: {verdict['detail']}"):
            self.lab.count("our own tests")

    def hostile(self):
        send(self.vm, self.program, PROGRAM)
        before = self.idle()
        self.lab.step(f"{HOSTILE} hostile connections; before: {before}")
        self.vm.run(f"({PROGRAM} {HOST} {self.attachment['address']} {HOSTILE} >/run/hostile.json "
                    "2>/run/hostile.err; echo $? >/run/hostile.status) "
                    "</dev/null >/dev/null 2>&1 &")
        seconds = []
        while self.vm.run("cat /run/hostile.status", check=False).status != 0:
            seconds.append(self.seconds(self.pingpong(10)))
        done = json.loads(self.vm.run("cat /run/hostile.json").stdout)
        self.lab.step(f"done: {done}")
        self.lab.check(done.get("guesses refused", 0) >= HOSTILE / 40 * 0.9,
                       f"too few keys were guessed at: {done}")
        self.lab.check("guesses that hit" not in done, f"a guessed key was right: {done}")
        self.lab.check(done.get("no connection", 0) == 0, f"the host did not listen: {done}")
        self.lab.count("hostile connections", sum(
            done.get(way, 0) for way in ("silent", "slow", "malformed", "cut off", "changed",
                                         "pingpong changed", "another GID", "key guesses")))
        self.judge_honest(seconds)
        self.judge_resources(before)
        for command in self.honest:
            self.works(command, "honest after")

    def seconds(self, command):
        """Returns None if it failed: hostile clients of its own VM may displace a client."""
        clock = "cut -d' ' -f1 /proc/uptime"
        shown = self.vm.run(f"{clock}; timeout 60 {command} >/dev/null 2>&1; echo $?; {clock}",
                            check=False, timeout=120).stdout.split()
        return float(shown[2]) - float(shown[0]) if shown[1] == "0" else None

    def judge_honest(self, seconds):
        good = sorted(one for one in seconds if one is not None)
        if not self.lab.check(len(good) >= 10, f"honest clients meanwhile: {seconds}"):
            return
        p50, p99 = (good[min(len(good) - 1, int(len(good) * part))] for part in (0.5, 0.99))
        self.lab.step(f"honest ibv_rc_pingpong -n 10 meanwhile: {len(good)} of {len(seconds)} "
                      f"served, p50 {p50:.2f} s, p99 {p99:.2f} s")
        self.lab.count("honest meanwhile", len(good))

    def resources(self):
        """Returns vfmgr-guestd's objects, as the kernel counts them."""
        pid = self.lab.host.run("systemctl show -P MainPID vfmgr-guestd").stdout.strip()
        memory = int(re.search(r"VmRSS:\s+(\d+)",
                               self.lab.host.read(f"/proc/{pid}/status")).group(1))
        descriptors = int(self.lab.host.run(f"ls /proc/{pid}/fd | wc -l").stdout)
        threads = int(self.lab.host.run(f"ls /proc/{pid}/task | wc -l").stdout)
        rdma = self.lab.host.run("rdma -j resource show").json()
        return {"KiB": memory, "descriptors": descriptors, "threads": threads, "rdma": rdma}

    def judge_resources(self, before):
        after = self.idle()
        growth = after["KiB"] / before["KiB"]
        self.lab.step(f"after: {after}; memory {growth:.3f} of before")
        self.lab.check(growth <= MEMORY_GROWTH_MAX, f"memory grew to {growth:.3f} of before")
