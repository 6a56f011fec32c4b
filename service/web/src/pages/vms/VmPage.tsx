// SPDX-License-Identifier: Apache-2.0
// One VM: what it holds, and what can be done about it. What a person is about to do is in the
// page's address, so a reload loses nothing and back leaves it.
import { useEffect, useState } from "preact/hooks";
import { useAll, useRow } from "../../live/hooks";
import type { Route } from "../../model/paths";
import type { VmRow } from "../../model/vms";
import { Change } from "../../parts/Change";
import { useConsole } from "../../parts/context";
import { OperationProgress } from "../../parts/OperationProgress";
import { text } from "../../text/en";
import type { Operation } from "../../transport/types";
import { hashHere, hrefOfCertificate, hrefOfVm } from "../links";
import { Attach } from "./Attach";
import { Held } from "./Held";

interface VmPageProps {
  name: string;
  vm: VmRow | undefined;
  route: Route;
}

export function VmPage({ name, vm, route }: VmPageProps) {
  const act = route.query.get("act");
  const [begun, setBegun] = useState<string | null>(null);
  const onBegun = (operation: Operation): void => setBegun(operation.id);
  return (
    <>
      <h1>{name}</h1>
      {vm === undefined ? <p role="status">{text.vms.gone(name)}</p> : <Facts vm={vm} />}
      <div class="acts">
        {vm?.uuid != null && act !== "attach" && (
          <a class="button" href={`${hrefOfVm(name)}?act=attach`}>{text.vms.attachBegin}</a>
        )}
        {vm !== undefined && vm.attachments.length > 1 && act !== "detach" && (
          <a class="button" href={hrefOfDetach(vm)}>
            {text.vms.detachAllBegin(vm.attachments.length)}
          </a>
        )}
      </div>
      {act === "attach" && vm?.uuid != null && (
        <Attach key={[...route.query].join()} vm={vm} route={route} onBegun={onBegun} />
      )}
      {act === "detach" && (
        <Detach name={name} ids={route.query.get("ids")?.split(",") ?? []} onBegun={onBegun} />
      )}
      {vm !== undefined && <UnderWay vm={vm} except={begun} />}
      <h2>{text.vms.holds}</h2>
      {vm === undefined || vm.attachments.length === 0 ? <p>{text.vms.holdsNothing}</p> : (
        <ul class="held">
          {vm.attachments.map(one => <Held key={one.id} attachment={one} />)}
        </ul>
      )}
    </>
  );
}

function hrefOfDetach(vm: VmRow): string {
  const ids = vm.attachments.slice(0, DETACH_AT_ONCE_MAX).map(one => one.id);
  return `${hrefOfVm(vm.name)}?act=detach&ids=${ids.join(",")}`;
}

const DETACH_AT_ONCE_MAX = 32; // of the API

function Facts({ vm }: { vm: VmRow }) {
  const { store } = useConsole();
  const info = useRow(store.vms, vm.uuid);
  const facts: [string, string][] = [
    [text.vms.facts.state, text.vmState(vm.state)],
    [text.vms.facts.proved, text.vms.provedOf(vm.proved, vm.attachments.length)],
  ];
  if (info !== undefined) {
    facts.push([text.vms.facts.uuid, info.uuid],
      [text.vms.facts.ports, String(info.free_pcie_ports)],
      [text.vms.facts.vsock, text.yesNo(info.has_vsock)]);
    if (info.declared_wrong !== null) facts.push([text.vms.facts.metadata, info.declared_wrong]);
  }
  return (
    <dl class="facts">
      {facts.map(([name, value]) => <div key={name}><dt>{name}</dt><dd>{value}</dd></div>)}
    </dl>
  );
}

// The attachments go before the operation has ended, so this stands apart from them.
function Detach({ name, ids, onBegun }: {
  name: string; ids: readonly string[]; onBegun: (operation: Operation) => void;
}) {
  const { store } = useConsole();
  const [ended, setEnded] = useState<Operation | null>(null);
  const [first] = ids;
  // What it is about is read once: the attachments will be gone.
  const [what] = useState(() => text.vms.detachWhat(
    ids.map(id => store.attachments.get(id)?.vf.index ?? null), name));
  useEffect(() => setEnded(null), [ids.join()]);
  if (first === undefined) return null;
  return (
    <section class="panel" aria-label={what}>
      <h2>{what}</h2>
      {ids.length === 1
        ? <Change write={{ method: "delete", path: "/v1/attachments/{id}", values: { id: first } }}
                  act={what} confirm={name} onBegun={onBegun} onEnd={setEnded} />
        : <Change write={{ method: "delete", path: "/v1/attachments",
                           query: { ids: ids.join(",") } }}
                  act={what} confirm={name} onBegun={onBegun} onEnd={setEnded} />}
      {ended?.certificate && (
        <p role="status">
          {text.vms.clean(ended.certificate)}{" "}
          <a href={hrefOfCertificate(ended.certificate.attachment)}>
            {text.events.operation.certificate}
          </a>
        </p>
      )}
      <p><a href={hashHere("vms", name)}>{ended === null ? text.vms.leave : text.vms.close}</a></p>
    </section>
  );
}

// What runs for this VM, whoever began it, and also after a reload. What was begun in this page is
// shown where it was begun.
function UnderWay({ vm, except }: { vm: VmRow; except: string | null }) {
  const { store } = useConsole();
  const operations = useAll(store.operations).filter(operation =>
    operation.vm_uuid === vm.uuid && vm.uuid !== null && operation.finished_at === null
    && operation.id !== except);
  return <>{operations.map(one => <OperationProgress key={one.id} begun={one} />)}</>;
}
