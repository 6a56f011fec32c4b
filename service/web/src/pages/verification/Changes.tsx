// SPDX-License-Identifier: Apache-2.0
// What was different between one verification and the next.
import { useState } from "preact/hooks";
import { useRow } from "../../live/hooks";
import { changesBetween } from "../../model/changes";
import type { Between } from "../../model/changes";
import { vfKey } from "../../model/cells";
import { useConsole } from "../../parts/context";
import { Facts } from "../../parts/Facts";
import { VerdictMark } from "../../parts/VerdictMark";
import { When } from "../../parts/When";
import { text } from "../../text/en";
import type { Event, Verification, VfId } from "../../transport/types";
import { EventLine } from "../events/EventLine";

const words = text.verification.changes;
const SHOWN = 10;

export interface History {
  events: readonly Event[]; // newest first
  more: (() => void) | null; // reads older ones; null: all are read
}

export function Changes({ runs, history, vf }: {
  runs: readonly Verification[]; history: History; vf: VfId | null;
}) {
  const [shown, setShown] = useState(SHOWN);
  const all = changesBetween(runs, history.events);
  const readSince = history.more === null ? -Infinity
    : Date.parse(history.events.at(-1)?.at ?? "") || Infinity;
  return (
    <section>
      <h2>{words.title}</h2>
      <p class="quiet">{words.notRecorded}</p>
      {vf !== null && <Now vf={vf} />}
      <ol class="changes">
        {all.slice(0, shown).map(between => (
          <ChangesBefore key={between.run.run} between={between} readSince={readSince} />
        ))}
      </ol>
      <div class="acts">
        {all.length > shown && (
          <button type="button" onClick={() => setShown(shown + SHOWN)}>{words.more}</button>
        )}
        {history.more !== null && (
          <button type="button" onClick={history.more}>{words.older}</button>
        )}
      </div>
    </section>
  );
}

function ChangesBefore({ between, readSince }: { between: Between; readSince: number }) {
  const { run, before, differences, events } = between;
  const unread = before !== null && Date.parse(before.started_at) < readSince;
  return (
    <li>
      {words.before} <When at={run.started_at} /> <VerdictMark verdict={run.verdict} />
      <ul>
        {differences.map(({ what, test, was, is }) => (
          <li key={`${test} ${what}`}>
            {words.what(what, test)}:{" "}
            {!what.startsWith("tests") && <><s>{words.value(was)}</s> → </>}{words.value(is)}
          </li>
        ))}
        {events.map(event => <li key={event.number}><EventLine event={event} /></li>)}
        {unread && <li class="quiet">{words.unread}</li>}
        {!unread && differences.length === 0 && events.length === 0 && (
          <li class="quiet">{before === null ? words.first : words.none}</li>
        )}
      </ul>
    </li>
  );
}

function Now({ vf: place }: { vf: VfId }) {
  const { store } = useConsole();
  const vf = useRow(store.vfs, vfKey(place.pf, place.index));
  const pf = useRow(store.pfs, place.pf);
  const attachment = useRow(store.attachments, vf?.attachment);
  if (vf === undefined || pf === undefined) return null;
  const { info } = pf;
  const near = attachment?.near;
  return (
    <Facts facts={[
      [words.now.device, [info.vendor_name, info.device_name].filter(Boolean).join(" ")
        || text.notReported],
      [words.now.driver, info.driver],
      [words.now.vfDriver, vf.driver ?? text.none],
      [words.now.link, info.carrier ? text.verification.link.up : text.verification.link.down],
      [words.now.mtu, info.mtu],
      [words.now.numa, info.numa_node ?? text.notReported],
      [words.now.near, near == null ? null : `${near.gpu} · ${near.distance}`],
      [words.now.pci, vf.pci],
    ]} />
  );
}
