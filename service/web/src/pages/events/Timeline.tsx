// SPDX-License-Identifier: Apache-2.0
// What happened on the host, newest first, live.
import { useMemo, useRef, useState } from "preact/hooks";
import { useEventLog } from "../../live/events";
import type { EventLog } from "../../live/events";
import { useAll, useStatus } from "../../live/hooks";
import { SEVERITIES, TOPICS } from "../../model/events";
import { EVENTS_MAX } from "../../model/log";
import type { Route } from "../../model/paths";
import { filterOf, filterQueryOf, joined, matching } from "../../model/timeline";
import type { Entry, Filter, Joined } from "../../model/timeline";
import type { Column } from "../../model/table";
import { useConsole } from "../../parts/context";
import { Copy } from "../../parts/Copy";
import { Choice, Field } from "../../parts/fields";
import { ProblemBox } from "../../parts/ProblemBox";
import { text } from "../../text/en";
import type { Operation } from "../../transport/types";
import { hashHere } from "../links";
import { drawnOf, EntryRow } from "./EntryRow";
import type { Drawn } from "./EntryRow";

const words = text.events;
// A screen has twenty; of what comes by the hundred each is drawn, and gone with the next draw.
const SHOWN = 50;

const columns: readonly Column<Entry>[] = [
  { name: "at", title: "", value: entry => entry.at },
  { name: "severity", title: "", value: entry => entry.severity },
  { name: "operation", title: "", value: entry => entry.operation },
  { name: "operation_kind", title: "", value: entry => entry.known?.kind ?? null },
  { name: "operation_state", title: "", value: entry => entry.known?.state ?? null },
  { name: "kinds", title: "", value: entry => entry.events.map(one => one.kind).join(" ") },
  { name: "numbers", title: "", value: entry => entry.events.map(one => one.number).join(" ") },
  { name: "vm", title: "", value: entry => entry.events.find(one => one.vm)?.vm ?? null },
  { name: "detail", title: "", value: entry =>
    [known(entry), ...entry.events.map(one => one.detail)].filter(Boolean).join("; ") },
];
const known = (entry: Entry): string => entry.known?.problem?.detail ?? "";

export function Timeline({ route }: { route: Route }) {
  const { api, store } = useConsole();
  const { liveness, loaded } = useStatus(store);
  const log = useEventLog(api, store, liveness.live && loaded.size > 0);
  const newest = useAll(store.operations);
  const [filter, setFilter] = useState(() => filterOf(route.query));
  const [most, setMost] = useState(SHOWN);
  const joins = useMemo(() => {
    const operations = new Map<string, Operation>(log.operations);
    for (const operation of newest) operations.set(operation.id, operation);
    const oldest = log.log.events.at(-1);
    const since = log.log.complete ? -Infinity : Date.parse(oldest?.at ?? "") || Infinity;
    return joined(log.log.events, operations, since);
  }, [log.log, log.operations, newest]);
  const matched = useMemo(() => matching(joins.entries, filter), [joins, filter]);
  const change = (part: Partial<Filter>): void => {
    const next = { ...filter, ...part };
    setFilter(next);
    setMost(SHOWN);
    const query = new URLSearchParams(filterQueryOf(next)).toString();
    const here = hashHere("events");
    history.replaceState(history.state, "", query === "" ? here : `${here}?${query}`);
  };
  const older = (): void => {
    setMost(most + SHOWN);
    if (matched.length <= most + SHOWN) void log.older();
  };
  return (
    <>
      <h1>{text.pages.events}</h1>
      <FilterForm filter={filter} change={change} />
      <div class="acts">
        <Hold log={log} />
        <span class="quiet">{words.count(matched.length, joins.entries.length)}</span>
        <Copy rows={matched.slice(0, most)} columns={columns} />
      </div>
      {log.problem && <ProblemBox problem={log.problem} again={() => void log.catchUp()} />}
      <Entries entries={matched.slice(0, most)} joins={joins} />
      {log.reading > 0 && <p role="status">{words.reading}</p>}
      {log.reading === 0 && matched.length === 0 && (
        <p>{joins.entries.length === 0 ? words.none : words.noneMatches}</p>
      )}
      <End log={log} hasMore={matched.length > most} older={older} />
    </>
  );
}

function FilterForm({ filter, change }: {
  filter: Filter; change: (part: Partial<Filter>) => void;
}) {
  const { atLeast, topics } = words.filter;
  return (
    <form class="filter" role="search" aria-label={words.filter.title}
          onSubmit={event => event.preventDefault()}>
      <Choice label={words.filter.severity} value={filter.severity}
              onChange={severity => change({ severity })}
              options={[["", words.filter.anySeverity],
                ...SEVERITIES.filter(one => one !== "normal")
                  .map(one => [one, atLeast[one]] as const)]} />
      <Choice label={words.filter.topic} value={filter.topic} onChange={topic => change({ topic })}
              options={[["", words.filter.anyTopic],
                ...TOPICS.map(one => [one, topics[one]] as const)]} />
      <Field label={words.filter.words} value={filter.words} hint={words.filter.wordsHint}
             onInput={given => change({ words: given })} />
    </form>
  );
}

function Hold({ log }: { log: EventLog }) {
  return log.held
    ? <button type="button" onClick={() => log.release()}>{words.release(log.waiting)}</button>
    : <button type="button" title={words.holdHelp} onClick={() => log.hold()}>{words.hold}</button>;
}

function Entries({ entries, joins }: { entries: readonly Entry[]; joins: Joined }) {
  const before = useRef<ReadonlyMap<string, Drawn>>(new Map());
  const drawn = useMemo(() =>
    new Map(entries.map(entry => [entry.key, drawnOf(entry, joins, before.current)])),
  [entries, joins]);
  before.current = drawn;
  return (
    <ol class="timeline" aria-label={words.label}>
      {[...drawn].map(([key, one]) => <EntryRow key={key} drawn={one} />)}
    </ol>
  );
}

function End({ log, hasMore, older }: { log: EventLog; hasMore: boolean; older: () => void }) {
  if (log.reading > 0) return null;
  const { events, complete } = log.log;
  if (!hasMore && complete) return events.length === 0 ? null : <p>{words.complete}</p>;
  if (!hasMore && events.length >= EVENTS_MAX) return <p>{words.most(EVENTS_MAX)}</p>;
  return <p><button type="button" onClick={older}>{words.older}</button></p>;
}
