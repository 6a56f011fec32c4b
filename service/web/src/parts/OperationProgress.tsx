// SPDX-License-Identifier: Apache-2.0
import { useEffect, useState } from "preact/hooks";
import { problemIn } from "../transport/api";
import type { Operation, Problem } from "../transport/types";
import { text } from "../text/en";
import { useConsole } from "./context";
import { ProblemBox } from "./ProblemBox";
import { When } from "./When";

const WAIT_SECONDS = 1; // the API answers earlier when the operation ends

// Follows an operation step by step until it ends.
export function OperationProgress({ begun, onEnd }: {
  begun: Operation; onEnd?: (ended: Operation) => void;
}) {
  const { api } = useConsole();
  const [operation, setOperation] = useState(begun);
  const [problem, setProblem] = useState<Problem | null>(null);
  const [turn, setTurn] = useState(0);
  useEffect(() => {
    let here = true;
    const follow = async (): Promise<void> => {
      let latest = begun;
      while (here && latest.finished_at === null) {
        latest = await api.get("/v1/operations/{id}", { id: begun.id }, { wait: WAIT_SECONDS });
        if (here) setOperation(latest);
      }
      if (here) onEnd?.(latest);
    };
    setProblem(null);
    follow().catch((error: unknown) => { if (here) setProblem(problemIn(error)); });
    return () => { here = false; };
  }, [begun.id, turn]);
  return (
    <section class="operation" aria-label={text.operation.title(operation.kind)}>
      <h3>{text.operation.title(operation.kind)}</h3>
      <p role="status">{text.operation.state(operation.state)}</p>
      <OperationSteps operation={operation} />
      {operation.finished_at !== null && <p class="quiet"><When at={operation.finished_at} /></p>}
      {operation.problem && <ProblemBox problem={operation.problem} />}
      {problem && <ProblemBox problem={problem} again={() => setTurn(turn + 1)} />}
    </section>
  );
}

export function OperationSteps({ operation }: { operation: Operation }) {
  return (
    <ol class="steps">
      {operation.steps.map((step, at) => (
        <li key={at} class={`step ${step.state}`}>
          {step.sentence} <span class="quiet">{text.operation.step(step.state)}</span>
          {step.remarks.map(remark => <p key={remark} class="quiet">{remark}</p>)}
        </li>
      ))}
    </ol>
  );
}
