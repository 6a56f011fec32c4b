// SPDX-License-Identifier: Apache-2.0
// Verifications of a VF: their figures over time, what can be expected, who lost packets.
import type { Loss, TestResult, Verdict, Verification } from "../transport/types";

export const PROOFS: readonly string[] =
  ["reachability", "path_mtu", "rc_ping", "rdma_write", "rdma_read"];
// The daemon compares no bandwidth of shorter messages: their number is the limit, not the bytes.
const COMPARED_BYTES_MIN = 8192;

export function figure(test: TestResult, name: string): number | null {
  return test.figures?.[name] ?? null;
}

export type Expectation =
  | { is: "given"; test: string; bandwidthMbps: number; achievableMbps: number; percent: number }
  | { is: "absent"; test: string; bandwidthMbps: number; why: WhyNot };
export type WhyNot = "proof" | "not_passed" | "short" | "path_unknown";

// One for each test that reports a bandwidth.
export function expectations(run: Verification): Expectation[] {
  return run.tests.flatMap((test): Expectation[] => {
    const bandwidthMbps = figure(test, "bandwidth_mbps");
    if (bandwidthMbps === null) return [];
    const achievableMbps = figure(test, "achievable_mbps");
    const percent = figure(test, "achieved_percent");
    const one = { test: test.name, bandwidthMbps };
    return achievableMbps !== null && percent !== null
      ? [{ ...one, is: "given", achievableMbps, percent }]
      : [{ ...one, is: "absent", why: whyNot(test) }];
  });
}

function whyNot(test: TestResult): WhyNot {
  if (PROOFS.includes(test.name)) return "proof";
  if (test.verdict !== "pass") return "not_passed";
  const bytes = figure(test, "message_bytes");
  return bytes !== null && bytes < COMPARED_BYTES_MIN ? "short" : "path_unknown";
}

// Why a test has no figure to show.
export type Absent = Exclude<Verdict, "pass"> | "measures_none";

export function whyNoFigures(test: TestResult): Absent | null {
  if (Object.keys(test.figures ?? {}).length > 0) return null;
  return test.verdict === "pass" ? "measures_none" : test.verdict;
}

export interface Line {
  test: string;
  figure: string;
  values: (number | null)[]; // of each time; null: that run does not have it
}
export interface Trend {
  times: number[]; // seconds, ascending
  lines: Line[];
}

// Figures of ended runs. A figure that no run has is no line.
export function trendOf(runs: readonly Verification[], figures: readonly string[]): Trend {
  const ended = runs.filter(run => run.verdict !== "pending")
    .sort((one, other) => Date.parse(one.started_at) - Date.parse(other.started_at));
  const tests = [...new Set(ended.flatMap(run => run.tests.map(test => test.name)))];
  const lines = tests.flatMap(test => figures.map(name => ({
    test, figure: name,
    values: ended.map(run => {
      const found = run.tests.find(one => one.name === test);
      return found === undefined ? null : figure(found, name);
    }),
  })));
  return {
    times: ended.map(run => Date.parse(run.started_at) / 1000),
    lines: lines.filter(line => line.values.some(value => value !== null)),
  };
}

export interface Sides {
  side: Loss["side"];
  losses: Loss[];
}

export function lossesBySide(run: Verification): Sides[] {
  return (["host", "guest"] as const)
    .map(side => ({ side, losses: (run.losses ?? []).filter(loss => loss.side === side) }))
    .filter(({ losses }) => losses.length > 0);
}

// Null: the host has no clock reading of its end.
export function durationMs(run: { started_at: string; finished_at: string | null }): number | null {
  return run.finished_at === null ? null
    : Date.parse(run.finished_at) - Date.parse(run.started_at);
}
