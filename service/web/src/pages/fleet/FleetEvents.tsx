// SPDX-License-Identifier: Apache-2.0
// What happens on all hosts, newest first, live.
import { useEffect, useMemo, useReducer, useState } from "preact/hooks";
import { SEVERITIES, severityOf, TOPICS } from "../../model/events";
import { eventKey, matchingEvents } from "../../model/fleet_log";
import type { FleetFilter } from "../../model/fleet_log";
import { filterOf } from "../../model/timeline";
import type { Route } from "../../model/paths";
import type { Column } from "../../model/table";
import { Copy } from "../../parts/Copy";
import { Choice, Field } from "../../parts/fields";
import { memo } from "../../parts/memo";
import { VerdictMark } from "../../parts/VerdictMark";
import { When } from "../../parts/When";
import { text } from "../../text/en";
import type { FleetEvent } from "../../transport/fleet_types";
import { Detail } from "../events/Detail";
import { useAddressed } from "./addressed";
import { useFleet, useStale } from "./context";
import { hrefOfEvents, hrefOfVf, hrefOfVm } from "./links";
import { StaleNote } from "./StaleNote";

const words = text.fleet.events;
const names = text.events.filter;
const SHOWN = 50;

const columns: readonly Column<FleetEvent>[] = [
  { name: "host", title: "", value: event => event.host },
  { name: "number", title: "", value: event => event.number },
  { name: "at", title: "", value: event => event.at },
  { name: "kind", title: "", value: event => event.kind },
  { name: "vm", title: "", value: event => event.vm },
  { name: "detail", title: "", value: event => event.detail },
];

export function FleetEvents({ route }: { route: Route }) {
  const { store } = useFleet();
  const [, again] = useReducer((count: number) => count + 1, 0);
  useEffect(() => store.onLog(() => again(undefined)), [store]);
  const [held, setHeld] = useState<readonly FleetEvent[] | null>(null);
  const [most, setMost] = useState(SHOWN);
  const [filter, setFilter] = useAddressed(route, (query): FleetFilter =>
    ({ ...filterOf(query), host: query.get("host") ?? "" }));
  const all = held ?? store.log.events;
  const matched = useMemo(() => matchingEvents(all, filter), [all, filter]);
  const stale = useStale();
  const change = (part: Partial<FleetFilter>): void => {
    setFilter(part);
    setMost(SHOWN);
  };
  const since = new Date(store.since).toISOString();
  return (
    <>
      <h1>{text.fleet.pages.events}</h1>
      <p class="quiet">{words.about} {words.since} <When at={since} />.</p>
      <FilterForm filter={filter} change={change} />
      <div class="acts">
        {held === null
          ? <button type="button" onClick={() => setHeld(all)}>{words.hold}</button>
          : <button type="button" onClick={() => setHeld(null)}>{words.release}</button>}
        <span class="quiet">{words.count(matched.length, all.length)}</span>
        <Copy rows={matched} columns={columns} />
      </div>
      <StaleNote stale={stale} />
      <ol class="timeline" aria-label={words.label}>
        {matched.slice(0, most).map(event => <Line key={eventKey(event)} event={event} />)}
      </ol>
      {matched.length === 0 && <p>{all.length === 0 ? words.none : words.noneMatches}</p>}
      {matched.length > most && (
        <p><button type="button" onClick={() => setMost(most + SHOWN)}>{words.more}</button></p>
      )}
    </>
  );
}

function FilterForm({ filter, change }: {
  filter: FleetFilter; change: (part: Partial<FleetFilter>) => void;
}) {
  return (
    <form class="filter" role="search" aria-label={names.title}
          onSubmit={event => event.preventDefault()}>
      <Field label={text.fleet.filter.host} value={filter.host} hint={text.fleet.filter.hostHint}
             onInput={host => change({ host })} />
      <Choice label={names.severity} value={filter.severity}
              onChange={severity => change({ severity })}
              options={[["", names.anySeverity], ...SEVERITIES.filter(one => one !== "normal")
                .map(one => [one, names.atLeast[one]] as const)]} />
      <Choice label={names.topic} value={filter.topic} onChange={topic => change({ topic })}
              options={[["", names.anyTopic],
                ...TOPICS.map(one => [one, names.topics[one]] as const)]} />
      <Field label={names.words} value={filter.words} hint={names.wordsHint}
             onInput={given => change({ words: given })} />
    </form>
  );
}

const Line = memo<{ event: FleetEvent }>(({ event }) => {
  const { host, kind, pf, vf, vm, verdict, detail } = event;
  const severity = severityOf(event);
  return (
    <li class={`entry ${severity}`}>
      <When at={event.at} /> <a href={hrefOfEvents(host)}>{host}</a>{" "}
      <span class={`severity ${severity}`} title={text.events.severity(severity)}>
        {text.events.kind(kind)}
      </span>{" "}
      {verdict !== null && <><VerdictMark verdict={verdict} />{" "}</>}
      <span class="subjects">
        {pf !== null && vf !== null && (
          <a href={hrefOfVf(host, pf, vf)}>{text.events.vf(vf, pf)}</a>
        )}
        {pf !== null && vf === null && <span>{text.events.pf(pf)}</span>}
        {vm !== null && vm !== "" && <a href={hrefOfVm(host, vm)}>{text.events.vm(vm)}</a>}
      </span>
      {detail !== "" && <> <Detail detail={detail} /></>}
    </li>
  );
});
