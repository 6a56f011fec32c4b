// SPDX-License-Identifier: Apache-2.0
// Hosts of a fleet as a person finds them: by rack, label, condition and words.
import type { FleetHost, Stale } from "../transport/fleet_types";

// Worst first. A host may be in several; nothing of them hides another.
export const CONDITIONS = [
  "fenced", "quarantined", "unreachable", "leaving", "cordoned", "joining", "active",
] as const;
export type Condition = typeof CONDITIONS[number];

export function conditionsOf(host: FleetHost): Condition[] {
  const is: Readonly<Record<Condition, boolean>> = {
    fenced: host.fenced !== null,
    quarantined: host.state === "quarantined",
    unreachable: host.unreachable_since !== null,
    leaving: host.state === "leaving",
    cordoned: host.cordoned !== null,
    joining: host.state === "joining",
    active: host.state === "active",
  };
  const all = CONDITIONS.filter(one => is[one]);
  // Nothing is the matter with an active host, so of others it says nothing.
  return all.length > 1 ? all.filter(one => one !== "active") : all;
}

const collator = new Intl.Collator("en", { numeric: true });
export const byName = (one: string, other: string): number => collator.compare(one, other);

export interface Rack {
  name: string | null; // null: of hosts that have none
  hosts: FleetHost[];
}

export function racksOf(hosts: readonly FleetHost[]): Rack[] {
  const racks = new Map<string | null, FleetHost[]>();
  for (const host of hosts) {
    const those = racks.get(host.rack);
    if (those === undefined) racks.set(host.rack, [host]);
    else those.push(host);
  }
  return [...racks].map(([name, those]) => ({ name, hosts: those }))
    .sort((one, other) => one.name === null ? 1 : other.name === null ? -1
      : byName(one.name, other.name));
}

// The racks with the first hosts alone; `all`: how many there are in each.
export function firstOf(racks: readonly Rack[], most: number): (Rack & { all: number })[] {
  let left = most;
  return racks.map(({ name, hosts }) => {
    const first = hosts.slice(0, Math.max(0, left));
    left -= hosts.length;
    return { name, hosts: first, all: hosts.length };
  }).filter(rack => rack.hosts.length > 0);
}

export const NO_RACK = "(none)"; // no rack can have this name
export interface HostFilter {
  rack: string; // "": whichever
  label: string; // "key" or "key=value"
  condition: Condition | "";
  words: string; // each must be in it
}

export function hostFilterOf(query: ReadonlyMap<string, string>): HostFilter {
  return {
    rack: query.get("rack") ?? "",
    label: query.get("label") ?? "",
    condition: CONDITIONS.find(one => one === query.get("condition")) ?? "",
    words: query.get("words") ?? "",
  };
}

export function matchingHosts(hosts: readonly FleetHost[], filter: HostFilter):
    readonly FleetHost[] {
  const words = wordsOf(filter.words);
  const [key = "", value] = filter.label.trim().split("=", 2);
  if (filter.rack === "" && key === "" && filter.condition === "" && words.length === 0)
    return hosts;
  return hosts.filter(host =>
    (filter.rack === "" || (host.rack ?? NO_RACK) === filter.rack)
    && (key === "" || (Object.hasOwn(host.labels, key)
      && (value === undefined || host.labels[key] === value)))
    && (filter.condition === "" || conditionsOf(host).includes(filter.condition))
    && (words.length === 0 || saysAll(textOf(host), words)));
}

export function wordsOf(given: string): string[] {
  return given.toLowerCase().split(/\s+/).filter(word => word !== "");
}

export function saysAll(text: string, words: readonly string[]): boolean {
  return words.every(word => text.includes(word));
}

// Made once for each body, however often the page is drawn.
const texts = new WeakMap<FleetHost, string>();

function textOf(host: FleetHost): string {
  let text = texts.get(host);
  if (text === undefined) {
    text = [
      host.name, host.url, host.rack, host.reason, host.cordoned?.reason, host.fenced?.reason,
      host.unreachable_why, host.observed?.version, ...conditionsOf(host),
      ...Object.entries(host.labels).map(([key, value]) => `${key}=${value}`),
    ].join("\n").toLowerCase();
    texts.set(host, text);
  }
  return text;
}

export interface Sums {
  hosts: number;
  vfs: number;
  free: number;
  attachments: number;
  vms: number;
  unobserved: number; // hosts whose figures are not among these
  conditions: Readonly<Record<Condition, number>>;
}

export function sumsOf(hosts: readonly FleetHost[]): Sums {
  const conditions = Object.fromEntries(CONDITIONS.map(one => [one, 0])) as
    Record<Condition, number>;
  const sums = { hosts: hosts.length, vfs: 0, free: 0, attachments: 0, vms: 0, unobserved: 0 };
  for (const host of hosts) {
    for (const one of conditionsOf(host)) ++conditions[one];
    const { observed } = host;
    if (observed === null) ++sums.unobserved;
    sums.vfs += observed?.vfs ?? 0;
    sums.free += observed?.free_vfs ?? 0;
    sums.attachments += observed?.attachments ?? 0;
    sums.vms += observed?.vms ?? 0;
  }
  return { ...sums, conditions };
}

// Of which hosts what a page shows may be old: those that the lists named when they were read, and
// those that are unreachable by now.
export function staleOf(lists: readonly (ReadonlyMap<string, Stale>)[],
                        hosts: readonly FleetHost[]): ReadonlyMap<string, Stale> {
  const stale = new Map<string, Stale>();
  for (const { name, unreachable_since, unreachable_why } of hosts) {
    if (unreachable_since === null) continue;
    stale.set(name, { host: name, since: unreachable_since,
      ...unreachable_why === null ? {} : { why: unreachable_why } });
  }
  for (const list of lists) {
    for (const one of list.values()) {
      const known = stale.get(one.host);
      if (known === undefined || one.since < known.since) stale.set(one.host, one);
    }
  }
  return stale;
}
