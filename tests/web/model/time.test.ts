// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { ageChangesIn, ageOf } from "../../../service/web/src/model/time";

test("an age reads in its largest unit, and a clock ahead of ours is no age", () => {
  const now = Date.parse("2026-01-31T12:00:00Z");
  const at = (seconds: number) => ageOf(now - seconds * 1000, now);
  assert.deepEqual(at(-5), { unit: "second", count: 0 });
  assert.deepEqual(at(59.9), { unit: "second", count: 59 });
  assert.deepEqual(at(60), { unit: "minute", count: 1 });
  assert.deepEqual(at(7199), { unit: "hour", count: 1 });
  assert.deepEqual(at(3 * 86400), { unit: "day", count: 3 });
});

test("an age changes when it says, and not before", () => {
  for (const past of [0, 999, 1000, 59_999, 60_000, 3_599_999, 90_000_000]) {
    const left = ageChangesIn(0, past);
    assert.deepEqual(ageOf(0, past + left - 1), ageOf(0, past));
    assert.notDeepEqual(ageOf(0, past + left), ageOf(0, past));
  }
});
