// SPDX-License-Identifier: Apache-2.0
// What every page of a fleet has.
import { createContext } from "preact";
import { useContext, useEffect } from "preact/hooks";
import { useAll, useStatus } from "../../live/hooks";
import type { FleetStore } from "../../live/fleet";
import type { AnyPart } from "../../live/part";
import { staleOf } from "../../model/fleet";
import type { Person } from "../../parts/context";
import type { Stale } from "../../transport/fleet_types";

export interface Fleet extends Person {
  store: FleetStore;
}

export const FleetContext = createContext<Fleet | null>(null);

export function useFleet(): Fleet {
  const here = useContext(FleetContext);
  if (here === null) throw new Error("outside of FleetContext");
  return here;
}

// Follows lists while the page is there. Draws it again when what they say of themselves changes.
export function useParts(...parts: readonly AnyPart[]): void {
  const { store } = useFleet();
  useStatus(store);
  useEffect(() => {
    const ends = parts.map(part => part.follow());
    return () => { for (const end of ends) end(); };
  }, [store]);
}

export function useStale(...parts: readonly AnyPart[]): ReadonlyMap<string, Stale> {
  const { store } = useFleet();
  const hosts = useAll(store.hosts.rows);
  useStatus(store);
  return staleOf([store.hosts, ...parts].map(part => part.status.stale), hosts);
}
