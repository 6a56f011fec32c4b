# SPDX-License-Identifier: Apache-2.0
"""How each answer of GET /v1/events that api/openapi.yaml describes is provoked."""

from event_stream import EventStream, FirstFrame


class EventAnswers:
    def followEvents_200_EventPlace(self, query=""):
        def call(method, path, body=None, **headers):
            return FirstFrame(EventStream(self.daemon, query, **headers))
        return self.asker.ask(self.operations["followEvents"], call, "GET", "/v1/events" + query)

    def followEvents_200_Event(self):
        self.followEvents_200_EventPlace("?after=0")

    def followEvents_503(self):
        streams = [EventStream(self.daemon) for _ in range(4)]
        self.ask("followEvents")
        for one in streams:
            one.close()
