// SPDX-License-Identifier: Apache-2.0
// The host's document changed while a person wrote theirs: what changed, and how to go on.
import { documentText, merged, parsed } from "../../model/documents";
import type { Json } from "../../model/documents";
import type { Draft } from "../../parts/drafts";
import { text } from "../../text/en";
import { Diff } from "./Diff";

const words = text.settings.editor;

export function Conflict({ draft, hostText, etag, onEdit }: {
  draft: Draft; hostText: string; etag: string; onEdit: (part: Partial<Draft>) => void;
}) {
  const mine = parsed(draft.text);
  const both = "wrong" in mine ? null : merged(at(draft.base), mine.document, at(hostText));
  const current = { base: hostText, etag };
  return (
    <section class="problem" role="alert">
      <h3>{words.conflict}</h3>
      <p>{words.conflictKept}</p>
      <Diff title={words.there} before={draft.base} after={hostText} />
      {both === null && <p>{words.conflictWrong}</p>}
      {both !== null && both.both.length > 0 && <p class="remark">{words.both(both.both)}</p>}
      <div class="acts">
        {both !== null && (
          <button type="button"
                  onClick={() => onEdit({ ...current, text: documentText(both.document) })}>
            {words.take}
          </button>
        )}
        <button type="button" onClick={() => onEdit(current)}>{words.keep}</button>
        <span class="quiet">{words.keepHelp}</span>
      </div>
    </section>
  );
}

// Text that is no JSON, such as that of a missing document, counts as an empty object.
function at(content: string): Json {
  const now = parsed(content);
  return "wrong" in now ? {} : now.document;
}
