// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { csvOf, filtered, jsonOf, sorted } from "../../../service/web/src/model/table";
import type { Column } from "../../../service/web/src/model/table";

interface Item { name: string; count: number | null }
const columns: Column<Item>[] = [
  { name: "name", title: "Name", value: item => item.name },
  { name: "count", title: "Count", value: item => item.count },
];
const items: Item[] = [
  { name: "vm10", count: 2 }, { name: "vm2", count: null }, { name: "vm1", count: 11 },
];
const names = (some: readonly Item[]) => some.map(item => item.name);

test("numbers in names and columns sort as numbers", () => {
  assert.deepEqual(names(sorted(items, columns, { column: "name", descending: false })),
    ["vm1", "vm2", "vm10"]);
  assert.deepEqual(names(sorted(items, columns, { column: "count", descending: true })),
    ["vm1", "vm10", "vm2"]);
});

test("what is not reported is last in both directions", () => {
  for (const descending of [false, true])
    assert.equal(names(sorted(items, columns, { column: "count", descending })).at(-1), "vm2");
});

test("every word of a filter must be found", () => {
  assert.deepEqual(names(filtered(items, columns, " VM1 ")), ["vm10", "vm1"]);
  assert.deepEqual(names(filtered(items, columns, "vm1 11")), ["vm1"]);
});

test("CSV quotes, and a guest's name is no formula", () => {
  const hostile: Item[] = [{ name: "=1+1", count: -1 }, { name: "a,\"b\"\nc", count: null }];
  assert.equal(csvOf(hostile, columns), "name,count\r\n'=1+1,-1\r\n\"a,\"\"b\"\"\nc\",\r\n");
});

test("JSON has the columns by name", () => {
  assert.deepEqual(JSON.parse(jsonOf(items.slice(1, 2), columns)), [{ name: "vm2", count: null }]);
});
