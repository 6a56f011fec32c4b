// SPDX-License-Identifier: Apache-2.0
// One operation: its steps, what its time went to, what went wrong and what to do.
import { useState } from "preact/hooks";
import { useAnswer, useRow } from "../../live/hooks";
import { canBeCancelled, spansOf } from "../../model/spans";
import type { SpanBar, Spans } from "../../model/spans";
import { tookMs } from "../../model/timeline";
import { Awaited } from "../../parts/Awaited";
import { Confirm } from "../../parts/Confirm";
import { useConsole } from "../../parts/context";
import { Facts } from "../../parts/Facts";
import { OperationProgress, OperationSteps } from "../../parts/OperationProgress";
import { ProblemBox } from "../../parts/ProblemBox";
import { Table } from "../../parts/Table";
import type { ShownColumn } from "../../parts/Table";
import { When } from "../../parts/When";
import { text } from "../../text/en";
import { problemIn } from "../../transport/api";
import type { Operation, Problem } from "../../transport/types";
import { hashHere, hrefOfCertificate, hrefOfVm } from "../links";
import { OperationSubject } from "./OperationSubject";

const words = text.events.operation;

export function OperationPage({ id }: { id: string }) {
  const { api, store } = useConsole();
  const { answer: operation, problem, again } = useAnswer(store,
    () => api.get("/v1/operations/{id}", { id }), [id], event => event.operation === id);
  return (
    <>
      <h1>{words.title(operation?.kind ?? id)}</h1>
      <Awaited answer={operation} problem={problem} again={again} reading={words.reading} />
      {operation !== null && (
        <>
          <OperationFacts operation={operation} />
          {operation.finished_at === null ? (
            <>
              <OperationProgress key={operation.id} begun={operation} onEnd={again} />
              <Cancel operation={operation} />
            </>
          ) : <Ended operation={operation} />}
          <h2>{words.spans}</h2>
          <SpanView operation={operation} />
          <p>
            <a href={`${hashHere("events")}?words=${encodeURIComponent(operation.id)}`}>
              {words.toTimeline}
            </a>
          </p>
        </>
      )}
    </>
  );
}

function OperationFacts({ operation }: { operation: Operation }) {
  const { store } = useConsole();
  const names = words.facts;
  const took = tookMs(operation);
  const vm = useRow(store.vms, operation.vm_uuid)?.name ?? operation.vm_uuid;
  return (
    <Facts facts={[
      [names.state, <span class={`state ${operation.state}`}>
        {text.operation.state(operation.state)}
      </span>],
      [names.subject, <OperationSubject operation={operation} />],
      [names.vm, vm === null ? words.noVm : <a href={hrefOfVm(vm)}>{vm}</a>],
      [names.created, <When at={operation.created_at} />],
      [names.finished, operation.finished_at === null ? words.running
        : <When at={operation.finished_at} />],
      [names.took, took === null ? words.running : words.duration(took)],
      [names.by, operation.requested_by],
      [names.request, operation.request_id === "" ? words.noRequest
        : <code>{operation.request_id}</code>],
      [names.id, <code>{operation.id}</code>],
    ]} />
  );
}

function Ended({ operation }: { operation: Operation }) {
  return (
    <>
      {operation.problem && <ProblemBox problem={operation.problem} />}
      {operation.certificate && (
        <p>
          {text.vms.clean(operation.certificate)}{" "}
          <a href={hrefOfCertificate(operation.certificate.attachment)}>{words.certificate}</a>
        </p>
      )}
      <h2>{words.steps}</h2>
      {operation.steps.length === 0 ? <p>{words.noSteps}</p>
        : <OperationSteps operation={operation} />}
    </>
  );
}

const columns: readonly ShownColumn<SpanBar>[] = [
  { name: "began_us", title: words.span.began, value: ({ span }) => span.began_us,
    shown: ({ span }) => words.us(span.began_us) },
  { name: "took_us", title: words.span.took, value: ({ span }) => span.took_us,
    shown: ({ span }) => words.us(span.took_us) },
  { name: "kind", title: words.span.kind, value: ({ span }) => span.kind,
    shown: ({ span }) => words.spanKind(span.kind) },
  { name: "what", title: words.span.what, value: ({ span }) => span.what },
  { name: "share_percent", title: words.span.bar, value: ({ width }) => width,
    shown: ({ span, left, width }) => (
      <svg class="span" width="100%" height="12" role="img"
           aria-label={words.spanBar(span.began_us, span.took_us)}>
        <rect class="whole" width="100%" height="12" />
        <rect class={span.kind} x={`${left}%`} width={`${Math.max(0.5, width)}%`} height="12" />
      </svg>
    ) },
];

function SpanView({ operation }: { operation: Operation }) {
  const spans: Spans | null = spansOf(operation);
  if (spans === null)
    return <p>{operation.finished_at === null ? words.spansRunning : words.noSpans}</p>;
  return (
    <div class="spans">
      <Table caption={words.spanCaption} items={spans.bars} columns={columns}
             keyOf={({ span }) => `${span.began_us} ${span.kind} ${span.what}`} />
      <p class="quiet">{words.other(spans.otherUs, spans.wholeUs)}</p>
    </div>
  );
}

function Cancel({ operation }: { operation: Operation }) {
  const { api } = useConsole();
  const [open, setOpen] = useState(false);
  const [state, setState] = useState<"" | "sending" | "sent">("");
  const [problem, setProblem] = useState<Problem | null>(null);
  const cancel = text.events.cancel;
  if (!canBeCancelled(operation)) return <p class="quiet">{cancel.not(operation.kind)}</p>;
  const send = (): void => {
    setState("sending");
    setProblem(null);
    const { id } = operation;
    api.send({ method: "post", path: "/v1/operations/{id}/cancel", values: { id } }).then(
      () => setState("sent"),
      (error: unknown) => {
        setProblem(problemIn(error));
        setState("");
      });
  };
  if (!open)
    return <button type="button" onClick={() => setOpen(true)}>{cancel.begin}</button>;
  return (
    <section class="panel" aria-label={cancel.title}>
      <h2>{cancel.title}</h2>
      <p>{cancel.what}</p>
      {problem && <ProblemBox problem={problem} />}
      {state === "" && (
        <Confirm name={operation.id} act={cancel.act(operation.kind, operation.id)}
                 onConfirmed={send} />
      )}
      {state !== "" && <p role="status">{state === "sent" ? cancel.sent : cancel.sending}</p>}
    </section>
  );
}
