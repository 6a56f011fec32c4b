// SPDX-License-Identifier: Apache-2.0
// One timeline of events and operations. An operation's events belong to its entry; an event names
// the one that caused it, and those that it caused.
import type { Event, Operation } from "../transport/types";
import { severityOf, SEVERITIES, topicOf, TOPICS, worstOf } from "./events";
import type { Severity, Topic } from "./events";

export interface Entry {
  key: string;
  at: string; // when it began
  operation: string | null; // its id
  known: Operation | null; // null: an event's own entry, or an operation that is not read
  events: Event[]; // oldest first
  severity: Severity;
  topics: readonly Topic[];
}

export interface Joined {
  entries: Entry[]; // newest first
  byNumber: ReadonlyMap<number, Event>;
  causedBy: ReadonlyMap<number, readonly Event[]>; // by the number of their cause
}

// Events are newest first and complete since `since` (milliseconds); an operation that began before
// is an entry only if one of these events is its.
export function joined(events: readonly Event[], operations: ReadonlyMap<string, Operation>,
                       since: number): Joined {
  const all: Entry[] = [];
  const ofOperations = new Map<string, Entry>();
  const byNumber = new Map<number, Event>();
  const causedBy = new Map<number, Event[]>();
  for (let at = events.length - 1; at >= 0; --at) {
    const event = events[at]!;
    byNumber.set(event.number, event);
    if (event.because_of !== null)
      causedBy.set(event.because_of, [...causedBy.get(event.because_of) ?? [], event]);
    if (event.operation === null) {
      all.push(newEntry(`event ${event.number}`, event.at, null, null, [event]));
      continue;
    }
    const entry = ofOperations.get(event.operation);
    if (entry !== undefined) entry.events.push(event);
    else ofOperations.set(event.operation, newEntry(`operation ${event.operation}`, event.at,
      event.operation, operations.get(event.operation) ?? null, [event]));
  }
  for (const operation of operations.values()) {
    const { id, created_at } = operation;
    if (ofOperations.has(id) || Date.parse(created_at) < since) continue;
    ofOperations.set(id, newEntry(`operation ${id}`, created_at, id, operation, []));
  }
  all.push(...ofOperations.values());
  for (const entry of all) finish(entry);
  all.sort((one, other) => one.at < other.at ? 1 : one.at > other.at ? -1
    : last(other) - last(one));
  return { entries: all, byNumber, causedBy };
}

function last(entry: Entry): number {
  return entry.events.at(-1)?.number ?? 0;
}

function newEntry(key: string, at: string, operation: string | null, known: Operation | null,
                  events: Event[]): Entry {
  return {
    key, at: known?.created_at ?? at, operation, known, events, severity: "normal", topics: [],
  };
}

function finish(entry: Entry): void {
  const { known, events } = entry;
  const [first] = events;
  if (entry.operation === null && first !== undefined) {
    // It has no other. Thousands of such are joined again whenever events come.
    entry.severity = severityOf(first);
    entry.topics = [topicOf(first)];
    return;
  }
  entry.severity = worstOf([...events.map(severityOf),
    known?.state === "failed" ? "trouble" : "normal"]);
  entry.topics = [...new Set([...events.map(topicOf),
    ...entry.operation === null ? [] : ["operations" as const]])];
}

export interface Filter {
  severity: Severity | ""; // at least this one; "": all
  topic: Topic | "";
  words: string; // each must be in it
}

export function filterOf(query: ReadonlyMap<string, string>): Filter {
  return {
    severity: SEVERITIES.find(one => one === query.get("severity")) ?? "",
    topic: TOPICS.find(one => one === query.get("topic")) ?? "",
    words: query.get("words") ?? "",
  };
}

export function filterQueryOf(filter: Filter): Record<string, string> {
  return Object.fromEntries(Object.entries(filter).filter(([, value]) => value !== ""));
}

export function matching(entries: readonly Entry[], filter: Filter): readonly Entry[] {
  const words = filter.words.toLowerCase().split(/\s+/).filter(word => word !== "");
  const most = filter.severity === "" ? SEVERITIES.length - 1 : SEVERITIES.indexOf(filter.severity);
  if (words.length === 0 && filter.topic === "" && filter.severity === "") return entries;
  return entries.filter(entry => SEVERITIES.indexOf(entry.severity) <= most
    && (filter.topic === "" || entry.topics.includes(filter.topic))
    && (words.length === 0 || says(entry, words)));
}

function says(entry: Entry, words: readonly string[]): boolean {
  const texts = entry.events.map(textOf);
  if (entry.known !== null) texts.push(textOf(entry.known));
  return words.every(word => texts.some(text => text.includes(word)));
}

// Made once for each body, however often the timeline is drawn.
const texts = new WeakMap<object, string>();

function textOf(body: Event | Operation): string {
  let text = texts.get(body);
  if (text === undefined) {
    text = wordsOf(body).join("\n").toLowerCase();
    texts.set(body, text);
  }
  return text;
}

function wordsOf(body: object): string[] {
  return Object.values(body).flatMap((value: unknown) =>
    typeof value === "string" ? [value, value.replaceAll("_", " ")]
      : typeof value === "object" && value !== null ? wordsOf(value)
        : value === null ? [] : [String(value)]);
}

// Milliseconds; null: it has not ended.
export function tookMs({ created_at, finished_at }: Operation): number | null {
  return finished_at === null ? null : Date.parse(finished_at) - Date.parse(created_at);
}
