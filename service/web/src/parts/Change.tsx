// SPDX-License-Identifier: Apache-2.0
// The one way in which a page changes the host: the plan, then the button, then the progress.
import { useEffect, useState } from "preact/hooks";
import { problemIn } from "../transport/api";
import type { Write } from "../transport/api";
import type { Done, DryRun, Method, Operation, PathOf, Problem } from "../transport/types";
import { text } from "../text/en";
import { Confirm } from "./Confirm";
import { useConsole } from "./context";
import { OperationProgress } from "./OperationProgress";
import { Plan } from "./Plan";
import { ProblemBox } from "./ProblemBox";

type Stage =
  | { is: "planning" }
  | { is: "planned"; answer: DryRun }
  | { is: "sending"; answer: DryRun }
  | { is: "begun"; operation: Operation }
  | { is: "done" };

export interface ChangeProps<P extends PathOf<M>, M extends Method> {
  write: Write<P, M>;
  act: string; // on the button: what it does and to what
  // The name that a person types before a destructive act; a function decides by the plan.
  confirm?: string | ((planned: DryRun) => string | undefined);
  noSteps?: string; // what a plan without steps says; absent: that nothing is left to do
  onSend?: () => void;
  onBegun?: (operation: Operation) => void;
  onEnd?: (operation: Operation | null) => void; // null: done at once
  onDone?: (answer: Done<P, M>) => void; // before onEnd, of what is done at once
  onProblem?: (problem: Problem) => void;
}

export function Change<P extends PathOf<M>, M extends Method>(props: ChangeProps<P, M>) {
  const { api } = useConsole();
  const [stage, setStage] = useState<Stage>({ is: "planning" });
  const [problem, setProblem] = useState<Problem | null>(null);
  const [turn, setTurn] = useState(0);
  const refuse = (error: unknown): void => {
    const found = problemIn(error);
    setProblem(found);
    props.onProblem?.(found);
  };
  const wanted = JSON.stringify(props.write);
  useEffect(() => {
    let current = true;
    setStage({ is: "planning" });
    setProblem(null);
    api.plan(props.write).then(
      answer => { if (current) setStage({ is: "planned", answer }); },
      (error: unknown) => { if (current) refuse(error); });
    return () => { current = false; };
  }, [wanted, turn]);

  const send = (answer: DryRun): void => {
    setStage({ is: "sending", answer });
    props.onSend?.();
    api.send(props.write).then(begun => {
      if ("operation" in begun) {
        setStage({ is: "begun", operation: begun.operation });
        props.onBegun?.(begun.operation);
      } else {
        setStage({ is: "done" });
        props.onDone?.(begun.done);
        props.onEnd?.(null);
      }
    }, (error: unknown) => {
      refuse(error);
      setStage({ is: "planned", answer });
    });
  };
  return (
    <div class="change">
      {stage.is === "planning" && problem === null && <p role="status">{text.plan.waiting}</p>}
      {"answer" in stage && <Plan planned={stage.answer} noSteps={props.noSteps} />}
      {problem && <ProblemBox problem={problem} again={() => setTurn(turn + 1)} />}
      {stage.is === "planned" && (
        <Button {...props} planned={stage.answer} onSend={() => send(stage.answer)} />
      )}
      {stage.is === "sending" && <p role="status">{text.operation.sending}</p>}
      {stage.is === "begun" && (
        <OperationProgress begun={stage.operation} onEnd={ended => props.onEnd?.(ended)} />
      )}
      {stage.is === "done" && <p role="status">{text.operation.done}</p>}
    </div>
  );
}

function Button({ act, confirm, planned, onSend }: {
  act: string; confirm?: ChangeProps<never, never>["confirm"]; planned: DryRun; onSend: () => void;
}) {
  const name = typeof confirm === "function" ? confirm(planned) : confirm;
  return name === undefined ? <button type="button" onClick={onSend}>{act}</button>
    : <Confirm name={name} act={act} onConfirmed={onSend} />;
}
