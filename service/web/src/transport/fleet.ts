// SPDX-License-Identifier: Apache-2.0
// Calls of a fleet's API, and the transport to one of its hosts.
import { path as pathOf, pathOfHost } from "../model/paths";
import { callsOver, randomKey } from "./api";
import type { FleetHost, FleetPage, HostPatch, Stale } from "./fleet_types";
import type { Transport } from "./transport";

export type FleetList =
  | "/v1/hosts" | "/v1/pfs" | "/v1/vms" | "/v1/attachments";

export interface FleetApi {
  host(name: string): Promise<FleetHost>;
  // Page by page, because of a large fleet a reader keeps only what it shows. Returns which hosts
  // what it read of may be old.
  each<T>(list: FleetList, query: Readonly<Record<string, string>>, take: (items: T[]) => void):
    Promise<readonly Stale[]>;
  patch(host: string, patch: HostPatch): Promise<void>;
  fence(host: string, evidence: string): Promise<void>;
  unfence(host: string): Promise<void>;
  confirm(host: string): Promise<void>; // what a quarantined host reports
  expel(host: string): Promise<void>;
}

export function isFleet(about: { name: string; features?: readonly string[] }): boolean {
  return about.name === "vfmgr-fleetd" || about.features?.includes("fleet") === true;
}

export function fleetApiOver(transport: Transport, onUnauthorized: () => void): FleetApi {
  const call = callsOver(transport, onUnauthorized);
  const write = async (method: string, path: string, host: string, body?: unknown) => {
    await call(method, pathOf(path, { host }), body, { "Idempotency-Key": randomKey() });
  };
  return {
    async host(name) {
      return (await call("GET", pathOf("/v1/hosts/{name}", { name }))).body as FleetHost;
    },
    async each<T>(list: FleetList, query: Readonly<Record<string, string>>,
                  take: (items: T[]) => void) {
      const stale = new Map<string, Stale>();
      let cursor: string | null = null;
      do {
        const place = cursor === null ? {} : { cursor };
        const answer = await call("GET", pathOf(list, {}, { ...query, ...place }));
        const page = answer.body as FleetPage<T>;
        take(page.items);
        for (const one of page.stale ?? []) stale.set(one.host, one);
        cursor = page.next;
      } while (cursor !== null);
      return [...stale.values()];
    },
    patch: (host, patch) => write("PATCH", "/v1/hosts/{host}", host, patch),
    fence: (host, evidence) => write("POST", "/v1/hosts/{host}/fenced", host, { evidence }),
    unfence: host => write("DELETE", "/v1/hosts/{host}/fenced", host),
    confirm: host => write("POST", "/v1/hosts/{host}/confirm", host),
    expel: host => write("DELETE", "/v1/hosts/{host}", host),
  };
}

// Streams and long polls go the same way.
export function transportTo(host: string, fleet: Transport): Transport {
  return {
    request: (method, path, body, headers) =>
      fleet.request(method, pathOfHost(host, path), body, headers),
    stream: (path, reader) => fleet.stream(pathOfHost(host, path), reader),
  };
}
