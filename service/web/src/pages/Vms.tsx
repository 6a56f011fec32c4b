// SPDX-License-Identifier: Apache-2.0
// VMs and what they hold; #/vms/NAME is one of them.
import { useAll, useStatus } from "../live/hooks";
import type { Route } from "../model/paths";
import { vmRows } from "../model/vms";
import type { VmRow } from "../model/vms";
import { useConsole } from "../parts/context";
import { ProblemBox } from "../parts/ProblemBox";
import { Table } from "../parts/Table";
import type { ShownColumn } from "../parts/Table";
import { VerdictMark } from "../parts/VerdictMark";
import { Ago } from "../parts/When";
import { text } from "../text/en";
import { hrefOfVm } from "./links";
import { VmPage } from "./vms/VmPage";

const words = text.vms.table;
const columns: readonly ShownColumn<VmRow>[] = [
  { name: "vm", title: words.vm, value: vm => vm.name },
  { name: "state", title: words.state, value: vm => text.vmState(vm.state) },
  { name: "vfs", title: words.vfs, value: vm => vm.attachments.length },
  { name: "proved", title: words.proved, value: vm => vm.proved },
  { name: "addresses", title: words.addresses, value: vm => vm.addresses.join(" ") },
  { name: "verdict", title: words.verdict, value: vm => vm.worst,
    shown: vm => <VerdictMark verdict={vm.worst} /> },
  { name: "verified_at", title: words.verifiedAt, value: vm => vm.verifiedAt,
    shown: vm => vm.verifiedAt === null ? text.never : <Ago at={vm.verifiedAt} /> },
];

export function Vms({ route }: { route: Route }) {
  const { store } = useConsole();
  const { loaded, problems } = useStatus(store);
  const vms = useAll(store.vms);
  const attachments = useAll(store.attachments);
  const name = route.parts[1];
  const problem = problems.get("vms") ?? problems.get("attachments");
  const rows = vmRows(vms, attachments);
  if (!loaded.has("vms") || !loaded.has("attachments"))
    return <><h1>{name ?? text.pages.vms}</h1><p role="status">{text.frame.reading}</p></>;
  if (name !== undefined) {
    const vm = rows.find(one => one.name === name || one.uuid === name);
    return <VmPage key={name} name={name} vm={vm} route={route} />;
  }
  return (
    <>
      <h1>{text.pages.vms}</h1>
      {problem && <ProblemBox problem={problem} />}
      <Table caption={words.caption} items={rows} columns={columns}
             keyOf={vm => vm.uuid ?? vm.name} href={vm => hrefOfVm(vm.name)}
             order={{ column: "vm", descending: false }} />
    </>
  );
}
