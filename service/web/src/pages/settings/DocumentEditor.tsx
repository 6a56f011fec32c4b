// SPDX-License-Identifier: Apache-2.0
// A document of the API, edited as text: the difference, then the plan, then the button. It is
// written only over the revision that the person saw, and their text is never lost: not by a
// reload, and not by what others changed meanwhile.
import type { ComponentChildren } from "preact";
import { useEffect, useId, useState } from "preact/hooks";
import { documentText, isSame, parsed, removedObjects } from "../../model/documents";
import type { Json } from "../../model/documents";
import { Change } from "../../parts/Change";
import { useConsole } from "../../parts/context";
import { CopyButton } from "../../parts/CopyButton";
import { forgetDraft, keepDraft, keptDraft } from "../../parts/drafts";
import type { Draft } from "../../parts/drafts";
import { text } from "../../text/en";
import type { Revision } from "../../transport/api";
import type { DryRun, Operation } from "../../transport/types";
import { Conflict } from "./Conflict";
import { Diff } from "./Diff";
import { writeOf } from "./edited";
import type { Target } from "./edited";
import { Offer } from "./Offer";

const words = text.settings.editor;
const ROWS = { least: 8, most: 32 };

export interface EditorProps {
  name: string; // of the draft
  host: Revision<unknown>; // a body that is null: there is none yet
  template?: unknown; // of one that does not exist yet
  target: Target;
  act: string;
  confirm: string; // the name to type where the plan affects somebody
  again: () => void; // reads the host's document again
  fields?: (content: string, set: (content: string | null) => void) => ComponentChildren;
}

interface Asked {
  turn: number;
  document: Json;
  etag: string;
}

export function DocumentEditor(props: EditorProps) {
  const { host, target } = props;
  const { draft, offered, write, drop, takeUp } = useDraft(props.name, host);
  const [asked, setAsked] = useState<Asked | null>(null);
  const [isSent, setSent] = useState(false);
  const hostText = textOf(host.body);
  const content = draft?.text ?? (host.body === null ? documentText(props.template) : hostText);
  const isBehind = draft !== null && draft.etag !== host.etag && !isSent;
  // The plan is of another request then.
  useEffect(() => setAsked(null), [JSON.stringify(target)]);
  const edit = (part: Partial<Draft>): void => {
    setAsked(null);
    write({ base: hostText, etag: host.etag, ...draft, text: content, ...part });
  };
  const ended = (operation: Operation | null): void => {
    setSent(false);
    if (operation === null || operation.state === "succeeded") drop();
    props.again();
  };
  return (
    <div class="editor">
      {offered !== null && <Offer draft={offered} onTakeUp={takeUp} onDrop={drop} />}
      {isBehind && <Conflict draft={draft} hostText={hostText} etag={host.etag} onEdit={edit} />}
      {offered === null && props.fields?.(content, changed => {
        if (changed !== null) edit({ text: changed });
      })}
      <Text content={content} readOnly={isSent || offered !== null}
            onEdit={changed => edit({ text: changed })} />
      <Acts content={content} hostText={hostText} isBusy={isBehind || isSent || offered !== null}
            onDiscard={draft === null ? null : () => { setAsked(null); drop(); }}
            onAsk={document => setAsked(
              { document, turn: (asked?.turn ?? 0) + 1, etag: draft?.etag ?? host.etag })} />
      {content !== hostText && offered === null && (
        <Diff title={words.diff} before={hostText} after={formed(content)} />
      )}
      {asked !== null && !isBehind && (
        <Change key={asked.turn} write={writeOf(target, asked.document, asked.etag)} act={props.act}
                confirm={planned => nameToType(planned, props.confirm)}
                noSteps={text.settings.objects.stored}
                onSend={() => setSent(true)} onEnd={ended} onProblem={({ code }) => {
                  setSent(false);
                  if (code === "precondition_failed") props.again();
                }} />
      )}
    </div>
  );
}

// In the form of the host's, so that only what it says differs.
function formed(content: string): string {
  const now = parsed(content);
  return "wrong" in now ? content : documentText(now.document);
}

function textOf(body: unknown): string {
  return body === null ? "" : documentText(body);
}

function nameToType({ changes = [], plan }: DryRun, otherwise: string): string | undefined {
  const [first, ...more] = removedObjects(changes);
  if (first !== undefined)
    return more.length === 0 ? first : text.settings.desired.several(more.length + 1);
  return plan.blast_radius.length > 0 ? otherwise : undefined;
}

// What the person wrote and did not apply. After a reload it is offered, if it is another text.
function useDraft(ofHost: string, host: Revision<unknown>) {
  const { session, host: inFleet } = useConsole();
  // What was written for one host of a fleet is not offered for another.
  const name = inFleet === null ? ofHost : `${inFleet} ${ofHost}`;
  const [draft, setDraft] = useState<Draft | null>(null);
  const [offered, setOffered] = useState(() => {
    const kept = keptDraft(name, session.who);
    const now = kept === null ? null : parsed(kept.text);
    return now !== null && "document" in now && host.body !== null
      && isSame(now.document, host.body as Json) ? null : kept;
  });
  return {
    draft, offered,
    write: (part: Pick<Draft, "text" | "base" | "etag">) => {
      const { text: content, base, etag } = part;
      const next: Draft = {
        text: content, base, etag, who: session.who, at: new Date().toISOString(),
      };
      setDraft(next);
      keepDraft(name, next);
    },
    drop: () => {
      setDraft(null);
      setOffered(null);
      forgetDraft(name);
    },
    takeUp: () => {
      setDraft(offered);
      setOffered(null);
    },
  };
}

function Text({ content, readOnly, onEdit }: {
  content: string; readOnly: boolean; onEdit: (content: string) => void;
}) {
  const id = useId();
  const lines = content.split("\n").length;
  const now = parsed(content);
  return (
    <>
      <label for={id}>{words.document}</label>
      <textarea id={id} class="code" value={content} readOnly={readOnly} spellcheck={false}
                autocomplete="off" autocapitalize="off" wrap="off"
                rows={Math.min(ROWS.most, Math.max(ROWS.least, lines))}
                aria-invalid={"wrong" in now} aria-describedby={`${id}-wrong`}
                onInput={event => onEdit(event.currentTarget.value)} />
      <p id={`${id}-wrong`} class="remark" role="status">
        {"wrong" in now && words.wrong(now.wrong)}
      </p>
    </>
  );
}

function Acts({ content, hostText, isBusy, onDiscard, onAsk }: {
  content: string; hostText: string; isBusy: boolean; onDiscard: (() => void) | null;
  onAsk: (document: Json) => void;
}) {
  const now = parsed(content);
  const isUnchanged = content === hostText;
  return (
    <div class="acts">
      <button type="button" disabled={isBusy || isUnchanged || "wrong" in now}
              onClick={() => { if ("document" in now) onAsk(now.document); }}>{words.ask}</button>
      {onDiscard !== null && !isBusy && (
        <button type="button" onClick={onDiscard}>{words.discard}</button>
      )}
      <CopyButton content={content} />
      {isUnchanged && <span class="quiet">{words.unchanged}</span>}
    </div>
  );
}
