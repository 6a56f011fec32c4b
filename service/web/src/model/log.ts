// SPDX-License-Identifier: Apache-2.0
// The events that a page has, newest first and without a hole: at most EVENTS_MAX of them.
import type { Event } from "../transport/types";

export const EVENTS_MAX = 5000;

export interface Log {
  events: readonly Event[];
  complete: boolean; // no older ones are kept by the host
}

export const emptyLog: Log = { events: [], complete: false };

// Events that came live, oldest first. Those that the log has are left out.
export function withNewer(log: Log, newer: readonly Event[]): Log {
  const top = log.events[0]?.number ?? 0;
  const added = newer.filter(event => event.number > top).reverse();
  if (added.length === 0) return log;
  const all = [...added, ...log.events];
  return all.length <= EVENTS_MAX ? { ...log, events: all }
    : { events: all.slice(0, EVENTS_MAX), complete: false };
}

// Events that wait to be taken, oldest first: drops those that the log would not keep, and returns
// how many. A browser draws nothing of a tab that nobody sees, but hears of everything.
export function dropOld(waiting: Event[]): number {
  if (waiting.length < 2 * EVENTS_MAX) return 0;
  return waiting.splice(0, waiting.length - EVENTS_MAX).length;
}

// A page of older ones, oldest first.
export function withOlder(log: Log, older: readonly Event[], complete: boolean): Log {
  const oldest = log.events.at(-1)?.number ?? Infinity;
  const added = older.filter(event => event.number < oldest).reverse();
  const all = [...log.events, ...added];
  return { events: all.slice(0, EVENTS_MAX), complete: complete && all.length <= EVENTS_MAX };
}
