// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { diffLines, hunksOf } from "../../../service/web/src/model/diff";
import type { Line } from "../../../service/web/src/model/diff";

const shown = (lines: readonly Line[]) => lines.map(({ mark, text }) => mark + text);
const textOf = (lines: readonly Line[], without: "-" | "+") =>
  lines.filter(one => one.mark !== without).map(one => `${one.text}\n`).join("");
const text = (...lines: (string | number)[]) => lines.map(line => `${line}\n`).join("");

test("equal texts have no marks, and an empty text has no lines", () => {
  assert.deepEqual(shown(diffLines(text("a", "b"), text("a", "b"))), [" a", " b"]);
  assert.deepEqual(diffLines("", ""), []);
  assert.deepEqual(shown(diffLines("", text("a"))), ["+a"]);
  assert.deepEqual(shown(diffLines(text("a"), "")), ["-a"]);
});

test("a line that changed is taken away before it is added", () => {
  assert.deepEqual(shown(diffLines(text("a", "b", "c"), text("a", "x", "c"))),
    [" a", "-b", "+x", " c"]);
});

test("what both have stays, with as few marks as can be", () => {
  const lines = diffLines(text(..."abcabba"), text(..."cbabac"));
  assert.equal(lines.filter(one => one.mark !== " ").length, 5);
});

test("a last line without its end is the same line", () => {
  assert.deepEqual(shown(diffLines("a\nb\n", "a\nb")), [" a", " b"]);
});

test("each side of a difference is the text that it was made of", () => {
  let seed = 7;
  const random = (below: number) => {
    seed = (seed * 48271) % 2147483647;
    return seed % below;
  };
  for (let turn = 0; turn < 300; ++turn) {
    const [before, after] = [0, 1].map(() =>
      text(...Array.from({ length: random(12) }, () => "abc"[random(3)]!)));
    const lines = diffLines(before!, after!);
    assert.equal(textOf(lines, "+"), before);
    assert.equal(textOf(lines, "-"), after);
  }
});

test("texts that have little in common replace each other", () => {
  const many = (word: string) => Array.from({ length: 900 }, (_, at) => `${word} ${at}`);
  const lines = diffLines(text("begin", ...many("a"), "end"), text("begin", ...many("b"), "end"));
  assert.deepEqual(shown(lines), [" begin", ...many("-a"), ...many("+b"), " end"]);
});

test("hunks have the lines around what changed, and say where they begin", () => {
  const before = Array.from({ length: 20 }, (_, at) => `${at + 1}`);
  const after = before.flatMap(line => line === "5" ? [] : line === "18" ? ["18", "new"] : [line]);
  const hunks = hunksOf(diffLines(text(...before), text(...after)), 1);
  assert.deepEqual(hunks.map(one => [one.line, shown(one.lines)]),
    [[4, [" 4", "-5", " 6"]], [17, [" 18", "+new", " 19"]]]);
  assert.deepEqual(hunksOf(diffLines(text("a"), text("a"))), []);
});

test("changes that are near each other share a hunk", () => {
  const hunks = hunksOf(diffLines(text(1, 2, 3, 4, 5), text(1, "b", 3, "d", 5)), 1);
  assert.deepEqual(hunks.map(one => shown(one.lines)),
    [[" 1", "-2", "+b", " 3", "-4", "+d", " 5"]]);
});
