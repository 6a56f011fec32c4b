// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { cellState, countStates, isProved } from "../../../service/web/src/model/cells";
import type { Verification } from "../../../service/web/src/transport/types";
import { attachment, vf } from "./bodies";

const well = { stuck: false };
const verified = (verdict: Verification["verdict"]) =>
  attachment({ verification: { ...attachment({}).verification!, verdict } });

test("only a pass of an attachment that stands proves a VF", () => {
  assert.equal(isProved(verified("pass")), true);
  for (const verdict of ["fail", "skip", "not_applicable", "pending"] as const)
    assert.equal(isProved(verified(verdict)), false);
  assert.equal(isProved(attachment({ verification: null })), false);
  assert.equal(isProved({ ...verified("pass"), state: "detaching" }), false);
  assert.equal(isProved(undefined), false);
});

test("the worst that holds is shown", () => {
  const drifted = vf({ state: "attached", drift: ["VF 2 has vlan 100"] });
  assert.equal(cellState(drifted, verified("pass"), { stuck: true }), "stuck");
  assert.equal(cellState({ ...drifted, state: "quarantined" }, undefined, well), "quarantined");
  assert.equal(cellState(drifted, verified("pass"), well), "drifted");
  assert.equal(cellState(vf({ state: "attached" }), verified("pass"), well), "proved");
  assert.equal(cellState(vf({ state: "attached" }), verified("fail"), well), "unproved");
  for (const state of ["free", "reserved", "in_use"] as const)
    assert.equal(cellState(vf({ state }), undefined, well), state);
});

test("states are counted", () => {
  const counts = countStates(["free", "free", "stuck"]);
  assert.equal(counts.free, 2);
  assert.equal(counts.stuck, 1);
  assert.equal(counts.proved, 0);
});
