// SPDX-License-Identifier: Apache-2.0
// Whether vfmgrd itself is ready, and what is in its way.
import { useAll, useAnswer, useStatus } from "../../live/hooks";
import { hindranceOf } from "../../model/readiness";
import { Awaited } from "../../parts/Awaited";
import { useConsole } from "../../parts/context";
import { text } from "../../text/en";
import type { Event } from "../../transport/types";
import { hashHere } from "../links";

const words = text.readiness.daemon;
const CHANGED_BY: ReadonlySet<Event["kind"]> = new Set([
  "libvirt_lost", "libvirt_found", "store_read_only", "store_writable", "vfmgrd_started", "drift",
  "settled", "lost", "repaired", "pf_here", "pf_gone", "pf_stuck", "pf_answers",
]);

export function DaemonState() {
  const { api, store } = useConsole();
  const { liveness } = useStatus(store);
  const { answer, problem, again } = useAnswer(store, () => api.readiness(), [liveness.live],
    event => CHANGED_BY.has(event.kind));
  return (
    <section class="panel" aria-label={words.title}>
      <h2>{words.title}</h2>
      <Awaited answer={answer} problem={problem} again={again} reading={words.asking} />
      {answer?.ready && <p class="finding ok">{words.ready}</p>}
      {answer?.ready === false && (
        <>
          <p class="finding failed">{words.notReady}</p>
          <ul>{answer.not_ready.map(name => <Hindered key={name} name={name} />)}</ul>
        </>
      )}
      {answer?.drift === 0 && <p>{words.noDrift}</p>}
      {answer != null && answer.drift !== null && answer.drift > 0 && (
        <p class="finding warning"><a href={hashHere()}>{words.drift(answer.drift)}</a></p>
      )}
    </section>
  );
}

function Hindered({ name }: { name: string }) {
  const { store } = useConsole();
  const pf = useAll(store.pfs).find(one => one.info.pci === name);
  const hindrance = hindranceOf(name);
  const [what, remedy] = hindrance.is === "pf"
    ? [words.pf(pf?.info.ifname || name, pf?.stale_reason ?? pf?.stuck ?? ""), words.pfRemedy(name)]
    : hindrance.is === "other" ? [words.other(name), words.otherRemedy]
      : [words[hindrance.is], words[`${hindrance.is}Remedy`]];
  return <li>{what} <span class="quiet">{remedy}</span></li>;
}
