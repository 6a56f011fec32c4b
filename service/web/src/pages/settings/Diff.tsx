// SPDX-License-Identifier: Apache-2.0
import { useMemo } from "preact/hooks";
import { diffLines, hunksOf } from "../../model/diff";
import type { Line } from "../../model/diff";
import { text } from "../../text/en";

const words = text.settings.editor;

// The lines that differ, by colour, mark and, for those who hear them, word.
export function Diff({ title, before, after }: { title: string; before: string; after: string }) {
  const hunks = useMemo(() => hunksOf(diffLines(before, after)), [before, after]);
  return (
    <section class="diff" aria-label={title}>
      <h3>{title}</h3>
      {hunks.length === 0 && <p class="quiet">{words.diffNone}</p>}
      {hunks.map(hunk => (
        <div key={hunk.line} class="hunk">
          <p class="quiet">{words.line(hunk.line)}</p>
          <div class="code">{hunk.lines.map((line, at) => <LineOf key={at} line={line} />)}</div>
        </div>
      ))}
    </section>
  );
}

function LineOf({ line: { mark, text: content } }: { line: Line }) {
  if (mark === " ") return <span class="line">{`  ${content}\n`}</span>;
  const said = <span class="unseen">{mark === "+" ? words.added : words.removed}</span>;
  return mark === "+" ? <ins class="line">{said}{`+ ${content}\n`}</ins>
    : <del class="line">{said}{`- ${content}\n`}</del>;
}
