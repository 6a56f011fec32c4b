// SPDX-License-Identifier: Apache-2.0
// Settings in a few words, for the tables that list them.
import type { Event, Network, Pool } from "../transport/types";

// "lab 192.168.100.1": the PFs that carry a network, by the names that people know.
export function carriers(network: Network, nameOf: (pci: string) => string): string {
  return (network.pfs ?? []).map(({ pf, host_address }) => `${nameOf(pf)} ${host_address}`)
    .join(", ");
}

// What a pool selects VFs by; empty: it selects every VF.
export function selection(pool: Pool): string {
  const { labels = {}, rdma, ...lists } = pool.select ?? {};
  const given = Object.entries(lists).filter(([, values]) => values.length > 0)
    .map(([name, values]) => `${name.replaceAll("_", " ")} ${values.join(" or ")}`);
  const marked = Object.entries(labels).map(([name, value]) => `${name}=${value}`);
  return [...given, ...marked, ...(rdma === undefined ? [] : [`rdma ${rdma}`])].join(", ");
}

const OF_DESIRED: ReadonlySet<Event["kind"]> = new Set([
  "network_changed", "network_removed", "pool_changed", "pool_removed", "identities_changed",
  "pf_configured", "pf_forgotten", "pf_rekeyed", "rdma_link_configured", "rdma_link_removed",
]);

// Whether an event may have changed the desired document.
export function changesDesired(event: Event): boolean {
  return OF_DESIRED.has(event.kind);
}

// Whether it may have changed the spec of this PF.
export function changesPfSpec(event: Event, pci: string): boolean {
  return event.kind === "pf_rekeyed"
    || (event.pf === pci && (event.kind === "pf_configured" || event.kind === "pf_forgotten"));
}
