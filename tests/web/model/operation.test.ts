// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import certificateExample from "../../../api/examples/certificate.json";
import infinibandExample from "../../../api/examples/certificate-infiniband.json";
import detachedExample from "../../../api/examples/operation-detached.json";
import { linesOf } from "../../../service/web/src/model/certificate";
import { canBeCancelled, spansOf, subjectOf } from "../../../service/web/src/model/spans";
import { tookMs } from "../../../service/web/src/model/timeline";
import type { Certificate, Operation } from "../../../service/web/src/transport/types";
import { operation } from "./bodies";

const detached = detachedExample as unknown as Operation;

test("the parts of an operation's time, and what is in no part", () => {
  const spans = spansOf(detached)!;
  assert.equal(spans.wholeUs, 1_300_000);
  assert.equal(spans.otherUs, 1_300_000 - 12 - 48_210 - 2140 - 112_400);
  for (const { left, width } of spans.bars) assert.ok(left >= 0 && left + width <= 100);
  assert.equal(spansOf(operation({ spans: [], finished_at: at })), null);
  assert.equal(spansOf({ ...detached, finished_at: null }), null);
});

const at = "2026-01-31T12:00:00.000Z";

test("an operation that ended within a millisecond still has its parts", () => {
  const span = { kind: "plan" as const, what: "", began_us: 100, took_us: 300 };
  const spans = spansOf(operation({ created_at: at, finished_at: at, spans: [span] }))!;
  assert.deepEqual([spans.wholeUs, spans.bars[0]?.left, spans.bars[0]?.width], [400, 25, 75]);
});

test("what runs and undoes itself can be cancelled", () => {
  const running = { finished_at: null };
  assert.equal(canBeCancelled(operation({ ...running, kind: "attach" })), true);
  assert.equal(canBeCancelled(operation({ ...running, kind: "detach" })), false);
  assert.equal(canBeCancelled(operation({ finished_at: at, kind: "attach" })), false);
  assert.equal(tookMs(operation(running)), null);
  assert.equal(tookMs(detached), 1300);
  assert.deepEqual(subjectOf(detached), ["attachments", "3f9c2b1d"]);
});

function leaves(value: unknown): string[] {
  if (typeof value === "object" && value !== null) return Object.values(value).flatMap(leaves);
  return [typeof value === "boolean" ? (value ? "on" : "off") : String(value)];
}

for (const example of [certificateExample, infinibandExample] as unknown as Certificate[]) {
  test(`no line of the certificate of ${example.attachment} is left out`, () => {
    const { settings, addresses, counters } = linesOf(example);
    const shown = JSON.stringify([settings, addresses, counters]);
    const { restored, rotated, counters: counted } = example;
    for (const leaf of leaves([example.settings, restored, rotated, counted]))
      assert.ok(leaf === "null" || shown.includes(leaf), leaf);
    assert.equal(counters === null, counted === null);
  });
}

test("a setting of one side is not reported by the other, or was not the attachment's", () => {
  const example = certificateExample as unknown as Certificate;
  const { settings } = linesOf({
    ...example, settings: { spoofchk: false }, restored: { was: { trust: true }, is: {} },
  });
  assert.deepEqual(settings, [["spoofchk", undefined, "off"], ["trust", "on", null]]);
});
