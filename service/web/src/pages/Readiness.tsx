// SPDX-License-Identifier: Apache-2.0
// Whether this host can do its work, and what to do where it can't. What a person looks at is in
// the page's address.
import { useMemo, useState } from "preact/hooks";
import { useAnswer } from "../live/hooks";
import type { Route } from "../model/paths";
import {
  chosenGroups, countResults, groupsOf, lookOf, queryOfLook, RESULTS,
} from "../model/readiness";
import type { Look } from "../model/readiness";
import { useConsole } from "../parts/context";
import { ProblemBox } from "../parts/ProblemBox";
import { Ago, When } from "../parts/When";
import { text } from "../text/en";
import type { Finding } from "../transport/types";
import { hashHere } from "./links";
import { DaemonState } from "./readiness/DaemonState";
import { FindingBox } from "./readiness/FindingBox";

const words = text.readiness;

export function Readiness({ route }: { route: Route }) {
  const { api, store } = useConsole();
  const report = useAnswer(store, () => api.get("/v1/host/checks"), []);
  return (
    <>
      <h1>{text.pages.readiness}</h1>
      <DaemonState />
      <div class="acts looked">
        <button type="button" aria-disabled={report.waiting}
                onClick={() => { if (!report.waiting) report.again(); }}>{words.again}</button>
        <span role="status">{report.waiting && words.running}</span>
        {report.answer && (
          <span class="quiet">
            {words.looked} <Ago at={report.answer.collected_at} /> (
            <When at={report.answer.collected_at} />)
            {report.answer.kernel !== "" && ` · ${words.kernel(report.answer.kernel)}`}
          </span>
        )}
      </div>
      {report.problem && <ProblemBox problem={report.problem} again={report.again} />}
      {report.answer && <Findings findings={report.answer.findings} route={route} />}
    </>
  );
}

function Findings({ findings, route }: { findings: readonly Finding[]; route: Route }) {
  const [look, setLook] = useState(() => lookOf(route.query));
  const groups = useMemo(() => groupsOf(findings), [findings]);
  const shown = chosenGroups(groups, look.results, look.words);
  const counts = countResults(findings);
  const change = (part: Partial<Look>): void => {
    const next = { ...look, ...part };
    setLook(next);
    const query = new URLSearchParams(queryOfLook(next)).toString();
    history.replaceState(history.state, "", `${hashHere("readiness")}${query && `?${query}`}`);
  };
  const shownFindings = shown.reduce((all, one) => all + Math.max(1, one.subjects.length), 0);
  return (
    <>
      <Chooser look={look} counts={counts} change={change} />
      <p class="quiet" role="status">{words.shown(shownFindings, findings.length)}</p>
      {counts.failed + counts.warning === 0 && <p class="finding ok">{words.allWell}</p>}
      {shown.length === 0 && <p>{words.none}</p>}
      {shown.map(group => (
        <FindingBox key={`${group.names[0]} ${group.detail}`} group={group}
                    groupOf={name => shown.find(one => one.names.includes(name))} />
      ))}
    </>
  );
}

function Chooser({ look, counts, change }: {
  look: Look; counts: ReturnType<typeof countResults>; change: (part: Partial<Look>) => void;
}) {
  return (
    <div class="chooser">
      <div role="group" aria-label={words.results} class="acts">
        {RESULTS.map(result => (
          <button key={result} type="button" class={`finding ${result}`}
                  aria-pressed={look.results.has(result)} onClick={() => {
                    const results = new Set(look.results);
                    if (!results.delete(result)) results.add(result);
                    change({ results });
                  }}>{counts[result]} {words.result(result)}</button>
        ))}
      </div>
      <label class="check">
        {words.filter}
        <input type="search" value={look.words}
               onInput={event => change({ words: event.currentTarget.value })} />
      </label>
    </div>
  );
}
