// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { isSame } from "../../../service/web/src/model/same";

test("bodies are the same whatever the order of their members, and else differ", () => {
  const body = { a: 1, b: [{ c: null }, "d"], e: true };
  assert.ok(isSame(body, { e: true, b: [{ c: null }, "d"], a: 1 }));
  const others = [
    { ...body, a: 2 }, { ...body, f: undefined }, { a: 1, b: body.b, f: true },
    { ...body, b: ["d", { c: null }] }, { ...body, b: { 0: { c: null }, 1: "d" } },
    { ...body, b: [{ c: {} }, "d"] }, null, "a", [],
  ];
  for (const other of others) {
    assert.ok(!isSame(body, other), JSON.stringify(other));
    assert.ok(!isSame(other, body), JSON.stringify(other));
  }
});
