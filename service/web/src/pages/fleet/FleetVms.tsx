// SPDX-License-Identifier: Apache-2.0
// VMs of all hosts with what they hold.
import { useMemo } from "preact/hooks";
import { useAll } from "../../live/hooks";
import { matchingHosts } from "../../model/fleet";
import { fleetVmRows } from "../../model/fleet_rows";
import type { FleetVmRow } from "../../model/fleet_rows";
import type { Route } from "../../model/paths";
import { distinct } from "../../model/problems";
import { ProblemBox } from "../../parts/ProblemBox";
import { Table } from "../../parts/Table";
import type { ShownColumn } from "../../parts/Table";
import { When } from "../../parts/When";
import { text } from "../../text/en";
import { useFleet, useParts, useStale } from "./context";
import { HostFilterForm, useHostFilter } from "./HostFilterForm";
import { hrefOfVm } from "./links";
import { StaleNote } from "./StaleNote";

const words = text.fleet.vms;
const STEP = 100;

interface Row {
  vm: FleetVmRow;
  rack: string;
  stale: string | null;
}

const names = words.table;
const columns: readonly ShownColumn<Row>[] = [
  { name: "vm", title: names.vm, value: ({ vm }) => vm.name },
  { name: "host", title: names.host, value: ({ vm }) => vm.host },
  { name: "rack", title: names.rack, value: row => row.rack },
  { name: "state", title: names.state, value: ({ vm }) => text.vmState(vm.state) },
  { name: "vfs", title: names.held, value: ({ vm }) => vm.held },
  { name: "proved", title: names.proved, value: ({ vm }) => vm.proved },
  { name: "failed", title: names.failed, value: ({ vm }) => vm.failed },
  { name: "addresses", title: names.addresses, value: ({ vm }) => vm.addresses },
  { name: "stale_since", title: text.fleet.stale.column, value: row => row.stale,
    shown: row => row.stale === null ? "" : <When at={row.stale} /> },
];

export function FleetVms({ route }: { route: Route }) {
  const { store } = useFleet();
  useParts(store.vms, store.attachments);
  const hosts = useAll(store.hosts.rows);
  const vms = useAll(store.vms.rows);
  const held = useAll(store.attachments.rows);
  const stale = useStale(store.vms, store.attachments);
  const [filter, change] = useHostFilter(route);
  const rows = useMemo(() => {
    const byName = new Map(matchingHosts(hosts, filter).map(host => [host.name, host]));
    return fleetVmRows(vms, held).filter(vm => byName.has(vm.host)).map((vm): Row => ({
      vm, rack: byName.get(vm.host)!.rack ?? "", stale: stale.get(vm.host)?.since ?? null,
    }));
  }, [hosts, vms, held, filter, [...stale.keys()].join()]);
  const parts = [store.vms, store.attachments];
  const loaded = parts.every(part => part.status.loaded);
  return (
    <>
      <h1>{text.fleet.pages.vms}</h1>
      {distinct(parts.flatMap(part => part.status.problem ?? [])).map(problem => (
        <ProblemBox key={`${problem.code} ${problem.detail}`} problem={problem} again={() => {
          for (const part of parts) part.everything();
        }} />
      ))}
      {!loaded && <p role="status">{text.fleet.reading}</p>}
      {loaded && (
        <>
          <HostFilterForm hosts={hosts} filter={filter} change={change} />
          <StaleNote stale={stale} />
          <Table caption={words.caption} items={rows} columns={columns} step={STEP}
                 keyOf={({ vm }) => `${vm.host} ${vm.name}`}
                 href={({ vm }) => hrefOfVm(vm.host, vm.name)}
                 order={{ column: "vm", descending: false }} />
        </>
      )}
    </>
  );
}
