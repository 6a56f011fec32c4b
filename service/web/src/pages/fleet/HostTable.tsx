// SPDX-License-Identifier: Apache-2.0
// The hosts as a table, for sorting, for copying, and for those who read tables first.
import { useAll } from "../../live/hooks";
import { conditionsOf } from "../../model/fleet";
import { useKept } from "../../parts/kept";
import { Table } from "../../parts/Table";
import type { ShownColumn } from "../../parts/Table";
import { When } from "../../parts/When";
import { text } from "../../text/en";
import type { FleetEvent, FleetHost, Stale } from "../../transport/fleet_types";
import { useFleet } from "./context";
import { hrefOfHost } from "./links";

const words = text.fleet.table;
const STEP = 100;

interface Row {
  host: FleetHost;
  proved: number | null; // null: attachments are not read
  failed: number | null;
  event: FleetEvent | undefined;
  stale: string | null;
}

const when = (at: string | null) => at === null ? "" : <When at={at} />;
const reasons = ({ reason, fenced, cordoned, unreachable_why }: FleetHost): string =>
  [fenced?.reason, reason, unreachable_why, cordoned?.reason].filter(Boolean).join("; ");

const columns: readonly ShownColumn<Row>[] = [
  { name: "host", title: words.host, value: ({ host }) => host.name },
  { name: "rack", title: words.rack, value: ({ host }) => host.rack ?? "" },
  { name: "condition", title: words.condition, value: ({ host }) =>
    conditionsOf(host).map(text.fleet.condition).join(", ") },
  { name: "why", title: words.why, value: ({ host }) => reasons(host) },
  { name: "unreachable_since", title: words.since, value: ({ host }) => host.unreachable_since,
    shown: ({ host }) => when(host.unreachable_since) },
  { name: "free_vfs", title: words.free, value: ({ host }) => host.observed?.free_vfs ?? null },
  { name: "vfs", title: words.vfs, value: ({ host }) => host.observed?.vfs ?? null },
  { name: "attachments", title: words.attachments,
    value: ({ host }) => host.observed?.attachments ?? null },
  { name: "vms", title: words.vms, value: ({ host }) => host.observed?.vms ?? null },
  { name: "proved", title: words.proved, value: row => row.proved },
  { name: "failed", title: words.failed, value: row => row.failed },
  { name: "labels", title: words.labels, value: ({ host }) =>
    Object.entries(host.labels).map(([key, value]) => `${key}=${value}`).join(" ") },
  { name: "version", title: words.version, value: ({ host }) => host.observed?.version ?? null },
  { name: "observed_at", title: words.observed, value: ({ host }) =>
    host.observed?.observed_at ?? null,
    shown: ({ host }) => when(host.observed?.observed_at ?? null) || text.notReported },
  { name: "stale_since", title: text.fleet.stale.column, value: row => row.stale,
    shown: row => when(row.stale) },
  { name: "event", title: words.event, value: ({ event }) => event?.kind ?? "",
    shown: ({ event }) => event === undefined ? ""
      : <>{text.fleet.lastEvent(event.kind)} <When at={event.at} /></> },
];

export function HostTable(props: {
  hosts: readonly FleetHost[]; stale: ReadonlyMap<string, Stale>;
}) {
  const [open, setOpen] = useKept("table", false);
  return (
    <details class="table-below" open={open} onToggle={event => setOpen(event.currentTarget.open)}>
      <summary>{words.summary}</summary>
      {open && <Rows {...props} />}
    </details>
  );
}

function Rows({ hosts, stale }: {
  hosts: readonly FleetHost[]; stale: ReadonlyMap<string, Stale>;
}) {
  const { store } = useFleet();
  useAll(store.proofs);
  useAll(store.lastEvents);
  const none = store.attachments.status.loaded ? 0 : null;
  const rows = hosts.map((host): Row => ({
    host, event: store.lastEvents.get(host.name), stale: stale.get(host.name)?.since ?? null,
    proved: store.proofs.get(host.name)?.proved ?? none,
    failed: store.proofs.get(host.name)?.failed ?? none,
  }));
  return (
    <Table caption={words.caption} items={rows} columns={columns} step={STEP}
           keyOf={({ host }) => host.name} href={({ host }) => hrefOfHost(host.name)} />
  );
}
