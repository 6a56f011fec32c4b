// SPDX-License-Identifier: Apache-2.0
// #/verification lists attachments; #/verification/PF/INDEX is a VF, #/verification/attachment/ID
// one attachment of it.
import { useAll, useStatus } from "../live/hooks";
import { headline } from "../model/figures";
import type { Route } from "../model/paths";
import { useConsole } from "../parts/context";
import { ProblemBox } from "../parts/ProblemBox";
import { Table } from "../parts/Table";
import type { ShownColumn } from "../parts/Table";
import { VerdictMark } from "../parts/VerdictMark";
import { Ago } from "../parts/When";
import { text } from "../text/en";
import type { Attachment } from "../transport/types";
import { hrefOfVf } from "./links";
import { lostOf } from "./verification/Runs";
import { Subject } from "./verification/Subject";
import type { About } from "./verification/Subject";

const words = text.verification.list;

export function Verification({ route }: { route: Route }) {
  const [, first, second] = route.parts;
  if (first === undefined) return <List />;
  const about = aboutOf(first, second);
  if (about === null) {
    return <><h1>{text.pages.verification}</h1><p>{text.verification.badLink}</p></>;
  }
  return <Subject key={`${first}/${second}`} about={about} route={route} />;
}

function aboutOf(first: string, second: string | undefined): About | null {
  if (second === undefined) return null;
  if (first === "attachment") return { attachment: second };
  return /^\d+$/.test(second) ? { vf: { pf: first, index: Number(second) } } : null;
}

type Run = NonNullable<Attachment["verification"]>;

// A figure of the last run; one that has none is not reported.
function ofRun(name: string, title: string, value: (run: Run) => number | null,
               shown: (value: number) => string = String): ShownColumn<Attachment> {
  return {
    name, title, value: one => one.verification === null ? null : value(one.verification),
    shown: ({ verification }) => {
      if (verification === null) return text.notVerified;
      const figure = value(verification);
      return figure === null ? text.notReported : shown(figure);
    },
  };
}

const columns: readonly ShownColumn<Attachment>[] = [
  { name: "vf", title: words.vf, value: ({ vf }) => text.vms.vfOf(vf.index, vf.pf) },
  { name: "vm", title: words.vm, value: one => one.vm },
  { name: "verdict", title: words.verdict, value: one => one.verification?.verdict ?? null,
    shown: one => <VerdictMark verdict={one.verification?.verdict ?? null} /> },
  { name: "verified_at", title: words.when,
    value: one => one.verification?.finished_at ?? null,
    shown: one => one.verification === null ? text.never
      : <Ago at={one.verification.finished_at ?? one.verification.started_at} /> },
  ofRun("bandwidth_mbps", words.bandwidth, run => headline(run).bandwidthMbps,
    text.unit.bandwidth),
  ofRun("latency_p50_us", words.latency, run => headline(run).latencyP50Us,
    value => text.verification.value({ stem: "", unit: "us" }, value)),
  ofRun("lost", words.losses, lostOf),
  ofRun("warnings", words.warnings, run => run.warnings?.length ?? null),
];

function List() {
  const { store } = useConsole();
  const { loaded, problems } = useStatus(store);
  const attachments = useAll(store.attachments);
  const problem = problems.get("attachments");
  return (
    <>
      <h1>{text.pages.verification}</h1>
      <p class="quiet">{words.intro}</p>
      {problem && <ProblemBox problem={problem} />}
      {!loaded.has("attachments") ? <p role="status">{text.frame.reading}</p> : (
        <Table caption={words.caption} items={attachments} columns={columns}
               keyOf={one => one.id} href={one => hrefOfVf(one.vf)} />
      )}
    </>
  );
}
