// SPDX-License-Identifier: Apache-2.0
import { text } from "../text/en";
import type { Problem } from "../transport/types";
import { Elevate } from "./Elevate";

export function ProblemBox({ problem, again }: { problem: Problem; again?: () => void }) {
  return (
    <section class="problem" role="alert">
      <h3>{problem.title}</h3>
      <p>{problem.detail}</p>
      {problem.violations?.map(violation => (
        <p key={violation.pointer}><code>{violation.pointer}</code> {violation.detail}</p>
      ))}
      {problem.cause?.map(cause => (
        <p key={cause.call} class="quiet">{cause.call}: {cause.text} {cause.code}</p>
      ))}
      {problem.remedy && <p><b>{text.problem.remedy}</b> {problem.remedy}</p>}
      {problem.request_id && <p class="quiet">{text.problem.request(problem.request_id)}</p>}
      {problem.code === "forbidden" && <Elevate />}
      {again && <button type="button" onClick={again}>{text.problem.again}</button>}
    </section>
  );
}
