// SPDX-License-Identifier: Apache-2.0
import type { Draft } from "../../parts/drafts";
import { Ago } from "../../parts/When";
import { text } from "../../text/en";

const words = text.settings.editor;

// Offers a text that a reload, or another page, left behind.
export function Offer({ draft, onTakeUp, onDrop }: {
  draft: Draft; onTakeUp: () => void; onDrop: () => void;
}) {
  return (
    <section class="panel" role="status">
      <p>{words.offered} <Ago at={draft.at} />.</p>
      <div class="acts">
        <button type="button" onClick={onTakeUp}>{words.takeUp}</button>
        <button type="button" onClick={onDrop}>{words.drop}</button>
      </div>
    </section>
  );
}
