// SPDX-License-Identifier: Apache-2.0
// An entry of the timeline: an operation with its events, or an event of its own; with its cause,
// and what came of it.
import { severityOf } from "../../model/events";
import { tookMs } from "../../model/timeline";
import type { Entry, Joined } from "../../model/timeline";
import { memo } from "../../parts/memo";
import { When } from "../../parts/When";
import { text } from "../../text/en";
import type { Event } from "../../transport/types";
import { hrefOfOperation } from "../links";
import { Detail } from "./Detail";
import { EventLine } from "./EventLine";
import { OperationSubject } from "./OperationSubject";

const words = text.events;

interface Props {
  entry: Entry;
  joins: Joined;
  stamp: string; // changes when what is drawn does
}

// The joins are new each time; the stamp says whether this entry's are.
export const EntryRow = memo<{ drawn: Drawn }>(({ drawn: { props } }) => <Row {...props} />);

export class Drawn {
  constructor(readonly props: Props) {}
}

// An entry that is as it was keeps its object, so that it is not drawn again.
export function drawnOf(entry: Entry, joins: Joined, before: ReadonlyMap<string, Drawn>): Drawn {
  const stamp = stampOf(entry, joins);
  const old = before.get(entry.key);
  return old?.props.stamp === stamp ? old : new Drawn({ entry, joins, stamp });
}

function stampOf({ events, known }: Entry, joins: Joined): string {
  const caused = events.map(event =>
    `${event.number} ${joins.causedBy.get(event.number)?.length ?? 0} `
    + `${event.because_of !== null && joins.byNumber.has(event.because_of)}`);
  return `${known?.state} ${known?.finished_at} ${caused.join()}`;
}

function Row({ entry, joins }: Props) {
  const { operation, known, events } = entry;
  return (
    <li class={`entry ${entry.severity}`}>
      {operation !== null && (
        <div class="head">
          <When at={entry.at} />{" "}
          <a href={hrefOfOperation(operation)}>
            {known === null ? words.unknownOperation(operation) : text.operation.title(known.kind)}
          </a>{" "}
          {known !== null && <><OperationSubject operation={known} />{" "}</>}
          {known !== null && (
            <span class={`state ${known.state}`}>{words.operationLine(known, tookMs(known))}</span>
          )}
          {known?.problem && <p class="remark"><Detail detail={known.problem.detail} /></p>}
        </div>
      )}
      {events.filter(event => operation === null || !isStateOf(event)).map(event => (
        <div key={event.number} class={operation === null ? undefined : "of"}>
          <EventLine event={event} withOperation={false} />
          <Causes event={event} joins={joins} />
        </div>
      ))}
    </li>
  );
}

// The operation's own line says it.
function isStateOf(event: Event): boolean {
  return event.kind === "operation_accepted" || event.kind === "operation_succeeded"
    || event.kind === "operation_failed";
}

function Causes({ event, joins }: { event: Event; joins: Joined }) {
  const cause = event.because_of === null ? undefined : joins.byNumber.get(event.because_of);
  const caused = joins.causedBy.get(event.number) ?? [];
  return (
    <>
      {event.because_of !== null && (
        <div class="cause">
          {words.because(event.because_of)}
          {cause !== undefined && <>: <EventLine event={cause} /></>}
        </div>
      )}
      {caused.map(one => (
        <div key={one.number} class="cause">
          {words.then} <span class={`severity ${severityOf(one)}`}>{words.kind(one.kind)}</span>
          {" "}<When at={one.at} />
        </div>
      ))}
    </>
  );
}
