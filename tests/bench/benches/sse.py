# SPDX-License-Identifier: Apache-2.0
"""Events to one reader and to 1,000, beside a bare Beast stream of the same frames.

Each event is one that the host causes: libvirt goes, or comes back. The peer gets the frames that
came from the daemon, byte for byte and at the same pace, and the readers are the same program. They
are TLS connections, and each has had the event when all of its frame is decrypted.

Judged is the time from the moment when a server is told to send until the reader has the event,
for 1,000 readers until the last of them has it. That moment is, for the peer, when the frame is
about to be written to its standard input. For the daemon it is when the control thread has
committed the event and hands it to the streams: directly before that it writes the event's line to
its log, and the kernel notes when.

So the daemon's time is without what comes before: observing the host, deciding what changed, and a
durable commit, which is most of it: fdatasync takes milliseconds on a disk. "from-cause" is printed
for that, the time from the moment when the change is about to be written to the fakes' standard
input. It holds the fakes' time as well.

Afterwards readers are cut again and again while events come, and resume by Last-Event-ID, also
after the daemon was killed. Each must have had every event of the store, once and in order.
"""

import contextlib
import os
import sqlite3
import tempfile
import time
from pathlib import Path
from statistics import median

from api_load import VM, BareServer, LoadedDaemon, pci_of
from event_readers import PATIENCE_SECONDS, Crowd, Readers, Resuming, StampedLog, let_open_files
from event_stream import EventStream
from figures import Figures
from vflab.programs import built_here

NEEDS_LAB = False
READERS = 1000
ROUNDS = 5
SECONDS = 60  # in which events come, in total
RATIO_MAX = 3.0
EACH_SECONDS = 0.1  # from event to event
CASES = {"sse-one": 1, "sse-all": READERS}
RESUMING = 12
CHANGES = 25
EVENTS = "SELECT number, document FROM events UNION ALL SELECT number, document FROM passing_events"
LIMITS = f"""[limits]
connections_max = 64
changes_burst = 100000
changes_per_second = 10000
event_streams_max = {READERS + 100}
event_streams_per_peer_max = {READERS}
"""


class EventfulDaemon(LoadedDaemon):
    def __init__(self, folder):
        super().__init__(folder, 1, 4, LIMITS)

    def start(self):
        self.log = StampedLog()
        self.libvirt = "up"
        super().start()

    def cause(self):
        """Makes the host change, which is one event; returns when."""
        self.libvirt = "down" if self.libvirt == "up" else "up"
        at = now()
        self.happen(libvirt=self.libvirt)
        return at

    def last_event(self):
        stream = EventStream(self)
        number = stream.next().body["number"]
        stream.close()
        return number

    def stored(self, what):
        """Returns numbers of events. A daemon that runs has the store for itself."""
        with contextlib.closing(sqlite3.connect(self.store)) as store:
            return [row[0] for row in store.execute(
                f"SELECT number FROM ({EVENTS}) WHERE {what} ORDER BY number")]

    def kill(self):
        self.process.kill()
        self.process.wait()


def now():
    return time.time_ns() / 1000


class Pace:
    def __init__(self):
        self.due = time.monotonic()

    def wait(self):
        time.sleep(max(0.0, self.due - time.monotonic()))
        self.due = max(self.due + EACH_SECONDS, time.monotonic())


class Measured:
    """So many readers of both servers."""

    def __init__(self, lab, name, readers, daemon, bare, count):
        self.lab, self.name, self.daemon, self.bare = lab, name, daemon, bare
        path = f"/v1/events?after={daemon.last_event()}"
        self.ours = readers(daemon.port, path, count)
        self.peers = readers(bare.port, "/events", count)
        commands = (Readers.command(daemon.port, path, count),
                    Readers.command(bare.port, "/events", count))

        def figures(of, limit=None):
            return Figures(lab, f"{name}-{of}", "us", *commands, ratio_max=limit)
        self.last, self.from_cause = figures("last", RATIO_MAX), figures("from-cause")
        self.middle = figures("middle") if count > 1 else None

    def round(self, events):
        used = self.daemon.cpu_seconds(), self.bare.cpu_seconds()
        caused, arrived = self.to_ours(events)
        ours = [(one, self.daemon.log.at(one.number)) for one in arrived]
        peer = self.to_peer([one.text for one in arrived])
        self.add(self.last, "last", ours, peer)
        self.add(self.from_cause, "last", zip(arrived, caused), peer)
        if self.middle:
            self.add(self.middle, "middle", ours, peer)
        used = self.daemon.cpu_seconds() - used[0], self.bare.cpu_seconds() - used[1]
        self.lab.step(f"{self.name}: an event takes {used[0] / events * 1e6:.0f} us of the "
                      f"daemon's processors, {used[1] / events * 1e6:.0f} us of the peer's")
        self.lab.count(self.name, events)

    @staticmethod
    def add(figures, which, *of_both):
        figures.round(*(median(getattr(one, which) - begun for one, begun in times)
                        for times in of_both))

    def to_ours(self, events):
        pace, caused, arrived = Pace(), [], []
        for _ in range(events):
            pace.wait()
            caused.append(self.daemon.cause())
            arrived.append(self.ours.next())
            assert f'"kind":"libvirt_{"lost" if self.daemon.libvirt == "down" else "found"}"' in (
                arrived[-1].text), f"not what was caused: {arrived[-1]}"
        return caused, arrived

    def to_peer(self, texts):
        pace, times = Pace(), []
        pipe = self.bare.process.stdin.fileno()
        for text in texts:
            pace.wait()
            line, at = (text + "\n").encode(), now()
            assert os.write(pipe, line) == len(line)
            arrived = self.peers.next()
            assert arrived.text == text, f"the peer sent {arrived}, not {text}"
            times.append((arrived, at))
        return times

    def end(self):
        self.ours.end()
        self.peers.end()
        for figures in filter(None, (self.last, self.middle, self.from_cause)):
            figures.report()


def attach_and_detach(daemon, times):
    for _ in range(times):
        attached = daemon.do("POST", "/v1/attachments", {"vm": VM, "pf": pci_of(0)})
        daemon.do("DELETE", attached["subject"])


def resume(lab, daemon, readers):
    """Readers are cut while events come, to 1,000 others as well, and over a kill -9."""
    after, token = daemon.last_event(), daemon.token("viewer")
    resuming = [Resuming(daemon, token, after, "token_revoked", seed) for seed in range(RESUMING)]
    crowd = Crowd(readers(daemon.port, f"/v1/events?after={after}", READERS))
    for one in (crowd, *resuming):
        one.start()
    attach_and_detach(daemon, CHANGES)
    before = daemon.last_event()
    crowds = crowd.until(before)
    daemon.cause()
    daemon.kill()
    lab.check_equal(crowds, daemon.stored(f"number > {after} AND number <= {before}"),
                    f"the events that each of {READERS} readers had")
    daemon.start()
    lab.count("restarts")
    for _ in range(CHANGES):
        daemon.cause()
        last = daemon.ask("POST", "/v1/tokens", {"role": "viewer"})[1]["id"]
    assert daemon.ask("DELETE", "/v1/tokens/" + last)[0].status == 204
    for one in resuming:
        one.join(PATIENCE_SECONDS)
        one.give_up.set()
    lab.check(daemon.runs(), "the daemon is there")
    daemon.end()  # fails unless the daemon exits with 0
    last, = daemon.stored("document ->> '$.kind' = 'token_revoked'")
    stored = daemon.stored(f"number > {after} AND number <= {last}")
    for one in resuming:
        judge(lab, one, stored, before)
    lab.step(f"{len(stored)} events; readers resumed {[one.resumed for one in resuming]} times")


def judge(lab, reader, stored, before):
    """`before`: the last event before the restart."""
    lab.count("resumed", reader.resumed)
    lab.count("compared", len(stored))
    had = reader.numbers
    lab.check_equal((sorted(set(stored) - set(had)), len(had) - len(set(had)), had == stored),
                    ([], 0, True), "what a reader missed, had twice; it had the store's order")
    lab.check_equal(reader.others, [], "what it got besides events")
    lab.check(had and had[0] <= before < had[-1], "it read before the restart and after it")


def run(lab, seconds=SECONDS):
    lab.expect("rounds", *CASES, "resumed", "restarts", "compared")
    let_open_files()
    with tempfile.TemporaryDirectory() as folder:
        daemon = EventfulDaemon(Path(folder))
        bare = BareServer(daemon, built_here("bare_server"))
        program, token = built_here("sse_readers"), daemon.token("viewer")

        def readers(port, path, count):
            return Readers(program, port, path, token, count)
        events = max(5, round(seconds / ROUNDS / len(CASES) / 2 / EACH_SECONDS))
        for name, count in CASES.items():
            measured = Measured(lab, name, readers, daemon, bare, count)
            for _ in range(ROUNDS):
                measured.round(events)
            measured.end()
        bare.end()
        resume(lab, daemon, readers)
