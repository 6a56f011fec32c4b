// SPDX-License-Identifier: Apache-2.0
// The audit log, newest first, page by page. The API filters by principal and answer; the table
// filters what was read.
import { useState } from "preact/hooks";
import { useAnswer } from "../../live/hooks";
import type { Route } from "../../model/paths";
import { useConsole } from "../../parts/context";
import { Field } from "../../parts/fields";
import { ProblemBox } from "../../parts/ProblemBox";
import { Table } from "../../parts/Table";
import type { ShownColumn } from "../../parts/Table";
import { When } from "../../parts/When";
import { text } from "../../text/en";
import { problemIn } from "../../transport/api";
import type { AuditEntry, Problem } from "../../transport/types";
import { hashHere } from "../links";

const words = text.settings.audit;
const PAGE = 100;

const columns: readonly ShownColumn<AuditEntry>[] = [
  { name: "at", title: words.table.at, value: one => one.at, shown: one => <When at={one.at} /> },
  { name: "who", title: words.table.who, value: one => one.who,
    shown: one => <a href={hashOfFilter({ who: one.who, outcome: "" })}>{one.who}</a> },
  { name: "from", title: words.table.from, value: one => one.from },
  { name: "action", title: words.table.action, value: one => one.action },
  { name: "outcome", title: words.table.outcome, value: one => one.outcome,
    shown: one => <span class={one.refused ? "remark" : undefined}>{one.outcome}</span> },
  { name: "requests", title: words.table.requests, value: one => one.requests },
  { name: "operation", title: words.table.operation, value: one => one.operation ?? "" },
  { name: "request_id", title: words.table.id, value: one => one.request_id },
];

interface Filter {
  who: string;
  outcome: string;
}

function queryOf({ who, outcome }: Filter): Record<string, string> {
  return { ...(who === "" ? {} : { who }), ...(outcome === "" ? {} : { outcome }) };
}

function hashOfFilter(filter: Filter): string {
  const query = new URLSearchParams(queryOf(filter)).toString();
  return `${hashHere("settings", "audit")}${query && `?${query}`}`;
}

export function Audit({ route }: { route: Route }) {
  const filter = { who: route.query.get("who") ?? "", outcome: route.query.get("outcome") ?? "" };
  return (
    <>
      <h2>{words.title}</h2>
      <p class="quiet">{words.about}</p>
      <FilterForm key={hashOfFilter(filter)} filter={filter} />
      <Entries key={`entries ${hashOfFilter(filter)}`} filter={filter} />
    </>
  );
}

function FilterForm({ filter }: { filter: Filter }) {
  const [{ who, outcome }, setTyped] = useState(filter);
  return (
    <form class="fields audit-filter" onSubmit={event => {
      event.preventDefault();
      location.hash = hashOfFilter({ who: who.trim(), outcome: outcome.trim() });
    }}>
      <Field label={words.whoFilter} value={who} hint={words.whoHint}
             onInput={typed => setTyped({ who: typed, outcome })} />
      <Field label={words.outcomeFilter} value={outcome} hint={words.outcomeHint}
             onInput={typed => setTyped({ who, outcome: typed })} />
      <button type="submit">{words.ask}</button>
    </form>
  );
}

interface Older {
  items: AuditEntry[];
  next: string | null;
}

function Entries({ filter }: { filter: Filter }) {
  const { api, store } = useConsole();
  const query = { limit: PAGE, ...queryOf(filter) };
  const first = useAnswer(store, () => api.get("/v1/audit", {}, query), []);
  const [older, setOlder] = useState<Older | null>(null);
  const [isReading, setReading] = useState(false);
  const [problem, setProblem] = useState<Problem | null>(null);
  const next = older === null ? first.answer?.next ?? null : older.next;
  const readOlder = (cursor: string): void => {
    setReading(true);
    setProblem(null);
    api.get("/v1/audit", {}, { ...query, cursor }).then(
      page => setOlder({ items: [...older?.items ?? [], ...page.items], next: page.next }),
      (error: unknown) => setProblem(problemIn(error))).finally(() => setReading(false));
  };
  const again = (): void => {
    setOlder(null);
    first.again();
  };
  if (first.answer === null)
    return first.problem === null ? <p role="status">{text.settings.reading}</p>
      : <ProblemBox problem={first.problem} again={first.again} />;
  return (
    <>
      <div class="acts">
        <button type="button" aria-disabled={first.waiting} onClick={again}>{words.again}</button>
        <span role="status">{first.waiting && text.settings.reading}</span>
      </div>
      {first.problem && <ProblemBox problem={first.problem} />}
      <Table caption={words.table.caption} columns={columns} keyOf={keyOf}
             items={[...first.answer.items, ...older?.items ?? []]} />
      {problem && <ProblemBox problem={problem} />}
      {next === null ? <p class="quiet">{words.oldest}</p> : (
        <p>
          <button type="button" aria-disabled={isReading}
                  onClick={() => { if (!isReading) readOlder(next); }}>{words.older}</button>
          {" "}<span role="status">{isReading && words.readingOlder}</span>
        </p>
      )}
    </>
  );
}

// Counted entries have no request of their own.
function keyOf(one: AuditEntry): string {
  return [one.request_id, one.at, one.who, one.outcome, one.action].join(" ");
}
