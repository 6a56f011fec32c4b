// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { hashOf, path, routeOf } from "../../../service/web/src/model/paths";

test("a value can't leave its place in a path", () => {
  assert.equal(path("/v1/vms/{vm}", { vm: "a/../b?c" }), "/v1/vms/a%2F..%2Fb%3Fc");
  assert.equal(path("/v1/vfs", {}, { limit: 5, vm: "a&b" }), "/v1/vfs?limit=5&vm=a%26b");
  assert.throws(() => path("/v1/vms/{vm}", {}), /without vm/);
});

test("a hash is read as it was made", () => {
  const names = ["vms", "a/b #1", "<b>x</b>"];
  assert.deepEqual(routeOf(hashOf(...names)).parts, names);
  assert.deepEqual(routeOf("#/").parts, []);
  assert.deepEqual(routeOf("").parts, []);
});

test("a hash that was cut off is still a route", () => {
  assert.deepEqual(routeOf("#/vms/a%2").parts, ["vms", "a%2"]);
  assert.equal(routeOf("#/events?vm=a%20b").query.get("vm"), "a b");
});
