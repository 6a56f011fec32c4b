# SPDX-License-Identifier: Apache-2.0
"""A reader of GET /v1/events: frame by frame, as a client of any language would read them."""

import http.client
import json
import ssl
from dataclasses import dataclass, field

from live_daemon import UnixConnection


@dataclass
class Frame:
    id: str = ""
    event: str = ""
    data: list = field(default_factory=list)

    @property
    def body(self):
        return json.loads("\n".join(self.data))


class FirstFrame:
    """A stream's answer with the body of its first frame, to be judged like any other answer."""

    def __init__(self, stream):
        self.status, self.headers = stream.response.status, stream.response.headers
        if self.status == 200:
            self.body = stream.next().body
            self.text = json.dumps(self.body).encode()
        else:
            self.text = stream.response.read()
            self.body = json.loads(self.text)
        stream.close()

    def __str__(self):
        return f"{self.status} {self.text.decode()[:500]}"


class EventStream:
    def __init__(self, daemon, query="", method="GET", connection=None, **headers):
        self.connection = connection or UnixConnection(daemon.socket)
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        self.connection.request(method, "/v1/events" + query, None, headers)
        self.response = self.connection.getresponse()
        self.last_id = None

    def frame(self):
        """Returns the next frame, or None when the stream has ended, or was cut."""
        frame = Frame()
        while line := self.line():
            line = line.rstrip("\n")
            if not line:
                self.last_id = frame.id or self.last_id
                return frame
            name, _, value = line.partition(": ")
            if name == "data":
                frame.data.append(value)
            elif name in ("id", "event"):
                setattr(frame, name, value)
        return None

    def line(self):
        try:
            return self.response.readline().decode()
        except (http.client.IncompleteRead, ConnectionError, ssl.SSLEOFError):
            return ""

    def next(self):
        """Returns the next frame with data, or None when the stream has ended."""
        while frame := self.frame():
            if frame.data:
                return frame
        return None

    def until(self, kind):
        """Returns the events up to the first of that kind, which is the last."""
        events = []
        while not events or events[-1]["kind"] != kind:
            frame = self.next()
            assert frame, f"the stream ended before {kind}: {events}"
            assert not frame.event, frame
            assert str(frame.body["number"]) == frame.id
            events.append(frame.body)
        return events

    def ends(self):
        """Reads to the end; returns the frames."""
        frames = []
        while frame := self.next():
            frames.append(frame)
        self.close()
        return frames

    def close(self):
        self.response.close()
        self.connection.close()


def kinds(events):
    return [event["kind"] for event in events]
