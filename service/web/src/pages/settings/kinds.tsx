// SPDX-License-Identifier: Apache-2.0
// The sections that list objects with names, each of which is a document.
import { carriers, selection } from "../../model/settings";
import type { Route } from "../../model/paths";
import { useConsole } from "../../parts/context";
import { text } from "../../text/en";
import type { Network, Pool, Tenant } from "../../transport/types";
import { Objects } from "./Objects";
import type { Kind } from "./Objects";

const words = text.settings;

export function Networks({ route }: { route: Route }) {
  const { store } = useConsole();
  const { table } = words.networks;
  const nameOf = (pci: string): string => store.pfs.get(pci)?.info.ifname || pci;
  const kind: Kind<Network> = {
    section: "networks", path: "/v1/networks/{name}", words: words.networks,
    list: api => api.list("/v1/networks"), concerns: event => event.network,
    template: { prefix: "", mtu: 1500, pfs: [{ pf: "", host_address: "" }] },
    columns: [
      { name: "name", title: table.name, value: one => one.name ?? "" },
      { name: "prefix", title: table.prefix, value: one => one.prefix },
      { name: "vlan", title: table.vlan, value: one => one.vlan ?? words.networks.untagged },
      { name: "mtu", title: table.mtu, value: one => one.mtu ?? null },
      { name: "rdma", title: table.rdma, value: one => one.rdma ?? null },
      { name: "dscp", title: table.dscp, value: one => one.dscp ?? text.none },
      { name: "pfs", title: table.pfs, value: one => carriers(one, nameOf) },
      { name: "ranges", title: table.ranges, value: one => (one.ranges ?? []).join(", ") },
    ],
  };
  return <Objects kind={kind} route={route} />;
}

const pools: Kind<Pool> = {
  section: "pools", path: "/v1/pools/{name}", words: words.pools,
  list: api => api.list("/v1/pools"), concerns: event => event.pool,
  template: { select: { pfs: [] }, defaults: {} },
  columns: [
    { name: "name", title: words.pools.table.name, value: one => one.name ?? "" },
    { name: "select", title: words.pools.table.select,
      value: one => one.select === undefined ? null : selection(one) || words.pools.everyVf },
    { name: "network", title: words.pools.table.network,
      value: one => one.defaults?.network ?? text.none },
    { name: "verify", title: words.pools.table.verify,
      value: one => one.defaults?.verify ?? text.none },
    { name: "from_metadata", title: words.pools.table.metadata,
      value: one => one.from_metadata ?? false },
  ],
};

export function Pools({ route }: { route: Route }) {
  return <Objects kind={pools} route={route} />;
}

const limit = (value: number | undefined): number | string => value ?? words.tenants.noLimit;
const tenants: Kind<Tenant> = {
  section: "tenants", path: "/v1/tenants/{name}", words: words.tenants,
  list: api => api.list("/v1/tenants"), concerns: event => event.tenant,
  template: { vms: [], networks: [], pools: [], quota: {} },
  columns: [
    { name: "name", title: words.tenants.table.name, value: one => one.name ?? "" },
    { name: "vms", title: words.tenants.table.vms, value: one => one.vms?.length ?? 0 },
    { name: "networks", title: words.tenants.table.networks,
      value: one => (one.networks ?? []).join(", ") || text.none },
    { name: "pools", title: words.tenants.table.pools,
      value: one => (one.pools ?? []).join(", ") || text.none },
    { name: "attachments", title: words.tenants.table.attachments,
      value: one => limit(one.quota?.attachments) },
    { name: "reserved_vfs", title: words.tenants.table.reserved,
      value: one => limit(one.quota?.reserved_vfs) },
    { name: "verification_minutes", title: words.tenants.table.minutes,
      value: one => limit(one.quota?.verification_minutes) },
  ],
};

export function Tenants({ route }: { route: Route }) {
  return <Objects kind={tenants} route={route} />;
}
