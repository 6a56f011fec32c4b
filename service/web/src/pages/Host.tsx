// SPDX-License-Identifier: Apache-2.0
// The host at a glance: which VF is whose, and whether it is proved.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { useAll, useKeys, useRow, useStatus } from "../live/hooks";
import { Signal, useSignal } from "../live/signal";
import type { Store } from "../live/store";
import { CELL_STATES, cellState, countStates, vfKey } from "../model/cells";
import { markAt } from "../model/marks";
import { pictureOf } from "../model/picture";
import { distinct } from "../model/problems";
import { treeOf } from "../model/tree";
import { useConsole } from "../parts/context";
import { ProblemBox } from "../parts/ProblemBox";
import { Ago } from "../parts/When";
import { text } from "../text/en";
import { Picture } from "./host/Picture";
import type { At } from "./host/Picture";
import { VfTable } from "./host/VfTable";

const WIDTH_MIN = 280;

export function Host() {
  const { store } = useConsole();
  const { loaded, problems } = useStatus(store);
  const [at] = useState(() => new Signal<At>(null));
  const complete = (["pfs", "vms", "attachments", "topology"] as const)
    .every(name => loaded.has(name));
  return (
    <>
      <h1>{text.pages.host}</h1>
      {distinct([...problems.values()]).map(problem => (
        <ProblemBox key={`${problem.code} ${problem.detail}`} problem={problem} />
      ))}
      {!complete && <p role="status">{text.frame.reading}</p>}
      {complete && (
        <>
          <Legend />
          <Sized at={at} />
          <Described at={at} />
          <Differences />
          <VfTable />
        </>
      )}
    </>
  );
}

function Sized({ at }: { at: Signal<At> }) {
  const { store } = useConsole();
  const frame = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(0);
  const pfs = useKeys(store.pfs);
  const vfs = useKeys(store.vfs);
  const vms = useKeys(store.vms);
  const topology = useRow(store.topology, "");
  useEffect(() => {
    const sized = new ResizeObserver(([entry]) => {
      if (entry !== undefined) setWidth(Math.floor(entry.contentRect.width));
    });
    sized.observe(frame.current!);
    return () => sized.disconnect();
  }, []);
  // Attachments come and go without moving anything: their VM's place is that of when it appeared.
  const picture = useMemo(() => width === 0 ? null : pictureOf({
    nodes: treeOf(topology, store.pfs.all()),
    vfsOf: pci => store.vfs.groupKeys(pci).map(key => ({ key, index: Number(key.split("/")[1]) })),
    vms: store.vms.all(),
    heldBy: uuid => heldBy(store, uuid),
  }, Math.max(width, WIDTH_MIN)), [pfs, vfs, vms, topology, width]);
  return (
    <div ref={frame} class="host">
      {picture !== null && <Picture picture={picture} at={at} />}
      {pfs.length === 0 && <p>{text.host.noPfs}</p>}
    </div>
  );
}

function heldBy(store: Store, uuid: string): string[] {
  return store.attachments.group(uuid).map(({ vf }) => vfKey(vf.pf, vf.index));
}

function Legend() {
  const { store } = useConsole();
  const vfs = useAll(store.vfs);
  useAll(store.attachments);
  const counts = countStates(vfs.map(vf => cellState(vf,
    store.attachments.get(vf.attachment ?? ""), { stuck: store.pfs.get(vf.pf)?.stuck != null })));
  return (
    <ul class="legend" aria-label={text.host.legend}>
      {CELL_STATES.map(state => (
        <li key={state} class={counts[state] === 0 ? "quiet" : undefined}>
          <svg class={`cell ${state}`} width="12" height="12" aria-hidden="true">
            <path d={markAt(state, 0, 0)} />
          </svg>
          {` ${counts[state]} ${text.cell.state(state)}`}
        </li>
      ))}
    </ul>
  );
}

// What the mouse or the keyboard is at, in words.
function Described({ at }: { at: Signal<At> }) {
  const { store } = useConsole();
  const key = useSignal(at, place => place !== null && "vf" in place ? place.vf : null);
  const vf = useRow(store.vfs, key);
  const attachment = useRow(store.attachments, vf?.attachment ?? null);
  const pf = store.pfs.get(vf?.pf ?? "");
  if (vf === undefined || pf === undefined) return <p class="described">{text.host.hint}</p>;
  const state = cellState(vf, attachment, { stuck: pf.stuck !== null });
  const at_ = attachment?.verification?.finished_at ?? null;
  return (
    <p class="described">
      {text.host.described(pf.info.ifname, vf, state, attachment?.address ?? null)}
      {attachment?.verification && ` · ${text.verdict(attachment.verification.verdict)} `}
      {at_ !== null && <Ago at={at_} />}
      {vf.drift.map(sentence => <span key={sentence}> · {sentence}</span>)}
      {vf.quarantine && ` · ${vf.quarantine.reason}`}
    </p>
  );
}

function Differences() {
  const { store } = useConsole();
  const pfs = useAll(store.pfs).filter(pf => pf.drift.length > 0 || pf.stuck !== null || pf.stale);
  if (pfs.length === 0) return null;
  return (
    <section class="panel">
      <h2>{text.host.differences}</h2>
      <ul>{pfs.map(pf => (
        <li key={pf.info.pci}>
          {pf.info.ifname} {pf.info.pci}
          <ul>{[pf.stuck ?? "", pf.stale ? pf.stale_reason : "", ...pf.drift]
            .filter(one => one !== "").map(one => <li key={one}>{one}</li>)}</ul>
        </li>
      ))}</ul>
    </section>
  );
}
