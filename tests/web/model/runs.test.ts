// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { changesBetween } from "../../../service/web/src/model/changes";
import { barsOf, latenciesOf, scaleOf, ticksOf } from "../../../service/web/src/model/latency";
import {
  expectations, lossesBySide, trendOf, whyNoFigures,
} from "../../../service/web/src/model/runs";
import { namedFigure } from "../../../service/web/src/model/units";
import {
  canAsk, emptyVerify, verifyBody, verifyFormOf, verifyQueryOf,
} from "../../../service/web/src/model/verify";
import type { TestResult, Verification } from "../../../service/web/src/transport/types";
import { attachment, event } from "./bodies";

const example = attachment({}).verification!;
const result = (name: string, figures: Record<string, number> = {},
                part: Partial<TestResult> = {}) =>
  ({ name, verdict: "pass" as const, by: "host" as const, figures, ...part });
const run = (part: Partial<Verification>): Verification => ({ ...example, tests: [], ...part });

test("an expectation is the API's, and where there is none the page says why", () => {
  const all = expectations(run({ tests: [
    result("write_bandwidth",
      { bandwidth_mbps: 9000, achievable_mbps: 10_000, achieved_percent: 90 }),
    result("rdma_write", { bandwidth_mbps: 900 }),
    result("send_bandwidth", { bandwidth_mbps: 80, message_bytes: 64 }),
    result("read_bandwidth", { bandwidth_mbps: 80, message_bytes: 65_536 }),
    result("bidirectional_bandwidth", { bandwidth_mbps: 1 }, { verdict: "fail" }),
    result("write_latency", { p50_us: 2 }),
  ] }));
  assert.deepEqual(all[0], {
    is: "given", test: "write_bandwidth", bandwidthMbps: 9000, achievableMbps: 10_000, percent: 90,
  });
  assert.deepEqual(all.slice(1).map(one => one.is === "absent" && one.why),
    ["proof", "short", "path_unknown", "not_passed"]);
});

test("a test without figures says why, and a skipped one has not failed", () => {
  assert.equal(whyNoFigures(result("rc_ping", { p50_us: 1 })), null);
  assert.equal(whyNoFigures(result("cm_ping")), "measures_none");
  assert.equal(whyNoFigures(result("gpudirect", {}, { verdict: "not_applicable" })),
    "not_applicable");
  assert.equal(whyNoFigures(result("cm_ping", {}, { verdict: "skip" })), "skip");
});

test("a trend is in the order of time, and a run without a figure leaves a hole", () => {
  const at = (day: number, tests: TestResult[], part: Partial<Verification> = {}) =>
    run({ started_at: `2026-01-${day}T00:00:00.000Z`, tests, ...part });
  const { times, lines } = trendOf([
    at(13, [result("write_bandwidth", { bandwidth_mbps: 3 })]),
    at(12, []),
    at(11, [result("write_bandwidth", { bandwidth_mbps: 1 }), result("rc_ping", { p50_us: 9 })]),
    at(14, [result("write_bandwidth", { bandwidth_mbps: 7 })], { verdict: "pending" }),
  ], ["bandwidth_mbps"]);
  assert.deepEqual(times.map(one => new Date(one * 1000).getUTCDate()), [11, 12, 13]);
  assert.deepEqual(lines,
    [{ test: "write_bandwidth", figure: "bandwidth_mbps", values: [1, null, 3] }]);
});

const PERCENTILES = { min_us: 1, p50_us: 2, p90_us: 2, p99_us: 4, p999_us: 8, max_us: 64 };

test("shares of a histogram add up, and equal percentiles make no bar", () => {
  const [latency] = latenciesOf([result("write_latency", PERCENTILES)]);
  assert.deepEqual(latency?.bands.map(({ fromUs, toUs }) => [fromUs, toUs]),
    [[1, 2], [2, 4], [4, 8], [8, 64]]);
  const all = latency.bands.reduce((sum, { percent }) => sum + percent, 0);
  assert.ok(Math.abs(all - 100) < 1e-9, `${all}`);
  const scale = scaleOf([latency])!;
  const bars = barsOf(latency.bands, scale);
  assert.equal(Math.max(...bars.map(bar => bar.height)), 1);
  for (const [at, bar] of bars.entries()) {
    const next = bars[at + 1];
    assert.ok(Math.abs(bar.left + bar.width - (next?.left ?? 100)) < 1e-9);
    // The area is the share.
    const share = bar.height * bar.width / (bars[0]!.height * bars[0]!.width);
    assert.ok(Math.abs(share - bar.band.percent / bars[0]!.band.percent) < 1e-9);
  }
  assert.deepEqual(ticksOf(scale), [1, 3, 10, 30]);
});

test("too few percentiles, or impossible ones, make no histogram", () => {
  const bands = (figures: Record<string, number>) =>
    latenciesOf([result("write_latency", figures)])[0]?.bands.length;
  assert.equal(bands({ p50_us: 171.5, p99_us: 320 }), 0);
  assert.equal(bands({ ...PERCENTILES, p99_us: 1 }), 0);
  assert.equal(bands({ ...PERCENTILES, min_us: 0 }), 0);
  assert.equal(bands({ bandwidth_mbps: 3 }), undefined);
});

test("losses are told apart by their side", () => {
  const loss = (side: "host" | "guest") => ({
    side, detail: "", remedy: "",
    counter: { source: "netdev" as const, device: "ens1", name: "rx_dropped", count: 1 },
  });
  assert.deepEqual(lossesBySide(run({ losses: [loss("guest"), loss("host"), loss("guest")] }))
    .map(({ side, losses }) => [side, losses.length]), [["host", 1], ["guest", 2]]);
  assert.deepEqual(lossesBySide(run({ losses: [] })), []);
});

test("what changed is what differs between two runs, and the events between them", () => {
  const later = run({
    run: "b", started_at: "2026-01-31T13:00:00.000Z", path: "wire",
    tests: [result("write_bandwidth", { achievable_mbps: 500, bandwidth_mbps: 1 })],
  });
  const earlier = run({
    run: "a", started_at: "2026-01-31T12:00:00.000Z", path: "internal_switch",
    tests: [result("write_bandwidth", { achievable_mbps: 900, bandwidth_mbps: 2 })],
  });
  const at = (number: number, minute: string, kind: "drift" | "verified" | "settled") =>
    event({ number, kind, at: `2026-01-31T${minute}:00.000Z` });
  const [last, first] = changesBetween([later, earlier], [
    at(5, "13:30", "drift"), at(4, "12:40", "settled"), at(3, "12:30", "verified"),
    at(2, "12:20", "drift"), at(1, "11:00", "drift"),
  ]);
  assert.deepEqual(last?.differences, [
    { what: "path", test: null, was: "internal_switch", is: "wire" },
    { what: "achievable_mbps", test: "write_bandwidth", was: 900, is: 500 },
  ]);
  assert.deepEqual(last.events.map(one => one.number), [2, 4]);
  assert.deepEqual(changesBetween([run({ tests: [result("rc_ping")] }),
    run({ tests: [result("cm_ping")] })], [])[0]?.differences, [
    { what: "tests_gone", test: null, was: null, is: "cm_ping" },
    { what: "tests_new", test: null, was: null, is: "rc_ping" },
  ]);
  assert.deepEqual([first?.before, first?.differences, first?.events], [null, [], []]);
});

test("a figure's name has its unit", () => {
  assert.deepEqual(namedFigure("p999_us"), { stem: "p999", unit: "us" });
  assert.deepEqual(namedFigure("messages_per_s"), { stem: "messages", unit: "per_s" });
  assert.deepEqual(namedFigure("write_mib_per_s"), { stem: "write", unit: "mib_per_s" });
  assert.deepEqual(namedFigure("lost"), { stem: "lost", unit: "count" });
});

test("the token of another responder is sent, and never kept in the page's address", () => {
  const form = { ...emptyVerify, profile: "deep" as const, host: "10.99.0.2", token: "vfr_0",
    fingerprint: "6f" };
  assert.deepEqual(verifyBody(form), {
    profile: "deep", responder: { host: "10.99.0.2", fingerprint: "6f", token: "vfr_0" },
  });
  const kept = new Map(Object.entries(verifyQueryOf(form)));
  assert.equal(JSON.stringify([...kept]).includes("vfr_0"), false);
  assert.deepEqual(verifyFormOf(kept), { ...form, token: "" });
  assert.equal(canAsk(form), true);
  assert.equal(canAsk({ ...form, token: "" }), false);
  assert.deepEqual(verifyBody({ ...emptyVerify, timeout: "60" }),
    { profile: "default", timeout_seconds: 60 });
});
