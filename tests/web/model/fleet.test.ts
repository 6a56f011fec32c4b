// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  conditionsOf, firstOf, hostFilterOf, matchingHosts, NO_RACK, racksOf, staleOf, sumsOf,
} from "../../../service/web/src/model/fleet";
import type { HostFilter } from "../../../service/web/src/model/fleet";
import { isFleet } from "../../../service/web/src/transport/fleet";
import { fleetHost as host } from "./bodies";

const said = { at: "2026-01-31T12:00:00.000Z", by: "token:1", reason: "its fan is changed" };
const since = "2026-01-31T11:00:00.000Z";

test("a host is in each condition that holds, worst first, and only else active", () => {
  assert.deepEqual(conditionsOf(host("h1")), ["active"]);
  assert.deepEqual(conditionsOf(host("h1", { state: "joining" })), ["joining"]);
  assert.deepEqual(conditionsOf(host("h1", { cordoned: said, unreachable_since: since })),
    ["unreachable", "cordoned"]);
  assert.deepEqual(conditionsOf(host("h1",
    { state: "quarantined", fenced: said, unreachable_since: since, cordoned: said })),
  ["fenced", "quarantined", "unreachable", "cordoned"]);
});

test("racks are in the order of their numbers, and hosts without one come last", () => {
  const racks = racksOf([host("a"), host("b", { rack: "r10" }), host("c", { rack: "r2" }),
    host("d", { rack: "r10" })]);
  assert.deepEqual(racks.map(({ name, hosts }) => [name, hosts.map(one => one.name)]),
    [["r2", ["c"]], ["r10", ["b", "d"]], [null, ["a"]]]);
});

test("the first hosts of the racks are drawn first, and none is lost", () => {
  const racks = racksOf([host("a", { rack: "1" }), host("b", { rack: "1" }),
    host("c", { rack: "2" }), host("d", { rack: "2" })]);
  const drawn = (most: number) => firstOf(racks, most)
    .map(({ name, hosts: those, all }) => [name, those.map(one => one.name).join(""), all]);
  assert.deepEqual(drawn(1), [["1", "a", 2]]);
  assert.deepEqual(drawn(3), [["1", "ab", 2], ["2", "c", 2]]);
  assert.deepEqual(drawn(9), [["1", "ab", 2], ["2", "cd", 2]]);
});

const hosts = [
  host("h1", { rack: "r1", labels: { zone: "a" } }),
  host("h2", { rack: "r1", labels: { zone: "b", gpu: "" }, cordoned: said }),
  host("h3", { unreachable_since: since, unreachable_why: "connection refused" }),
];
const names = (part: Partial<HostFilter>) => matchingHosts(hosts,
  { rack: "", label: "", condition: "", words: "", ...part }).map(({ name }) => name);

test("hosts are found by rack, label, condition and words", () => {
  assert.deepEqual(names({}), ["h1", "h2", "h3"]);
  assert.deepEqual(names({ rack: "r1" }), ["h1", "h2"]);
  assert.deepEqual(names({ rack: NO_RACK }), ["h3"]);
  assert.deepEqual(names({ label: "zone" }), ["h1", "h2"]);
  assert.deepEqual(names({ label: "zone=b" }), ["h2"]);
  assert.deepEqual(names({ label: "gpu=" }), ["h2"]);
  assert.deepEqual(names({ label: "toString" }), []);
  assert.deepEqual(names({ condition: "unreachable" }), ["h3"]);
  assert.deepEqual(names({ words: "FAN r1" }), ["h2"]);
  assert.deepEqual(names({ words: "refused" }), ["h3"]);
  assert.deepEqual(names({ words: "refused r1" }), []);
});

test("a filter of the address that is none is no filter", () => {
  assert.deepEqual(hostFilterOf(new Map([["condition", "tired"], ["words", "x"]])),
    { rack: "", label: "", condition: "", words: "x" });
});

test("sums are of what was observed, and say of how many hosts nothing was", () => {
  const sums = sumsOf([...hosts, host("h4", { observed: null, state: "joining" })]);
  assert.deepEqual([sums.hosts, sums.vfs, sums.free, sums.unobserved], [4, 18, 6, 1]);
  assert.deepEqual([sums.conditions.active, sums.conditions.cordoned, sums.conditions.joining],
    [1, 1, 1]);
});

test("what may be old is what a list said, and what is unreachable by now, since the earlier",
  () => {
    const list = new Map([
      ["h1", { host: "h1", since }], ["h3", { host: "h3", since: "2026-01-31T10:00:00.000Z" }],
    ]);
    const stale = staleOf([list], hosts);
    assert.deepEqual([...stale.values()].map(one => [one.host, one.since]).sort(),
      [["h1", since], ["h3", "2026-01-31T10:00:00.000Z"]]);
    assert.deepEqual([...staleOf([], hosts).values()],
      [{ host: "h3", since, why: "connection refused" }]);
  });

test("what serves the page says whether it is a fleet", () => {
  assert.equal(isFleet({ name: "vfmgr", features: ["events"] }), false);
  assert.equal(isFleet({ name: "vfmgr-fleetd", features: ["fleet"] }), true);
  assert.equal(isFleet({ name: "vfmgr", features: ["fleet"] }), true);
});
