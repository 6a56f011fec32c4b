// SPDX-License-Identifier: Apache-2.0
// A fleet's events as they come, newest first. After a resume some come again: those of the same
// host, number and time are one. The time counts, because a host with a restored store gives
// numbers anew.
import type { FleetEvent } from "../transport/fleet_types";
import { severityOf, SEVERITIES, topicOf } from "./events";
import { saysAll, wordsOf } from "./fleet";
import type { Filter } from "./timeline";

export const FLEET_EVENTS_MAX = 5000;

export function eventKey({ host, number, at }: FleetEvent): string {
  return `${host} ${number} ${at}`;
}

export interface FleetLog {
  events: readonly FleetEvent[];
  keys: ReadonlySet<string>;
}

export const emptyFleetLog: FleetLog = { events: [], keys: new Set() };

// `newer` is oldest first.
export function withEvents(log: FleetLog, newer: readonly FleetEvent[]): FleetLog {
  const keys = new Set(log.keys);
  const added: FleetEvent[] = [];
  for (const event of newer) {
    const key = eventKey(event);
    if (keys.has(key)) continue;
    keys.add(key);
    added.push(event);
  }
  if (added.length === 0) return log;
  const all = [...added.reverse(), ...log.events];
  for (const gone of all.slice(FLEET_EVENTS_MAX)) keys.delete(eventKey(gone));
  return { events: all.slice(0, FLEET_EVENTS_MAX), keys };
}

export interface FleetFilter extends Filter {
  host: string; // "": all
}

export function matchingEvents(events: readonly FleetEvent[], filter: FleetFilter):
    readonly FleetEvent[] {
  const words = wordsOf(filter.words);
  const host = filter.host.trim();
  const most = filter.severity === "" ? SEVERITIES.length - 1
    : SEVERITIES.indexOf(filter.severity);
  if (words.length === 0 && host === "" && filter.topic === "" && filter.severity === "")
    return events;
  return events.filter(event => (host === "" || event.host === host)
    && SEVERITIES.indexOf(severityOf(event)) <= most
    && (filter.topic === "" || topicOf(event) === filter.topic)
    && (words.length === 0 || saysAll(textOf(event), words)));
}

const texts = new WeakMap<FleetEvent, string>();

function textOf(event: FleetEvent): string {
  let text = texts.get(event);
  if (text === undefined) {
    const { host, kind, pf, vm, vm_uuid, attachment, operation, network, detail } = event;
    text = [host, kind, kind.replaceAll("_", " "), pf, vm, vm_uuid, attachment, operation, network,
      detail].filter(one => one !== null).join("\n").toLowerCase();
    texts.set(event, text);
  }
  return text;
}
