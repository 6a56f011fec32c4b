# SPDX-License-Identifier: Apache-2.0
"""Readers of the stream of events: many that tell when they had each event, and such as are cut and
resume again and again. And a daemon's log that knows when each of its lines was written.
"""

import random
import re
import resource
import socket
import struct
import subprocess
import threading
import time
from dataclasses import dataclass

from event_stream import EventStream
from on_fakes import TlsConnection

FILES_MAX = 8192
PATIENCE_SECONDS = 60
TIMESPEC = struct.Struct("qq")
SO_TIMESTAMPNS = 35


def let_open_files():
    """Raises the limit of what this process and its children may open, for 1,000 connections."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    assert hard == resource.RLIM_INFINITY or hard >= FILES_MAX, f"only {hard} files may be open"
    resource.setrlimit(resource.RLIMIT_NOFILE, (FILES_MAX, hard))


@dataclass
class Arrived:
    """An event that all readers have; times in microseconds since 1970."""
    number: int
    first: int
    middle: int
    last: int
    text: str  # as it was sent, with \n for its line ends


class Readers:
    """So many readers of a path, as a process that does nothing else."""

    def __init__(self, program, port, path, token, count):
        self.process = subprocess.Popen([program, str(port), path, token, str(count)],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout.readline() == "ready\n", "the readers could not begin"

    @staticmethod
    def command(port, path, count):
        return f"sse_readers {port} {path} TOKEN {count}"

    def next(self):
        """Returns the next event once all readers have it."""
        line = self.process.stdout.readline()
        assert line, "the readers ended: see what they wrote above"
        number, first, middle, last, text = line.rstrip("\n").split("\t")
        return Arrived(int(number), int(first), int(middle), int(last), text)

    def end(self):
        assert self.process.poll() is None, "the readers ended before the measurement"
        self.process.stdin.close()
        self.process.wait(PATIENCE_SECONDS)


class Crowd(threading.Thread):
    """So many readers whose events are kept."""

    def __init__(self, readers):
        super().__init__(daemon=True)
        self.readers, self.numbers, self.came = readers, [], threading.Condition()

    def run(self):
        while line := self.readers.process.stdout.readline():
            with self.came:
                self.numbers.append(int(line.split("\t")[0]))
                self.came.notify_all()

    def until(self, last):
        """Returns the numbers of all events up to this one; the readers end then."""
        with self.came:
            self.came.wait_for(lambda: last in self.numbers, PATIENCE_SECONDS)
            numbers = [number for number in self.numbers if number <= last]
        self.readers.end()
        return numbers


class StampedLog:
    """Stands for the file of a daemon's log: a socket, whose kernel says when a line was sent."""

    def __init__(self):
        self.ours, self.daemons = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.ours.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        self.lines, self.sent_at, self.came = [], {}, threading.Condition()
        threading.Thread(target=self.take, daemon=True).start()

    def fileno(self):
        return self.daemons.fileno()

    def take(self):
        while True:
            line, ancillary, _, _ = self.ours.recvmsg(65536, 256)
            seconds, nanoseconds = TIMESPEC.unpack(ancillary[0][2])
            event = re.search(rb" event=(\d+) ", line)
            with self.came:
                self.lines.append(line.decode())
                if event:
                    self.sent_at[int(event[1])] = seconds * 1_000_000 + nanoseconds / 1000
                self.came.notify_all()

    def at(self, number):
        """Returns when the line about an event was sent, in microseconds since 1970."""
        with self.came:
            assert self.came.wait_for(lambda: number in self.sent_at, PATIENCE_SECONDS), self.lines
            return self.sent_at[number]

    def seek(self, _):
        pass

    def read(self):
        with self.came:
            return "".join(self.lines)


class Resuming(threading.Thread):
    """A reader that is cut after a few events, and resumes, until the last event has come."""

    def __init__(self, daemon, token, after, last_kind, seed):
        """An event of `last_kind` comes once, as the last."""
        super().__init__()
        self.server, self.token, self.dice = daemon, token, random.Random(seed)
        self.after, self.last_kind, self.give_up = after, last_kind, threading.Event()
        self.numbers, self.others = [], []
        self.resumed = 0

    def run(self):
        kind = None
        while kind != self.last_kind and not self.give_up.is_set():
            try:
                kind = self.read_some()
            except OSError:  # the daemon restarts
                time.sleep(0.02)

    def read_some(self):
        """Returns the kind of the last event that it got before it was cut."""
        after = self.numbers[-1] if self.numbers else self.after
        stream = EventStream(None, connection=TlsConnection(self.server.port, "127.0.0.4"),
                             Authorization="Bearer " + self.token, Last_Event_ID=str(after))
        assert stream.response.status == 200, stream.response.read()
        self.resumed += 1
        kind = None
        for _ in range(self.dice.randint(1, 12)):
            frame = stream.next()
            if not frame:
                break
            if frame.event:
                self.others.append(frame)
                break
            self.numbers.append(frame.body["number"])
            kind = frame.body["kind"]
            if kind == self.last_kind:
                break
        stream.close()
        return kind
