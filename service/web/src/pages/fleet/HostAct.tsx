// SPDX-License-Identifier: Apache-2.0
// An admin's act about a host: what it means, who is hit, and then the button.
import { useEffect, useState } from "preact/hooks";
import { hashOf } from "../../model/paths";
import { fleetVmRows, heldRowOf } from "../../model/fleet_rows";
import type { FleetVmRow, HeldVf } from "../../model/fleet_rows";
import { Confirm } from "../../parts/Confirm";
import { Field } from "../../parts/fields";
import { ProblemBox } from "../../parts/ProblemBox";
import { Table } from "../../parts/Table";
import type { ShownColumn } from "../../parts/Table";
import { When } from "../../parts/When";
import { text } from "../../text/en";
import type { FleetAct } from "../../text/fleet";
import { problemIn } from "../../transport/api";
import type { FleetApi } from "../../transport/fleet";
import type { FleetHost, OfHost, Stale } from "../../transport/fleet_types";
import type { Attachment, Problem } from "../../transport/types";
import { useFleet } from "./context";
import { hrefOfFleetHost, hrefOfVm } from "./links";

const words = text.fleet.host;
const DANGEROUS: ReadonlySet<FleetAct> = new Set(["fence", "expel", "confirm"]);

function send(api: FleetApi, act: FleetAct, host: string, why: string): Promise<void> {
  switch (act) {
    case "cordon": return api.patch(host,
      { cordoned: true, ...why === "" ? {} : { reason: why } });
    case "uncordon": return api.patch(host, { cordoned: false });
    case "fence": return api.fence(host, why);
    case "unfence": return api.unfence(host);
    case "confirm": return api.confirm(host);
    case "expel": return api.expel(host);
  }
}

export function HostAct({ host, act }: { host: FleetHost; act: FleetAct }) {
  const { session } = useFleet();
  const about = text.fleet.acts[act];
  const { role } = session;
  return (
    <section class="panel" aria-label={about.title}>
      <h2>{about.title}</h2>
      {about.means(host.name).map(sentence => <p key={sentence}>{sentence}</p>)}
      <Hit host={host} intro={about.hit} />
      {role !== null && role !== "admin" ? <p class="remark">{words.notAdmin(role)}</p>
        : <Sending host={host.name} act={act} />}
      <p><a href={hrefOfFleetHost(host.name)}>{words.leave}</a></p>
    </section>
  );
}

function Sending({ host, act }: { host: string; act: FleetAct }) {
  const { store } = useFleet();
  const about = text.fleet.acts[act];
  const [why, setWhy] = useState("");
  const [isSending, setSending] = useState(false);
  const [problem, setProblem] = useState<Problem | null>(null);
  const begin = (): void => {
    setSending(true);
    setProblem(null);
    send(store.api, act, host, why.trim()).then(() => {
      store.readAgain(host);
      location.hash = act === "expel" ? hashOf() : hrefOfFleetHost(host);
    }, (error: unknown) => {
      setSending(false);
      setProblem(problemIn(error));
    });
  };
  const lacks = act === "fence" && why.trim() === "";
  return (
    <>
      {about.field !== "" && (
        <Field label={about.field} value={why} hint={about.hint} onInput={setWhy} />
      )}
      {problem && <ProblemBox problem={problem} />}
      {isSending ? <p role="status">{words.sending}</p>
        : lacks ? <p class="quiet">{words.lacks}</p>
        : DANGEROUS.has(act)
          ? <Confirm name={host} act={about.act(host)} onConfirmed={begin} />
          : <p><button type="button" onClick={begin}>{about.act(host)}</button></p>}
    </>
  );
}

interface Found {
  held: HeldVf[];
  stale: readonly Stale[];
}

const columns: readonly ShownColumn<FleetVmRow>[] = [
  { name: "vm", title: text.fleet.vms.table.vm, value: vm => vm.name },
  { name: "vfs", title: text.fleet.vms.table.held, value: vm => vm.held },
  { name: "proved", title: text.fleet.vms.table.proved, value: vm => vm.proved },
  { name: "addresses", title: text.fleet.vms.table.addresses, value: vm => vm.addresses },
];

// Asked anew, and of this host alone.
function Hit({ host, intro }: { host: FleetHost; intro: string }) {
  const { store } = useFleet();
  const [found, setFound] = useState<Found | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  const [turn, setTurn] = useState(0);
  useEffect(() => {
    let current = true;
    const held: HeldVf[] = [];
    store.api.each<OfHost<Attachment>>("/v1/attachments", { host: host.name },
      items => { held.push(...items.map(heldRowOf)); }).then(stale => {
      if (current) setFound({ held, stale });
    }, (error: unknown) => {
      if (current) setProblem(problemIn(error));
    });
    return () => { current = false; };
  }, [host.name, turn]);
  useEffect(() => store.onEvent(event => {
    if (event.host === host.name && event.attachment !== null) setTurn(one => one + 1);
  }), [store, host.name]);
  if (problem !== null) return <ProblemBox problem={problem} again={() => {
    setProblem(null);
    setTurn(turn + 1);
  }} />;
  if (found === null) return <p role="status">{words.reading}</p>;
  const vms = fleetVmRows([], found.held);
  const since = found.stale[0]?.since ?? host.unreachable_since;
  return (
    <section aria-label={words.hit}>
      <h3>{words.hit}</h3>
      {since != null && <p class="remark">{words.hitStale} <When at={since} /></p>}
      {vms.length === 0 ? <p>{words.hitNone}</p> : (
        <>
          <p>{intro} {words.hitWhat(vms.length, found.held.length)}.</p>
          <Table caption={words.hitCaption} items={vms} columns={columns} keyOf={vm => vm.name}
                 href={vm => hrefOfVm(vm.host, vm.name)} step={20} />
        </>
      )}
    </section>
  );
}
