// SPDX-License-Identifier: Apache-2.0
// What was different when a VF was verified: members of the runs, and events of the VF and its PF
// between them.
import type { Event, Verification } from "../transport/types";
import { figure } from "./runs";

export interface Difference {
  what: "attachment" | "path" | "responder" | "peer_gid" | "vf_mac" | "vf_guid" | "dscp"
    | "achievable_mbps" | "message_bytes" | "queue_pairs" | "mtu_bytes"
    | "tests_gone" | "tests_new";
  test: string | null; // of which test
  was: string | number | null; // null: not reported
  is: string | number | null;
}

export interface Between {
  run: Verification;
  before: Verification | null; // null: the first run that is kept
  differences: Difference[];
  events: Event[]; // oldest first
}

const MEMBERS =
  ["attachment", "path", "responder", "peer_gid", "vf_mac", "vf_guid", "dscp"] as const;
const FIGURES = ["achievable_mbps", "message_bytes", "queue_pairs", "mtu_bytes"] as const;

// Runs and events are newest first, as the API lists them.
export function changesBetween(runs: readonly Verification[],
                               history: readonly Event[]): Between[] {
  return runs.map((run, at) => {
    const before = runs[at + 1] ?? null;
    const since = before === null ? -Infinity : Date.parse(before.started_at);
    const until = Date.parse(run.started_at);
    const events = history.filter(event => event.kind !== "verified"
      && Date.parse(event.at) > since && Date.parse(event.at) <= until);
    return {
      run, before, events: before === null ? [] : events.reverse(),
      differences: before === null ? [] : differencesOf(before, run),
    };
  });
}

function differencesOf(before: Verification, run: Verification): Difference[] {
  const members = MEMBERS.map(what =>
    ({ what, test: null, was: before[what] ?? null, is: run[what] ?? null }));
  const figures = run.tests.flatMap(test => {
    const same = before.tests.find(one => one.name === test.name);
    if (same === undefined) return [];
    return FIGURES.map(what =>
      ({ what, test: test.name, was: figure(same, what), is: figure(test, what) }));
  });
  const tests = [
    { what: "tests_gone" as const, test: null, was: null, is: testsOf(before, run) },
    { what: "tests_new" as const, test: null, was: null, is: testsOf(run, before) },
  ];
  return [...members, ...figures, ...tests].filter(({ was, is }) => was !== is);
}

// The tests of one that the other lacks.
function testsOf(one: Verification, other: Verification): string | null {
  const names = one.tests.map(test => test.name)
    .filter(name => other.tests.every(test => test.name !== name));
  return names.length === 0 ? null : names.join(", ");
}
