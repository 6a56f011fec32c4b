// SPDX-License-Identifier: Apache-2.0
// Events that are kept, read from a stream that ends once it has them.
import { frameParser } from "../model/sse";
import type { Frame } from "../model/sse";
import type { Transport } from "./transport";
import type { Event } from "./types";

export interface EventPage {
  events: Event[]; // oldest first
  lost: boolean; // some of what was asked for is no longer kept
}

// The number of the latest event.
export async function eventPlace(transport: Transport): Promise<number> {
  let place = 0;
  await readUntil(transport, "/v1/events", frame => {
    if (frame.event !== "current") return false;
    place = Number(frame.id);
    return true;
  });
  return place;
}

// Those numbered after `after`, up to `last`. Of a tenant, who may not see the last one, the
// stream's first comment ends the page.
export async function eventsBetween(transport: Transport, after: number, last: number):
    Promise<EventPage> {
  const page: EventPage = { events: [], lost: false };
  await readUntil(transport, `/v1/events?after=${after}`, frame => {
    page.lost ||= frame.event === "resync";
    if (frame.event === "" && frame.data !== "" && Number(frame.id) <= last)
      page.events.push(JSON.parse(frame.data) as Event);
    return page.lost || Number(frame.id) >= last;
  });
  return page;
}

// Ends the stream at the frame for which `take` returns true.
async function readUntil(transport: Transport, path: string,
                         take: (frame: Frame) => boolean): Promise<void> {
  const ended = new AbortController();
  const parse = frameParser();
  try {
    await transport.stream(path, {
      lastEventId: null, signal: ended.signal, onOpen: () => undefined,
      onBytes: part => {
        if (!ended.signal.aborted && parse(part).some(take)) ended.abort();
      },
    });
  } catch (error) {
    if (!ended.signal.aborted) throw error;
  }
}
