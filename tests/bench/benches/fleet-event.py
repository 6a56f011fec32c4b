# SPDX-License-Identifier: Apache-2.0
"""An event of one of 1,000 hosts, until a reader of all events has it from one of two replicas.

200 events happen in a second, and the other replica is dead. Each has in its text when its host
sent it, by CLOCK_MONOTONIC. The peer reads the streams of 50 hosts themselves, by the same program
in the same round. Judged is the median; the memory of both replicas, and how long the dead one
takes from nothing to all hosts.
"""

import json
import selectors
import ssl
import tempfile
import time
from pathlib import Path

from figures import Figures
from large_fleet import HOSTS, LargeFleet, percentile

NEEDS_LAB = False
ROUNDS = 5
SECONDS = 60  # in which events come, in total
READ_DIRECTLY = 50
MEDIAN_MS_MAX = 250


class Streams:
    """Streams of events, read by one thread."""

    def __init__(self, connections):
        self.selector, self.answers = selectors.DefaultSelector(), []
        for connection in connections:
            connection.connect()
            socket = connection.sock  # which the answer has from its header on
            connection.request("GET", "/v1/events")
            self.answers.append(connection.getresponse())
            assert self.answers[-1].status == 200, self.answers[-1].read()
            socket.setblocking(False)
            self.selector.register(socket, selectors.EVENT_READ, bytearray())

    def read(self, seconds):
        """Returns the milliseconds that the events took which have come meanwhile, by size."""
        times, ends = [], time.monotonic() + seconds
        while (left := ends - time.monotonic()) > 0:
            for key, _ in self.selector.select(left):
                at = time.monotonic()
                try:
                    while part := key.fileobj.recv(65536):
                        key.data.extend(part)
                except ssl.SSLWantReadError:  # TLS has no more whole records
                    pass
                times += [(at - sent) * 1000 for sent in sent_in(key.data)]
        return sorted(times)

    def end(self):
        for answer in self.answers:
            answer.close()


def sent_in(buffer):
    """Takes whole lines out of the buffer; returns when their events were sent."""
    end = buffer.rfind(b"\n") + 1
    lines, _ = bytes(buffer[:end]).splitlines(), buffer.__delitem__(slice(0, end))
    for line in lines:
        if line.startswith(b"data: ") and b"sent at " in line:
            yield float(json.loads(line[6:])["detail"].rpartition("sent at ")[2])


def run(lab, seconds=SECONDS):
    lab.expect("rounds", "events")
    with tempfile.TemporaryDirectory() as folder, LargeFleet(lab, Path(folder)) as large:
        large.join_all()
        large.busy()
        lives, dies = large.replicas
        hosts = list(large.simulation.hosts.values())[:READ_DIRECTLY]
        commands = (f"GET /v1/events of a replica, of {HOSTS} hosts",
                    f"GET /v1/events of {READ_DIRECTLY} hosts")
        median = Figures(lab, "fleet-event-median", "ms", *commands, ours_max=MEDIAN_MS_MAX)
        p99 = Figures(lab, "fleet-event-p99", "ms", *commands)
        each = seconds / ROUNDS / 2
        for _ in range(ROUNDS):
            large.kill(dies)
            ours = Streams([large.connect(lives.url)])
            mine = ours.read(each)
            ours.end()
            peer = Streams([large.connect(host.url) for host in hosts])
            others = peer.read(each)
            peer.end()
            large.start(dies)
            median.round(percentile(mine, 50), percentile(others, 50))
            p99.round(percentile(mine, 99), percentile(others, 99))
            lab.count("events", len(mine))
        large.check()
        median.report()
        p99.report()
