// SPDX-License-Identifier: Apache-2.0
// The figures of a verification that a person looks at first.
import type { TestResult, Verification } from "../transport/types";

export interface Headline {
  bandwidthMbps: number | null; // the best of the run
  achievedPercent: number | null; // of what the path can carry, beside that bandwidth
  latencyP50Us: number | null;
  latencyP99Us: number | null;
}

const LATENCIES = ["write_latency", "send_latency", "read_latency", "rc_ping"];

export function headline(run: Verification): Headline {
  const fastest = run.tests.reduce<TestResult | null>(
    (best, test) => (bandwidth(test) ?? 0) > (best === null ? 0 : bandwidth(best) ?? 0) ? test
      : best, null);
  const latency = LATENCIES.map(name => run.tests.find(test => test.name === name))
    .find(test => test?.figures?.["p50_us"] !== undefined);
  return {
    bandwidthMbps: fastest === null ? null : bandwidth(fastest),
    achievedPercent: fastest?.figures?.["achieved_percent"] ?? null,
    latencyP50Us: latency?.figures?.["p50_us"] ?? null,
    latencyP99Us: latency?.figures?.["p99_us"] ?? null,
  };
}

function bandwidth(test: TestResult): number | null {
  return test.figures?.["bandwidth_mbps"] ?? null;
}

// What a person must read of a run, whether or not it passed.
export interface Remark {
  detail: string;
  remedy: string;
}

export function remarks(run: Verification): Remark[] {
  const failed = run.tests.filter(test => test.verdict === "fail")
    .map(test => ({ detail: `${test.name}: ${test.detail ?? ""}`, remedy: test.remedy ?? "" }));
  const whole = run.detail ? [{ detail: run.detail, remedy: run.remedy ?? "" }] : [];
  return [...whole, ...failed, ...run.losses ?? [], ...run.warnings ?? []]
    .map(({ detail, remedy }) => ({ detail, remedy }));
}
