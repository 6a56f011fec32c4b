// SPDX-License-Identifier: Apache-2.0
// A finding, or several that say the same of several devices: what was found, and what to do.
import type { FindingGroup } from "../../model/readiness";
import { CopyButton } from "../../parts/CopyButton";
import { text } from "../../text/en";
import type { Remedy } from "../../transport/types";

const words = text.readiness;
const idOf = (group: FindingGroup): string => `finding-${encodeURIComponent(group.names[0] ?? "")}`;

export function FindingBox({ group, groupOf }: {
  group: FindingGroup; groupOf: (name: string) => FindingGroup | undefined;
}) {
  const { result, subjects: [first = "", ...others] } = group;
  const well = result === "ok" || result === "not_applicable";
  return (
    <article class={`panel finding-box ${result}`} tabIndex={-1} id={idOf(group)}>
      <h2>
        <span class={`finding ${result}`}>{words.result(result)}</span>
        {" "}{words.heading(group.rule, first)}
      </h2>
      <p class={well ? "quiet lines" : "lines"}>{group.detail}</p>
      {others.length > 0 && <p>{words.soDo(others)}</p>}
      {group.causedBy !== null && <Cause name={group.causedBy} group={groupOf(group.causedBy)} />}
      {group.remedy && <RemedyBox remedy={group.remedy} />}
      {group.evidence.length > 0 && (
        <details>
          <summary>{words.evidence}</summary>
          <dl class="evidence">
            {group.evidence.map(({ source, text: found }, at) => (
              <div key={at}><dt><code>{source}</code></dt><dd class="lines">{found}</dd></div>
            ))}
          </dl>
        </details>
      )}
    </article>
  );
}

function Cause({ name, group }: { name: string; group: FindingGroup | undefined }) {
  return (
    <p>
      {words.because}{" "}
      {group === undefined ? name : (
        <button type="button" class="as-link" onClick={() => {
          const box = document.getElementById(idOf(group));
          box?.scrollIntoView({ block: "nearest" });
          box?.focus();
        }}>{name}</button>
      )}
    </p>
  );
}

function RemedyBox({ remedy }: { remedy: Remedy }) {
  const { commands, drain, note } = remedy;
  return (
    <section aria-label={words.remedy} class="remedy">
      <h3>{words.remedy}</h3>
      {drain.length > 0 && <p class="remark">{words.drain(drain)}</p>}
      {commands.length > 0 && <p class="quiet">{words.asRoot}</p>}
      {commands.map(command => (
        <div key={command} class="command">
          <code>{command}</code>
          <CopyButton content={command} about={words.copyCommand(command)} />
        </div>
      ))}
      {commands.length > 1 && (
        <CopyButton content={`${commands.join("\n")}\n`} label={words.copyAll(commands.length)} />
      )}
      {note !== "" && <p class="lines">{note}</p>}
      <p class={remedy.blast_radius === "none" ? "quiet" : "remark"}>
        {words.radius(remedy.blast_radius)}
      </p>
    </section>
  );
}
