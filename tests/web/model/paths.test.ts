// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { hashBelow, hashOf, path, pathOfHost, routeOf } from "../../../service/web/src/model/paths";

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

test("a host's pages and its API stand below it in a fleet", () => {
  assert.equal(hashBelow("#/hosts/h1/vms?act=x", "vms", "a b"), "#/hosts/h1/vms/a%20b");
  assert.equal(hashBelow("#/hosts/h1", "events"), "#/hosts/h1/events");
  assert.equal(hashBelow("#/hosts/h1?x=1"), "#/hosts/h1/");
  assert.equal(hashBelow("#/vms/hosts", "events"), "#/events");
  assert.equal(hashBelow("", "vms"), "#/vms");
  assert.equal(pathOfHost("h1", "/v1/events?after=3"), "/v1/hosts/h1/events?after=3");
  assert.equal(pathOfHost("h1", "/v1"), "/v1/hosts/h1");
  assert.equal(pathOfHost("h1", "/readyz"), "/v1/hosts/h1/readyz");
  assert.equal(pathOfHost("../x", "/v1/v1x"), "/v1/hosts/..%2Fx/v1x");
});
