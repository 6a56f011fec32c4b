// SPDX-License-Identifier: Apache-2.0
import { text } from "../text/en";
import type { DryRun } from "../transport/types";

// What a write will do, and to whom, before it does it.
export function Plan({ planned, noSteps }: { planned: DryRun; noSteps?: string | undefined }) {
  const { plan, changes = [] } = planned;
  return (
    <section class="plan" aria-label={text.plan.title}>
      <h3>{text.plan.title}</h3>
      {changes.length > 0 && (
        <ul>{changes.map(one => <li key={one.pointer}>{one.sentence}</li>)}</ul>
      )}
      {plan.steps.length === 0 ? <p>{noSteps ?? text.plan.nothing}</p> : (
        <ol>{plan.steps.map((step, at) => <li key={at}>{step.sentence}</li>)}</ol>
      )}
      <h3>{text.plan.affected}</h3>
      {plan.blast_radius.length === 0 ? <p>{text.plan.nobody}</p> : (
        <ul class="blast">{plan.blast_radius.map(one => <li key={one}>{one}</li>)}</ul>
      )}
      {plan.notes.length > 0 && (
        <ul class="quiet">{plan.notes.map(note => <li key={note}>{note}</li>)}</ul>
      )}
    </section>
  );
}
