// SPDX-License-Identifier: Apache-2.0
// The store's rows, and the reading of rows that events are about. Frames come when a test says.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Refresher } from "../../../service/web/src/live/refresh";
import { Rows } from "../../../service/web/src/live/rows";

let frame: FrameRequestCallback | null = null;
globalThis.requestAnimationFrame = callback => {
  frame = callback;
  return 1;
};
function drawFrame(): void {
  const ready = frame;
  frame = null;
  ready?.(performance.now());
}

interface Item { id: string; group: string; value: number }
const rowsOf = (...items: Item[]) => {
  const rows = new Rows<Item>(item => item.id, item => item.group);
  rows.replace(items);
  drawFrame();
  return rows;
};
const item = (id: string, value = 0, group = "g"): Item => ({ id, group, value });
// Counts how often each listener runs.
const heard = (rows: Rows<Item>) => {
  const counts = { a1: 0, g: 0, h: 0, keys: 0 };
  rows.onRow("a1", () => ++counts.a1);
  rows.onGroup("g", () => ++counts.g);
  rows.onGroup("h", () => ++counts.h);
  rows.onKeys(() => ++counts.keys);
  return counts;
};

test("of many changes of a row a listener hears once in a frame, and others not at all", () => {
  const rows = rowsOf(item("a1"), item("a2", 0, "h"));
  const counts = heard(rows);
  for (let value = 1; value <= 500; ++value) rows.put(item("a1", value));
  assert.deepEqual(counts, { a1: 0, g: 0, h: 0, keys: 0 });
  drawFrame();
  assert.deepEqual(counts, { a1: 1, g: 1, h: 0, keys: 0 });
  assert.equal(rows.get("a1")?.value, 500);
});

test("of a thousand changed rows each is heard of, and no frame has them all", () => {
  const keys = Array.from({ length: 1000 }, (_, at) => `r${at}`);
  const rows = rowsOf(...keys.map(key => item(key)));
  const counts = new Map<string, number>();
  for (const key of keys) rows.onRow(key, () => counts.set(key, (counts.get(key) ?? 0) + 1));
  rows.replace(keys.map(key => item(key, 1)));
  let most = 0;
  while (frame !== null) {
    const before = counts.size;
    drawFrame();
    most = Math.max(most, counts.size - before);
  }
  assert.ok(most < 500, `${most} in one frame`);
  assert.deepEqual([...counts.values()], keys.map(() => 1));
});

test("what arrives as it was is no change", () => {
  const rows = rowsOf(item("a1"));
  const counts = heard(rows);
  rows.put(item("a1"));
  rows.replace([item("a1")]);
  drawFrame();
  assert.deepEqual(counts, { a1: 0, g: 0, h: 0, keys: 0 });
});

test("a row that moves leaves its group, and a removed one is gone from all", () => {
  const rows = rowsOf(item("a10"), item("a1"), item("a2"));
  assert.deepEqual(rows.groupKeys("g"), ["a1", "a2", "a10"]);
  const counts = heard(rows);
  rows.put(item("a1", 0, "h"));
  drawFrame();
  assert.deepEqual(counts, { a1: 1, g: 1, h: 1, keys: 0 });
  assert.deepEqual(rows.groupKeys("g"), ["a2", "a10"]);
  rows.remove("a2");
  drawFrame();
  assert.deepEqual(rows.group("g"), [item("a10")]);
  assert.deepEqual(rows.keys(), ["a1", "a10"]);
  assert.equal(counts.keys, 1);
});

test("a whole list removes what it lacks, within its part alone", () => {
  const rows = rowsOf(item("a1"), item("a2"), item("b1"));
  rows.replace([item("a2")], key => key.startsWith("a"));
  assert.deepEqual(rows.keys(), ["a2", "b1"]);
});

// A source whose answers come when a test says.
function source() {
  const asked: string[] = [];
  const answers: (() => void)[] = [];
  const ask = (what: string) => new Promise<void>(resolve => {
    asked.push(what);
    answers.push(resolve);
  });
  return { asked, answers, one: (key: string) => ask(key), all: () => ask("all") };
}
const settled = () => new Promise(resolve => setImmediate(resolve));

test("events about one row ask once, and once more for those that came meanwhile", async () => {
  const vms = source();
  const refresher = new Refresher({ vms }, () => undefined);
  for (let at = 0; at < 5; ++at) refresher.mark("vms", "vm1");
  await settled();
  assert.deepEqual(vms.asked, ["vm1"]);
  for (let at = 0; at < 5; ++at) refresher.mark("vms", "vm1");
  vms.answers[0]!();
  await settled();
  assert.deepEqual(vms.asked, ["vm1", "vm1"]);
  vms.answers[1]!();
  await settled();
  assert.deepEqual(vms.asked, ["vm1", "vm1"]);
});

test("events about many rows ask for the list", async () => {
  const vms = source();
  const refresher = new Refresher({ vms }, () => undefined);
  for (let at = 0; at < 100; ++at) refresher.mark("vms", `vm${at}`);
  await settled();
  assert.deepEqual(vms.asked, ["all"]);
});

test("a failure is told, and the next event asks again", async () => {
  const told: unknown[] = [];
  let asked = 0;
  const failing = {
    one: () => Promise.reject(new Error(`${++asked}`)), all: () => Promise.resolve(),
  };
  const refresher = new Refresher({ vms: failing }, (_, error) => told.push(error));
  refresher.mark("vms", "vm1");
  await settled();
  refresher.mark("vms", "vm1");
  await settled();
  assert.deepEqual(told, [new Error("1"), new Error("2")]);
});
