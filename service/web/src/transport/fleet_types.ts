// SPDX-License-Identifier: Apache-2.0
// Bodies of a fleet's API; api/types/fleet_host.hpp has the host's. What it says of things on hosts
// is the host's own, with the host's name first.
import type { Event } from "./types";

export type OfHost<T> = T & { host: string };
export type FleetEvent = OfHost<Event>;

export interface Statement {
  at: string;
  by: string;
  reason: string;
}

export interface FleetHost {
  name: string;
  url: string;
  public_key: string;
  state: "joining" | "active" | "quarantined" | "leaving";
  reason: string;
  labels: Readonly<Record<string, string>>;
  rack: string | null;
  cordoned: Statement | null;
  fenced: Statement | null;
  joined_at: string;
  joined_by: string;
  unreachable_since: string | null;
  unreachable_why: string | null;
  observed: {
    observed_at: string; version: string;
    pfs: number; vfs: number; free_vfs: number; attachments: number; vms: number;
  } | null;
}

// A host of which a page may show what no longer is so.
export interface Stale {
  host: string;
  since: string;
  why?: string;
}

export interface FleetPage<T> {
  items: T[];
  next: string | null;
  stale?: Stale[];
}

export interface HostPatch {
  cordoned: boolean;
  reason?: string;
}
