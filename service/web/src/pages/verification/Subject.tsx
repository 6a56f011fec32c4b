// SPDX-License-Identifier: Apache-2.0
// The verifications of a VF or an attachment: the latest or the chosen one, then all over time.
import { useEffect, useRef, useState } from "preact/hooks";
import { useAll, useAnswer, useRow, useStatus } from "../../live/hooks";
import { vfKey } from "../../model/cells";
import type { Route } from "../../model/paths";
import { useConsole } from "../../parts/context";
import { OperationProgress } from "../../parts/OperationProgress";
import { ProblemBox } from "../../parts/ProblemBox";
import { text } from "../../text/en";
import { problemIn } from "../../transport/api";
import type { Attachment, Event, Operation, Verification, VfId } from "../../transport/types";
import { hashHere, hrefOfCertificate, hrefOfVf, hrefOfVm } from "../links";
import { Changes } from "./Changes";
import type { History } from "./Changes";
import { Runs } from "./Runs";
import { RunView } from "./RunView";
import { Trends } from "./Trends";
import { VerifyNow } from "./VerifyNow";

const words = text.verification;
const HISTORY_PAGE = 500;

export type About = { vf: VfId } | { attachment: string };

export function Subject({ about, route }: { about: About; route: Route }) {
  const { api, store } = useConsole();
  const { loaded } = useStatus(store);
  const id = "attachment" in about ? about.attachment : null;
  const vfRow = useRow(store.vfs, "vf" in about ? vfKey(about.vf.pf, about.vf.index) : null);
  const attachment = useRow(store.attachments, id ?? vfRow?.attachment);
  const former = useAnswer(store, async () => id !== null && !store.attachments.get(id)
    ? await vfOfFormer(api, id) : null, [id, loaded.has("attachments"), attachment === undefined]);
  const vf = "vf" in about ? about.vf : attachment?.vf ?? former.answer;
  const isAbout = (event: Event): boolean => id !== null ? event.attachment === id
    : vf !== null && event.pf === vf.pf && event.vf === vf.index;
  const runs = useAnswer(store, () => runsOf(api, about), [], isAbout);
  const history = useHistory(vf, id);
  const here = hashHere(...route.parts);
  const notKept = id !== null && vf !== null && runs.problem?.code === "not_found";
  return (
    <>
      <Title about={about} />
      <Links about={about} vf={vf} attachment={attachment} ready={loaded.has("attachments")} />
      <Act attachment={attachment} here={here} route={route} onEnd={runs.again} />
      {notKept && <p>{words.noneKept}</p>}
      {runs.problem && !notKept && <ProblemBox problem={runs.problem} again={runs.again} />}
      {runs.answer === null && runs.problem === null && <p role="status">{words.reading}</p>}
      {runs.answer !== null && (
        <All runs={runs.answer} history={history} vf={vf} here={here} route={route} />
      )}
    </>
  );
}

type Api = ReturnType<typeof useConsole>["api"];

function runsOf(api: Api, about: About): Promise<Verification[]> {
  return "vf" in about
    ? api.list("/v1/pfs/{pci}/vfs/{index}/verifications",
      { pci: about.vf.pf, index: about.vf.index })
    : api.list("/v1/attachments/{id}/verifications", { id: about.attachment });
}

// Where the attachment has ended, its certificate names the VF.
async function vfOfFormer(api: Api, id: string): Promise<VfId | null> {
  try {
    return (await api.get("/v1/attachments/{id}/certificate", { id })).vf;
  } catch (error) {
    if (problemIn(error).code === "not_found") return null;
    throw error;
  }
}

function useHistory(vf: VfId | null, attachment: string | null): History {
  const { api, store } = useConsole();
  const [pages, setPages] = useState(1);
  const asked = useAnswer(store, async () => {
    const events: Event[] = [];
    let cursor: string | null = null;
    for (let page = 0; vf !== null && page < pages; ++page) {
      const query: Record<string, string | number> = { limit: HISTORY_PAGE };
      if (cursor !== null) query["cursor"] = cursor;
      if (attachment !== null) query["attachment"] = attachment;
      const answer: { items: Event[]; next: string | null } = await api.get(
        "/v1/pfs/{pci}/vfs/{index}/history", { pci: vf.pf, index: vf.index }, query);
      events.push(...answer.items);
      cursor = answer.next;
      if (cursor === null) break;
    }
    return { events, cursor };
  }, [vf?.pf, vf?.index, attachment, pages],
  event => vf !== null && event.pf === vf.pf && (event.vf === null || event.vf === vf.index));
  return {
    events: asked.answer?.events ?? [],
    more: asked.answer?.cursor == null ? null : () => setPages(pages + 1),
  };
}

function Title({ about }: { about: About }) {
  const { store } = useConsole();
  const pf = useRow(store.pfs, "vf" in about ? about.vf.pf : null);
  return (
    <h1>{"vf" in about ? words.titleVf(about.vf.index, pf?.info.ifname || about.vf.pf)
      : words.titleAttachment(about.attachment)}</h1>
  );
}

function Links({ about, vf, attachment, ready }: {
  about: About; vf: VfId | null; attachment: Attachment | undefined; ready: boolean;
}) {
  return (
    <>
      {attachment !== undefined && (
        <p>{words.attachedTo} <a href={hrefOfVm(attachment.vm)}>{attachment.vm}</a></p>
      )}
      {attachment === undefined && ready && "vf" in about && <p>{words.free}</p>}
      {attachment === undefined && ready && "attachment" in about && (
        <p>
          {words.gone(about.attachment)}{" "}
          <a href={hrefOfCertificate(about.attachment)}>{words.certificate}</a>
        </p>
      )}
      {"attachment" in about && vf !== null && <p><a href={hrefOfVf(vf)}>{words.all}</a></p>}
    </>
  );
}

function Act({ attachment, here, route, onEnd }: {
  attachment: Attachment | undefined; here: string; route: Route; onEnd: () => void;
}) {
  const [begun, setBegun] = useState<string | null>(null);
  if (attachment === undefined) return null;
  return (
    <>
      {route.query.get("act") === "verify"
        ? <VerifyNow key={[...route.query].join()} attachment={attachment} here={here}
                     route={route} onEnd={onEnd}
                     onBegun={(operation: Operation) => setBegun(operation.id)} />
        : <p><a class="button" href={`${here}?act=verify`}>{words.now.begin}</a></p>}
      <UnderWay attachment={attachment} except={begun} onEnd={onEnd} />
    </>
  );
}

// What another person or the daemon began, and also after a reload.
function UnderWay({ attachment, except, onEnd }: {
  attachment: Attachment; except: string | null; onEnd: () => void;
}) {
  const operations = useAll(useConsole().store.operations).filter(operation =>
    operation.kind === "verify" && operation.finished_at === null && operation.id !== except
    && operation.subject.split("/").includes(attachment.id));
  return (
    <>{operations.map(one => <OperationProgress key={one.id} begun={one} onEnd={onEnd} />)}</>
  );
}

function All({ runs, history, vf, here, route }: {
  runs: readonly Verification[]; history: History; vf: VfId | null; here: string; route: Route;
}) {
  const name = route.query.get("run");
  const top = useRef<HTMLDivElement>(null);
  useEffect(() => { if (name !== null) top.current?.scrollIntoView(); }, [name]);
  const chosen = runs.find(run => run.run === name);
  const run = chosen ?? runs[0];
  if (run === undefined) return <p>{words.never}</p>;
  return (
    <>
      <div ref={top}><RunView run={run} chosen={chosen !== undefined && chosen !== runs[0]} /></div>
      <Trends runs={runs} />
      <Runs runs={runs} here={here} />
      <Changes runs={runs} history={history} vf={vf} />
    </>
  );
}
