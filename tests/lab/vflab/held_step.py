# SPDX-License-Identifier: Apache-2.0
"""A process held in a step: after it has read the request, or with the step done and not answered.

A PF's worker performs the kernel's steps and vfmgr-broker those of VMs. Each reads a step as a line
of JSON from a socket, and answers with a line that has the same id. strace delays what goes over
that socket.
"""

import json
import re
from shlex import quote

from vflab.product import STORE

TRACE, COPY = "/run/held-step.strace", "/run/held-step.store"
# Members of the broker's lines are in the order of their names, those of a worker's are not.
REQUEST = r'\\"id\\":[0-9]+,([^{}]*,)?\\"step\\":\{([^{}]*,)?\\"step\\":\\"%s\\"'
ANSWER = r'sendto\([0-9]+, "\{\\"id\\":%s,'
# A request is delayed for long enough to be found in the trace while nothing has begun.
FOUND_SECONDS = 0.3
# Other answers, and the broker's news, go over the same socket, one after the other. Each of them
# is delayed, too, and the answer to the step may come after some.
HELD_SECONDS = 20
BROKER_SOCKET, WORKER_FD = "/run/vfmgr-broker.sock", 3
DEADLINE_SECONDS = 150
OF_BROKER = "awk '$8 == \"{path}\" {{print \"socket:[\" $7 \"]\"}}' /proc/net/unix"
OF_WORKER = "readlink /proc/{pid}/fd/{fd}"
STRACE = """for each in $({sockets}); do only="$only -P $each"; done; rm -f {trace}
exec strace -f -q -p {pid} -o {trace} -s 4096 -e trace={call} -e inject={call}:{delay} $only"""
STOP = """until grep -qE '{request}' {trace}; do sleep 0.05; done; kill -STOP {pid}
until grep -q 'stopped by SIGSTOP' {trace}; do sleep 0.05; done; grep -m1 -oE '{request}' {trace}"""
STEP = """SELECT json_extract(step, '$.step') AS step, states.state, undo FROM steps
JOIN states USING (operation, seq) WHERE operation = '{operation}' ORDER BY seq DESC LIMIT 1"""

AWAITED = """SELECT document ->> '$.steps[#-1].state' AS state, document ->> '$.steps[#-1].sentence'
AS sentence FROM operations WHERE id = '{operation}'"""


def worker(lab, word):
    """Returns the pid of the worker of a PF, or of "host"."""
    return int(lab.host.wait_for(f"{word} has a worker", f"pgrep -xf 'vfmgrd-worker {word}'", 60))


def unit(lab, name):
    """Returns the pid of a running unit's main process."""
    return int(lab.host.wait_for(f"{name} runs", f"systemctl show -P MainPID {name} | grep -vx 0",
                                 120))


def underway(lab, operation):
    """Returns what the store has of the operation's latest step: its step, state and undo."""
    rows = stored(lab, STEP.format(operation=operation))
    return next(iter(rows), {"step": None, "state": None, "undo": ""})


def awaits_guest(lab, operation):
    """Returns whether the store has the operation waiting for a guest, which no journal has."""
    return any(row["state"] == "intended" and row["sentence"].startswith("wait up to")
               for row in stored(lab, AWAITED.format(operation=operation)))


def stored(lab, query):
    """vfmgrd keeps the store locked. A copy has what is in its write-ahead log as well."""
    rows = lab.host.run(f"rm -rf {COPY} && mkdir {COPY} && cp {STORE} {STORE}-wal {COPY} && "
                        f"sqlite3 -json {COPY}/*.db {quote(query)} && rm -r {COPY}").stdout
    return json.loads(rows or "[]")


class HeldStep:
    """From now on, waits for the next step of that kind; `word` is the worker's, None: broker."""

    def __init__(self, lab, kind, word):
        self.lab, self.kind = lab, kind
        if word:
            self.pid = worker(lab, word)
            self.sockets = OF_WORKER.format(pid=self.pid, fd=WORKER_FD)
        else:
            self.pid = unit(lab, "vfmgr-broker")
            self.sockets = OF_BROKER.format(path=BROKER_SOCKET)
        self.tracer = self.trace("read", f"delay_exit={int(FOUND_SECONDS * 1e6)}")

    def trace(self, call, delay):
        tracer = self.lab.host.background(STRACE.format(
            sockets=self.sockets, pid=self.pid, trace=TRACE, call=call, delay=delay))
        self.lab.host.wait_for(f"every thread of {self.pid} is traced",
                               f"! grep -q '^TracerPid:.0$' /proc/{self.pid}/task/*/status")
        return tracer

    def begun(self):
        """The process has read the request, and is stopped before anything else."""
        script = STOP.format(request=REQUEST % self.kind, trace=TRACE, pid=self.pid)
        found = self.lab.host.run(f"timeout {DEADLINE_SECONDS} bash -c {quote(script)}",
                                  timeout=DEADLINE_SECONDS + 30)
        self.identifier = re.search(r"\d+", found.stdout)[0]
        self.tracer.stop("INT")

    def unanswered(self):
        """The process has done the step, and is held as it sends the answer."""
        self.tracer = self.trace("sendto", f"delay_enter={int(HELD_SECONDS * 1e6)}")
        self.lab.host.run(f"kill -CONT {self.pid}")
        self.lab.host.wait_for(f"{self.kind} is done", f"grep -E '{ANSWER % self.identifier}' "
                               f"{TRACE}", DEADLINE_SECONDS)

    def release(self):
        """May be called again. strace itself would wait until the delay is over."""
        self.tracer.stop("KILL")
        self.lab.host.run(f"kill -CONT {self.pid}; rm -f {TRACE}", check=False)
